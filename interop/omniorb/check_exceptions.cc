// User and system exceptions.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "checks.h"
#include "echoes.h"

#include <string>

void check_user_exceptions(Context& context) {
    using namespace Interop;
    Report& report = context.report;
    Faulty_var faulty = context.hub->get_faulty();

    report.check("raise_user 0 raises nothing", [&] { return faulty->raise_user(0) == 0; });
    report.raises<Plain>("raise_user 1", [&] { faulty->raise_user(1); });
    report.raises<Refused>(
        "raise_user 2", [&] { faulty->raise_user(2); },
        [](const Refused& e) { return e.code == -2 && std::string("refused") == e.reason.in(); });
    const auto is_detailed = [](const Detailed& e) {
        return e.shade == VIOLET && e.where.x == 1.5 && e.where.y == -2.5 &&
               equal(e.trace, sequence<Longs>({3, 2, 1})) && equal(e.cause, entry("cause", 3));
    };
    report.raises<Detailed>("raise_user 3", [&] { faulty->raise_user(3); }, is_detailed);
    report.check("raise_user 4 raises nothing", [&] { return faulty->raise_user(4) == 4; });

    echo_value<CORBA::Long>(report, "echo_even", 4, 7, OPERATION(faulty, echo_even));
    report.raises<Refused>(
        "echo_even odd",
        [&] {
            CORBA::Long io = 1;
            CORBA::Long o = 2;
            faulty->echo_even(-5, io, o);
        },
        [](const Refused& e) { return e.code == -5 && std::string("odd") == e.reason.in(); });

    Mistaken_var mistaken = Mistaken::_unchecked_narrow(faulty);
    report.raises<CORBA::UNKNOWN>("an exception without members that the caller does not know",
                                  [&] { mistaken->raise_user(1); });
    report.raises<CORBA::UNKNOWN>("an exception with members that the caller does not know",
                                  [&] { mistaken->raise_user(2); });
    report.raises<Detailed>("an exception that the caller knows after them",
                            [&] { mistaken->raise_user(3); }, is_detailed);
}

namespace {

void check_system_exception(Report& report, Interop::Faulty_ptr faulty, const std::string& name,
                            CORBA::ULong code, CORBA::Long completed) {
    static const char* const words[] = {"yes", "no", "maybe"};
    report.raises<CORBA::SystemException>(
        name + " minor " + std::to_string(code) + " completed " + words[completed],
        [&] { faulty->raise_system(name.c_str(), code, completed); },
        [&](const CORBA::SystemException& e) {
            return e._rep_id() == "IDL:omg.org/CORBA/" + name + ":1.0" && e.minor() == code &&
                   e.completed() == static_cast<CORBA::CompletionStatus>(completed);
        });
}

} // namespace

void check_system_exceptions(Context& context) {
    Report& report = context.report;
    Interop::Faulty_var faulty = context.hub->get_faulty();

    CORBA::ULong number = 0;
#define CHECK(E)                                                                                   \
    check_system_exception(report, faulty, #E, 0x4f4d0000 + number, number % 3);                   \
    ++number;
    OMNIORB_FOR_EACH_SYS_EXCEPTION(CHECK)
#undef CHECK
    for (CORBA::Long completed = 0; completed < 3; ++completed)
        check_system_exception(report, faulty, "NO_RESOURCES", 0, completed);
    check_system_exception(report, faulty, "INTERNAL", 0xffffffff, 2);

    const auto is_bad_param = [](const CORBA::BAD_PARAM& e) {
        return e.minor() == 0 && e.completed() == CORBA::COMPLETED_NO;
    };
    report.raises<CORBA::BAD_PARAM>(
        "raise_system without such a name", [&] { faulty->raise_system("SURPRISE", 1, 0); },
        is_bad_param);
    report.raises<CORBA::BAD_PARAM>(
        "raise_system without such a status", [&] { faulty->raise_system("MARSHAL", 1, 3); },
        is_bad_param);
    report.check("raise_user after all of them", [&] { return faulty->raise_user(9) == 9; });
}
