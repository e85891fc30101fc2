// omni_values_client --ior FILE|URL [-ORB...]
//
// Checks any ORB's server of Values::Mirror. Prints a line for each check, and ends "N passed, M
// failed".
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "program.h"
#include "report.h"
#include "values_types.h"

#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>

namespace {

void check_points(Values::Mirror_ptr mirror, Report& report) {
    report.group("points");
    auto point = make_point(3, 4);
    report.check("a point", [&] {
        Values::Point_var back = mirror->echo_point(point.in());
        return is_point(back.in(), 3, 4);
    });
    report.check("null", [&] {
        Values::Point_var back = mirror->echo_point(nullptr);
        return back.in() == nullptr;
    });
    report.check("a derived value as its base", [&] {
        auto named = make_named("name", point.in(), 2.5);
        Values::Point_var back = mirror->echo_point(named.in());
        Values::Named* narrowed = Values::Named::_downcast(back.in());
        return narrowed != nullptr && is_point(narrowed, 1, 2) && narrowed->weight() == 2.5 &&
               narrowed->name() == std::string("name") && is_point(narrowed->origin(), 3, 4);
    });
    report.check("one value twice", [&] { return mirror->are_one(point.in(), point.in()); });
    report.check("two values", [&] {
        auto other = make_point(3, 4);
        return !mirror->are_one(point.in(), other.in());
    });
    report.check("inout and out", [&] {
        Values::Point_var one = make_point(1, 1);
        Values::Point_var other;
        Values::Point_var result = mirror->rotate(one.inout(), other.out());
        return is_point(one.in(), 7, 8) && is_point(other.in(), 1, 1) && result.in() == other.in();
    });
    report.check("a sequence with shared elements", [&] {
        Values::Points points;
        points.length(4);
        points[0] = make_named("n", point.in(), 0)._retn();
        points[1] = make_point(5, 6)._retn();
        CORBA::add_ref(points[1].in());
        points[2] = points[1].in();
        Values::Points_var back = mirror->echo_points(points);
        return back->length() == 4 && Values::Named::_downcast(back[0]) != nullptr &&
               is_point(back[1], 5, 6) && back[1] == back[2] && back[3] == nullptr;
    });
    report.raises<Values::Misplaced>(
        "in an exception", [&] { mirror->misplace(point.in()); },
        [](const Values::Misplaced& e) {
            return is_point(e.place.in(), 3, 4) && std::string(e.why.in()) == "asked for";
        });
}

void check_truncation(Values::Mirror_ptr mirror, Report& report) {
    report.group("truncation");
    report.check("sent to who does not know it", [&] {
        auto abode = make_point(3, 4);
        auto mate = make_named("mate", abode.in(), 1.5);
        CORBA::add_ref(abode.in());
        CORBA::add_ref(mate.in());
        Values::Point_var stranger(new StrangerValue("I", abode.in(), mate.in(), 9));
        Values::Named_var back = mirror->as_named(stranger.in());
        return back.in() != nullptr && back->name() == std::string("I") && back->weight() == 0.5;
    });
    report.check("received without knowing it", [&] {
        Values::Point_var back = mirror->stranger();
        Values::Named* named = Values::Named::_downcast(back.in());
        return named != nullptr && named->name() == std::string("from afar") &&
               is_point(named, 1, 2);
    });
}

void check_structures(Values::Mirror_ptr mirror, Report& report) {
    report.group("structures");
    report.check("a list", [&] {
        Values::Node_var list;
        for (CORBA::ULong n = 0; n < 40; ++n)
            list = new OBV_Values::Node(n, list._retn());
        Values::Node_var back = mirror->echo_node(list.in());
        CORBA::ULong n = 40;
        for (Values::Node* node = back.in(); node != nullptr; node = node->next())
            if (node->number() != --n)
                return false;
        return n == 0;
    });
    report.check("a tree with a shared leaf", [&] {
        Values::Trees none;
        Values::Tree_var leaf(new OBV_Values::Tree("leaf", none));
        Values::Trees branches;
        branches.length(2);
        CORBA::add_ref(leaf.in());
        branches[0] = leaf.in();
        CORBA::add_ref(leaf.in());
        branches[1] = leaf.in();
        Values::Tree_var tree(new OBV_Values::Tree("tree", branches));
        Values::Tree_var back = mirror->echo_tree(tree.in());
        const Values::Trees& twice = back->branches();
        return back->label() == std::string("tree") && twice.length() == 2 &&
               twice[0] == twice[1] && twice[0]->label() == std::string("leaf");
    });
}

void check_boxes(Values::Mirror_ptr mirror, Report& report) {
    report.group("boxes");
    report.check("a string", [&] {
        Values::Text_var box(new Values::Text("text"));
        Values::Text_var back = mirror->echo_text(box.in());
        return back->_value() == std::string("text");
    });
    report.check("a sequence", [&] {
        Values::Numbers_var box(new Values::Numbers);
        box->length(1000);
        box->_value()[999] = 0.5;
        Values::Numbers_var back = mirror->echo_numbers(box.in());
        return back->length() == 1000 && back->_value()[999] == 0.5;
    });
    report.check("a struct with a value", [&] {
        Values::Pair pair;
        pair.left = CORBA::string_dup("left");
        pair.right = make_point(1, 2)._retn();
        Values::PairBox_var box(new Values::PairBox(pair));
        Values::PairBox_var back = mirror->echo_pair(box.in());
        return back->left() == std::string("left") && is_point(back->right(), 1, 2);
    });
}

void check_shapes(Values::Mirror_ptr mirror, Report& report) {
    report.group("abstract interfaces");
    report.check("a value", [&] {
        CORBA::ValueBase_var held(new SquareValue(1.5));
        Values::Shape_ptr square = Values::Square::_downcast(held.in());
        Values::Shape_var back = mirror->echo_shape(square);
        return mirror->area_of(square) == 2.25 && back->area() == 2.25 &&
               Values::Square::_downcast(back.in()) != nullptr;
    });
    report.check("an object", [&] {
        Values::Field_var field = mirror->a_field();
        Values::Shape_var back = mirror->echo_shape(field.in());
        return field->rows() == 3 && mirror->area_of(field.in()) == 12 && back->area() == 12;
    });
    report.check("nil", [&] {
        Values::Shape_var back = mirror->echo_shape(Values::Shape::_nil());
        return CORBA::is_nil(back) && mirror->area_of(Values::Shape::_nil()) == 0;
    });
}

} // namespace

int main(int argc, char** argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4");
        if (argc != 3 || argv[1] != std::string("--ior"))
            throw std::runtime_error("usage: omni_values_client --ior FILE|URL [-ORB...]");
        register_factories(orb);
        CORBA::Object_var object = orb->string_to_object(reference_text(argv[2]).c_str());
        Values::Mirror_var mirror = Values::Mirror::_narrow(object);
        if (CORBA::is_nil(mirror))
            throw std::runtime_error("the reference is not one of a Values::Mirror");
        Report report;
        check_points(mirror, report);
        check_truncation(mirror, report);
        check_structures(mirror, report);
        check_boxes(mirror, report);
        check_shapes(mirror, report);
        const bool passed = report.finish();
        orb->destroy();
        return passed ? 0 : 1;
    } catch (...) {
        std::cerr << "omni_values_client: " << describe_current_exception() << '\n';
        return 2;
    }
}
