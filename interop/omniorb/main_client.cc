// omni_client --ior FILE|URL [--only GROUP]... [--skip GROUP]... [--no-wide] [--utf8] [--shutdown]
//             [--list] [-ORB...]
//
// Checks any ORB's server of Interop::Hub, a line for each check, and ends "N passed, M failed".
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "checks.h"
#include "program.h"

#include <algorithm>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Group {
    const char* name;
    void (*check)(Context&);
};

const Group groups[] = {
    {"basics", check_basics},
    {"texts", check_texts},
    {"latin1", check_latin1},
    {"latin1-chars", check_latin1_chars},
    {"multibyte", check_multibyte},
    {"structs", check_structs},
    {"sequences", check_sequences},
    {"arrays", check_arrays},
    {"large", check_large},
    {"threads", check_threads},
    {"wide", check_wide},
    {"precise", check_precise},
    {"user-exceptions", check_user_exceptions},
    {"system-exceptions", check_system_exceptions},
    {"oneway", check_oneway},
    {"attributes", check_attributes},
    {"inheritance", check_inheritance},
    {"references", check_references},
    {"callbacks", check_callbacks},
    {"objects", check_objects},
    {"corbaloc", check_corbaloc},
};

struct Arguments {
    std::string ior;
    std::vector<std::string> only;
    std::vector<std::string> skip;
    bool utf8 = false;
    bool shutdown = false;
    bool list = false;
};

void check_names(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        const auto has_name = [&](const Group& group) { return name == group.name; };
        if (std::none_of(std::begin(groups), std::end(groups), has_name))
            throw std::runtime_error("no such group: " + name);
    }
}

Arguments read_arguments(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        const bool has_value = i + 1 < argc;
        if (option == "--ior" && has_value)
            arguments.ior = argv[++i];
        else if (option == "--only" && has_value)
            arguments.only.push_back(argv[++i]);
        else if (option == "--skip" && has_value)
            arguments.skip.push_back(argv[++i]);
        else if (option == "--no-wide")
            arguments.skip.push_back("wide");
        else if (option == "--utf8")
            arguments.utf8 = true;
        else if (option == "--shutdown")
            arguments.shutdown = true;
        else if (option == "--list")
            arguments.list = true;
        else
            throw std::runtime_error("unknown option, or one without its value: " + option);
    }
    // Each code set has groups of its own.
    for (const char* name : {"latin1", "latin1-chars"})
        if (arguments.utf8)
            arguments.skip.push_back(name);
    if (!arguments.utf8)
        arguments.skip.push_back("multibyte");
    check_names(arguments.only);
    check_names(arguments.skip);
    if (arguments.ior.empty() && !arguments.list)
        throw std::runtime_error("usage: omni_client --ior FILE|URL [--only GROUP]... "
                                 "[--skip GROUP]... [--no-wide] [--utf8] [--shutdown] [--list] "
                                 "[-ORB...]");
    return arguments;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool wanted(const Arguments& arguments, const std::string& name) {
    return (arguments.only.empty() || contains(arguments.only, name)) &&
           !contains(arguments.skip, name);
}

// The ORB's own answer to some exceptions is to call again; here they are results.
CORBA::Boolean never(void*, CORBA::ULong, const CORBA::TRANSIENT&) {
    return false;
}
CORBA::Boolean never(void*, CORBA::ULong, const CORBA::TIMEOUT&) {
    return false;
}
CORBA::Boolean never(void*, CORBA::ULong, const CORBA::COMM_FAILURE&) {
    return false;
}
CORBA::Boolean never(void*, CORBA::ULong, const CORBA::SystemException&) {
    return false;
}

void never_call_again() {
    omniORB::installTransientExceptionHandler(nullptr, never);
    omniORB::installTimeoutExceptionHandler(nullptr, never);
    omniORB::installCommFailureExceptionHandler(nullptr, never);
    omniORB::installSystemExceptionHandler(nullptr, never);
}

bool run(CORBA::ORB_ptr orb, const Arguments& arguments) {
    never_call_again();
    // Without it, omniORB makes no call on a connection that may be bidirectional.
    CORBA::Object_var adapter = orb->resolve_initial_references("RootPOA");
    Report report;
    CORBA::Object_var object = orb->string_to_object(reference_text(arguments.ior).c_str());
    Context context{CORBA::ORB::_duplicate(orb), Interop::Hub::_narrow(object), {}, report};
    if (CORBA::is_nil(context.hub))
        throw std::runtime_error("the reference is not one of an Interop::Hub");
    context.echo = context.hub->get_echo();
    for (const Group& group : groups) {
        if (!wanted(arguments, group.name))
            continue;
        report.group(group.name);
        try {
            group.check(context);
        } catch (...) {
            report.ok(false, std::string(group.name) + " runs to its end",
                      describe_current_exception());
        }
    }
    if (arguments.shutdown)
        context.hub->shutdown();
    return report.finish();
}

} // namespace

int main(int argc, char** argv) {
    // The native code set must be known before the ORB starts, and so before it takes its options.
    const auto is_utf8 = [](const char* argument) { return std::strcmp(argument, "--utf8") == 0; };
    const bool utf8 = std::any_of(argv + 1, argv + argc, is_utf8);
    try {
        // With the last of the options, the ORB asks nothing of an object that it is not told to ask.
        const char* options[][2] = {{"nativeCharCodeSet", utf8 ? "UTF-8" : "ISO-8859-1"},
                                    {"giopMaxMsgSize", "67108864"},
                                    {"verifyObjectExistsAndType", "0"},
                                    {nullptr, nullptr}};
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
        const Arguments arguments = read_arguments(argc, argv);
        if (arguments.list) {
            for (const Group& group : groups)
                std::cout << group.name << '\n';
            return 0;
        }
        const bool passed = run(orb, arguments);
        orb->destroy();
        return passed ? 0 : 1;
    } catch (...) {
        std::cerr << "omni_client: " << describe_current_exception() << '\n';
        return 2;
    }
}
