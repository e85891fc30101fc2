// Wide characters and long double.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "checks.h"
#include "echoes.h"

#include <limits>
#include <string>

namespace {

Interop::WideEntry wide_entry(CORBA::WChar initial, const wchar_t* key) {
    Interop::WideEntry e;
    e.before = 1;
    e.initial = initial;
    e.key = key;
    e.narrow_key = "narrow";
    e.alternatives[0] = L"";
    e.alternatives[1] = L"\u03b1\u03b2\u03b3";
    e.after = 255;
    return e;
}

// As the encodings of structs are compared in memory, where no code set was agreed on, wide ones are
// compared by their members.
bool same(const Interop::WideEntry& a, const Interop::WideEntry& b) {
    return a.before == b.before && a.initial == b.initial && equal(a.key.in(), b.key.in()) &&
           equal(a.narrow_key, b.narrow_key) &&
           equal(a.alternatives[0].in(), b.alternatives[0].in()) &&
           equal(a.alternatives[1].in(), b.alternatives[1].in()) && a.after == b.after;
}

bool same(const Interop::WChars& a, const Interop::WChars& b) {
    return a.length() == b.length() &&
           std::wmemcmp(a.get_buffer(), b.get_buffer(), a.length()) == 0;
}

bool same(const Interop::WideWords& a, const Interop::WideWords& b) {
    if (a.length() != b.length())
        return false;
    for (CORBA::ULong i = 0; i < a.length(); ++i)
        if (!equal(a.get_buffer()[i], b.get_buffer()[i]))
            return false;
    return true;
}

template <class T, class Operation>
void echo_wide(Report& report, const std::string& name, const T& v, const T& w,
               Operation operation) {
    report.echo(name, [&] {
        T io(w);
        typename T::_var_type o;
        typename T::_var_type result = operation(v, io, o.out());
        return Echoed{same(result.in(), v), same(o.in(), w), same(io, v)};
    });
}

} // namespace

void check_wide(Context& context) {
    using namespace Interop;
    Report& report = context.report;
    Wides_var wides = context.hub->get_wides();

    echo_value<CORBA::WChar>(report, "echo_wchar ASCII", L'a', L'z', OPERATION(wides, echo_wchar));
    echo_value<CORBA::WChar>(report, "echo_wchar 16 bits", L'\u20ac', L'\u4f60',
                             OPERATION(wides, echo_wchar));
    echo_value<CORBA::WChar>(report, "echo_wchar Latin-1", L'\u00e9', L'\u00ff',
                             OPERATION(wides, echo_wchar));
    echo_wide_string(report, "echo_wstring", L"hello", L"gr\u00fc\u00df dich",
                     OPERATION(wides, echo_wstring));
    echo_wide_string(report, "echo_wstring empty", L"", L"\u4f60\u597d", OPERATION(wides, echo_wstring));
    // omniORB holds UTF-16: a character beyond 16 bits is two elements.
    const wchar_t pair[] = {0xd83d, 0xde00, 0};
    echo_wide_string(report, "echo_wstring beyond the 16-bit plane", std::wstring(L"a") + pair + L"z",
                     pair, OPERATION(wides, echo_wstring));
    echo_wide_string(report, "echo_wstring 10000", std::wstring(10000, L'\u20ac'), L"short",
                     OPERATION(wides, echo_wstring));
    echo_wide_string(report, "echo_wide_name full", std::wstring(MAX_NAME, L'\u00df'), L"",
                     OPERATION(wides, echo_wide_name));
    echo_wide(report, "echo_wchars", sequence<WChars>({L'a', L'\u20ac', L'\u4f60'}), WChars(),
              OPERATION(wides, echo_wchars));
    echo_wide(report, "echo_wide_words", sequence<WideWords>({L"", L"\u20ac", L"abc"}), WideWords(),
              OPERATION(wides, echo_wide_words));
    echo_wide(report, "echo_wide_entry", wide_entry(L'\u20ac', L"key"), wide_entry(L'x', L"\u4f60"),
              OPERATION(wides, echo_wide_entry));

    report.check("wide_constants", [&] {
        CORBA::WChar glyph = 0;
        CORBA::WString_var greeting = wides->wide_constants(glyph);
        return glyph == L'\u20ac' && equal(greeting.in(), L"gr\u00fc\u00df dich");
    });
    report.raises<WideRefused>(
        "refuse", [&] { wides->refuse(L"no\u2026"); },
        [](const WideRefused& e) { return equal(e.reason.in(), L"no\u2026"); });
}

void check_precise(Context& context) {
    using Limits = std::numeric_limits<CORBA::LongDouble>;
    Report& report = context.report;
    Interop::Precise_var precise = context.hub->get_precise();

    echo_value<CORBA::LongDouble>(report, "echo_longdouble", 1.0L, -0.1L,
                                  OPERATION(precise, echo_longdouble));
    echo_value<CORBA::LongDouble>(report, "echo_longdouble ends", Limits::max(), Limits::min(),
                                  OPERATION(precise, echo_longdouble));
    report.echo("echo_quads", [&] {
        const auto v = sequence<Interop::Quads>({1.0L, 2.5L, -3.25L});
        Interop::Quads io = sequence<Interop::Quads>({0.5L});
        Interop::Quads_var o;
        Interop::Quads_var result = precise->echo_quads(v, io, o.out());
        const auto same = [](const Interop::Quads& a, const Interop::Quads& b) {
            bool equal = a.length() == b.length();
            for (CORBA::ULong i = 0; equal && i < a.length(); ++i)
                equal = a[i] == b[i];
            return equal;
        };
        return Echoed{same(result, v), same(o, sequence<Interop::Quads>({0.5L})), same(io, v)};
    });
}
