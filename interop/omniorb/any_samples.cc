// The samples of chronorb-interop/idl/anys.idl, put into anys and taken out of them by type.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "any_samples.h"

#include <cstring>
#include <cwchar>

using namespace Anys;

namespace {

Point make_point() {
    Point point;
    point.x = 0.25;
    point.y = -7;
    point.name = "corner";
    return point;
}

bool is_point(const Point& point) {
    return point.x == 0.25 && point.y == -7 && std::strcmp(point.name, "corner") == 0;
}

Node make_tree() {
    Node tree;
    tree.number = 1;
    tree.children.length(2);
    tree.children[0].number = 2;
    tree.children[1].number = 3;
    tree.children[1].children.length(1);
    tree.children[1].children[0].number = 4;
    return tree;
}

bool is_tree(const Node& tree) {
    return tree.number == 1 && tree.children.length() == 2 && tree.children[0].number == 2 &&
           tree.children[0].children.length() == 0 && tree.children[1].number == 3 &&
           tree.children[1].children.length() == 1 &&
           tree.children[1].children[0].number == 4 &&
           tree.children[1].children[0].children.length() == 0;
}

const char* const PRICE = "-1234567.89";
const wchar_t* const WIDE = L"Gr\u00fc\u00dfe \u0394";

// A copy of it would have forgotten how many digits its price has.
Holder* make_holder() {
    auto* holder = new Holder;
    holder->before = 9;
    holder->inner <<= make_point();
    holder->kind = CORBA::TypeCode::_duplicate(_tc_Node);
    holder->cost = Price(PRICE);
    holder->wide = CORBA::wstring_dup(WIDE);
    return holder;
}

bool is_holder(const Holder& holder) {
    const Point* point;
    return holder.before == 9 && (holder.inner >>= point) && is_point(*point) &&
           holder.kind->equal(_tc_Node) && holder.cost == CORBA::Fixed(PRICE) &&
           std::wcscmp(holder.wide, WIDE) == 0;
}

template <class T>
bool holds(const CORBA::Any& any, T value) {
    T found;
    return (any >>= found) && found == value;
}

} // namespace

CORBA::Any make_sample(Sample kind, Mirror_ptr self) {
    CORBA::Any any;
    switch (kind) {
    case NOTHING:
        break;
    case A_BOOLEAN:
        any <<= CORBA::Any::from_boolean(true);
        break;
    case AN_OCTET:
        any <<= CORBA::Any::from_octet(200);
        break;
    case A_SHORT:
        any <<= CORBA::Short(-5);
        break;
    case AN_UNSIGNED_LONG:
        any <<= CORBA::ULong(4000000000u);
        break;
    case A_LONG_LONG:
        any <<= CORBA::LongLong(-5000000000000);
        break;
    case A_FLOAT:
        any <<= CORBA::Float(0.5);
        break;
    case A_DOUBLE:
        any <<= CORBA::Double(-1e300);
        break;
    case A_CHAR:
        any <<= CORBA::Any::from_char('x');
        break;
    case A_WCHAR:
        any <<= CORBA::Any::from_wchar(L'\u0394');
        break;
    case A_STRING:
        any <<= "caf\xe9";
        break;
    case A_WSTRING:
        any <<= WIDE;
        break;
    case AN_ENUMERATOR:
        any <<= BLUE;
        break;
    case A_STRUCT:
        any <<= make_point();
        break;
    case STRUCTS: {
        Points points;
        points.length(2);
        points[0] = make_point();
        points[1] = make_point();
        any <<= points;
        break;
    }
    case MANY_LONGS: {
        Longs longs;
        longs.length(3);
        for (CORBA::ULong i = 0; i < 3; ++i)
            longs[i] = -1 - CORBA::Long(i);
        any <<= longs;
        break;
    }
    case MANY_OCTETS: {
        Octets octets;
        octets.length(5);
        for (CORBA::ULong i = 0; i < 5; ++i)
            octets[i] = CORBA::Octet(250 + i);
        any <<= octets;
        break;
    }
    case A_GRID: {
        Grid grid = {{1, 2, 3}, {4, 5, 6}};
        any <<= Grid_forany(grid);
        break;
    }
    case A_CHOICE: {
        Choice choice;
        choice.number(77);
        any <<= choice;
        break;
    }
    case ANOTHER_CHOICE: {
        Choice choice;
        choice.text("blue");
        choice._d(BLUE);
        any <<= choice;
        break;
    }
    case A_LETTER: {
        Points points;
        points.length(1);
        points[0] = make_point();
        Letter letter;
        letter.many(points);
        letter._d('z');
        any <<= letter;
        break;
    }
    case A_PERHAPS: {
        Perhaps perhaps;
        perhaps._default();
        any <<= perhaps;
        break;
    }
    case A_TREE:
        any <<= make_tree();
        break;
    case A_PRICE:
        any <<= CORBA::Any::from_fixed(CORBA::Fixed(PRICE), 9, 2);
        break;
    case A_HOLDER:
        any <<= make_holder();
        break;
    case AN_ANY: {
        CORBA::Any inner;
        inner <<= make_sample(A_STRUCT, self);
        any <<= inner;
        break;
    }
    case A_TYPE:
        any <<= _tc_Letter;
        break;
    case A_REFERENCE:
        any <<= self;
        break;
    case NO_REFERENCE:
        any <<= Mirror::_nil();
        break;
    case AN_EXCEPTION:
        any <<= Refused("closed", 12);
        break;
    case A_TICKER:
        any <<= CORBA::Any::from_string("ACME", 8);
        break;
    }
    return any;
}

