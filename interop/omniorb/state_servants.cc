// The servants that remember something.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "servants.h"

using Lock = std::lock_guard<std::mutex>;

void NotesServant::note(CORBA::Long n) {
    Lock lock(mutex_);
    ++count_;
    total_ += n;
}

void NotesServant::note_longs(const char*, const Interop::Longs& v) {
    Lock lock(mutex_);
    ++count_;
    total_ += v.length();
}

CORBA::Long NotesServant::noted(CORBA::LongLong& total) {
    Lock lock(mutex_);
    total = total_;
    return count_;
}

void NotesServant::forget() {
    Lock lock(mutex_);
    count_ = 0;
    total_ = 0;
}

PanelServant::State::State() {
    setting.level_value = 0;
    setting.label_value = "";
    setting.mode_value = Interop::Panel::IDLE;
}

CORBA::Long PanelServant::level() {
    Lock lock(mutex_);
    return state_.setting.level_value;
}

void PanelServant::level(CORBA::Long v) {
    Lock lock(mutex_);
    state_.setting.level_value = v;
    ++state_.changes;
}

char* PanelServant::label() {
    Lock lock(mutex_);
    return CORBA::string_dup(state_.setting.label_value);
}

void PanelServant::label(const char* v) {
    Lock lock(mutex_);
    state_.setting.label_value = v;
    ++state_.changes;
}

CORBA::Boolean PanelServant::lit() {
    Lock lock(mutex_);
    return state_.lit;
}

void PanelServant::lit(CORBA::Boolean v) {
    Lock lock(mutex_);
    state_.lit = v;
    ++state_.changes;
}

CORBA::Boolean PanelServant::armed() {
    Lock lock(mutex_);
    return state_.armed;
}

void PanelServant::armed(CORBA::Boolean v) {
    Lock lock(mutex_);
    state_.armed = v;
    ++state_.changes;
}

Interop::Shapes::Point PanelServant::position() {
    Lock lock(mutex_);
    return state_.position;
}

void PanelServant::position(const Interop::Shapes::Point& v) {
    Lock lock(mutex_);
    state_.position = v;
    ++state_.changes;
}

PanelServant::Mode PanelServant::current_mode() {
    Lock lock(mutex_);
    return state_.setting.mode_value;
}

void PanelServant::current_mode(Mode v) {
    Lock lock(mutex_);
    state_.setting.mode_value = v;
    ++state_.changes;
}

Interop::Entries* PanelServant::table() {
    Lock lock(mutex_);
    return new Interop::Entries(state_.table);
}

void PanelServant::table(const Interop::Entries& v) {
    Lock lock(mutex_);
    state_.table = v;
    ++state_.changes;
}

CORBA::ULong PanelServant::changes() {
    Lock lock(mutex_);
    return state_.changes;
}

char* PanelServant::title() {
    return CORBA::string_dup("chronorb interop panel");
}

void PanelServant::apply(const Setting& v) {
    Lock lock(mutex_);
    if (state_.armed)
        throw Interop::Panel::Locked();
    if (v.level_value > Interop::Panel::HIGHEST_LEVEL)
        throw Interop::Refused(v.level_value, "");
    state_.setting = v;
    ++state_.changes;
}

PanelServant::Setting* PanelServant::current() {
    Lock lock(mutex_);
    return new Setting(state_.setting);
}

void PanelServant::clear() {
    Lock lock(mutex_);
    state_ = State();
}

CORBA::Long BottomServant::height() {
    Lock lock(mutex_);
    return height_;
}

void BottomServant::height(CORBA::Long v) {
    Lock lock(mutex_);
    height_ = v;
}
