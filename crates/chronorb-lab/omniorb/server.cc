// omniORB's side of `chronorb lab latency` and `throughput`: the server of ../idl/peers.idl.
//
//   server [-ORB…] [--fifo PRIORITY]
//
// Says a line of JSON with the references of its objects, and serves until standard input ends.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include <unistd.h>

#include <iostream>
#include <thread>

#include "peers.hh"
#include "schedule.h"

namespace {

class Cuber : public POA_Peers::Power {
  CORBA::Long cube(CORBA::Octet v) override { return CORBA::Long(v) * v * v; }
};

class Mirror : public POA_Peers::Data {
  Peers::Octets* echo_octets(const Peers::Octets& v) override { return new Peers::Octets(v); }
  Peers::Doubles* echo_doubles(const Peers::Doubles& v) override { return new Peers::Doubles(v); }
  Peers::Samples* echo_samples(const Peers::Samples& v) override { return new Peers::Samples(v); }
  Peers::Strings* echo_strings(const Peers::Strings& v) override { return new Peers::Strings(v); }
  Peers::Readings* echo_readings(const Peers::Readings& v) override {
    return new Peers::Readings(v);
  }
  Peers::Anys* echo_anys(const Peers::Anys& v) override { return new Peers::Anys(v); }
  Peers::Ticks* echo_ticks(const Peers::Ticks& v) override { return new Peers::Ticks(v); }
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
  // What omniORB has for low latency: a thread for each connection, and nobody who looks for idle ones.
  const char* options[][2] = {{"threadPerConnectionPolicy", "1"},
                              {"scanGranularity", "0"},
                              {"endPoint", "giop:tcp:127.0.0.1:"},
                              {nullptr, nullptr}};
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
  schedule(priority(argc, argv, "--fifo"));
  CORBA::ValueFactoryBase_var ticks(new Peers::Tick_init);
  CORBA::ValueFactoryBase_var none = orb->register_value_factory(Peers::Tick::_PD_repoId, ticks);
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  Cuber cuber;
  Mirror mirror;
  const std::string power = reference(orb, poa, &cuber);
  const std::string data = reference(orb, poa, &mirror);
  manager->activate();
  std::cout << "{\"power\":\"" << power << "\",\"data\":\"" << data << "\"}" << std::endl;

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
