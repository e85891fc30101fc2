// omni_adapters_client --here FILE|URL --there FILE|URL [--only GROUP]... [--proceed FILE] [-ORB...]
//
// Checks what object adapters do, of any ORB's server of Adapters::Control with the name `here`; the
// one with the name `there` may be of the same ORB or of another. Prints a line for each check, and
// ends "N passed, M failed". The groups `restart`, `loss` and `patience` need more than two servers
// that run, and are left out unless they are asked for. After such a group has ended a server, it waits
// until FILE is there, if one is named.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "adapters_checks.h"
#include "program.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <thread>

namespace {

struct Group {
    const char* name;
    void (*check)(Context&);
    bool always;
};

const Group groups[] = {
    {"objects", check_objects, true},       {"states", check_states, true},
    {"ends", check_ends, true},             {"demand", check_demand, true},
    {"forwarding", check_forwarding, true}, {"restart", check_restart, false},
    {"loss", check_loss, false},            {"patience", check_patience, false},
};

struct Arguments {
    std::string here;
    std::string there;
    std::string proceed;
    std::vector<std::string> only;
};

Arguments read_arguments(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; i += 2) {
        const std::string option = argv[i];
        if (i + 1 == argc)
            throw std::runtime_error("an option without its value: " + option);
        if (option == "--here")
            arguments.here = argv[i + 1];
        else if (option == "--there")
            arguments.there = argv[i + 1];
        else if (option == "--proceed")
            arguments.proceed = argv[i + 1];
        else if (option == "--only")
            arguments.only.push_back(argv[i + 1]);
        else
            throw std::runtime_error("unknown option: " + option);
    }
    if (arguments.here.empty() || arguments.there.empty())
        throw std::runtime_error("usage: omni_adapters_client --here FILE|URL --there FILE|URL "
                                 "[--only GROUP]... [--proceed FILE] [-ORB...]");
    return arguments;
}

bool wanted(const Arguments& arguments, const Group& group) {
    const std::vector<std::string>& only = arguments.only;
    return only.empty() ? group.always : std::find(only.begin(), only.end(), group.name) != only.end();
}

// What the ORB itself finds out about a way that has ended, it answers by another attempt; what a
// server says is a result.
CORBA::Boolean try_again(void*, CORBA::ULong attempts, const CORBA::TRANSIENT& e) {
    const bool by_server = (e.minor() & 0xfffff000) == omg(0);
    if (by_server || attempts > 10000)
        return false;
    if (e.minor() == omni::TRANSIENT_ConnectFailed)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return true;
}

Adapters::Control_ptr control(CORBA::ORB_ptr orb, const std::string& file_or_url) {
    CORBA::Object_var object = orb->string_to_object(reference_text(file_or_url).c_str());
    Adapters::Control_var control = Adapters::Control::_narrow(object);
    if (CORBA::is_nil(control))
        throw std::runtime_error("the reference is not one of an Adapters::Control");
    return control._retn();
}

bool run(CORBA::ORB_ptr orb, const Arguments& arguments) {
    omniORB::installTransientExceptionHandler(nullptr, try_again);
    Report report;
    Context context{CORBA::ORB::_duplicate(orb), control(orb, arguments.here),
                    control(orb, arguments.there), arguments.proceed, report};
    for (const Group& group : groups) {
        if (!wanted(arguments, group))
            continue;
        report.group(group.name);
        try {
            group.check(context);
        } catch (...) {
            report.ok(false, std::string(group.name) + " runs to its end",
                      describe_current_exception());
        }
    }
    return report.finish();
}

} // namespace

int main(int argc, char** argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4");
        const bool passed = run(orb, read_arguments(argc, argv));
        orb->destroy();
        return passed ? 0 : 1;
    } catch (...) {
        std::cerr << "omni_adapters_client: " << describe_current_exception() << '\n';
        return 2;
    }
}
