// Structs, sequences and arrays.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "checks.h"
#include "echoes.h"

#include <limits>
#include <string>

Interop::Shapes::Point point(double x, double y) {
    Interop::Shapes::Point p;
    p.x = x;
    p.y = y;
    return p;
}

Interop::Shapes::Segment segment(double x, Interop::Color ink) {
    Interop::Shapes::Segment s;
    s.head = point(x, -x);
    s.tail = point(x + 0.5, x - 0.5);
    s.ink = ink;
    return s;
}

Interop::Entry entry(const char* key, CORBA::Long value) {
    Interop::Entry e;
    e.key = key;
    e.value = value;
    return e;
}

Interop::Keywords keywords(CORBA::Long type, const char* text, CORBA::Boolean context) {
    Interop::Keywords k;
    k.type = type;
    k._cxx_class = text;
    k.context = context;
    return k;
}

Interop::Document document(CORBA::ULong n) {
    const auto number = static_cast<CORBA::Long>(n);
    const auto text = [&](const char* prefix, CORBA::ULong i) {
        return CORBA::string_dup((prefix + std::to_string(n * 10 + i)).c_str());
    };
    const CORBA::ULong part = n % 5;
    Interop::Document d;
    d.version = static_cast<CORBA::Octet>(n);
    d.author = text("author", 0);
    d.first = entry("first", number);
    d.others = sequence_of<Interop::Entries>(
        part, [&](CORBA::ULong i) { return entry("other", number + static_cast<CORBA::Long>(i)); });
    d.frame = segment(n, static_cast<Interop::Color>(n % 4));
    d.outline = sequence_of<Interop::Shapes::Path>(
        part, [&](CORBA::ULong i) { return point(n, i); });
    d.samples.length(part);
    for (CORBA::ULong i = 0; i < part; ++i)
        d.samples[i] = n / (i + 1.0);
    d.remarks = sequence_of<Interop::Words>(part, [&](CORBA::ULong i) { return text("remark", i); });
    for (CORBA::ULong i = 0; i < 3; ++i)
        d.headings[i] = text("heading", i);
    for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 4; ++column)
            d.weights[row][column] = number * row - column;
    d.pair[0] = number;
    d.pair[1] = -number;
    d.ragged.length(part);
    for (CORBA::ULong i = 0; i < part; ++i)
        d.ragged[i] = sequence_of<Interop::Longs>(
            i, [&](CORBA::ULong j) { return static_cast<CORBA::Long>(n + j); });
    d.cover = static_cast<Interop::Color>((n + 1) % 4);
    d.keys = keywords(number, "class", n % 2 == 0);
    return d;
}

namespace {

Interop::Mixed mixed_low() {
    Interop::Mixed m;
    m.a_octet = 0;
    m.a_double = std::numeric_limits<double>::lowest();
    m.a_boolean = false;
    m.a_longlong = std::numeric_limits<CORBA::LongLong>::min();
    m.a_char = 'A';
    m.a_short = std::numeric_limits<CORBA::Short>::min();
    m.b_octet = 1;
    m.a_ulonglong = 0;
    m.a_ushort = 0;
    m.a_long = std::numeric_limits<CORBA::Long>::min();
    m.c_octet = 2;
    m.a_float = std::numeric_limits<float>::lowest();
    m.a_ulong = 0;
    m.a_color = Interop::RED;
    m.d_octet = 3;
    return m;
}

Interop::Mixed mixed_high() {
    Interop::Mixed m;
    m.a_octet = 255;
    m.a_double = std::numeric_limits<double>::infinity();
    m.a_boolean = true;
    m.a_longlong = std::numeric_limits<CORBA::LongLong>::max();
    m.a_char = 'z';
    m.a_short = std::numeric_limits<CORBA::Short>::max();
    m.b_octet = 254;
    m.a_ulonglong = std::numeric_limits<CORBA::ULongLong>::max();
    m.a_ushort = std::numeric_limits<CORBA::UShort>::max();
    m.a_long = std::numeric_limits<CORBA::Long>::max();
    m.c_octet = 253;
    m.a_float = std::numeric_limits<float>::min();
    m.a_ulong = std::numeric_limits<CORBA::ULong>::max();
    m.a_color = Interop::VIOLET;
    m.d_octet = 252;
    return m;
}

// Sequences of numbers: none, one, a few, and both ends of the range.
template <class Sequence, class T, class Operation>
void echo_numbers(Report& report, const std::string& name, Operation operation) {
    const T low = std::numeric_limits<T>::lowest();
    const T high = std::numeric_limits<T>::max();
    echo_variable(report, name + " empty", Sequence(), sequence<Sequence, T>({T(1)}), operation);
    echo_variable(report, name, sequence<Sequence, T>({low, T(0), high}),
                  sequence<Sequence, T>({high, T(3), T(2), T(1), low}), operation);
}

} // namespace

