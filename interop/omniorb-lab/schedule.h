// How client and server are scheduled.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

// What follows this name on the command line; nothing without it.
inline const char* argument(int argc, char** argv, const char* name) {
  for (int i = 1; i + 1 < argc; i++)
    if (std::strcmp(argv[i], name) == 0) return argv[i + 1];
  return nullptr;
}

// Gives this thread, and all that it makes, the priority of `--fifo`, if there is one.
inline void schedule(int argc, char** argv) {
  if (const char* priority = argument(argc, argv, "--fifo")) {
    sched_param parameters{};
    parameters.sched_priority = std::atoi(priority);
    if (sched_setscheduler(0, SCHED_FIFO, &parameters) != 0)
      throw std::runtime_error(std::string("SCHED_FIFO cannot be had: ") + std::strerror(errno));
  }
}
