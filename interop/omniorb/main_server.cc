// omni_server --ior-file FILE [--bind NAME] [-ORB...]
//
// Serves Interop::Hub with omniORB until its operation `shutdown` is called or SIGTERM or SIGINT
// arrives. Its reference goes to FILE, and under NAME into the naming service where --bind is given;
// the object is also found as corbaloc::HOST:PORT/Hub.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "program.h"
#include "servants.h"

#include <omniORB4/Naming.hh>

#include <iostream>
#include <stdexcept>
#include <string>

namespace {

struct Arguments {
    std::string ior_file;
    std::string bind;
};

const char* const USAGE = "usage: omni_server --ior-file FILE [--bind NAME] [-ORB...]";

Arguments read_arguments(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        std::string* value = option == "--ior-file" ? &arguments.ior_file
                             : option == "--bind"   ? &arguments.bind
                                                    : nullptr;
        if (value == nullptr || i + 1 == argc)
            throw std::runtime_error(USAGE);
        *value = argv[++i];
    }
    if (arguments.ior_file.empty())
        throw std::runtime_error(USAGE);
    return arguments;
}

// Sends every request for its objects to another one.
class Forwarder : public PortableServer::ServantLocator {
public:
    explicit Forwarder(CORBA::Object_ptr target) : target_(CORBA::Object::_duplicate(target)) {}

    PortableServer::Servant preinvoke(const PortableServer::ObjectId&, PortableServer::POA_ptr,
                                      const char*, void*&) override {
        throw PortableServer::ForwardRequest(target_);
    }

    void postinvoke(const PortableServer::ObjectId&, PortableServer::POA_ptr, const char*, void*,
                    PortableServer::Servant) override {}

private:
    CORBA::Object_var target_;
};

// Activates the servant, which from then on the POA owns, under this id.
template <class Interface>
typename Interface::_var_type activate(PortableServer::POA_ptr poa, const char* id,
                                       PortableServer::ServantBase* servant) {
    PortableServer::ObjectId_var oid = PortableServer::string_to_ObjectId(id);
    poa->activate_object_with_id(oid, servant);
    servant->_remove_ref();
    CORBA::Object_var object = poa->id_to_reference(oid);
    return Interface::_narrow(object);
}

PortableServer::POA_ptr make_poa(CORBA::ORB_ptr orb, PortableServer::POA_ptr root) {
    PortableServer::POAManager_var manager = root->the_POAManager();
    CORBA::PolicyList policies;
    policies.length(3);
    policies[0] = root->create_lifespan_policy(PortableServer::PERSISTENT);
    policies[1] = root->create_id_assignment_policy(PortableServer::USER_ID);
    policies[2] = both_ways(orb);
    return root->create_POA("interop", manager, policies);
}

Interop::Echo_ptr make_forwarded(PortableServer::POA_ptr root, CORBA::Object_ptr target) {
    PortableServer::POAManager_var manager = root->the_POAManager();
    CORBA::PolicyList policies;
    policies.length(3);
    policies[0] = root->create_id_assignment_policy(PortableServer::USER_ID);
    policies[1] = root->create_servant_retention_policy(PortableServer::NON_RETAIN);
    policies[2] = root->create_request_processing_policy(PortableServer::USE_SERVANT_MANAGER);
    PortableServer::POA_var poa = root->create_POA("forwarding", manager, policies);
    PortableServer::ServantManager_var forwarder = new Forwarder(target);
    poa->set_servant_manager(forwarder);
    PortableServer::ObjectId_var oid = PortableServer::string_to_ObjectId("forwarded");
    CORBA::Object_var object = poa->create_reference_with_id(oid, Interop::Echo::_PD_repoId);
    return Interop::Echo::_unchecked_narrow(object);
}

Interop::Echo_ptr make_deactivated(PortableServer::POA_ptr poa) {
    auto reference = activate<Interop::Echo>(poa, "deactivated", new EchoServant);
    PortableServer::ObjectId_var oid = PortableServer::string_to_ObjectId("deactivated");
    poa->deactivate_object(oid);
    return reference._retn();
}

CosNaming::NamingContextExt_ptr naming_service(CORBA::ORB_ptr orb) {
    CORBA::Object_var object = orb->resolve_initial_references("NameService");
    CosNaming::NamingContextExt_var naming = CosNaming::NamingContextExt::_narrow(object);
    if (CORBA::is_nil(naming))
        throw std::runtime_error("the initial reference NameService is no NamingContextExt");
    return naming._retn();
}

void serve(CORBA::ORB_ptr orb, const Arguments& arguments) {
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    PortableServer::POA_var poa = make_poa(orb, root);

    Targets targets;
    targets.echo = activate<Interop::Echo>(poa, "echo", new EchoServant);
    targets.wides = activate<Interop::Wides>(poa, "wides", new WidesServant);
    targets.precise = activate<Interop::Precise>(poa, "precise", new PreciseServant);
    targets.faulty = activate<Interop::Faulty>(poa, "faulty", new FaultyServant);
    targets.notes = activate<Interop::Notes>(poa, "notes", new NotesServant);
    targets.panel = activate<Interop::Panel>(poa, "panel", new PanelServant);
    targets.bottom = activate<Interop::Bottom>(poa, "bottom", new BottomServant);
    targets.relations = activate<Interop::Relations>(poa, "relations", new RelationsServant(orb));
    targets.forwarded = make_forwarded(root, targets.echo);
    targets.deactivated = make_deactivated(poa);

    auto hub = activate<Interop::Hub>(poa, "hub", new HubServant(orb, targets));
    // omniORB serves the objects of this POA under keys that are their ids and nothing else.
    object = orb->resolve_initial_references("omniINSPOA");
    PortableServer::POA_var plain = PortableServer::POA::_narrow(object);
    activate<Interop::Hub>(plain, "Hub", new HubServant(orb, targets));

    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    manager = plain->the_POAManager();
    manager->activate();

    if (!arguments.bind.empty()) {
        CosNaming::NamingContextExt_var naming = naming_service(orb);
        CosNaming::Name_var name = naming->to_name(arguments.bind.c_str());
        naming->rebind(name, hub);
    }
    CORBA::String_var text = orb->object_to_string(hub);
    write_file(arguments.ior_file, text);
    orb->run();
}

} // namespace

int main(int argc, char** argv) {
    block_signals();
    try {
        const char* options[][2] = {{"giopMaxMsgSize", "67108864"}, {nullptr, nullptr}};
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
        const Arguments arguments = read_arguments(argc, argv);
        shut_down_on_signals(orb);
        serve(orb, arguments);
        orb->destroy();
        return 0;
    } catch (const CORBA::SystemException& e) {
        std::cerr << "omni_server: " << e._name() << ", minor code " << e.minor() << '\n';
    } catch (const CORBA::Exception& e) {
        std::cerr << "omni_server: " << e._name() << '\n';
    } catch (const std::exception& e) {
        std::cerr << "omni_server: " << e.what() << '\n';
    }
    return 1;
}
