// Basic types, constants and strings.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "checks.h"
#include "echoes.h"

#include <cmath>
#include <limits>
#include <string>

namespace {

// The two ends of a type's range, and zero.
template <class T, class Operation>
void echo_range(Report& report, const std::string& name, Operation operation) {
    const T low = std::numeric_limits<T>::lowest();
    const T high = std::numeric_limits<T>::max();
    echo_value<T>(report, name + " ends", low, high, operation);
    echo_value<T>(report, name + " high and zero", high, T(0), operation);
    echo_value<T>(report, name + " small", T(1), T(100), operation);
}

template <class T, class Operation>
void echo_real(Report& report, const std::string& name, Operation operation) {
    using Limits = std::numeric_limits<T>;
    echo_range<T>(report, name, operation);
    echo_value<T>(report, name + " infinities", Limits::infinity(), -Limits::infinity(), operation);
    echo_value<T>(report, name + " NaN", Limits::quiet_NaN(), std::copysign(Limits::quiet_NaN(), T(-1)),
                  operation);
    echo_value<T>(report, name + " zeros", T(0), T(-0.0), operation);
    echo_value<T>(report, name + " subnormal", Limits::denorm_min(), -Limits::denorm_min(), operation);
    echo_value<T>(report, name + " fractions", T(1) / T(3), T(-3.141592653589793), operation);
}

void check_constants(Context& context) {
    Report& report = context.report;
    report.check("constant_values", [&] {
        Interop::ConstantValues_var values = context.echo->constant_values();
        report.ok(values->max_name == 16, "MAX_NAME");
        report.ok(values->max_few == 8, "MAX_FEW");
        report.ok(values->enabled_value, "ENABLED");
        report.ok(values->mark_value == 0x2a, "MARK");
        report.ok(values->letter_value == 'Q', "LETTER");
        report.ok(values->depth_value == -35, "DEPTH");
        report.ok(values->ports_value == 65535, "PORTS");
        report.ok(values->lowest_value == -2147483647, "LOWEST");
        report.ok(values->flags_value == 0x80000011, "FLAGS");
        report.ok(values->farthest_value == std::numeric_limits<CORBA::LongLong>::max(), "FARTHEST");
        report.ok(values->everything_value == std::numeric_limits<CORBA::ULongLong>::max(),
                  "EVERYTHING");
        report.ok(values->quarter_value == 0.25F, "QUARTER");
        report.ok(values->root_value == 750.0, "ROOT");
        report.ok(std::string("hello, world\t\"quoted\"") == values->greeting_value.in(), "GREETING");
        report.ok(values->favourite_value == Interop::BLUE, "FAVOURITE");
        return true;
    });
}

} // namespace

void check_basics(Context& context) {
    Report& report = context.report;
    Interop::Echo_ptr echo = context.echo;

    report.check("nothing", [&] {
        echo->nothing();
        return true;
    });
    check_constants(context);

    echo_value<CORBA::Boolean>(report, "echo_boolean true", true, false, OPERATION(echo, echo_boolean));
    echo_value<CORBA::Boolean>(report, "echo_boolean false", false, true,
                               OPERATION(echo, echo_boolean));
    echo_value<CORBA::Octet>(report, "echo_octet ends", 0, 255, OPERATION(echo, echo_octet));
    echo_value<CORBA::Char>(report, "echo_char ASCII", 'a', '~', OPERATION(echo, echo_char));
    echo_value<CORBA::Char>(report, "echo_char NUL", '\0', 'z', OPERATION(echo, echo_char));
    echo_range<CORBA::Short>(report, "echo_short", OPERATION(echo, echo_short));
    echo_range<CORBA::UShort>(report, "echo_ushort", OPERATION(echo, echo_ushort));
    echo_range<CORBA::Long>(report, "echo_long", OPERATION(echo, echo_long));
    echo_range<CORBA::ULong>(report, "echo_ulong", OPERATION(echo, echo_ulong));
    echo_range<CORBA::LongLong>(report, "echo_longlong", OPERATION(echo, echo_longlong));
    echo_range<CORBA::ULongLong>(report, "echo_ulonglong", OPERATION(echo, echo_ulonglong));
    echo_real<CORBA::Float>(report, "echo_float", OPERATION(echo, echo_float));
    echo_real<CORBA::Double>(report, "echo_double", OPERATION(echo, echo_double));
    echo_value<Interop::Color>(report, "echo_color ends", Interop::RED, Interop::VIOLET,
                               OPERATION(echo, echo_color));
    echo_value<Interop::Color>(report, "echo_color middle", Interop::GREEN, Interop::BLUE,
                               OPERATION(echo, echo_color));
}

