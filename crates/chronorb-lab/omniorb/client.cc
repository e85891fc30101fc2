// omniORB's side of `chronorb lab latency` and `throughput`: the clients of ../idl/peers.idl.
//
//   client REFERENCE OPERATION OCTETS THREADS [-ORB…] [--fifo PRIORITY]
//
// OPERATION is cube, octets, doubles, structs, strings, unions, anys or values; OCTETS is how much
// data a call has each way. Says a line `{}` when all its threads are connected. Then, for each line {"warm_up":W,"calls":N}, each thread
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
#include <cstring>
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

Peers::Sample sample(CORBA::ULong n) {
  return Peers::Sample{CORBA::Long(n), CORBA::Short(n), CORBA::Octet(n), CORBA::Double(n),
                       CORBA::Float(n)};
}

bool same(const Peers::Sample& a, const Peers::Sample& b) {
  return a.id == b.id && a.kind == b.kind && a.flags == b.flags && a.value == b.value &&
         a.weight == b.weight;
}

const char* text(CORBA::ULong n) {
  static const char* texts[] = {"chronometer", "determinism", "preemptions", "reliability"};
  return texts[n % 4];
}

Call structs(Peers::Data_ptr data, CORBA::ULong size) {
  const CORBA::ULong octets_each = 24;  // on the wire, with the padding up to the next
  Peers::Samples v;
  v.length(size / octets_each);
  for (CORBA::ULong n = 0; n < v.length(); n++) v[n] = sample(n);
  return [data, v](unsigned) {
    Peers::Samples_var echo = data->echo_samples(v);
    same_ends(v, echo.in(), same);
  };
}

Call strings(Peers::Data_ptr data, CORBA::ULong size) {
  const CORBA::ULong octets_each = 16;  // on the wire, with the length
  Peers::Strings v;
  v.length(size / octets_each);
  for (CORBA::ULong n = 0; n < v.length(); n++) v[n] = text(n);
  return [data, v](unsigned) {
    Peers::Strings_var echo = data->echo_strings(v);
    same_ends(v, echo.in(),
              [](const char* a, const char* b) { return std::strcmp(a, b) == 0; });
  };
}

bool same_reading(const Peers::Reading& a, const Peers::Reading& b) {
  if (a._d() != b._d()) return false;
  switch (a._d()) {
    case 0: return a.count() == b.count();
    case 1: return std::strcmp(a.text(), b.text()) == 0;
    default: return same(a.measured(), b.measured());
  }
}

Call unions(Peers::Data_ptr data, CORBA::ULong size) {
  const CORBA::ULong octets_of_three = 56;  // on the wire, one of each kind
  Peers::Readings v;
  v.length(size * 3 / octets_of_three);
  for (CORBA::ULong n = 0; n < v.length(); n++) {
    switch (n % 3) {
      case 0: v[n].count(n); break;
      case 1: v[n].text(text(n)); break;
      default: v[n].measured(sample(n)); v[n]._d(2);
    }
  }
  return [data, v](unsigned) {
    Peers::Readings_var echo = data->echo_readings(v);
    same_ends(v, echo.in(), same_reading);
  };
}

bool same_any(const CORBA::Any& a, const CORBA::Any& b) {
  const Peers::Sample *of_a, *of_b;
  return (a >>= of_a) && (b >>= of_b) && same(*of_a, *of_b);
}

Call anys(Peers::Data_ptr data, CORBA::ULong size) {
  const CORBA::ULong octets_each = 152;  // on the wire, with the type code
  Peers::Anys v;
  v.length(size / octets_each);
  for (CORBA::ULong n = 0; n < v.length(); n++) v[n] <<= sample(n % 64);
  return [data, v](unsigned) {
    Peers::Anys_var echo = data->echo_anys(v);
    same_ends(v, echo.in(), same_any);
  };
}

Call values(Peers::Data_ptr data, CORBA::ULong size) {
  const CORBA::ULong octets_each = 24;  // on the wire, with the tag and the place of the type
  Peers::Ticks v;
  v.length(size / octets_each);
  for (CORBA::ULong n = 0; n < v.length(); n++) v[n] = new OBV_Peers::Tick(n, n);
  return [data, v](unsigned) {
    Peers::Ticks_var echo = data->echo_ticks(v);
    require(v.length() == echo->length());
    for (CORBA::ULong n : {CORBA::ULong(0), v.length() - 1})
      require(v[n]->id() == echo[n]->id() && v[n]->level() == echo[n]->level());
  };
}

Call calls(CORBA::Object_ptr object, const std::string& operation, CORBA::ULong size) {
  // A reference for each caller would make no difference: connections belong to calls under way.
  if (operation == "cube") return cube(Peers::Power::_narrow(object));
  Peers::Data_ptr data = Peers::Data::_narrow(object);
  if (operation == "octets") return octets(data, size);
  if (operation == "doubles") return doubles(data, size);
  if (operation == "structs") return structs(data, size);
  if (operation == "strings") return strings(data, size);
  if (operation == "unions") return unions(data, size);
  if (operation == "anys") return anys(data, size);
  if (operation == "values") return values(data, size);
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
  CORBA::ValueFactoryBase_var ticks(new Peers::Tick_init);
  CORBA::ValueFactoryBase_var none = orb->register_value_factory(Peers::Tick::_PD_repoId, ticks);
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
