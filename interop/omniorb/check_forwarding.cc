// Requests that servant managers send elsewhere, and the way back.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "adapters_checks.h"

#include <map>

using Adapters::Item;
using Adapters::Item_var;

namespace {

const char* const MANAGED[] = {"located", "activated", "lasting"};

void check_there_and_back(Context& context, const std::string& adapter) {
    Report& report = context.report;
    Item_var item = context.here->find(adapter.c_str(), "a");
    Item_var target = serve(context.there, "mapped-targets", adapter);
    const std::string forwarded = "there:mapped-targets:" + adapter;
    const std::string original = "here:" + adapter + ":a";

    context.here->forward(adapter.c_str(), "a", target);
    report.check(adapter + " forwards to another server", [&] { return answers(item, forwarded); });
    report.check(adapter + " is not asked again while the target is there", [&] {
        context.here->take_events(adapter.c_str());
        context.here->forward(adapter.c_str(), "a", Item::_nil());
        return answers(item, forwarded) && happened(context.here, adapter, {});
    });
    report.check(adapter + " is asked through another reference", [&] {
        Item_var other = context.here->find(adapter.c_str(), "a");
        return answers(other, original);
    });
    context.there->deactivate("mapped-targets", adapter.c_str());
    report.check(adapter + " has the client back when the target is gone",
                 [&] { return answers(item, original) && answers(item, original); });
    report.raises<CORBA::OBJECT_NOT_EXIST>(adapter + " has forwarded to what is gone", [&] {
        CORBA::String_var name = target->name();
    });
}

// omniORB goes back from an object that does not exist, and from a server that is not there, and
// takes TRANSIENT for an answer.
void check_discarding_target(Context& context, const std::string& adapter) {
    Report& report = context.report;
    const std::string discarding = "mapped-discarding-" + adapter;
    const std::string forwarded = "there:" + discarding + ":b";
    Item_var item = context.here->find(adapter.c_str(), "b");
    Item_var target = serve(context.there, discarding, "b");
    context.here->forward(adapter.c_str(), "b", target);
    report.check(adapter + " forwards to what will discard", [&] { return answers(item, forwarded); });
    context.there->set_state(discarding.c_str(), Adapters::DISCARDING);
    refused<CORBA::TRANSIENT>(report, adapter + " has forwarded to what discards", item, omg(1));
    context.there->set_state(discarding.c_str(), Adapters::ACTIVE);
    report.check(adapter + " has forwarded to what is active again",
                 [&] { return answers(item, forwarded); });
}

void check_within_the_server(Context& context, const std::string& adapter) {
    Item_var item = context.here->find(adapter.c_str(), "c");
    Item_var target = serve(context.here, "defaulted-targets", adapter);
    context.here->forward(adapter.c_str(), "c", target);
    context.report.check(adapter + " forwards within the server", [&] {
        return answers(item, "here:defaulted-targets:" + adapter) &&
               answers(item, "here:defaulted-targets:" + adapter);
    });
}

// From here to there, and from there back here.
void check_chain(Context& context, const std::string& adapter) {
    Report& report = context.report;
    Item_var item = context.here->find(adapter.c_str(), "d");
    Item_var middle = context.there->find(adapter.c_str(), "d");
    Item_var end = serve(context.here, "mapped-ends", adapter);
    context.here->forward(adapter.c_str(), "d", middle);
    context.there->forward(adapter.c_str(), "d", end);
    report.check(adapter + " forwards by two steps",
                 [&] { return answers(item, "here:mapped-ends:" + adapter); });
    context.there->forward(adapter.c_str(), "d", Item::_nil());
    context.here->deactivate("mapped-ends", adapter.c_str());
    report.check(adapter + " forwards by one step when the end of two is gone",
                 [&] { return answers(item, "there:" + adapter + ":d"); });
}

} // namespace

void check_forwarding(Context& context) {
    for (const std::string kind : MANAGED) {
        const std::string adapter = kind + "-forwarding";
        check_there_and_back(context, adapter);
        check_discarding_target(context, adapter);
        check_within_the_server(context, adapter);
        check_chain(context, adapter);
    }
}

void check_loss(Context& context) {
    std::map<std::string, Item_var> items;
    for (const std::string kind : MANAGED) {
        const std::string adapter = kind + "-loss";
        Item_var item = context.here->find(adapter.c_str(), "a");
        Item_var target = serve(context.there, "mapped-lost", kind);
        context.here->forward(adapter.c_str(), "a", target);
        context.report.check(adapter + " forwards to a server that will end",
                             [&] { return answers(item, "there:mapped-lost:" + kind); });
        context.here->forward(adapter.c_str(), "a", Item::_nil());
        items[adapter] = item;
    }
    context.end(context.there);
    for (const auto& [adapter, item] : items) {
        const std::string original = "here:" + adapter + ":a";
        context.report.check(adapter + " has the client back when the server is gone",
                             [&, item = item] { return answers(item, original); });
    }
}
