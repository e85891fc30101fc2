// The servant of Calls::Echo, which returns what it receives.

#pragma once

#include <unistd.h>

#include "calls.hh"

class Mirror : public POA_Calls::Echo {
 public:
  // `pace` receives an octet for each oneway, unless it is negative.
  explicit Mirror(int pace) : pace_(pace) {}

  CORBA::Long cube(CORBA::Octet v) override { return CORBA::Long(v) * v * v; }

  void notice(CORBA::Octet) override {
    char octet = 0;
    if (pace_ >= 0 && write(pace_, &octet, 1) != 1) throw CORBA::INTERNAL();
  }

  Calls::Samples* structs(const Calls::Samples& v) override { return new Calls::Samples(v); }

  char* text(const char* v) override { return CORBA::string_dup(v); }

  CORBA::Any* value(const CORBA::Any& v) override { return new CORBA::Any(v); }

  CORBA::Object_ptr reference(CORBA::Object_ptr v) override { return CORBA::Object::_duplicate(v); }

 private:
  int pace_;
};

inline Calls::Echo_ptr serve(CORBA::ORB_ptr orb, Mirror* mirror) {
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  PortableServer::ObjectId_var id = poa->activate_object(mirror);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  return mirror->_this();
}
