// SPDX-License-Identifier: MIT OR Apache-2.0

#include "values_types.h"

namespace {

class SquareFactory : public CORBA::ValueFactoryBase {
public:
    CORBA::ValueBase* create_for_unmarshal() override { return new SquareValue; }
};

template <class Factory>
void register_factory(CORBA::ORB_ptr orb, const char* id) {
    CORBA::ValueFactoryBase_var factory(new Factory);
    CORBA::ValueFactoryBase_var old = orb->register_value_factory(id, factory);
}

} // namespace

StrangerValue::StrangerValue(const char* name, Values::Point* abode, Values::Named* mate,
                             CORBA::LongLong last) {
    x(1);
    y(2);
    this->name(name);
    origin(nullptr);
    weight(0.5);
    this->abode(abode);
    this->ballast().length(300);
    for (CORBA::ULong i = 0; i < 300; ++i)
        this->ballast()[i] = 0;
    this->mate(mate);
    this->last(last);
}

Values::Point_var make_point(CORBA::Long x, CORBA::Long y) {
    return Values::Point_var(new OBV_Values::Point(x, y));
}

Values::Named_var make_named(const char* name, Values::Point* origin, CORBA::Double weight) {
    if (origin != nullptr)
        CORBA::add_ref(origin);
    return Values::Named_var(new OBV_Values::Named(1, 2, name, origin, weight));
}

bool is_point(Values::Point* value, CORBA::Long x, CORBA::Long y) {
    return value != nullptr && value->x() == x && value->y() == y;
}

void register_factories(CORBA::ORB_ptr orb) {
    register_factory<Values::Point_init>(orb, Values::Point::_PD_repoId);
    register_factory<Values::Named_init>(orb, Values::Named::_PD_repoId);
    register_factory<Values::Node_init>(orb, Values::Node::_PD_repoId);
    register_factory<Values::Tree_init>(orb, Values::Tree::_PD_repoId);
    register_factory<SquareFactory>(orb, Values::Square::_PD_repoId);
}
