// Serves one Calls::Echo, prints its reference, and ends with its standard input.
//
// Usage: omniorb-server [-ORB...] [FIFO]. Oneways are acknowledged through the FIFO.

#include <fcntl.h>
#include <unistd.h>

#include <iostream>

#include "mirror.h"

int main(int argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  Mirror* mirror = new Mirror(argc > 1 ? open(argv[1], O_RDWR) : -1);
  Calls::Echo_var echo = serve(orb, mirror);
  CORBA::String_var reference = orb->object_to_string(echo);
  std::cout << reference << std::endl;
  char rest;
  while (read(0, &rest, 1) > 0) {
  }
  orb->destroy();
}
