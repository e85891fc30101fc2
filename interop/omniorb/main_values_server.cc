// omni_values_server --ior-file FILE [-ORB...]
//
// Serves Values::Mirror with omniORB until its operation `shutdown` is called or SIGTERM or SIGINT
// arrives. Its reference goes to FILE.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "program.h"
#include "values_types.h"

#include <iostream>
#include <stdexcept>

namespace {

template <class Value>
Value* same(Value* value) {
    CORBA::add_ref(value);
    return value;
}

class FieldServant : public POA_Values::Field {
public:
    CORBA::Double area() override { return 12; }
    CORBA::Long rows() override { return 3; }
};

class MirrorServant : public POA_Values::Mirror {
public:
    MirrorServant(CORBA::ORB_ptr orb, Values::Field_ptr field)
        : orb_(CORBA::ORB::_duplicate(orb)), field_(Values::Field::_duplicate(field)) {}

    Values::Point* echo_point(Values::Point* value) override { return same(value); }
    Values::Points* echo_points(const Values::Points& values) override {
        return new Values::Points(values);
    }
    Values::Node* echo_node(Values::Node* value) override { return same(value); }
    Values::Tree* echo_tree(Values::Tree* value) override { return same(value); }
    Values::Text* echo_text(Values::Text* value) override { return same(value); }
    Values::Numbers* echo_numbers(Values::Numbers* value) override { return same(value); }
    Values::PairBox* echo_pair(Values::PairBox* value) override { return same(value); }
    Values::Shape_ptr echo_shape(Values::Shape_ptr value) override {
        return Values::Shape::_duplicate(value);
    }
    Values::Named* as_named(Values::Point* value) override {
        return same(Values::Named::_downcast(value));
    }
    CORBA::Boolean are_one(Values::Point* one, Values::Point* other) override {
        return one == other;
    }
    Values::Point* rotate(Values::Point*& one, Values::Point_out other) override {
        other = one;
        one = make_point(7, 8)._retn();
        return same(other.ptr());
    }
    Values::Point* stranger() override {
        auto abode = make_point(3, 4);
        auto mate = make_named("mate", abode.in(), 1.5);
        return new StrangerValue("from afar", abode.in(), mate.in(), 99);
    }
    CORBA::Double area_of(Values::Shape_ptr value) override {
        return CORBA::is_nil(value) ? 0 : value->area();
    }
    Values::Field_ptr a_field() override { return Values::Field::_duplicate(field_); }
    void misplace(Values::Point* value) override {
        Values::Misplaced exception;
        exception.why = CORBA::string_dup("asked for");
        exception.place = same(value);
        throw exception;
    }
    void shutdown() override { orb_->shutdown(false); }

private:
    CORBA::ORB_var orb_;
    Values::Field_var field_;
};

void serve(CORBA::ORB_ptr orb, const std::string& ior_file) {
    register_factories(orb);
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    PortableServer::Servant_var<FieldServant> field = new FieldServant;
    PortableServer::ObjectId_var field_id = root->activate_object(field);
    Values::Field_var field_reference = field->_this();
    PortableServer::Servant_var<MirrorServant> mirror = new MirrorServant(orb, field_reference);
    PortableServer::ObjectId_var mirror_id = root->activate_object(mirror);
    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    object = mirror->_this();
    CORBA::String_var text = orb->object_to_string(object);
    write_file(ior_file, text);
    orb->run();
}

} // namespace

int main(int argc, char** argv) {
    block_signals();
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4");
        if (argc != 3 || argv[1] != std::string("--ior-file"))
            throw std::runtime_error("usage: omni_values_server --ior-file FILE [-ORB...]");
        shut_down_on_signals(orb);
        serve(orb, argv[2]);
        orb->destroy();
        return 0;
    } catch (const CORBA::SystemException& e) {
        std::cerr << "omni_values_server: " << e._name() << ", minor code " << e.minor() << '\n';
    } catch (const CORBA::Exception& e) {
        std::cerr << "omni_values_server: " << e._name() << '\n';
    } catch (const std::exception& e) {
        std::cerr << "omni_values_server: " << e.what() << '\n';
    }
    return 1;
}