bool is_sample(Sample kind, const CORBA::Any& any) {
    switch (kind) {
    case NOTHING: {
        CORBA::TypeCode_var type = any.type();
        return type->equal(CORBA::_tc_null);
    }
    case A_BOOLEAN: {
        CORBA::Boolean value;
        return (any >>= CORBA::Any::to_boolean(value)) && value;
    }
    case AN_OCTET: {
        CORBA::Octet value;
        return (any >>= CORBA::Any::to_octet(value)) && value == 200;
    }
    case A_SHORT:
        return holds<CORBA::Short>(any, -5);
    case AN_UNSIGNED_LONG:
        return holds<CORBA::ULong>(any, 4000000000u);
    case A_LONG_LONG:
        return holds<CORBA::LongLong>(any, -5000000000000);
    case A_FLOAT:
        return holds<CORBA::Float>(any, 0.5);
    case A_DOUBLE:
        return holds<CORBA::Double>(any, -1e300);
    case A_CHAR: {
        CORBA::Char value;
        return (any >>= CORBA::Any::to_char(value)) && value == 'x';
    }
    case A_WCHAR: {
        CORBA::WChar value;
        return (any >>= CORBA::Any::to_wchar(value)) && value == L'\u0394';
    }
    case A_STRING: {
        const char* value;
        return (any >>= value) && std::strcmp(value, "caf\xe9") == 0;
    }
    case A_WSTRING: {
        const CORBA::WChar* value;
        return (any >>= value) && std::wcscmp(value, WIDE) == 0;
    }
    case AN_ENUMERATOR:
        return holds<Color>(any, BLUE);
    case A_STRUCT: {
        const Point* point;
        return (any >>= point) && is_point(*point);
    }
    case STRUCTS: {
        const Points* points;
        return (any >>= points) && points->length() == 2 && is_point((*points)[0]) &&
               is_point((*points)[1]);
    }
    case MANY_LONGS: {
        const Longs* longs;
        return (any >>= longs) && longs->length() == 3 && (*longs)[0] == -1 &&
               (*longs)[2] == -3;
    }
    case MANY_OCTETS: {
        const Octets* octets;
        return (any >>= octets) && octets->length() == 5 && (*octets)[0] == 250 &&
               (*octets)[4] == 254;
    }
    case A_GRID: {
        Grid_forany grid;
        return (any >>= grid) && grid[0][0] == 1 && grid[1][2] == 6;
    }
    case A_CHOICE: {
        const Choice* choice;
        return (any >>= choice) && choice->_d() == RED && choice->number() == 77;
    }
    case ANOTHER_CHOICE: {
        const Choice* choice;
        return (any >>= choice) && choice->_d() == BLUE && std::strcmp(choice->text(), "blue") == 0;
    }
    case A_LETTER: {
        const Letter* letter;
        return (any >>= letter) && letter->_d() == 'z' && letter->many().length() == 1 &&
               is_point(letter->many()[0]);
    }
    case A_PERHAPS: {
        const Perhaps* perhaps;
        return (any >>= perhaps) && !perhaps->_d();
    }
    case A_TREE: {
        const Node* tree;
        return (any >>= tree) && is_tree(*tree);
    }
    case A_PRICE: {
        CORBA::Fixed value;
        return (any >>= CORBA::Any::to_fixed(value, 9, 2)) && value == CORBA::Fixed(PRICE);
    }
    case A_HOLDER: {
        const Holder* holder;
        return (any >>= holder) && is_holder(*holder);
    }
    case AN_ANY: {
        const CORBA::Any* middle;
        const CORBA::Any* inner;
        return (any >>= middle) && (*middle >>= inner) && is_sample(A_STRUCT, *inner);
    }
    case A_TYPE: {
        CORBA::TypeCode_ptr type;
        return (any >>= type) && type->equal(_tc_Letter);
    }
    case A_REFERENCE: {
        Mirror_ptr mirror;
        return (any >>= mirror) && !CORBA::is_nil(mirror);
    }
    case NO_REFERENCE: {
        Mirror_ptr mirror;
        return (any >>= mirror) && CORBA::is_nil(mirror);
    }
    case AN_EXCEPTION: {
        const Refused* refused;
        return (any >>= refused) && std::strcmp(refused->reason, "closed") == 0 &&
               refused->code == 12;
    }
    case A_TICKER: {
        const char* value;
        return (any >>= CORBA::Any::to_string(value, 8)) && std::strcmp(value, "ACME") == 0;
    }
    }
    return false;
}
