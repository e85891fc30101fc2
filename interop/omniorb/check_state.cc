// Oneway operations, attributes and inheritance.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "checks.h"
#include "echoes.h"

#include <chrono>
#include <string>
#include <thread>

namespace {

bool is_text(char* text, const char* expected) {
    CORBA::String_var owned = text;
    return equal(owned.in(), expected);
}

// Whether this many notes with this total arrive within ten seconds.
bool arrive(Interop::Notes_ptr notes, CORBA::Long count, CORBA::LongLong total) {
    for (int i = 0; i < 1000; ++i) {
        CORBA::LongLong seen = 0;
        if (notes->noted(seen) == count && seen == total)
            return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

} // namespace

void check_oneway(Context& context) {
    Report& report = context.report;
    Interop::Notes_var notes = context.hub->get_notes();

    notes->forget();
    report.check("noted without a note", [&] { return arrive(notes, 0, 0); });
    report.check("note once", [&] {
        notes->note(-7);
        return arrive(notes, 1, -7);
    });
    notes->forget();
    report.check("note a hundred times", [&] {
        for (CORBA::Long n = 1; n <= 100; ++n)
            notes->note(n);
        return arrive(notes, 100, 5050);
    });
    notes->forget();
    report.check("note_longs", [&] {
        notes->note_longs("three", sequence<Interop::Longs>({1, 2, 3}));
        notes->note_longs("none", Interop::Longs());
        return arrive(notes, 2, 3);
    });
}

namespace {

void check_panel_attributes(Report& report, Interop::Panel_ptr panel) {
    using Interop::Panel;
    report.check("attribute level", [&] {
        panel->level(-12);
        return panel->level() == -12;
    });
    report.check("attribute label", [&] {
        panel->label("front");
        return is_text(panel->label(), "front");
    });
    report.check("attributes lit and armed", [&] {
        panel->lit(true);
        const bool only_lit = panel->lit() && !panel->armed();
        panel->lit(false);
        panel->armed(true);
        return only_lit && !panel->lit() && panel->armed();
    });
    report.check("attribute position", [&] {
        panel->position(point(2.0, 4.0));
        return equal(panel->position(), point(2.0, 4.0));
    });
    report.check("attribute current_mode", [&] {
        panel->current_mode(Panel::ACTIVE);
        return panel->current_mode() == Panel::ACTIVE;
    });
    report.check("attribute table", [&] {
        const auto table = sequence<Interop::Entries>({entry("a", 1), entry("b", 2)});
        panel->table(table);
        Interop::Entries_var seen = panel->table();
        return equal(seen.in(), table);
    });
    report.check("readonly attribute changes", [&] { return panel->changes() == 8; });
}

} // namespace

void check_attributes(Context& context) {
    using Interop::Panel;
    Report& report = context.report;
    Interop::Panel_var panel = context.hub->get_panel();

    panel->clear();
    report.check("attributes at first", [&] {
        Interop::Entries_var table = panel->table();
        return panel->level() == 0 && is_text(panel->label(), "") && !panel->lit() &&
               !panel->armed() && equal(panel->position(), point(0.0, 0.0)) &&
               panel->current_mode() == Panel::IDLE && table->length() == 0 && panel->changes() == 0;
    });
    report.check("readonly attribute title",
                 [&] { return is_text(panel->title(), "chronorb interop panel"); });
    check_panel_attributes(report, panel);

    Panel::Setting setting;
    setting.level_value = Panel::HIGHEST_LEVEL;
    setting.label_value = "high";
    setting.mode_value = Panel::ACTIVE;
    report.raises<Panel::Locked>("apply while armed", [&] { panel->apply(setting); });
    panel->clear();
    report.check("apply", [&] {
        panel->apply(setting);
        Panel::Setting_var seen = panel->current();
        return equal(seen.in(), setting) && panel->level() == 10 && panel->changes() == 1;
    });
    report.raises<Interop::Refused>(
        "apply above the highest level",
        [&] {
            setting.level_value = Panel::HIGHEST_LEVEL + 1;
            panel->apply(setting);
        },
        [](const Interop::Refused& e) { return e.code == 11 && equal(e.reason.in(), ""); });
    report.check("a setting that was refused changes nothing",
                 [&] { return panel->level() == 10 && panel->changes() == 1; });
    panel->clear();
}

void check_inheritance(Context& context) {
    using namespace Interop;
    Report& report = context.report;
    Bottom_var bottom = context.hub->get_bottom();

    report.check("operations of the object and of each of its bases", [&] {
        return is_text(bottom->bottom_name(), "bottom") && is_text(bottom->left_name(), "left") &&
               is_text(bottom->right_name(), "right") && is_text(bottom->top_name(), "top");
    });
    report.check("an attribute of the base at the top of the diamond", [&] {
        bottom->height(3);
        return bottom->height() == 3;
    });
    report.check("the object as Left", [&] {
        Left_var left = Left::_duplicate(bottom);
        return is_text(left->left_name(), "left") && is_text(left->kind(), "bottom");
    });
    report.check("the object as Right", [&] {
        Right_var right = Right::_duplicate(bottom);
        return is_text(right->right_name(), "right") && is_text(right->kind(), "bottom");
    });
    report.check("the object as Top shares its state", [&] {
        Top_var top = context.hub->get_top();
        top->height(-4);
        return is_text(top->kind(), "bottom") && bottom->height() == -4;
    });
    report.check("narrow from Top to Bottom", [&] {
        Top_var top = context.hub->get_top();
        Bottom_var narrowed = Bottom::_narrow(top);
        return !CORBA::is_nil(narrowed) && is_text(narrowed->bottom_name(), "bottom");
    });
    report.check("narrow to another interface is nil", [&] {
        Top_var top = context.hub->get_top();
        Panel_var narrowed = Panel::_narrow(top);
        return CORBA::is_nil(narrowed);
    });
    report.check("Basics as a base of Echo", [&] {
        Basics_var basics = Basics::_duplicate(context.echo);
        CORBA::Octet io = 1;
        CORBA::Octet o = 0;
        return basics->echo_octet(2, io, o) == 2 && io == 2 && o == 1;
    });
    bottom->height(0);
}
