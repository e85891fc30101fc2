// The parts that the programs in C++ share: the clock, the lines between a program and its parent,
// and the latencies of consumers. README.md describes the lines.
#pragma once
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <vector>

namespace peer {

// The octets of the payload of an event. The first 8 are its stamp.
constexpr size_t payload = 64;

inline uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return uint64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

// Writes a line to the parent.
inline void tell(const std::string& line) {
  std::cout << line << std::endl;
}

// Waits for a line of the parent. At the end of the input the process ends.
inline void hear() {
  std::string line;
  if (!std::getline(std::cin, line)) _exit(0);
}

// Waits for the end of the input, and ends the process.
[[noreturn]] inline void end() {
  for (;;) hear();
}

// Pushes events at their times: first the warm-up, whose stamps are zero.
template <typename Push>
void supply(unsigned warm_up, unsigned events, uint64_t period, Push push) {
  const uint64_t begin = now();
  for (unsigned number = 0; number < warm_up + events; number++) {
    const uint64_t due = begin + number * period;
    timespec time = {time_t(due / 1000000000), long(due % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
    }
    push(number < warm_up ? 0 : now());
  }
}

// The latencies of all consumers of a process.
class Latencies {
 public:
  // Takes an event with its stamp, on any thread.
  void take(uint64_t stamp) {
    const uint64_t time = now();
    std::lock_guard<std::mutex> guard(lock_);
    if (stamp == 0) return;
    all_.push_back(time - stamp);
    changed_.notify_one();
  }

  // Waits for so many, for at most two seconds, and writes those that came.
  void conclude(size_t number) {
    std::unique_lock<std::mutex> guard(lock_);
    changed_.wait_for(guard, std::chrono::seconds(2), [&] { return all_.size() >= number; });
    std::string line = "[";
    for (uint64_t latency : all_) {
      if (line.size() > 1) line += ",";
      line += std::to_string(latency);
    }
    tell(line + "]");
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<uint64_t> all_;
};

[[noreturn]] inline void fail(const std::string& reason) {
  std::cerr << reason << std::endl;
  _exit(1);
}

inline unsigned number(const char* text) { return unsigned(strtoul(text, nullptr, 10)); }

}  // namespace peer
