// What every object answers, and what happens where there is none.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "checks.h"
#include "echoes.h"
#include "locate.h"

#include <omniORB4/omniIOR.h>

#include <string>

namespace {

const char* const OBJECT_ID = "IDL:omg.org/CORBA/Object:1.0";

bool answers(Interop::Echo_ptr echo) {
    CORBA::Long io = 1;
    CORBA::Long o = 0;
    return echo->echo_long(2, io, o) == 2 && io == 2 && o == 1;
}

bool not_completed(const CORBA::SystemException& e) {
    return e.completed() == CORBA::COMPLETED_NO;
}

// "corbaloc:iiop:MAJOR.MINOR@HOST:PORT/KEY" of the server of this object.
std::string corbaloc(CORBA::Object_ptr object, const std::string& key) {
    omniIOR_var ior = object->_PR_getobj()->_getIOR();
    omniIOR::IORInfo* info = ior->getIORInfo();
    const std::string prefix = "giop:tcp:";
    for (const omni::giopAddress* address : info->addresses()) {
        const std::string text = address->address();
        if (text.rfind(prefix, 0) == 0)
            return "corbaloc:iiop:" + std::to_string(info->version().major) + '.' +
                   std::to_string(info->version().minor) + '@' + text.substr(prefix.size()) + '/' + key;
    }
    return "";
}

void check_absent(Report& report, const std::string& what, Interop::Echo_ptr absent) {
    report.raises<CORBA::OBJECT_NOT_EXIST>(
        "call of " + what, [&] { answers(absent); }, not_completed);
    report.raises<CORBA::OBJECT_NOT_EXIST>("locate of " + what, [&] { Locator::locate(absent); });
    report.raises<CORBA::OBJECT_NOT_EXIST>(
        "_is_a of " + what, [&] { remote_is_a(absent, OBJECT_ID); }, not_completed);
    report.check("_non_existent of " + what, [&] { return absent->_non_existent(); });
}

void check_forwarded(Context& context) {
    Report& report = context.report;
    Interop::Echo_var forwarded = context.hub->get_forwarded();
    if (CORBA::is_nil(forwarded)) {
        report.skip("a forwarded request", "the server forwards nothing");
        report.skip("a request after one that was forwarded", "the server forwards nothing");
        report.skip("a forwarded locate request", "the server forwards nothing");
        return;
    }
    report.check("a forwarded request", [&] { return answers(forwarded); });
    report.check("a request after one that was forwarded", [&] { return answers(forwarded); });
    report.check("a forwarded locate request", [&] {
        Interop::Echo_var again = context.hub->get_forwarded();
        return Locator::locate(again);
    });
}

} // namespace

void check_objects(Context& context) {
    using namespace Interop;
    Report& report = context.report;
    Bottom_var bottom = context.hub->get_bottom();
    Faulty_var faulty = context.hub->get_faulty();

    for (const char* id : {Bottom::_PD_repoId, Left::_PD_repoId, Right::_PD_repoId, Top::_PD_repoId,
                           OBJECT_ID})
        report.check("_is_a " + std::string(id), [&] { return remote_is_a(bottom, id); });
    for (const char* id : {Echo::_PD_repoId, "IDL:chronorb/Interop/Absent:1.0", ""})
        report.check("not _is_a \"" + std::string(id) + '"', [&] { return !remote_is_a(bottom, id); });
    report.check("_is_a of a multiple base", [&] {
        return remote_is_a(context.echo, Arrays::_PD_repoId) &&
               remote_is_a(context.echo, Basics::_PD_repoId);
    });
    report.check("_non_existent of an object", [&] { return !bottom->_non_existent(); });
    report.check("locate of an object", [&] { return Locator::locate(bottom); });
    report.check("orb_name", [&] {
        CORBA::String_var name = context.hub->orb_name();
        return std::string(name.in()) != "";
    });

    Mistaken_var mistaken = Mistaken::_unchecked_narrow(faulty);
    report.raises<CORBA::BAD_OPERATION>(
        "an unknown operation", [&] { mistaken->absent(1); }, not_completed);
    report.check("a known operation after it", [&] { return faulty->raise_user(5) == 5; });

    Echo_var deactivated = context.hub->get_deactivated();
    check_absent(report, "an object that is not active any more", deactivated);
    check_forwarded(context);
}

void check_corbaloc(Context& context) {
    using namespace Interop;
    Report& report = context.report;

    report.check("the hub by its key", [&] {
        CORBA::Object_var object =
            context.orb->string_to_object(corbaloc(context.hub, "Hub").c_str());
        Hub_var hub = Hub::_narrow(object);
        Echo_var echo = hub->get_echo();
        return echo->_is_equivalent(context.echo) && answers(echo);
    });
    CORBA::Object_var object =
        context.orb->string_to_object(corbaloc(context.hub, "no%20such%2fobject%00").c_str());
    Echo_var absent = Echo::_unchecked_narrow(object);
    check_absent(report, "a key that the server does not know", absent);

    object = context.orb->string_to_object("corbaloc:iiop:1.2@127.0.0.1:1/Hub");
    Echo_var unreachable = Echo::_unchecked_narrow(object);
    report.raises<CORBA::TRANSIENT>(
        "call of a server that does not run", [&] { answers(unreachable); }, not_completed);
}
