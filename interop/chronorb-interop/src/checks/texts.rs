//! Strings and characters.

use chronorb::data::Char;

use super::Subject;
use crate::idl::{Echo, MAX_NAME};
use crate::values::{views, words};
use crate::{Failure, Report};

pub(super) fn check(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let echo = &subject.echo;
    let full_name = "n".repeat(MAX_NAME as usize);
    let text = str::to_owned;

    check_strings(
        echo,
        report,
        &[
            ("words", "hello", "world"),
            ("empty", "", "not empty"),
            ("control characters", "\x01\t\r\n\x7f", " "),
        ],
    );
    report.echo("echo_name full", full_name.clone(), text(""), |v, io| {
        echo.echo_name(v, io)
    });
    report.echo(
        "echo_nickname full",
        text("nick"),
        full_name.clone(),
        |v, io| echo.echo_nickname(v, io),
    );
    report.raises(
        "echo_name above its bound is an exception",
        echo.echo_name(&format!("{full_name}n"), &mut String::new()),
        |_| true,
    );
    check_words(
        echo,
        report,
        "empty",
        words([]),
        words(["", "a", "bc", "def", "ghij", "klmno"]),
    );
    check_words(echo, report, "one", words(["one"]), words(["two", "three"]));
    report.echo(
        "echo_names",
        words([&full_name, ""]),
        words(["x"]),
        |v, io| echo.echo_names(&views(v), io),
    );
    Ok(())
}

/// Checks the characters of ISO 8859-1, in any code set.
pub(super) fn check_latin1(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let echo = &subject.echo;
    let all: String = (1..=u8::MAX).map(char::from).collect();
    check_strings(
        echo,
        report,
        &[
            ("letters", "grüß dich", "été"),
            ("every character", &all, "ÿ"),
        ],
    );
    check_words(echo, report, "letters", words(["ä", "öü"]), words(["ø"]));
    Ok(())
}

/// Checks a server that agrees on ISO 8859-1: in UTF-8 a `char` ends at 0x7f.
pub(super) fn check_latin1_chars(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let echo = &subject.echo;
    for (what, v, w) in [("upper half", 0xe9, 0xff), ("upper controls", 0x80, 0xa0)] {
        report.echo(&format!("echo_char {what}"), Char(v), Char(w), |v, io| {
            echo.echo_char(*v, io)
        });
    }
    let all = (0..=u8::MAX).map(Char).collect();
    report.echo("echo_chars every character", all, Vec::new(), |v, io| {
        echo.echo_chars(v, io)
    });
    Ok(())
}

/// Checks a server that agrees on UTF-8.
pub(super) fn check_multibyte(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let echo = &subject.echo;
    check_strings(
        echo,
        report,
        &[
            ("Latin-1 letters", "grüß dich", "été"),
            ("Greek and Chinese", "κόσμε", "你好"),
            ("beyond the 16-bit plane", "😀", "a🚀z"),
        ],
    );
    check_words(
        echo,
        report,
        "of several scripts",
        words(["€", "", "да"]),
        words(["ø"]),
    );
    Ok(())
}

fn check_strings(echo: &Echo, report: &mut Report, texts: &[(&str, &str, &str)]) {
    for &(what, v, w) in texts {
        report.echo(
            &format!("echo_string {what}"),
            v.to_owned(),
            w.to_owned(),
            |v, io| echo.echo_string(v, io),
        );
    }
}

fn check_words(echo: &Echo, report: &mut Report, what: &str, v: Vec<String>, w: Vec<String>) {
    report.echo(&format!("echo_words {what}"), v, w, |v, io| {
        echo.echo_words(&views(v), io)
    });
}