void check_texts(Context& context) {
    Report& report = context.report;
    Interop::Echo_ptr echo = context.echo;

    const std::string full_name(Interop::MAX_NAME, 'n');
    echo_string(report, "echo_string words", "hello", "world", OPERATION(echo, echo_string));
    echo_string(report, "echo_string empty", "", "not empty", OPERATION(echo, echo_string));
    echo_string(report, "echo_string control characters", "\x01\t\r\n\x7f", " ",
                OPERATION(echo, echo_string));
    echo_string(report, "echo_name full", full_name, "", OPERATION(echo, echo_name));
    echo_string(report, "echo_nickname full", "nick", full_name, OPERATION(echo, echo_nickname));

    const std::string overfull_name = full_name + "n";
    report.raises<CORBA::SystemException>("echo_name above its bound is an exception", [&] {
        CORBA::String_var io = CORBA::string_dup("");
        CORBA::String_var o;
        CORBA::String_var result = echo->echo_name(overfull_name.c_str(), io.inout(), o.out());
    });

    echo_variable(report, "echo_words empty", Interop::Words(),
                  sequence<Interop::Words>({"", "a", "bc", "def", "ghij", "klmno"}),
                  OPERATION(echo, echo_words));
    echo_variable(report, "echo_words", sequence<Interop::Words>({"one"}),
                  sequence<Interop::Words>({"two", "three"}), OPERATION(echo, echo_words));
    echo_variable(report, "echo_names", sequence<Interop::Names>({full_name.c_str(), ""}),
                  sequence<Interop::Names>({"x"}), OPERATION(echo, echo_names));
}

void check_latin1(Context& context) {
    Report& report = context.report;
    Interop::Echo_ptr echo = context.echo;

    echo_string(report, "echo_string letters", "gr\xfc\xdf dich", "\xe9t\xe9",
                OPERATION(echo, echo_string));
    std::string all;
    for (int c = 1; c < 256; ++c)
        all += static_cast<char>(c);
    echo_string(report, "echo_string every character", all, "\xff", OPERATION(echo, echo_string));
    echo_variable(report, "echo_words letters", sequence<Interop::Words>({"\xe4", "\xf6\xfc"}),
                  sequence<Interop::Words>({"\xf8"}), OPERATION(echo, echo_words));
}

void check_latin1_chars(Context& context) {
    Report& report = context.report;
    Interop::Echo_ptr echo = context.echo;

    echo_value<CORBA::Char>(report, "echo_char upper half", '\xe9', '\xff', OPERATION(echo, echo_char));
    echo_value<CORBA::Char>(report, "echo_char upper controls", '\x80', '\xa0',
                            OPERATION(echo, echo_char));
    const auto character = [](CORBA::ULong i) { return static_cast<CORBA::Char>(i); };
    echo_variable(report, "echo_chars every character", sequence_of<Interop::Chars>(256, character),
                  Interop::Chars(), OPERATION(echo, echo_chars));
}

void check_multibyte(Context& context) {
    Report& report = context.report;
    Interop::Echo_ptr echo = context.echo;

    echo_string(report, "echo_string Latin-1 letters", "gr\xc3\xbc\xc3\x9f dich", "\xc3\xa9t\xc3\xa9",
                OPERATION(echo, echo_string));
    echo_string(report, "echo_string Greek and Chinese", "\xce\xba\xcf\x8c\xcf\x83\xce\xbc\xce\xb5",
                "\xe4\xbd\xa0\xe5\xa5\xbd", OPERATION(echo, echo_string));
    echo_string(report, "echo_string beyond the 16-bit plane", "\xf0\x9f\x98\x80",
                "a\xf0\x9f\x9a\x80z", OPERATION(echo, echo_string));
    echo_variable(report, "echo_words of several scripts",
                  sequence<Interop::Words>({"\xe2\x82\xac", "", "\xd0\xb4\xd0\xb0"}),
                  sequence<Interop::Words>({"\xc3\xb8"}), OPERATION(echo, echo_words));
}
