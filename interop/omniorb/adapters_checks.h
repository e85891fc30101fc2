// The groups of checks of omni_adapters_client.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_ADAPTERS_CHECKS_H
#define CHRONORB_INTEROP_ADAPTERS_CHECKS_H

#include "report.h"

#include <adapters.hh>

#include <string>
#include <vector>

struct Context {
    CORBA::ORB_var orb;
    // The server whose adapters are tried, which is named `here`, and another one, `there`.
    Adapters::Control_var here;
    Adapters::Control_var there;
    std::string proceed;
    Report& report;

    // Ends a server; what is next waits until the file `proceed` is there, if one is named.
    void end(Adapters::Control_ptr control) const;
};

const std::vector<std::string> KINDS = {"mapped", "defaulted", "located", "activated", "lasting"};

// Whether the object answers that it is this one, as SERVER:ADAPTER:ID.
bool answers(Adapters::Item_ptr item, const std::string& name);

// Whether exactly this happened in the adapter, since the last time that somebody asked.
bool happened(Adapters::Control_ptr control, const std::string& adapter,
              const std::vector<std::string>& events);

// A reference to an object, which is made active where its adapter does not do so on demand.
Adapters::Item_ptr serve(Adapters::Control_ptr control, const std::string& adapter,
                         const std::string& id);

// Checks that calls fail with an exception that says that nothing was done; with this minor code,
// if one is given.
template <class E>
void refused(Report& report, const std::string& name, Adapters::Item_ptr item, CORBA::ULong minor = 0) {
    report.raises<E>(
        name, [&] { CORBA::String_var answer = item->name(); },
        [=](const E& e) {
            return e.completed() == CORBA::COMPLETED_NO && (minor == 0 || e.minor() == minor);
        });
}

// Minor code number `n` of the standard.
constexpr CORBA::ULong omg(CORBA::ULong n) {
    return 0x4f4d0000 + n;
}

void check_objects(Context& context);
void check_states(Context& context);
void check_ends(Context& context);
void check_demand(Context& context);
void check_forwarding(Context& context);
// Ends the server `here`, and waits until another one is in its place.
void check_restart(Context& context);
// Ends the server `there`.
void check_loss(Context& context);
// For a server that lets requests wait for less than the client waits.
void check_patience(Context& context);

#endif
