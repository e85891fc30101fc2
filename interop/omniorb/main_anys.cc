// omni_anys --ior-file FILE [-ORB...]     serves Anys::Mirror; its reference goes to FILE
// omni_anys --ior FILE|URL [-ORB...]      checks any ORB's server of it, and ends it
// omni_anys --print big|little            prints the octets of the samples, as hexadecimal digits
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "any_samples.h"
#include "program.h"
#include "report.h"

#include <omniORB4/codeSets.h>

#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>

namespace {

class MirrorServant : public POA_Anys::Mirror {
public:
    explicit MirrorServant(CORBA::ORB_ptr orb) : orb_(CORBA::ORB::_duplicate(orb)) {}

    CORBA::Any* make(Anys::Sample kind) override {
        Anys::Mirror_var self = _this();
        return new CORBA::Any(make_sample(kind, self));
    }

    CORBA::Boolean is(Anys::Sample kind, const CORBA::Any& value) override {
        return is_sample(kind, value);
    }

    CORBA::Any* echo(const CORBA::Any& value) override { return new CORBA::Any(value); }

    CORBA::TypeCode_ptr type_of(const CORBA::Any& value) override { return value.type(); }

    CORBA::Boolean are_equal(CORBA::TypeCode_ptr one, CORBA::TypeCode_ptr other) override {
        return one->equal(other);
    }

    void shutdown() override { orb_->shutdown(false); }

private:
    CORBA::ORB_var orb_;
};

void serve(CORBA::ORB_ptr orb, const std::string& file) {
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    PortableServer::Servant_var<MirrorServant> servant = new MirrorServant(orb);
    PortableServer::ObjectId_var oid = root->activate_object(servant);
    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    object = root->id_to_reference(oid);
    CORBA::String_var text = orb->object_to_string(object);
    write_file(file, text);
    orb->run();
}

bool check(CORBA::ORB_ptr orb, const std::string& reference) {
    CORBA::Object_var object = orb->string_to_object(reference_text(reference).c_str());
    Anys::Mirror_var mirror = Anys::Mirror::_narrow(object);
    if (CORBA::is_nil(mirror))
        throw std::runtime_error("the reference is not one of an Anys::Mirror");
    Report report;
    for (CORBA::ULong i = 0; i < SAMPLES; ++i) {
        const Anys::Sample kind = Anys::Sample(i);
        const std::string name = "sample " + std::to_string(i);
        if (kind == Anys::AN_EXCEPTION) {
            report.skip(name, "omniORB has no repository id in front of an exception in an any");
            continue;
        }
        const CORBA::Any own = make_sample(kind, mirror);
        CORBA::TypeCode_var type = own.type();
        report.check(name + " is known there", [&] { return mirror->is(kind, own); });
        report.check(name + " comes back", [&] {
            CORBA::Any_var back = mirror->echo(own);
            CORBA::TypeCode_var type_back = back->type();
            return is_sample(kind, back) && type->equal(type_back);
        });
        report.check(name + " is made there", [&] {
            CORBA::Any_var made = mirror->make(kind);
            CORBA::TypeCode_var type_made = made->type();
            return is_sample(kind, made) && type->equal(type_made);
        });
        report.check(name + " made there is known there", [&] {
            CORBA::Any_var made = mirror->make(kind);
            return mirror->is(kind, made);
        });
        report.check(name + " has its type", [&] {
            CORBA::TypeCode_var type_there = mirror->type_of(own);
            return type->equal(type_there) && mirror->are_equal(type, type_there) &&
                   !mirror->are_equal(type, CORBA::_tc_longdouble);
        });
    }
    mirror->shutdown();
    return report.finish();
}

void print(bool little) {
    for (CORBA::ULong i = 0; i < SAMPLES; ++i) {
        const CORBA::Any any = make_sample(Anys::Sample(i), Anys::Mirror::_nil());
        cdrMemoryStream stream;
        stream.setByteSwapFlag(little);
        stream.TCS_W(omni::omniCodeSet::getTCS_W(omni::omniCodeSet::ID_UTF_16, GIOP::Version{1, 2}));
        any >>= stream;
        const auto* octets = static_cast<const unsigned char*>(stream.bufPtr());
        for (CORBA::ULong n = 0; n < stream.bufSize(); ++n)
            std::printf("%02x", octets[n]);
        std::printf("\n");
    }
}

} // namespace

int main(int argc, char** argv) {
    block_signals();
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4");
        const std::string option = argc == 3 ? argv[1] : "";
        bool passed = true;
        if (option == "--ior-file") {
            shut_down_on_signals(orb);
            serve(orb, argv[2]);
        } else if (option == "--ior") {
            passed = check(orb, argv[2]);
        } else if (option == "--print") {
            print(std::string(argv[2]) == "little");
        } else {
            throw std::runtime_error("usage: omni_anys --ior-file FILE | --ior FILE|URL | "
                                     "--print big|little [-ORB...]");
        }
        orb->destroy();
        return passed ? 0 : 1;
    } catch (const CORBA::SystemException& e) {
        std::cerr << "omni_anys: " << e._name() << ", minor code " << e.minor() << '\n';
    } catch (const CORBA::Exception& e) {
        std::cerr << "omni_anys: " << e._name() << '\n';
    } catch (const std::exception& e) {
        std::cerr << "omni_anys: " << e.what() << '\n';
    }
    return 2;
}
