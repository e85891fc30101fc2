// The value types of chronorb-interop/idl/values.idl: what has code of its own, and the factories.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_VALUES_TYPES_H
#define CHRONORB_INTEROP_VALUES_TYPES_H

#include "values.hh"

// Nobody has a factory for it, so that receivers take it for a Named.
class StrangerValue : public virtual OBV_Values::Stranger {
public:
    StrangerValue(const char* name, Values::Point* abode, Values::Named* mate, CORBA::LongLong last);

    CORBA::LongLong secret() override { return last(); }
};

class SquareValue : public virtual OBV_Values::Square,
                    public virtual CORBA::DefaultValueRefCountBase {
public:
    SquareValue() = default;
    explicit SquareValue(CORBA::Double side) : OBV_Values::Square(side) {}

    CORBA::Double area() override { return side() * side(); }
};

// A value of a Point that is one, or a null.
Values::Point_var make_point(CORBA::Long x, CORBA::Long y);
Values::Named_var make_named(const char* name, Values::Point* origin, CORBA::Double weight);
bool is_point(Values::Point* value, CORBA::Long x, CORBA::Long y);

// Registers the factories of all types but Stranger.
void register_factories(CORBA::ORB_ptr orb);

#endif
