//! Oneway operations, attributes and inheritance.

use std::time::Duration;

use super::{NIL, Subject};
use crate::idl::panel::{HIGHEST_LEVEL, Locked, Mode, Setting};
use crate::idl::*;
use crate::values::{entry, point};
use crate::{Failure, Report};

pub(super) fn check_oneway(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let notes = subject.hub.get_notes()?.ok_or(NIL)?;

    notes.forget()?;
    report.check("noted without a note", || arrive(&notes, 0, 0));
    report.check("note once", || {
        notes.note(-7)?;
        arrive(&notes, 1, -7)
    });
    notes.forget()?;
    report.check("note a hundred times", || {
        (1..=100).try_for_each(|n| notes.note(n))?;
        arrive(&notes, 100, 5050)
    });
    notes.forget()?;
    report.check("note_longs", || {
        notes.note_longs("three", &[1, 2, 3])?;
        notes.note_longs("none", &[])?;
        arrive(&notes, 2, 3)
    });
    Ok(())
}

/// Returns whether this many notes with this total arrive within ten seconds.
fn arrive(notes: &Notes, count: i32, total: i64) -> Result<bool, Failure> {
    for _ in 0..1000 {
        if notes.noted()? == (count, total) {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

pub(super) fn check_attributes(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let panel = subject.hub.get_panel()?.ok_or(NIL)?;

    panel.clear()?;
    report.check("attributes at first", || {
        Ok(panel.level()? == 0
            && panel.label()?.is_empty()
            && !panel.lit()?
            && !panel.armed()?
            && panel.position()? == point(0.0, 0.0)
            && panel.current_mode()? == Mode::Idle
            && panel.table()?.is_empty()
            && panel.changes()? == 0)
    });
    report.check("readonly attribute title", || {
        Ok(panel.title()? == "chronorb interop panel")
    });
    check_each_attribute(&panel, report);

    let setting = Setting {
        level_value: HIGHEST_LEVEL,
        label_value: "high",
        mode_value: Mode::Active,
    };
    report.raises("apply while armed", panel.apply(&setting), |e| {
        *e == ApplyErrorBuf::Locked(Locked)
    });
    panel.clear()?;
    report.check("apply", || {
        panel.apply(&setting)?;
        Ok(panel.current()?.as_view() == setting && panel.level()? == 10 && panel.changes()? == 1)
    });
    let level_value = HIGHEST_LEVEL + 1;
    let too_high = Setting {
        level_value,
        ..setting
    };
    report.raises(
        "apply above the highest level",
        panel.apply(&too_high),
        |e| {
            let (code, reason) = (11, String::new());
            *e == ApplyErrorBuf::Refused(RefusedBuf { code, reason })
        },
    );
    report.check("a setting that was refused changes nothing", || {
        Ok(panel.level()? == 10 && panel.changes()? == 1)
    });
    panel.clear()?;
    Ok(())
}

fn check_each_attribute(panel: &Panel, report: &mut Report) {
    report.check("attribute level", || {
        panel.set_level(-12)?;
        Ok(panel.level()? == -12)
    });
    report.check("attribute label", || {
        panel.set_label("front")?;
        Ok(panel.label()? == "front")
    });
    report.check("attributes lit and armed", || {
        panel.set_lit(true)?;
        let only_lit = panel.lit()? && !panel.armed()?;
        panel.set_lit(false)?;
        panel.set_armed(true)?;
        Ok(only_lit && !panel.lit()? && panel.armed()?)
    });
    report.check("attribute position", || {
        panel.set_position(&point(2.0, 4.0))?;
        Ok(panel.position()? == point(2.0, 4.0))
    });
    report.check("attribute current_mode", || {
        panel.set_current_mode(Mode::Active)?;
        Ok(panel.current_mode()? == Mode::Active)
    });
    report.check("attribute table", || {
        let table = [entry("a", 1), entry("b", 2)];
        panel.set_table(&table.each_ref().map(EntryBuf::as_view))?;
        Ok(panel.table()? == table)
    });
    report.check("readonly attribute changes", || Ok(panel.changes()? == 8));
}

pub(super) fn check_inheritance(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let bottom = subject.hub.get_bottom()?.ok_or(NIL)?;
    let top = subject.hub.get_top()?.ok_or(NIL)?;

    report.check("operations of the object and of each of its bases", || {
        Ok(bottom.bottom_name()? == "bottom"
            && bottom.left_name()? == "left"
            && bottom.right_name()? == "right"
            && bottom.top_name()? == "top")
    });
    report.check("an attribute of the base at the top of the diamond", || {
        bottom.set_height(3)?;
        Ok(bottom.height()? == 3)
    });
    report.check("the object as Left", || {
        let left = Left::from(bottom.clone());
        Ok(left.left_name()? == "left" && left.kind()? == "bottom")
    });
    report.check("the object as Right", || {
        let right = Right::from(bottom.clone());
        Ok(right.right_name()? == "right" && right.kind()? == "bottom")
    });
    report.check("the object as Top shares its state", || {
        top.set_height(-4)?;
        Ok(top.kind()? == "bottom" && bottom.height()? == -4)
    });
    report.check("narrow from Top to Bottom", || {
        let narrowed = Bottom::narrow(top.as_object())?.ok_or("no Bottom")?;
        Ok(narrowed.bottom_name()? == "bottom")
    });
    report.check("narrow to another interface is nil", || {
        Ok(Panel::narrow(top.as_object())?.is_none())
    });
    report.check("Basics as a base of Echo", || {
        let basics = Basics::from(subject.echo.clone());
        let mut io = 1;
        Ok(basics.echo_octet(2, &mut io)? == (2, 1) && io == 2)
    });
    bottom.set_height(0)?;
    Ok(())
}
