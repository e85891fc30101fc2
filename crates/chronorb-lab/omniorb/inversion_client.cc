// omniORB's side of `chronorb lab inversion`: a client with a thread of high priority and many of
// low.
//
//   inversion_client HIGH LOW N [--high-fifo PRIORITY] [--low-fifo PRIORITY] [--lock] [-ORB…]
//
// HIGH and LOW are the references of inversion_server; N threads call the second. Of the ORB's
// options, `-ORBmaxGIOPConnectionPerServer` says how many connections all threads share: five,
// unless it is said. Says a line `{}` when these are open and each thread has made some calls.
//
// Then, for each line
//   {"start_ns":A,"length_ns":L,"high_period_ns":H,"low_period_ns":P,"calls":C}
// each thread makes its calls: the first is due at the instant A (CLOCK_MONOTONIC), each further
// one a period after the one before, or at its answer where the period is 0. They are C, or where
// that is 0 all that are due before A + L, however late. At last it says
//   {"high":[from_due,from_call,…],"low":[from_due,from_call,…]}
// for each call how many nanoseconds passed until its answer since it was due, and since it was
// made; of the low threads one after the other. Ends with the input. Every answer is checked; a
// wrong one ends the program.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include <omniORB4/omniInterceptors.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "barrier.h"
#include "peers.hh"
#include "schedule.h"

namespace {

using Nanoseconds = std::int64_t;

const std::int64_t warm_up_calls = 20;

[[noreturn]] void fail(const std::string& why) {
  std::cerr << "omniORB client: " << why << std::endl;
  _exit(1);
}

struct Window {
  Nanoseconds start;
  Nanoseconds length;
  Nanoseconds high_period;
  Nanoseconds low_period;
  std::int64_t calls;
};

struct Record {
  unsigned thread;
  Nanoseconds from_due;
  Nanoseconds from_call;
};

// The calls of a class of callers, whose memory is there before the first.
class Records {
 public:
  void make_room(const Window& window, Nanoseconds period, std::int64_t threads) {
    const std::int64_t most_a_second = 500'000;  // of back-to-back calls
    const std::int64_t second = 1'000'000'000;
    std::int64_t room = window.calls * threads;
    if (room == 0)
      room = period != 0 ? (window.length / period + 1) * threads
                         : (window.length / second + 1) * most_a_second;
    records_.assign(std::size_t(room), Record{});
    taken_ = 0;
  }

  void add(const Record& record) {
    const std::size_t place = taken_.fetch_add(1, std::memory_order_relaxed);
    if (place >= records_.size()) fail("there were more calls than there is room for");
    records_[place] = record;
  }

  std::string text() {
    const auto end = records_.begin() + std::ptrdiff_t(taken_);
    std::stable_sort(records_.begin(), end,
                     [](const Record& a, const Record& b) { return a.thread < b.thread; });
    std::string text = "[";
    std::for_each(records_.begin(), end, [&](const Record& record) {
      if (text.size() > 1) text += ',';
      text += std::to_string(record.from_due) + ',' + std::to_string(record.from_call);
    });
    return text + ']';
  }

