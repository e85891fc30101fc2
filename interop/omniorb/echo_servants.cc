// The servants without state.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "servants.h"

#include <string>

Interop::ConstantValues* EchoServant::constant_values() {
    Interop::ConstantValues_var values = new Interop::ConstantValues;
    values->max_name = Interop::MAX_NAME;
    values->max_few = Interop::MAX_FEW;
    values->enabled_value = Interop::ENABLED;
    values->mark_value = Interop::MARK;
    values->letter_value = Interop::LETTER;
    values->depth_value = Interop::DEPTH;
    values->ports_value = Interop::PORTS;
    values->lowest_value = Interop::LOWEST;
    values->flags_value = Interop::FLAGS;
    values->farthest_value = Interop::FARTHEST;
    values->everything_value = Interop::EVERYTHING;
    values->quarter_value = Interop::QUARTER;
    values->root_value = Interop::ROOT;
    values->greeting_value = Interop::GREETING;
    values->favourite_value = Interop::FAVOURITE;
    return values._retn();
}

Interop::Octets* EchoServant::fill(CORBA::ULong count) {
    Interop::Octets_var octets = new Interop::Octets(count);
    octets->length(count);
    for (CORBA::ULong i = 0; i < count; ++i)
        octets[i] = static_cast<CORBA::Octet>(i % 251);
    return octets._retn();
}

CORBA::ULong EchoServant::sum(const Interop::Octets& v) {
    CORBA::ULong sum = 0;
    for (CORBA::ULong i = 0; i < v.length(); ++i)
        sum += v[i];
    return sum;
}

CORBA::LongLong EchoServant::statistics(const Interop::Longs& v, CORBA::Long& low,
                                        CORBA::Long& high, CORBA::ULong& count) {
    count = v.length();
    low = count > 0 ? v[0] : 0;
    high = low;
    CORBA::LongLong sum = 0;
    for (CORBA::ULong i = 0; i < count; ++i) {
        low = v[i] < low ? v[i] : low;
        high = v[i] > high ? v[i] : high;
        sum += v[i];
    }
    return sum;
}

CORBA::WChar* WidesServant::wide_constants(CORBA::WChar& glyph_value) {
    glyph_value = Interop::GLYPH;
    return CORBA::wstring_dup(Interop::WIDE_GREETING);
}

void WidesServant::refuse(const CORBA::WChar* reason) {
    throw Interop::WideRefused(reason);
}

CORBA::Long FaultyServant::raise_user(CORBA::Long code) {
    switch (code) {
    case 1:
        throw Interop::Plain();
    case 2:
        throw Interop::Refused(-2, "refused");
    case 3: {
        Interop::Detailed detailed;
        detailed.shade = Interop::VIOLET;
        detailed.where.x = 1.5;
        detailed.where.y = -2.5;
        detailed.trace.length(3);
        for (CORBA::ULong i = 0; i < 3; ++i)
            detailed.trace[i] = static_cast<CORBA::Long>(3 - i);
        detailed.cause.key = "cause";
        detailed.cause.value = 3;
        throw detailed;
    }
    default:
        return code;
    }
}

void FaultyServant::raise_system(const char* name, CORBA::ULong code, CORBA::Long completed) {
    if (completed < 0 || completed > 2)
        throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
    const std::string wanted = name;
    const auto status = static_cast<CORBA::CompletionStatus>(completed);
#define RAISE_IF_NAMED(E)                                                                          \
    if (wanted == #E)                                                                              \
        throw CORBA::E(code, status);
    OMNIORB_FOR_EACH_SYS_EXCEPTION(RAISE_IF_NAMED)
#undef RAISE_IF_NAMED
    throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
}

CORBA::Long FaultyServant::echo_even(CORBA::Long v, CORBA::Long& io, CORBA::Long& o) {
    if (v % 2 != 0)
        throw Interop::Refused(v, "odd");
    o = io;
    io = v;
    return v;
}
