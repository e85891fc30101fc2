//! Wide characters and `long double`.

use chronorb::data::LongDouble;

use super::{NIL, Subject};
use crate::idl::{MAX_NAME, RefuseErrorBuf, WideEntryBuf};
use crate::values::{views, words};
use crate::{Failure, Report};

pub(super) fn check(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let wides = subject.hub.get_wides()?.ok_or(NIL)?;

    for (what, v, w) in [
        ("ASCII", 'a', 'z'),
        ("16 bits", '€', '你'),
        ("Latin-1", 'é', 'ÿ'),
    ] {
        report.echo(&format!("echo_wchar {what}"), v, w, |v, io| {
            wides.echo_wchar(*v, io)
        });
    }
    for (what, v, w) in [
        ("", "hello", "grüß dich"),
        (" empty", "", "你好"),
        (" beyond the 16-bit plane", "a😀z", "😀"),
        (" 10000", &"€".repeat(10_000), "short"),
    ] {
        report.echo(
            &format!("echo_wstring{what}"),
            v.to_owned(),
            w.to_owned(),
            |v, io| wides.echo_wstring(v, io),
        );
    }
    let full_name = "ß".repeat(MAX_NAME as usize);
    report.echo("echo_wide_name full", full_name, String::new(), |v, io| {
        wides.echo_wide_name(v, io)
    });
    report.echo("echo_wchars", vec!['a', '€', '你'], vec![], |v, io| {
        wides.echo_wchars(v, io)
    });
    report.echo(
        "echo_wide_words",
        words(["", "€", "abc"]),
        words([]),
        |v, io| wides.echo_wide_words(&views(v), io),
    );
    report.echo(
        "echo_wide_entry",
        wide_entry('€', "key"),
        wide_entry('x', "你"),
        |v, io| wides.echo_wide_entry(&v.as_view(), io),
    );
    report.check("wide_constants", || {
        Ok(wides.wide_constants()? == ("grüß dich".to_owned(), '€'))
    });
    report.raises(
        "refuse",
        wides.refuse("no…"),
        |e| matches!(e, RefuseErrorBuf::WideRefused(refused) if refused.reason == "no…"),
    );
    Ok(())
}

fn wide_entry(initial: char, key: &str) -> WideEntryBuf {
    WideEntryBuf {
        before: 1,
        initial,
        key: key.to_owned(),
        narrow_key: "narrow".to_owned(),
        alternatives: ["", "αβγ"].map(str::to_owned),
        after: 255,
    }
}

/// Compares only octets, because not every ORB sends the format of the standard.
pub(super) fn check_precise(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let precise = subject.hub.get_precise()?.ok_or(NIL)?;
    let number = LongDouble::from_f64;
    for (what, v, w) in [("", 1.0, -0.1), (" ends", f64::MAX, f64::MIN_POSITIVE)] {
        report.echo(
            &format!("echo_longdouble{what}"),
            number(v),
            number(w),
            |v, io| precise.echo_longdouble(*v, io),
        );
    }
    let quads = [1.0, 2.5, -3.25].map(number).to_vec();
    report.echo("echo_quads", quads, vec![number(0.5)], |v, io| {
        precise.echo_quads(v, io)
    });
    Ok(())
}
