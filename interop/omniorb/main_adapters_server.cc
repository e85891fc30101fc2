// omni_adapters_server --name NAME --ior-file FILE [-ORB...]
//
// Serves Adapters::Control with omniORB until its operation `shutdown` is called or SIGTERM or SIGINT
// arrives. Its reference goes to FILE; its items say that they are of the server NAME.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "adapters_servants.h"
#include "program.h"

#include <iostream>
#include <stdexcept>

namespace {

void serve(CORBA::ORB_ptr orb, const std::string& name, const std::string& ior_file) {
    CORBA::Object_var object = orb->resolve_initial_references("POACurrent");
    PortableServer::Current_var current = PortableServer::Current::_narrow(object);
    object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    PortableServer::POAManager_var manager = root->the_POAManager();

    const SharedState state = std::make_shared<ServerState>(name, current);
    PortableServer::AdapterActivator_var activator = make_adapter_activator(state, "");
    root->the_activator(activator);

    CORBA::PolicyList policies;
    policies.length(2);
    policies[0] = root->create_lifespan_policy(PortableServer::PERSISTENT);
    policies[1] = root->create_id_assignment_policy(PortableServer::USER_ID);
    PortableServer::POA_var poa = root->create_POA("control", manager, policies);
    PortableServer::Servant_var<ControlServant> control = new ControlServant(orb, root, state);
    PortableServer::ObjectId_var oid = PortableServer::string_to_ObjectId("control");
    poa->activate_object_with_id(oid, control);
    manager->activate();

    object = poa->id_to_reference(oid);
    CORBA::String_var text = orb->object_to_string(object);
    write_file(ior_file, text);
    orb->run();
}

} // namespace

int main(int argc, char** argv) {
    block_signals();
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4");
        if (argc != 5 || argv[1] != std::string("--name") || argv[3] != std::string("--ior-file"))
            throw std::runtime_error("usage: omni_adapters_server --name NAME --ior-file FILE [-ORB...]");
        shut_down_on_signals(orb);
        serve(orb, argv[2], argv[4]);
        orb->destroy();
        return 0;
    } catch (const CORBA::SystemException& e) {
        std::cerr << "omni_adapters_server: " << e._name() << ", minor code " << e.minor() << '\n';
    } catch (const CORBA::Exception& e) {
        std::cerr << "omni_adapters_server: " << e._name() << '\n';
    } catch (const std::exception& e) {
        std::cerr << "omni_adapters_server: " << e.what() << '\n';
    }
    return 1;
}
