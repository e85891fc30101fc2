// Where threads wait for each other.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>

// Where as many threads as there are wait for each other, again and again.
class Barrier {
 public:
  explicit Barrier(unsigned threads) : threads_(threads), missing_(threads) {}

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const unsigned round = round_;
    if (--missing_ == 0) {
      missing_ = threads_;
      round_++;
      all_.notify_all();
    } else {
      all_.wait(lock, [&] { return round != round_; });
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  const unsigned threads_;
  unsigned missing_;
  unsigned round_ = 0;
};