 private:
  std::vector<Record> records_;
  std::atomic<std::size_t> taken_{0};
};

Nanoseconds now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return Nanoseconds(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void sleep_until(Nanoseconds instant) {
  const timespec time{instant / 1'000'000'000, instant % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

void call(Peers::Power_ptr power, std::int64_t turn) {
  const CORBA::Octet value = CORBA::Octet(turn);
  if (power->cube(value) != CORBA::Long(value) * value * value) fail("a wrong answer");
}

// When a thread whose calls are back to back makes its next one: at once, but for a rest at the end of
// each 100 ms, so that real-time threads leave something of a processor, and the kernel need not take
// it from all of them. chronorb's client does the same.
Nanoseconds rested(Nanoseconds start, Nanoseconds answered) {
  const Nanoseconds round = 100'000'000, busy = 85'000'000;
  const Nanoseconds begun = answered - (answered - start) % round;
  if (answered - begun < busy) return answered;
  sleep_until(begun + round);
  return now();
}

void call_all(unsigned thread, Peers::Power_ptr power, const Window& window, Nanoseconds period,
              Records& records) {
  if (now() > window.start) fail("the start had passed before all threads were ready");
  Nanoseconds due = window.start;
  for (std::int64_t turn = 0;; turn++) {
    const bool is_over =
        window.calls != 0 ? turn >= window.calls : due - window.start >= window.length;
    if (is_over) return;
    // Back to back, `due` is this very moment.
    const bool is_timed = period != 0 || turn == 0;
    if (is_timed) sleep_until(due);
    const Nanoseconds made = is_timed ? now() : due;
    call(power, turn);
    const Nanoseconds answered = now();
    records.add({thread, answered - due, answered - made});
    due = period != 0 ? due + period : rested(window.start, answered);
  }
}

// Lets who has opened a connection wait until all are open: a call that ends before would leave its
// connection to others, and the missing ones would be opened while calls are measured.
std::unique_ptr<Barrier> opening;

CORBA::Boolean opened(omni::omniInterceptors::clientOpenConnection_T::info_T&) {
  opening->wait();
  return true;
}

bool next(Window& window) {
  std::string line;
  if (!std::getline(std::cin, line)) return false;
  const int found = std::sscanf(line.c_str(),
                                "{\"start_ns\":%" SCNd64 ",\"length_ns\":%" SCNd64
                                ",\"high_period_ns\":%" SCNd64 ",\"low_period_ns\":%" SCNd64
                                ",\"calls\":%" SCNd64 "}",
                                &window.start, &window.length, &window.high_period,
                                &window.low_period, &window.calls);
  if (found != 5) fail("this is no start: " + line);
  return true;
}

// What all threads share.
struct Team {
  explicit Team(unsigned threads)
      : connected(threads), ready(threads + 1), told(threads + 1), done(threads + 1) {}

  Barrier connected, ready, told, done;
  Window window{};
  Records high, low;
};

// Thread 0 is the one of high priority.
void caller(Team& team, unsigned thread, Peers::Power_ptr power, int priority) try {
  const bool is_high = thread == 0;
  // What omniORB starts at a first call would inherit the priority of its caller.
  call(power, 1);
  schedule(priority);
  team.connected.wait();
  for (std::int64_t turn = 0; turn < warm_up_calls; turn++) call(power, turn);
  team.ready.wait();
  for (;;) {
    team.told.wait();
    const Window& window = team.window;
    call_all(thread, power, window, is_high ? window.high_period : window.low_period,
             is_high ? team.high : team.low);
    team.done.wait();
  }
} catch (const CORBA::Exception& exception) {
  fail(exception._name());
} catch (const std::exception& exception) {
  fail(exception.what());
}

void measure(Team& team, unsigned low_threads) {
  while (next(team.window)) {
    team.high.make_room(team.window, team.window.high_period, 1);
    team.low.make_room(team.window, team.window.low_period, low_threads);
    team.told.wait();
    team.done.wait();
    std::cout << "{\"high\":" << team.high.text() << ",\"low\":" << team.low.text() << "}"
              << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) try {
  lock_memory(argc, argv);
  const char* said = argument(argc, argv, "-ORBmaxGIOPConnectionPerServer");
  const std::string connections = said ? said : "5";
  const char* options[][2] = {{"maxGIOPConnectionPerServer", connections.c_str()},
                              {nullptr, nullptr}};
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
  if (argc < 4) fail("usage: inversion_client HIGH LOW N [--high-fifo P] [--low-fifo P] [--lock]");
  const auto power = [&](const char* reference) {
    CORBA::Object_var object = orb->string_to_object(reference);
    return Peers::Power::_narrow(object);
  };
  Peers::Power_var high = power(argv[1]), low = power(argv[2]);
  if (CORBA::is_nil(high) || CORBA::is_nil(low)) fail("these are no references of Peers::Power");
  const unsigned low_threads = unsigned(std::stoul(argv[3]));
  opening.reset(new Barrier(std::min(unsigned(std::stoul(connections)), low_threads + 1)));
  omniORB::getInterceptors()->clientOpenConnection.add(opened);

  Team team(low_threads + 1);
  const int of_high = priority(argc, argv, "--high-fifo");
  const int of_low = priority(argc, argv, "--low-fifo");
  std::thread(caller, std::ref(team), 0, high.in(), of_high).detach();
  for (unsigned thread = 1; thread <= low_threads; thread++)
    std::thread(caller, std::ref(team), thread, low.in(), of_low).detach();
  team.ready.wait();
  // Later ones are omniORB's own affair.
  omniORB::getInterceptors()->clientOpenConnection.remove(opened);
  std::cout << "{}" << std::endl;
  measure(team, low_threads);
  // The threads wait for a start that does not come.
  _exit(0);
} catch (const CORBA::Exception& exception) {
  fail(exception._name());
} catch (const std::exception& exception) {
  fail(exception.what());
}
