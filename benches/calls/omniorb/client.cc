// Makes calls, after a warm-up that is not counted.
//
// Usage: omniorb-client [-ORB...] count OPERATION CALLS [REFERENCE [FIFO]]. Without a reference the
// object is in this process. With a FIFO each oneway waits for its acknowledgement.

#include <fcntl.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "mirror.h"

namespace {

// As in the client of chronorb: bursts of calls, each followed by a pause.
const int BURSTS = 20;
const int BURST = 100;
const useconds_t PAUSE_US = 5000;
const CORBA::Octet OCTET = 7;
const char TEXT[] = "sixteen letters!";

Calls::Sample sample(int n) {
  Calls::Sample made;
  made.id = n;
  made.kind = n;
  made.flags = n;
  made.value = n;
  made.weight = n;
  return made;
}

// The call of this name; it returns whether the reply is as expected.
std::function<bool()> operation(const std::string& name, Calls::Echo_ptr echo, int pace) {
  if (name == "octet") return [=] { return echo->cube(OCTET) == OCTET * OCTET * OCTET; };
  if (name == "oneway")
    return [=] {
      char octet;
      echo->notice(OCTET);
      return pace < 0 || read(pace, &octet, 1) == 1;
    };
  if (name == "structs") {
    Calls::Samples samples;
    samples.length(10);
    for (int n = 0; n < 10; n++) samples[n] = sample(n);
    return [=] {
      Calls::Samples_var back = echo->structs(samples);
      return back->length() == 10;
    };
  }
  if (name == "string")
    return [=] {
      CORBA::String_var back = echo->text(TEXT);
      return std::char_traits<char>::length(back) == sizeof TEXT - 1;
    };
  if (name == "any") {
    Calls::Sample one = sample(0);
    return [=] {
      CORBA::Any sent;
      sent <<= one;
      CORBA::Any_var back = echo->value(sent);
      const Calls::Sample* found;
      return bool(back.in() >>= found);
    };
  }
  if (name == "reference")
    return [=] {
      CORBA::Object_var back = echo->reference(echo);
      return !CORBA::is_nil(back);
    };
  throw std::string("there is no operation ") + name;
}

int run(int argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  const std::string mode = argc < 4 ? "" : argv[1];
  if (mode != "count" && mode != "first")
    throw std::string("usage: omniorb-client count|first OPERATION CALLS [REFERENCE [FIFO]]");
  Calls::Echo_var echo;
  if (argc > 4) {
    CORBA::Object_var object = orb->string_to_object(argv[4]);
    echo = Calls::Echo::_narrow(object);
  } else {
    echo = serve(orb, new Mirror(-1));
  }
  auto call = operation(argv[2], echo, argc > 5 ? open(argv[5], O_RDWR) : -1);
  auto repeat = [&](int calls) {
    for (int n = 0; n < calls; n++)
      if (!call()) throw std::string("the reply differs from the argument");
  };
  for (int n = 0; mode == "count" && n < BURSTS; n++) {
    repeat(BURST);
    usleep(PAUSE_US);
  }
  repeat(std::atoi(argv[3]));
  // Its reply follows the last oneway on the same connection.
  echo->cube(OCTET);
  orb->destroy();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc, argv);
} catch (const std::string& why) {
  std::cerr << why << std::endl;
  return 1;
} catch (const CORBA::Exception& exception) {
  std::cerr << exception._name() << std::endl;
  return 1;
}
