// The servants of adapters.idl.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "adapters_servants.h"

#include <algorithm>
#include <sstream>
#include <thread>

using Lock = std::lock_guard<std::mutex>;

namespace {

// Anything but a system exception means that the adapter cannot do what is asked.
template <class Body>
void or_bad_param(Body body) {
    try {
        body();
    } catch (const CORBA::UserException&) {
        throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
    }
}

} // namespace

void ServerState::record(const std::string& adapter, const std::string& event) {
    Lock lock(mutex_);
    events_.emplace_back(adapter, event);
}

std::vector<std::string> ServerState::take_events(const std::string& adapter) {
    Lock lock(mutex_);
    const auto stays = [&](const auto& event) { return event.first != adapter; };
    const auto taken = std::stable_partition(events_.begin(), events_.end(), stays);
    std::vector<std::string> events;
    for (auto event = taken; event != events_.end(); ++event)
        events.push_back(event->second);
    events_.erase(taken, events_.end());
    return events;
}

void ServerState::forward(const std::string& adapter, const std::string& id,
                          Adapters::Item_ptr target) {
    Lock lock(mutex_);
    if (CORBA::is_nil(target))
        forwards_.erase({adapter, id});
    else
        forwards_[{adapter, id}] = Adapters::Item::_duplicate(target);
}

Adapters::Item_ptr ServerState::forwarded(const std::string& adapter, const std::string& id) {
    Lock lock(mutex_);
    const auto found = forwards_.find({adapter, id});
    return found == forwards_.end() ? Adapters::Item::_nil()
                                    : Adapters::Item::_duplicate(found->second);
}

char* ItemServant::name() {
    PortableServer::ObjectId_var oid = state_->current()->get_object_id();
    CORBA::String_var id = PortableServer::ObjectId_to_string(oid);
    return CORBA::string_dup((state_->name() + ':' + adapter_ + ':' + id.in()).c_str());
}

PortableServer::POA_ptr ControlServant::adapter(const std::string& path) {
    PortableServer::POA_var poa = PortableServer::POA::_duplicate(root_);
    std::istringstream names(path);
    for (std::string name; std::getline(names, name, '/');)
        or_bad_param([&] { poa = poa->find_POA(name.c_str(), true); });
    return poa._retn();
}

Adapters::Item_ptr ControlServant::find(const char* path, const char* id) {
    PortableServer::POA_var poa = adapter(path);
    PortableServer::ObjectId_var oid = PortableServer::string_to_ObjectId(id);
    CORBA::Object_var object = poa->create_reference_with_id(oid, Adapters::Item::_PD_repoId);
    return Adapters::Item::_unchecked_narrow(object);
}

void ControlServant::activate(const char* path, const char* id) {
    PortableServer::POA_var poa = adapter(path);
    PortableServer::ObjectId_var oid = PortableServer::string_to_ObjectId(id);
    PortableServer::Servant_var<ItemServant> item = new ItemServant(state_, path);
    or_bad_param([&] { poa->activate_object_with_id(oid, item); });
}

void ControlServant::deactivate(const char* path, const char* id) {
    PortableServer::POA_var poa = adapter(path);
    PortableServer::ObjectId_var oid = PortableServer::string_to_ObjectId(id);
    or_bad_param([&] { poa->deactivate_object(oid); });
}

void ControlServant::forward(const char* path, const char* id, Adapters::Item_ptr target) {
    state_->forward(path, id, target);
}

void ControlServant::set_state(const char* path, Adapters::State to) {
    PortableServer::POA_var poa = adapter(path);
    PortableServer::POAManager_var manager = poa->the_POAManager();
    or_bad_param([&] {
        switch (to) {
        case Adapters::HOLDING:
            return manager->hold_requests(false);
        case Adapters::ACTIVE:
            return manager->activate();
        case Adapters::DISCARDING:
            return manager->discard_requests(false);
        case Adapters::INACTIVE:
            return manager->deactivate(true, false);
        }
    });
}

void ControlServant::destroy(const char* path) {
    PortableServer::POA_var poa = adapter(path);
    // A servant must not wait for an end, and the ORB begins one that nobody waits for when it likes.
    std::thread([&] { poa->destroy(true, true); }).join();
}

Adapters::Events* ControlServant::take_events(const char* path) {
    const std::vector<std::string> taken = state_->take_events(path);
    Adapters::Events_var events = new Adapters::Events;
    events->length(static_cast<CORBA::ULong>(taken.size()));
    for (CORBA::ULong i = 0; i < events->length(); ++i)
        events[i] = taken[i].c_str();
    return events._retn();
}

void ControlServant::shutdown() {
    orb_->shutdown(false);
}
