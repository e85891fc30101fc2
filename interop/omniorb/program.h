// What the programs have in common.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_PROGRAM_H
#define CHRONORB_INTEROP_PROGRAM_H

#include <omniORB4/CORBA.h>

#include <string>

// Writes a line to a file, which other processes see complete or not at all.
void write_file(const std::string& path, const char* text);

// The reference itself, or the first line of the file.
std::string reference_text(const std::string& file_or_url);

// The policy of a POA whose objects call, and are called, on the connections of their clients, if the
// options of the ORB allow that.
CORBA::Policy_ptr both_ways(CORBA::ORB_ptr orb);

// Has SIGTERM and SIGINT wait for shut_down_on_signals in every thread that starts later.
void block_signals();
void shut_down_on_signals(CORBA::ORB_ptr orb);

#endif
