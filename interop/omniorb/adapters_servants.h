// The servants of adapters.idl, and what makes them.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_ADAPTERS_SERVANTS_H
#define CHRONORB_INTEROP_ADAPTERS_SERVANTS_H

#include <adapters.hh>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// What the objects of a server share.
class ServerState {
public:
    ServerState(const std::string& name, PortableServer::Current_ptr current)
        : name_(name), current_(PortableServer::Current::_duplicate(current)) {}

    const std::string& name() const { return name_; }
    PortableServer::Current_ptr current() const { return current_; }

    void record(const std::string& adapter, const std::string& event);
    std::vector<std::string> take_events(const std::string& adapter);

    void forward(const std::string& adapter, const std::string& id, Adapters::Item_ptr target);
    // Nil where requests for this object are sent nowhere.
    Adapters::Item_ptr forwarded(const std::string& adapter, const std::string& id);

private:
    const std::string name_;
    PortableServer::Current_var current_;
    std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, Adapters::Item_var> forwards_;
    std::vector<std::pair<std::string, std::string>> events_;
};

using SharedState = std::shared_ptr<ServerState>;

// Serves any number of objects of one adapter.
class ItemServant : public POA_Adapters::Item {
public:
    ItemServant(const SharedState& state, const std::string& adapter)
        : state_(state), adapter_(adapter) {}

    char* name() override;

private:
    SharedState state_;
    const std::string adapter_;
};

class ControlServant : public POA_Adapters::Control {
public:
    ControlServant(CORBA::ORB_ptr orb, PortableServer::POA_ptr root, const SharedState& state)
        : orb_(CORBA::ORB::_duplicate(orb)), root_(PortableServer::POA::_duplicate(root)),
          state_(state) {}

    Adapters::Item_ptr find(const char* adapter, const char* id) override;
    void activate(const char* adapter, const char* id) override;
    void deactivate(const char* adapter, const char* id) override;
    void forward(const char* adapter, const char* id, Adapters::Item_ptr target) override;
    void set_state(const char* adapter, Adapters::State to) override;
    void destroy(const char* adapter) override;
    Adapters::Events* take_events(const char* adapter) override;
    void shutdown() override;

private:
    // The adapter at a path, made where it is not there.
    PortableServer::POA_ptr adapter(const std::string& path);

    CORBA::ORB_var orb_;
    PortableServer::POA_var root_;
    SharedState state_;
};

// What makes the children of an adapter; the prefix is their path without their names.
PortableServer::AdapterActivator* make_adapter_activator(const SharedState& state,
                                                         const std::string& prefix);

#endif
