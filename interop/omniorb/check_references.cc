// Object references as values, as text, and as a way back into the client.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "checks.h"
#include "echoes.h"
#include "program.h"
#include "servants.h"

#include <string>

namespace {

// Nil is nil, and else both lead to the same object.
bool same(CORBA::Object_ptr a, CORBA::Object_ptr b) {
    if (CORBA::is_nil(a) || CORBA::is_nil(b))
        return CORBA::is_nil(a) && CORBA::is_nil(b);
    return a->_is_equivalent(b);
}

bool answers(Interop::Echo_ptr echo) {
    CORBA::Long io = 1;
    CORBA::Long o = 0;
    return echo->echo_long(2, io, o) == 2 && io == 2 && o == 1;
}

bool same(const Interop::Link& a, const Interop::Link& b) {
    return equal(a.label, b.label) && same(a.target.in(), b.target.in()) &&
           same(a.anything.in(), b.anything.in()) && same(a.origin.in(), b.origin.in());
}

template <class Sequence>
bool same_elements(const Sequence& a, const Sequence& b) {
    if (a.length() != b.length())
        return false;
    for (CORBA::ULong i = 0; i < a.length(); ++i)
        if (!same(a[i].in(), b[i].in()))
            return false;
    return true;
}

bool same(const Interop::Echoes& a, const Interop::Echoes& b) {
    return same_elements(a, b);
}

bool same(const Interop::Objects& a, const Interop::Objects& b) {
    return same_elements(a, b);
}

template <class Interface, class Operation>
void echo_reference(Report& report, const std::string& name, typename Interface::_ptr_type v,
                    typename Interface::_ptr_type w, Operation operation) {
    report.echo(name, [&] {
        typename Interface::_var_type io = Interface::_duplicate(w);
        typename Interface::_var_type o;
        typename Interface::_var_type result = operation(v, io.inout(), o.out());
        return Echoed{same(result.in(), v), same(o.in(), w), same(io.in(), v)};
    });
}

template <class T, class Operation>
void echo_holder(Report& report, const std::string& name, const T& v, const T& w,
                 Operation operation) {
    report.echo(name, [&] {
        T io(w);
        typename T::_var_type o;
        typename T::_var_type result = operation(v, io, o.out());
        return Echoed{same(result.in(), v), same(o.in(), w), same(io, v)};
    });
}

void check_text(Context& context, Interop::Relations_ptr relations) {
    Report& report = context.report;
    report.check("the server's text, read by the client", [&] {
        CORBA::String_var text = relations->to_text(context.echo);
        CORBA::Object_var object = context.orb->string_to_object(text);
        Interop::Echo_var echo = Interop::Echo::_narrow(object);
        return same(echo, context.echo) && answers(echo);
    });
    report.check("the client's text, read by the server", [&] {
        CORBA::String_var text = context.orb->object_to_string(context.echo);
        CORBA::Object_var object = relations->from_text(text);
        Interop::Echo_var echo = Interop::Echo::_narrow(object);
        return same(echo, context.echo) && answers(echo);
    });
    report.check("the server's text of a nil reference", [&] {
        CORBA::String_var text = relations->to_text(CORBA::Object::_nil());
        CORBA::Object_var object = context.orb->string_to_object(text);
        return CORBA::is_nil(object);
    });
    report.check("the client's text of a nil reference", [&] {
        CORBA::String_var text = context.orb->object_to_string(CORBA::Object::_nil());
        CORBA::Object_var object = relations->from_text(text);
        return CORBA::is_nil(object);
    });
    report.raises<CORBA::BAD_PARAM>("from_text of what is no reference", [&] {
        CORBA::Object_var object = relations->from_text("no reference");
    });
}

} // namespace

