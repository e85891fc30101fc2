// The servants that give references away, and call through them.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "servants.h"

char* RelationsServant::to_text(CORBA::Object_ptr v) {
    return orb_->object_to_string(v);
}

CORBA::Object_ptr RelationsServant::from_text(const char* text) {
    return orb_->string_to_object(text);
}

CORBA::Long RelationsServant::call(Interop::Echo_ptr target, CORBA::Long v) {
    if (CORBA::is_nil(target))
        throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
    CORBA::Long io = 0;
    CORBA::Long o = 0;
    return target->echo_long(v, io, o);
}

CORBA::ULong RelationsServant::call_octets(Interop::Echo_ptr target, const Interop::Octets& v) {
    if (CORBA::is_nil(target))
        throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
    Interop::Octets io;
    Interop::Octets_var o;
    Interop::Octets_var result = target->echo_octets(v, io, o.out());
    return result->length();
}

CORBA::Boolean RelationsServant::ask_is_a(CORBA::Object_ptr target, const char* id) {
    if (CORBA::is_nil(target))
        throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
    return target->_is_a(id);
}

Interop::Echo_ptr HubServant::get_echo() {
    return Interop::Echo::_duplicate(targets_.echo);
}

Interop::Wides_ptr HubServant::get_wides() {
    return Interop::Wides::_duplicate(targets_.wides);
}

Interop::Precise_ptr HubServant::get_precise() {
    return Interop::Precise::_duplicate(targets_.precise);
}

Interop::Faulty_ptr HubServant::get_faulty() {
    return Interop::Faulty::_duplicate(targets_.faulty);
}

Interop::Notes_ptr HubServant::get_notes() {
    return Interop::Notes::_duplicate(targets_.notes);
}

Interop::Panel_ptr HubServant::get_panel() {
    return Interop::Panel::_duplicate(targets_.panel);
}

Interop::Bottom_ptr HubServant::get_bottom() {
    return Interop::Bottom::_duplicate(targets_.bottom);
}

Interop::Relations_ptr HubServant::get_relations() {
    return Interop::Relations::_duplicate(targets_.relations);
}

Interop::Top_ptr HubServant::get_top() {
    return Interop::Top::_duplicate(targets_.bottom);
}

Interop::Echo_ptr HubServant::get_forwarded() {
    return Interop::Echo::_duplicate(targets_.forwarded);
}

Interop::Echo_ptr HubServant::get_deactivated() {
    return Interop::Echo::_duplicate(targets_.deactivated);
}

void HubServant::shutdown() {
    orb_->shutdown(false);
}
