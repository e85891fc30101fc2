// omniORB's side of `chronorb lab inversion`: a server with an object for each class of callers.
//
//   inversion_server [--work-ns N] [--fifo PRIORITY] [--lock] [-ORB…]
//
// Says a line {"high":"IOR:…","low":"IOR:…"}, and serves until standard input ends. Each call
// computes for N nanoseconds. omniORB knows no priorities: what it has is a thread for each
// connection, all at the one PRIORITY. It listens at 127.0.0.1, unless there is `-ORBendPoint`.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include <unistd.h>

#include <iostream>
#include <string>

#include "peers.hh"
#include "schedule.h"
#include "work.h"

namespace {

class Cuber : public POA_Peers::Power {
 public:
  explicit Cuber(std::uint32_t steps) : steps_(steps) {}

 private:
  CORBA::Long cube(CORBA::Octet v) override { return ::cube(v, steps_); }

  const std::uint32_t steps_;
};

std::string reference(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa,
                      PortableServer::Servant servant) {
  PortableServer::ObjectId_var id = poa->activate_object(servant);
  CORBA::Object_var object = poa->id_to_reference(id);
  CORBA::String_var text = orb->object_to_string(object);
  return text.in();
}

}  // namespace

int main(int argc, char** argv) try {
  lock_memory(argc, argv);
  // Before the ORB, so that each of its threads inherits it.
  schedule(priority(argc, argv, "--fifo"));
  // With one on the command line it would be there besides.
  const bool has_end_point = argument(argc, argv, "-ORBendPoint") != nullptr;
  const char* options[][2] = {{has_end_point ? nullptr : "endPoint", "giop:tcp:127.0.0.1:"},
                              {nullptr, nullptr}};
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  const char* work = argument(argc, argv, "--work-ns");
  const std::uint32_t of_call = steps(work ? std::stoull(work) : 0);
  Cuber high(of_call), low(of_call);
  const std::string of_high = reference(orb, poa, &high);
  const std::string of_low = reference(orb, poa, &low);
  manager->activate();
  std::cout << "{\"high\":\"" << of_high << "\",\"low\":\"" << of_low << "\"}" << std::endl;

  for (std::string line; std::getline(std::cin, line);) {
  }
  // What is still under way interests nobody any more.
  _exit(0);
} catch (const CORBA::Exception& exception) {
  std::cerr << "omniORB server: " << exception._name() << std::endl;
  return 1;
} catch (const std::exception& exception) {
  std::cerr << "omniORB server: " << exception.what() << std::endl;
  return 1;
}
