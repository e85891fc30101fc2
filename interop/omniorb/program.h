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

// Has SIGTERM and SIGINT wait for shut_down_on_signals in every thread that starts later.
void block_signals();
void shut_down_on_signals(CORBA::ORB_ptr orb);

#endif
