// omniORB's side of `chronorb lab latency` and `throughput`: the clients of ../idl/peers.idl.
//
//   client REFERENCE OPERATION OCTETS THREADS [-ORB…] [--fifo PRIORITY]
//
// OPERATION is cube, octets, doubles or structs; OCTETS is how much data a call has each way. Says a
// line `{}` when all its threads are connected. Then, for each line {"warm_up":W,"calls":N}, each thread
// makes W untimed calls and N timed ones, and it says {"elapsed_ns":…,"latencies_ns":[…]}, with
// the time of each call where there is one thread. Ends with the line `null`, or with the input.
// Every answer is checked; a wrong one ends the program.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

#include "barrier.h"
#include "peers.hh"
#include "schedule.h"

namespace {

using Clock = std::chrono::steady_clock;
using Call = std::function<void(unsigned turn)>;

[[noreturn]] void fail(const std::string& why) {
  std::cerr << "omniORB client: " << why << std::endl;
  _exit(1);
}

void require(bool right) {
  if (!right) fail("a wrong answer");
}

// Length, first and last element: to compare all would take longer than the call.
template <class Sequence, class Same>
void same_ends(const Sequence& sent, const Sequence& echo, Same same) {
  require(sent.length() == echo.length());
  const CORBA::ULong last = sent.length() - 1;
  require(same(sent[0], echo[0]) && same(sent[last], echo[last]));
}

Call cube(Peers::Power_ptr power) {
  return [power](unsigned turn) {
    const CORBA::Octet value = CORBA::Octet(turn);
    require(power->cube(value) == CORBA::Long(value) * value * value);
  };
}

Call octets(Peers::Data_ptr data, CORBA::ULong size) {
  Peers::Octets v;
  v.length(size);
  for (CORBA::ULong n = 0; n < size; n++) v[n] = CORBA::Octet(n);
  return [data, v](unsigned) {
    Peers::Octets_var echo = data->echo_octets(v);
    same_ends(v, echo.in(), std::equal_to<>());
  };
}

Call doubles(Peers::Data_ptr data, CORBA::ULong size) {
  Peers::Doubles v;
  v.length(size / sizeof(CORBA::Double));
  for (CORBA::ULong n = 0; n < v.length(); n++) v[n] = n;
  return [data, v](unsigned) {
    Peers::Doubles_var echo = data->echo_doubles(v);
    same_ends(v, echo.in(), std::equal_to<>());
  };
}

Call structs(Peers::Data_ptr data, CORBA::ULong size) {
  const CORBA::ULong octets_each = 24;  // on the wire, with the padding up to the next
  Peers::Samples v;
  v.length(size / octets_each);
  for (CORBA::ULong n = 0; n < v.length(); n++)
    v[n] = Peers::Sample{CORBA::Long(n), CORBA::Short(n), CORBA::Octet(n), CORBA::Double(n),
                         CORBA::Float(n)};
  return [data, v](unsigned) {
    Peers::Samples_var echo = data->echo_samples(v);
    same_ends(v, echo.in(), [](const Peers::Sample& a, const Peers::Sample& b) {
      return a.id == b.id && a.kind == b.kind && a.flags == b.flags && a.value == b.value &&
             a.weight == b.weight;
    });
  };
}

Call calls(CORBA::Object_ptr object, const std::string& operation, CORBA::ULong size) {
  // A reference for each caller would make no difference: connections belong to calls under way.
  if (operation == "cube") return cube(Peers::Power::_narrow(object));
  Peers::Data_ptr data = Peers::Data::_narrow(object);
  if (operation == "octets") return octets(data, size);
  if (operation == "doubles") return doubles(data, size);
  if (operation == "structs") return structs(data, size);
  fail("there is no operation " + operation);
}

struct Batch {
  unsigned warm_up;
  unsigned calls;
};

bool next(Batch& batch) {
  std::string line;
  if (!std::getline(std::cin, line) || line == "null") return false;
  if (std::sscanf(line.c_str(), "{\"warm_up\":%u,\"calls\":%u}", &batch.warm_up, &batch.calls) != 2)
    fail("this is no batch: " + line);
  return true;
}

std::uint64_t nanoseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

void alone(const Call& call) {
  std::vector<std::uint64_t> latencies;
  for (Batch batch; next(batch);) {
    for (unsigned turn = 0; turn < batch.warm_up; turn++) call(turn);
    latencies.clear();
    latencies.reserve(batch.calls);
    std::uint64_t elapsed = 0;
    for (unsigned turn = 0; turn < batch.calls; turn++) {
      const Clock::time_point sent = Clock::now();
      call(turn);
      latencies.push_back(nanoseconds(Clock::now() - sent));
      elapsed += latencies.back();
    }
    std::cout << "{\"elapsed_ns\":" << elapsed << ",\"latencies_ns\":[";
    for (std::size_t n = 0; n < latencies.size(); n++) std::cout << (n ? "," : "") << latencies[n];
    std::cout << "]}" << std::endl;
  }
}

void together(const Call& call, unsigned threads) {
  Barrier told(threads + 1), warm(threads), done(threads + 1);
  Batch batch{};
  // Each caller takes its own times: the one that asks might get a processor late.
  std::vector<Clock::time_point> first(threads), last(threads);
  for (unsigned thread = 0; thread < threads; thread++) {
    std::thread([&, thread] {
      try {
        for (;;) {
          told.wait();
          for (unsigned turn = 0; turn < batch.warm_up; turn++) call(turn);
          warm.wait();
          first[thread] = Clock::now();
          for (unsigned turn = 0; turn < batch.calls; turn++) call(turn);
          last[thread] = Clock::now();
          done.wait();
        }
      } catch (const CORBA::Exception& exception) {
        fail(exception._name());
      }
    }).detach();
  }
  while (next(batch)) {
    told.wait();
    done.wait();
    const auto elapsed = *std::max_element(last.begin(), last.end()) -
                         *std::min_element(first.begin(), first.end());
    std::cout << "{\"elapsed_ns\":" << nanoseconds(elapsed) << ",\"latencies_ns\":[]}" << std::endl;
  }
  // The threads wait for a batch that does not come.
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) try {
  // As many connections as there are callers (by default there are at most five).
  const char* options[][2] = {{"scanGranularity", "0"},
                              {"maxGIOPConnectionPerServer", "1024"},
                              {nullptr, nullptr}};
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
  if (argc < 5) fail("usage: client REFERENCE OPERATION OCTETS THREADS [--fifo PRIORITY]");
  schedule(priority(argc, argv, "--fifo"));
  CORBA::Object_var object = orb->string_to_object(argv[1]);
  const Call call = calls(object, argv[2], CORBA::ULong(std::stoul(argv[3])));
  const unsigned threads = unsigned(std::stoul(argv[4]));
  call(1);
  std::cout << "{}" << std::endl;
  if (threads > 1)
    together(call, threads);
  else
    alone(call);
  _exit(0);
} catch (const CORBA::Exception& exception) {
  fail(exception._name());
} catch (const std::exception& exception) {
  fail(exception.what());
}
