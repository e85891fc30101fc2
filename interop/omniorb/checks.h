// The groups of checks of omni_client.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_CHECKS_H
#define CHRONORB_INTEROP_CHECKS_H

#include "report.h"

#include <interop.hh>

struct Context {
    CORBA::ORB_var orb;
    Interop::Hub_var hub;
    Interop::Echo_var echo;
    Report& report;
};

void check_basics(Context& context);
void check_texts(Context& context);
// For an ORB whose native code set is ISO 8859-1.
void check_latin1(Context& context);
// The same, for a server that agrees on ISO 8859-1: in UTF-8 a `char` ends at 0x7f.
void check_latin1_chars(Context& context);
// For an ORB whose native code set is UTF-8.
void check_multibyte(Context& context);
void check_structs(Context& context);
void check_sequences(Context& context);
void check_arrays(Context& context);
void check_large(Context& context);
void check_threads(Context& context);
void check_wide(Context& context);
void check_precise(Context& context);
void check_user_exceptions(Context& context);
void check_system_exceptions(Context& context);
void check_oneway(Context& context);
void check_attributes(Context& context);
void check_inheritance(Context& context);
void check_references(Context& context);
void check_callbacks(Context& context);
void check_objects(Context& context);
void check_corbaloc(Context& context);

#endif
