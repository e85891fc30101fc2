// What makes adapters and servants when they are asked for.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "adapters_servants.h"

namespace {

std::string text_of(const PortableServer::ObjectId& oid) {
    CORBA::String_var id = PortableServer::ObjectId_to_string(oid);
    return id.in();
}

// Makes the servants of one adapter.
class Maker {
public:
    Maker(const SharedState& state, const std::string& adapter)
        : state_(state), adapter_(adapter) {}

    PortableServer::Servant make(const std::string& id) const {
        Adapters::Item_var target = state_->forwarded(adapter_, id);
        if (!CORBA::is_nil(target))
            throw PortableServer::ForwardRequest(target);
        if (id == "absent")
            throw CORBA::OBJECT_NOT_EXIST(7, CORBA::COMPLETED_NO);
        if (id == "broken")
            throw CORBA::NO_RESOURCES(8, CORBA::COMPLETED_NO);
        return item();
    }

    PortableServer::Servant item() const { return new ItemServant(state_, adapter_); }
    void record(const std::string& event) const { state_->record(adapter_, event); }

private:
    SharedState state_;
    const std::string adapter_;
};

class Activator : public PortableServer::ServantActivator {
public:
    explicit Activator(const Maker& maker) : maker_(maker) {}

    PortableServer::Servant incarnate(const PortableServer::ObjectId& oid,
                                      PortableServer::POA_ptr) override {
        maker_.record("incarnate " + text_of(oid));
        return maker_.make(text_of(oid));
    }

    void etherealize(const PortableServer::ObjectId& oid, PortableServer::POA_ptr,
                     PortableServer::Servant servant, CORBA::Boolean, CORBA::Boolean) override {
        maker_.record("etherealize " + text_of(oid));
        servant->_remove_ref();
    }

private:
    const Maker maker_;
};

class ItemLocator : public PortableServer::ServantLocator {
public:
    explicit ItemLocator(const Maker& maker) : maker_(maker) {}

    PortableServer::Servant preinvoke(const PortableServer::ObjectId& oid, PortableServer::POA_ptr,
                                      const char* operation, void*& cookie) override {
        maker_.record("preinvoke " + text_of(oid) + ' ' + operation);
        PortableServer::Servant servant = maker_.make(text_of(oid));
        cookie = new std::string(text_of(oid));
        return servant;
    }

    void postinvoke(const PortableServer::ObjectId&, PortableServer::POA_ptr, const char* operation,
                    void* cookie, PortableServer::Servant servant) override {
        // What was given to the request comes back from it.
        const std::unique_ptr<std::string> id(static_cast<std::string*>(cookie));
        maker_.record("postinvoke " + *id + ' ' + operation);
        servant->_remove_ref();
    }

private:
    const Maker maker_;
};

struct Kind {
    const char* name;
    PortableServer::LifespanPolicyValue lifespan;
    PortableServer::ServantRetentionPolicyValue retention;
    PortableServer::RequestProcessingPolicyValue processing;
};

const Kind kinds[] = {
    {"mapped", PortableServer::TRANSIENT, PortableServer::RETAIN,
     PortableServer::USE_ACTIVE_OBJECT_MAP_ONLY},
    {"defaulted", PortableServer::TRANSIENT, PortableServer::NON_RETAIN,
     PortableServer::USE_DEFAULT_SERVANT},
    {"located", PortableServer::TRANSIENT, PortableServer::NON_RETAIN,
     PortableServer::USE_SERVANT_MANAGER},
    {"activated", PortableServer::TRANSIENT, PortableServer::RETAIN,
     PortableServer::USE_SERVANT_MANAGER},
    {"lasting", PortableServer::PERSISTENT, PortableServer::RETAIN,
     PortableServer::USE_SERVANT_MANAGER},
};

// What the name of an adapter says about it; null for any other.
const Kind* kind_of(const std::string& name) {
    for (const Kind& kind : kinds)
        if (name.substr(0, name.find('-')) == kind.name)
            return &kind;
    return nullptr;
}

PortableServer::POA_ptr make_adapter(PortableServer::POA_ptr parent, const char* name,
                                     const Kind& kind) {
    CORBA::PolicyList policies;
    policies.length(5);
    policies[0] = parent->create_id_assignment_policy(PortableServer::USER_ID);
    policies[1] = parent->create_id_uniqueness_policy(PortableServer::MULTIPLE_ID);
    policies[2] = parent->create_servant_retention_policy(kind.retention);
    policies[3] = parent->create_request_processing_policy(kind.processing);
    policies[4] = parent->create_lifespan_policy(kind.lifespan);
    return parent->create_POA(name, PortableServer::POAManager::_nil(), policies);
}

void fill(PortableServer::POA_ptr poa, const Kind& kind, const Maker& maker) {
    if (kind.processing == PortableServer::USE_DEFAULT_SERVANT) {
        PortableServer::ServantBase_var servant = maker.item();
        poa->set_servant(servant);
    } else if (kind.processing == PortableServer::USE_SERVANT_MANAGER) {
        PortableServer::ServantManager_var manager;
        if (kind.retention == PortableServer::RETAIN)
            manager = new Activator(maker);
        else
            manager = new ItemLocator(maker);
        poa->set_servant_manager(manager);
    }
}

class Grower : public PortableServer::AdapterActivator {
public:
    Grower(const SharedState& state, const std::string& prefix) : state_(state), prefix_(prefix) {}

    CORBA::Boolean unknown_adapter(PortableServer::POA_ptr parent, const char* name) override {
        const Kind* kind = kind_of(name);
        if (kind == nullptr)
            return false;
        const std::string path = prefix_ + name;
        PortableServer::POA_var poa = make_adapter(parent, name, *kind);
        state_->record(path, "unknown_adapter");
        fill(poa, *kind, Maker(state_, path));
        PortableServer::AdapterActivator_var below = make_adapter_activator(state_, path + '/');
        poa->the_activator(below);
        PortableServer::POAManager_var manager = poa->the_POAManager();
        manager->activate();
        return true;
    }

private:
    SharedState state_;
    const std::string prefix_;
};

} // namespace

PortableServer::AdapterActivator* make_adapter_activator(const SharedState& state,
                                                         const std::string& prefix) {
    return new Grower(state, prefix);
}