void check_structs(Context& context) {
    Report& report = context.report;
    Interop::Echo_ptr echo = context.echo;

    echo_value(report, "echo_point", point(1.0, -2.5), point(0.0, 1e300), OPERATION(echo, echo_point));
    echo_value(report, "echo_segment", segment(3.0, Interop::GREEN), segment(-7.0, Interop::VIOLET),
               OPERATION(echo, echo_segment));
    echo_value(report, "echo_mixed", mixed_low(), mixed_high(), OPERATION(echo, echo_mixed));
    echo_variable(report, "echo_keywords", keywords(1, "one", true), keywords(-1, "", false),
                  OPERATION(echo, echo_keywords));
    echo_variable(report, "echo_entry", entry("", 0), entry("twelve", 12), OPERATION(echo, echo_entry));
    for (CORBA::ULong n = 0; n < 5; ++n)
        echo_variable(report, "echo_document " + std::to_string(n), document(n), document(n + 1),
                      OPERATION(echo, echo_document));
}

void check_sequences(Context& context) {
    using namespace Interop;
    Report& report = context.report;
    Echo_ptr echo = context.echo;

    echo_variable(report, "echo_booleans", sequence<Booleans>({true, false, true}),
                  sequence<Booleans>({false}), OPERATION(echo, echo_booleans));
    echo_numbers<Octets, CORBA::Octet>(report, "echo_octets", OPERATION(echo, echo_octets));
    echo_variable(report, "echo_chars", sequence<Chars>({'a', 'b', 'c'}), sequence<Chars>({'\0', 'z'}),
                  OPERATION(echo, echo_chars));
    echo_numbers<Shorts, CORBA::Short>(report, "echo_shorts", OPERATION(echo, echo_shorts));
    echo_numbers<UShorts, CORBA::UShort>(report, "echo_ushorts", OPERATION(echo, echo_ushorts));
    echo_numbers<Longs, CORBA::Long>(report, "echo_longs", OPERATION(echo, echo_longs));
    echo_numbers<ULongs, CORBA::ULong>(report, "echo_ulongs", OPERATION(echo, echo_ulongs));
    echo_numbers<LongLongs, CORBA::LongLong>(report, "echo_longlongs", OPERATION(echo, echo_longlongs));
    echo_numbers<ULongLongs, CORBA::ULongLong>(report, "echo_ulonglongs",
                                               OPERATION(echo, echo_ulonglongs));
    echo_numbers<Floats, CORBA::Float>(report, "echo_floats", OPERATION(echo, echo_floats));
    echo_numbers<Doubles, CORBA::Double>(report, "echo_doubles", OPERATION(echo, echo_doubles));
    echo_variable(report, "echo_colors", sequence<Colors>({VIOLET, RED, BLUE}), Colors(),
                  OPERATION(echo, echo_colors));
    echo_numbers<FewLongs, CORBA::Long>(report, "echo_few_longs", OPERATION(echo, echo_few_longs));
    echo_variable(report, "echo_few_longs full", sequence<FewLongs>({1, 2, 3, 4, 5, 6, 7, 8}),
                  FewLongs(), OPERATION(echo, echo_few_longs));

    const auto longs = [](CORBA::ULong n) {
        return sequence_of<Longs>(n, [](CORBA::ULong i) { return static_cast<CORBA::Long>(i); });
    };
    echo_variable(report, "echo_long_lists", sequence_of<LongLists>(5, longs),
                  sequence<LongLists>({Longs()}), OPERATION(echo, echo_long_lists));

    WordLists word_lists;
    word_lists.length(3);
    word_lists[0] = sequence<Words>({"a", "bb"});
    word_lists[2] = sequence<Words>({"", "ccc", ""});
    echo_variable(report, "echo_word_lists", word_lists, WordLists(), OPERATION(echo, echo_word_lists));

    echo_variable(report, "echo_path", sequence<Shapes::Path>({point(1, 2), point(3, 4)}),
                  Shapes::Path(), OPERATION(echo, echo_path));
    echo_variable(report, "echo_entries", sequence<Entries>({entry("a", 1), entry("", 2)}),
                  sequence<Entries>({entry("bcd", 3)}), OPERATION(echo, echo_entries));

    Matrices matrices;
    matrices.length(2);
    for (CORBA::ULong i = 0; i < 2; ++i)
        for (int row = 0; row < 3; ++row)
            for (int column = 0; column < 4; ++column)
                matrices[i][row][column] = static_cast<CORBA::Long>(i) * 100 + row * 10 + column;
    echo_variable(report, "echo_matrices", matrices, Matrices(), OPERATION(echo, echo_matrices));
    echo_variable(report, "echo_documents", sequence_of<Documents>(6, document), Documents(),
                  OPERATION(echo, echo_documents));

    report.check("statistics", [&] {
        CORBA::Long low = 0;
        CORBA::Long high = 0;
        CORBA::ULong count = 0;
        const CORBA::LongLong sum =
            echo->statistics(sequence<Longs>({2147483647, -5, 2147483647}), low, high, count);
        return sum == 4294967289LL && low == -5 && high == 2147483647 && count == 3;
    });
    report.check("statistics of nothing", [&] {
        CORBA::Long low = 1;
        CORBA::Long high = 1;
        CORBA::ULong count = 1;
        return echo->statistics(Longs(), low, high, count) == 0 && low == 0 && high == 0 && count == 0;
    });
}