void check_references(Context& context) {
    using namespace Interop;
    Report& report = context.report;
    Relations_var relations = context.hub->get_relations();
    Bottom_var bottom = context.hub->get_bottom();
    Echo_ptr echo = context.echo;
    const Echo_ptr nil = Echo::_nil();

    echo_reference<Echo>(report, "echo_echo", echo, nil, OPERATION(relations, echo_echo));
    echo_reference<Echo>(report, "echo_echo nil", nil, echo, OPERATION(relations, echo_echo));
    echo_reference<CORBA::Object>(report, "echo_object", bottom, relations,
                                  OPERATION(relations, echo_object));
    echo_reference<CORBA::Object>(report, "echo_object nil", CORBA::Object::_nil(), bottom,
                                  OPERATION(relations, echo_object));

    Link full;
    full.label = "full";
    full.target = Echo::_duplicate(echo);
    full.anything = CORBA::Object::_duplicate(bottom);
    full.origin = Relations::_duplicate(relations);
    Link empty;
    empty.label = "";
    echo_holder(report, "echo_link", full, empty, OPERATION(relations, echo_link));

    Echoes echoes;
    echoes.length(3);
    echoes[0] = Echo::_duplicate(echo);
    echoes[2] = Echo::_duplicate(echo);
    echo_holder(report, "echo_echoes", echoes, Echoes(), OPERATION(relations, echo_echoes));
    Objects objects;
    objects.length(3);
    objects[0] = CORBA::Object::_duplicate(bottom);
    objects[1] = CORBA::Object::_duplicate(echo);
    echo_holder(report, "echo_objects", objects, Objects(), OPERATION(relations, echo_objects));

    report.echo("echo_pair", [&] {
        EchoPair v;
        v[0] = Echo::_duplicate(echo);
        EchoPair io;
        io[1] = Echo::_duplicate(echo);
        EchoPair_var o;
        EchoPair_var result = relations->echo_pair(v, io, o.out());
        return Echoed{same(result[0].in(), echo) && same(result[1].in(), nil),
                      same(o[0].in(), nil) && same(o[1].in(), echo),
                      same(io[0].in(), echo) && same(io[1].in(), nil)};
    });

    report.check("none is nil", [&] {
        Echo_var none = relations->none();
        return CORBA::is_nil(none);
    });
    report.check("absent", [&] {
        return relations->absent(CORBA::Object::_nil()) && !relations->absent(bottom);
    });
    report.check("a reference that came back can be called", [&] {
        Echo_var io = Echo::_nil();
        Echo_var o;
        Echo_var result = relations->echo_echo(echo, io.inout(), o.out());
        return answers(result) && answers(io);
    });
    report.check("call through the server's own object",
                 [&] { return relations->call(echo, 21) == 21; });
    report.raises<CORBA::BAD_PARAM>("call through a nil reference",
                                    [&] { relations->call(nil, 1); });
    check_text(context, relations);
}

void check_callbacks(Context& context) {
    Report& report = context.report;
    Interop::Relations_var relations = context.hub->get_relations();

    CORBA::Object_var object = context.orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    CORBA::PolicyList policies;
    policies.length(1);
    policies[0] = both_ways(context.orb);
    PortableServer::POA_var poa = root->create_POA("callbacks", manager, policies);
    EchoServant* servant = new EchoServant;
    PortableServer::ObjectId_var oid = poa->activate_object(servant);
    servant->_remove_ref();
    object = poa->id_to_reference(oid);
    Interop::Echo_var own = Interop::Echo::_narrow(object);

    echo_reference<Interop::Echo>(report, "the client's object there and back", own, context.echo,
                                  OPERATION(relations, echo_echo));
    report.check("call back into the client", [&] { return relations->call(own, -8) == -8; });
    report.check("call back into the client many times", [&] {
        for (CORBA::Long n = 0; n < 100; ++n)
            if (relations->call(own, n) != n)
                return false;
        return true;
    });
    report.check("call back into the client with 1000 octets", [&] {
        const auto octet = [](CORBA::ULong i) { return static_cast<CORBA::Octet>(i); };
        return relations->call_octets(own, sequence_of<Interop::Octets>(1000, octet)) == 1000;
    });
    report.check("the server asks the client's object what it is", [&] {
        return relations->ask_is_a(own, Interop::Texts::_PD_repoId) &&
               !relations->ask_is_a(own, Interop::Panel::_PD_repoId);
    });
    poa->deactivate_object(oid);
    report.raises<CORBA::OBJECT_NOT_EXIST>("call of an object that the client took away",
                                           [&] { relations->call(own, 1); });
}
