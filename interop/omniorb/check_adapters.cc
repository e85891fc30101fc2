// Objects of every kind of adapter, and what its manager and its end do to them.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "adapters_checks.h"
#include "locate.h"

#include <chrono>
#include <fstream>
#include <future>
#include <thread>

using Adapters::Item;
using Adapters::Item_var;

namespace {

using Events = std::vector<std::string>;

// The requests that ask whether there is an object, and which.
void check_questions(Context& context, const std::string& kind) {
    Report& report = context.report;
    const std::string adapter = kind + "-questions";
    const std::string name = "here:" + adapter + ":a";
    Item_var item = serve(context.here, adapter, "a");
    context.here->take_events(adapter.c_str());

    report.check(kind + ": locate", [&] { return Locator::locate(item); });
    report.check(kind + ": nothing is made for a locate request",
                 [&] { return happened(context.here, adapter, {}); });
    report.check(kind + ": _is_a", [&] {
        return remote_is_a(item, Item::_PD_repoId) &&
               !remote_is_a(item, Adapters::Control::_PD_repoId);
    });
    report.check(kind + ": _non_existent", [&] { return !item->_non_existent(); });
    report.check(kind + ": a call", [&] { return answers(item, name); });
    report.check(kind + ": the first call of a reference", [&] {
        Item_var another = context.here->find(adapter.c_str(), "a");
        return answers(another, name);
    });
    report.check(kind + ": a reference that is narrowed", [&] {
        CORBA::String_var text = context.orb->object_to_string(item);
        CORBA::Object_var object = context.orb->string_to_object(text);
        Item_var narrowed = Item::_narrow(object);
        return answers(narrowed, name);
    });
    if (kind == "activated" || kind == "lasting")
        report.check(kind + ": one servant was made for all that",
                     [&] { return happened(context.here, adapter, {"incarnate a"}); });
}

void check_servant_managers(Context& context) {
    Report& report = context.report;
    Item_var item = context.here->find("activated-managers", "a");
    report.check("an activator makes a servant once", [&] {
        const std::string name = "here:activated-managers:a";
        return answers(item, name) && answers(item, name) &&
               happened(context.here, "activated-managers", {"unknown_adapter", "incarnate a"});
    });
    item = context.here->find("located-managers", "a");
    report.check("a locator gives a servant to each request", [&] {
        const std::string name = "here:located-managers:a";
        const Events events = {"unknown_adapter", "preinvoke a name", "postinvoke a name",
                               "preinvoke a name", "postinvoke a name"};
        return answers(item, name) && answers(item, name) &&
               happened(context.here, "located-managers", events);
    });
    for (const std::string kind : {"located", "activated", "lasting"}) {
        const std::string adapter = kind + "-managers";
        Item_var absent = context.here->find(adapter.c_str(), "absent");
        Item_var broken = context.here->find(adapter.c_str(), "broken");
        refused<CORBA::OBJECT_NOT_EXIST>(report, kind + ": an object that it does not know", absent, 7);
        report.check(kind + ": _non_existent of an object that it does not know",
                     [&] { return absent->_non_existent(); });
        refused<CORBA::NO_RESOURCES>(report, kind + ": an object that it cannot make", broken, 8);
    }
}

void check_many(Context& context) {
    for (const std::string kind : {"defaulted", "located", "activated"})
        context.report.check(kind + ": a thousand objects", [&] {
            const std::string adapter = kind + "-many";
            for (int n = 0; n < 1000; ++n) {
                const std::string id = "object number " + std::to_string(n);
                Item_var item = context.here->find(adapter.c_str(), id.c_str());
                if (!answers(item, "here:" + adapter + ':' + id))
                    return false;
            }
            return true;
        });
}

// The call begins while requests are held, and ends only after they are let go.
bool is_held(Context& context, const std::string& adapter) {
    context.here->set_state(adapter.c_str(), Adapters::HOLDING);
    auto call = std::async(std::launch::async, [&] {
        Item_var item = context.here->find(adapter.c_str(), "a");
        return answers(item, "here:" + adapter + ":a");
    });
    const auto waited = call.wait_for(std::chrono::milliseconds(200));
    context.here->set_state(adapter.c_str(), Adapters::ACTIVE);
    return call.get() && waited == std::future_status::timeout;
}

void check_states_of(Context& context, const std::string& kind) {
    Report& report = context.report;
    const std::string adapter = kind + "-states";
    const std::string name = "here:" + adapter + ":a";
    Item_var item = serve(context.here, adapter, "a");
    report.check(kind + ": an active manager", [&] { return answers(item, name); });

    context.here->set_state(adapter.c_str(), Adapters::DISCARDING);
    refused<CORBA::TRANSIENT>(report, kind + ": a discarding manager", item, omg(1));
    Item_var fresh = context.here->find(adapter.c_str(), "a");
    refused<CORBA::TRANSIENT>(report, kind + ": a discarding manager, from the first call", fresh, omg(1));
    context.here->set_state(adapter.c_str(), Adapters::ACTIVE);
    report.check(kind + ": a manager that is active again", [&] { return answers(item, name); });

    report.check(kind + ": a holding manager", [&] { return is_held(context, adapter); });

    context.here->set_state(adapter.c_str(), Adapters::INACTIVE);
    refused<CORBA::OBJ_ADAPTER>(report, kind + ": an inactive manager", item);
    refused<CORBA::OBJ_ADAPTER>(report, kind + ": an inactive manager, from the first call", fresh);
    report.raises<CORBA::BAD_PARAM>(kind + ": an inactive manager stays so", [&] {
        context.here->set_state(adapter.c_str(), Adapters::ACTIVE);
    });
}

void check_deactivation(Context& context, const std::string& kind) {
    Report& report = context.report;
    const std::string adapter = kind + "-deactivation";
    const std::string name = "here:" + adapter + ":a";
    Item_var item = serve(context.here, adapter, "a");
    report.check(kind + ": an object before its end", [&] { return answers(item, name); });
    context.here->take_events(adapter.c_str());
    context.here->deactivate(adapter.c_str(), "a");
    if (kind == "mapped") {
        refused<CORBA::OBJECT_NOT_EXIST>(report, kind + ": an object after its end", item);
        report.check(kind + ": _non_existent of an object after its end",
                     [&] { return item->_non_existent(); });
        context.here->activate(adapter.c_str(), "a");
        report.check(kind + ": an object that is there again", [&] { return answers(item, name); });
    } else {
        report.check(kind + ": an object that is made anew", [&] {
            const Events events = {"etherealize a", "incarnate a"};
            return answers(item, name) && happened(context.here, adapter, events);
        });
    }
}

void check_destruction(Context& context, const std::string& kind) {
    Report& report = context.report;
    const std::string adapter = kind + "-destruction";
    const std::string name = "here:" + adapter + ":a";
    Item_var item = serve(context.here, adapter, "a");
    report.check(kind + ": an object of an adapter", [&] { return answers(item, name); });
    context.here->take_events(adapter.c_str());
    context.here->destroy(adapter.c_str());
    if (kind == "lasting") {
        report.check(kind + ": an adapter that was destroyed is made anew", [&] {
            const Events events = {"etherealize a", "unknown_adapter", "incarnate a"};
            return answers(item, name) && happened(context.here, adapter, events);
        });
        return;
    }
    refused<CORBA::OBJECT_NOT_EXIST>(report, kind + ": an object of a destroyed adapter", item);
    report.raises<CORBA::OBJECT_NOT_EXIST>(kind + ": locate of an object of a destroyed adapter",
                                           [&] { Locator::locate(item); });
    report.check(kind + ": _non_existent of an object of a destroyed adapter",
                 [&] { return item->_non_existent(); });
    Item_var successor = serve(context.here, adapter, "a");
    report.check(kind + ": an object of another adapter of the name",
                 [&] { return answers(successor, name); });
    refused<CORBA::OBJECT_NOT_EXIST>(report, kind + ": the other adapter is another one", item);
}

} // namespace

