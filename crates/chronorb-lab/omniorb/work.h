// The work of a server: arithmetic that takes a known time, the same as chronorb's servers do.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

// Computes for so many steps; returns the cube of `value`.
inline std::int32_t cube(std::uint8_t value, std::uint32_t steps) {
  std::uint64_t state = value;
  for (std::uint32_t step = 0; step < steps; step++) {
    state = state * 0x5851f42d4c957f2d + 0x14057b7ef767814f;
    // Keeps the compiler from finding out the end without going the way.
    asm volatile("" : "+m"(state));
  }
  return std::int32_t(value) * value * value;
}

// How many steps take so many nanoseconds on this processor; none take none.
inline std::uint32_t steps(std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return 0;
  using Clock = std::chrono::steady_clock;
  const std::uint32_t trial = 100'000;
  // The quickest of several runs is the one that nobody interrupted.
  Clock::duration quickest = Clock::duration::max();
  for (int run = 0; run < 50; run++) {
    const Clock::time_point start = Clock::now();
    cube(7, trial);
    quickest = std::min(quickest, Clock::now() - start);
  }
  const double of_one = std::chrono::duration<double, std::nano>(quickest).count() / trial;
  return std::max(std::uint32_t(1), std::uint32_t(double(nanoseconds) / of_one));
}
