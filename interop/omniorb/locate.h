// Requests that stubs do not make by themselves.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_LOCATE_H
#define CHRONORB_INTEROP_LOCATE_H

#include <omniORB4/CORBA.h>
#include <omniORB4/omniObjRef.h>

// Sends a LocateRequest. The ORB does so by itself before a first call, and has no public way to ask
// for it; a pointer to the protected member is allowed to those that derive from its class.
class Locator : public omniObjRef {
public:
    static bool locate(CORBA::Object_ptr object) {
        (object->_PR_getobj()->*(&Locator::_locateRequest))();
        return true;
    }
};

// Asks the object itself, also where this program knows the answer.
inline bool remote_is_a(CORBA::Object_ptr object, const char* id) {
    return object->_PR_getobj()->_remote_is_a(id);
}

#endif
