// How clients and servers are scheduled, and where their memory is.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

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

// Gives this thread, and all that it makes, a priority of SCHED_FIFO; 0 is none.
inline void schedule(int priority) {
  if (priority == 0) return;
  sched_param parameters{};
  parameters.sched_priority = priority;
  if (sched_setscheduler(0, SCHED_FIFO, &parameters) != 0)
    throw std::runtime_error(std::string("SCHED_FIFO cannot be had: ") + std::strerror(errno));
}

// The priority that follows this name on the command line; 0 without it.
inline int priority(int argc, char** argv, const char* name) {
  const char* priority = argument(argc, argv, name);
  return priority ? std::atoi(priority) : 0;
}

// Locks all memory of the process into RAM, with that to come, if there is `--lock`.
inline void lock_memory(int argc, char** argv) {
  bool wanted = false;
  for (int i = 1; i < argc; i++) wanted = wanted || std::strcmp(argv[i], "--lock") == 0;
  if (!wanted) return;
  // From then on a stack costs its whole size, which is 8 MiB for each thread otherwise.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
    throw std::runtime_error(std::string("memory cannot be locked: ") + std::strerror(errno));
}