void check_arrays(Context& context) {
    using namespace Interop;
    Report& report = context.report;
    Echo_ptr echo = context.echo;

    Digest digests[2];
    Matrix matrices[2];
    Cube cubes[2];
    Shapes::Triangle triangles[2];
    Labels labels[2];
    Rows rows[2];
    for (int n = 0; n < 2; ++n) {
        for (int i = 0; i < 16; ++i)
            digests[n][i] = static_cast<CORBA::Octet>(n * 100 + i);
        for (int row = 0; row < 3; ++row) {
            for (int column = 0; column < 4; ++column) {
                matrices[n][row][column] = n * 1000 + row * 10 + column;
                cubes[n][0][row][column] = n * 2000 - row;
                cubes[n][1][row][column] = n * 3000 - column;
            }
            triangles[n][row] = point(n, row);
            labels[n][row] = std::to_string(n * 1000 * row).c_str();
        }
        rows[n][n] = sequence<Longs>({n, 1, 2, 3});
    }
    echo_array<Digest_var>(report, "echo_digest", digests[0], digests[1], OPERATION(echo, echo_digest));
    echo_array<Matrix_var>(report, "echo_matrix", matrices[0], matrices[1],
                           OPERATION(echo, echo_matrix));
    echo_array<Cube_var>(report, "echo_cube", cubes[0], cubes[1], OPERATION(echo, echo_cube));
    echo_array<Shapes::Triangle_var>(report, "echo_triangle", triangles[0], triangles[1],
                                     OPERATION(echo, echo_triangle));
    echo_variable_array<Labels_var>(report, "echo_labels", labels[0], labels[1],
                                    OPERATION(echo, echo_labels));
    echo_variable_array<Rows_var>(report, "echo_rows", rows[0], rows[1], OPERATION(echo, echo_rows));
}