void Context::end(Adapters::Control_ptr control) const {
    control->shutdown();
    while (!proceed.empty() && !std::ifstream(proceed))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

bool answers(Adapters::Item_ptr item, const std::string& name) {
    CORBA::String_var answer = item->name();
    return answer.in() == name;
}

bool happened(Adapters::Control_ptr control, const std::string& adapter, const Events& events) {
    Adapters::Events_var taken = control->take_events(adapter.c_str());
    if (taken->length() != events.size())
        return false;
    for (CORBA::ULong i = 0; i < taken->length(); ++i)
        if (static_cast<const char*>(taken[i]) != events[i])
            return false;
    return true;
}

Adapters::Item_ptr serve(Adapters::Control_ptr control, const std::string& adapter,
                         const std::string& id) {
    if (adapter.rfind("mapped", 0) == 0)
        control->activate(adapter.c_str(), id.c_str());
    return control->find(adapter.c_str(), id.c_str());
}

void check_objects(Context& context) {
    for (const std::string& kind : KINDS)
        check_questions(context, kind);
    check_servant_managers(context);
    check_many(context);
    Item_var item = context.here->find("mapped-objects", "not active");
    refused<CORBA::OBJECT_NOT_EXIST>(context.report, "mapped: an object that is not active", item);
}

void check_states(Context& context) {
    for (const std::string& kind : KINDS)
        check_states_of(context, kind);
}

void check_ends(Context& context) {
    for (const std::string kind : {"mapped", "activated", "lasting"})
        check_deactivation(context, kind);
    for (const std::string& kind : KINDS)
        check_destruction(context, kind);
}

void check_demand(Context& context) {
    Report& report = context.report;
    const std::string tree = "lasting-tree";
    const std::string branch = tree + "/lasting-branch";
    const std::string twig = branch + "/lasting-twig";
    const auto fell = [&](const std::string& adapter, const Events& events) {
        return happened(context.here, adapter, events);
    };
    Item_var item = context.here->find(twig.c_str(), "leaf");
    report.check("adapters are made when a reference is", [&] {
        return fell(tree, {"unknown_adapter"}) && fell(branch, {"unknown_adapter"}) &&
               fell(twig, {"unknown_adapter"});
    });
    context.here->destroy(tree.c_str());
    report.check("adapters are made for a call, from the root down", [&] {
        return answers(item, "here:" + twig + ":leaf") && fell(tree, {"unknown_adapter"}) &&
               fell(branch, {"unknown_adapter"}) && fell(twig, {"unknown_adapter", "incarnate leaf"});
    });
    context.here->destroy(tree.c_str());
    context.here->take_events(twig.c_str());
    report.check("adapters are made for a locate request", [&] {
        return Locator::locate(item) && fell(tree, {"unknown_adapter"}) &&
               fell(branch, {"unknown_adapter"}) && fell(twig, {"unknown_adapter"});
    });
    report.raises<CORBA::BAD_PARAM>("an adapter that nobody makes", [&] {
        Item_var none = context.here->find("lasting-tree/weed", "leaf");
    });
}

void check_restart(Context& context) {
    Report& report = context.report;
    const std::string adapter = "lasting-restart/lasting-below";
    Item_var item = context.here->find(adapter.c_str(), "a");
    Item_var transient = serve(context.here, "mapped-restart", "a");
    const std::string name = "here:" + adapter + ":a";
    report.check("an object before the restart", [&] { return answers(item, name); });
    report.check("a transient object before the restart",
                 [&] { return answers(transient, "here:mapped-restart:a"); });
    context.here->take_events(adapter.c_str());

    context.end(context.here);
    report.check("the reference is good after the restart", [&] { return answers(item, name); });
    report.check("its adapters and its servant were made for it", [&] {
        return happened(context.here, "lasting-restart", {"unknown_adapter"}) &&
               happened(context.here, adapter, {"unknown_adapter", "incarnate a"});
    });
    report.check("the same reference is made after the restart", [&] {
        Item_var again = context.here->find(adapter.c_str(), "a");
        CORBA::String_var text = context.orb->object_to_string(item);
        CORBA::String_var text_again = context.orb->object_to_string(again);
        return text.in() == std::string(text_again.in());
    });
    refused<CORBA::OBJECT_NOT_EXIST>(report, "a transient object after the restart", transient);
    context.here->activate("mapped-restart", "a");
    refused<CORBA::OBJECT_NOT_EXIST>(report, "a transient object of an earlier run is another one",
                                     transient);
}

void check_patience(Context& context) {
    Item_var item = serve(context.here, "mapped-patience", "a");
    context.here->set_state("mapped-patience", Adapters::HOLDING);
    refused<CORBA::TRANSIENT>(context.report, "a request is not held for ever", item, omg(1));
    context.here->set_state("mapped-patience", Adapters::ACTIVE);
    context.report.check("the next one is served",
                         [&] { return answers(item, "here:mapped-patience:a"); });
}
