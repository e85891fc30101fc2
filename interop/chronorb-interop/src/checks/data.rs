//! Structs, sequences and arrays.

use chronorb::data::{Arena, Char};

use super::Subject;
use crate::idl::*;
use crate::values::{document, document_views, entry, keywords, point, segment, views, words};
use crate::{Failure, Report};

pub(super) fn check_structs(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let echo = &subject.echo;
    report.echo(
        "echo_point",
        point(1.0, -2.5),
        point(0.0, 1e300),
        |v, io| echo.echo_point(v, io),
    );
    let (v, w) = (segment(3.0, Color::Green), segment(-7.0, Color::Violet));
    report.echo("echo_segment", v, w, |v, io| echo.echo_segment(v, io));
    report.echo("echo_mixed", mixed_low(), mixed_high(), |v, io| {
        echo.echo_mixed(v, io)
    });
    let (v, w) = (keywords(1, "one", true), keywords(-1, "", false));
    report.echo("echo_keywords", v, w, |v, io| {
        echo.echo_keywords(&v.as_view(), io)
    });
    report.echo("echo_entry", entry("", 0), entry("twelve", 12), |v, io| {
        echo.echo_entry(&v.as_view(), io)
    });
    for n in 0..5 {
        report.echo(
            &format!("echo_document {n}"),
            document(n),
            document(n + 1),
            |v, io| {
                let arena = Arena::new(ARENA);
                echo.echo_document(&v.as_view_in(&arena)?, io)
            },
        );
    }
    Ok(())
}

fn mixed_low() -> Mixed {
    Mixed {
        a_octet: 0,
        a_double: f64::MIN,
        a_boolean: false,
        a_longlong: i64::MIN,
        a_char: Char(b'A'),
        a_short: i16::MIN,
        b_octet: 1,
        a_ulonglong: 0,
        a_ushort: 0,
        a_long: i32::MIN,
        c_octet: 2,
        a_float: f32::MIN,
        a_ulong: 0,
        a_color: Color::Red,
        d_octet: 3,
    }
}

fn mixed_high() -> Mixed {
    Mixed {
        a_octet: 255,
        a_double: f64::INFINITY,
        a_boolean: true,
        a_longlong: i64::MAX,
        a_char: Char(b'z'),
        a_short: i16::MAX,
        b_octet: 254,
        a_ulonglong: u64::MAX,
        a_ushort: u16::MAX,
        a_long: i32::MAX,
        c_octet: 253,
        a_float: f32::MIN_POSITIVE,
        a_ulong: u32::MAX,
        a_color: Color::Violet,
        d_octet: 252,
    }
}

pub(super) fn check_sequences(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let echo = &subject.echo;
    report.echo(
        "echo_booleans",
        vec![true, false, true],
        vec![false],
        |v, io| echo.echo_booleans(v, io),
    );
    let chars = |text: &str| text.bytes().map(Char).collect::<Vec<_>>();
    report.echo("echo_chars", chars("abc"), chars("\0z"), |v, io| {
        echo.echo_chars(v, io)
    });
    check_numbers(echo, report);
    let colors = vec![Color::Violet, Color::Red, Color::Blue];
    report.echo("echo_colors", colors, vec![], |v, io| {
        echo.echo_colors(v, io)
    });
    report.echo("echo_few_longs full", (1..=8).collect(), vec![], |v, io| {
        echo.echo_few_longs(v, io)
    });
    report.raises(
        "echo_few_longs above its bound is an exception",
        echo.echo_few_longs(&[0; 9], &mut Vec::new()),
        |_| true,
    );
    check_nested(echo, report);
    report.check("statistics", || {
        let found = echo.statistics(&[i32::MAX, -5, i32::MAX])?;
        let (result, low, high, count) = (4_294_967_289, -5, i32::MAX, 3);
        Ok(found
            == StatisticsOut {
                result,
                low,
                high,
                count,
            })
    });
    report.check("statistics of nothing", || {
        let found = echo.statistics(&[])?;
        let (result, low, high, count) = (0, 0, 0, 0);
        Ok(found
            == StatisticsOut {
                result,
                low,
                high,
                count,
            })
    });
    Ok(())
}

/// Checks sequences of numbers: none, one, a few, and both ends of the range.
fn check_numbers(echo: &Echo, report: &mut Report) {
    macro_rules! check {
        ($($operation:ident: $type:ty;)*) => {$(
            let (low, high) = (<$type>::MIN, <$type>::MAX);
            let number = |n: u8| <$type>::from(n);
            let name = stringify!($operation);
            report.echo(&format!("{name} empty"), vec![], vec![number(1)], |v, io| {
                echo.$operation(v, io)
            });
            let few = vec![high, number(3), number(2), number(1), low];
            report.echo(name, vec![low, number(0), high], few, |v, io| echo.$operation(v, io));
        )*};
    }
    check! {
        echo_octets: u8;
        echo_shorts: i16;
        echo_ushorts: u16;
        echo_longs: i32;
        echo_ulongs: u32;
        echo_longlongs: i64;
        echo_ulonglongs: u64;
        echo_floats: f32;
        echo_doubles: f64;
        echo_few_longs: i32;
    }
}

/// Checks sequences of other types than numbers.
fn check_nested(echo: &Echo, report: &mut Report) {
    let long_lists = (0..5).map(|n| (0..n).collect()).collect();
    report.echo("echo_long_lists", long_lists, vec![vec![]], |v, io| {
        echo.echo_long_lists(&views(v), io)
    });
    let word_lists = vec![words(["a", "bb"]), words([]), words(["", "ccc", ""])];
    report.echo("echo_word_lists", word_lists, vec![], |v, io| {
        let lists: Vec<Vec<&str>> = v.iter().map(|words| views(words)).collect();
        echo.echo_word_lists(&views(&lists), io)
    });
    report.echo(
        "echo_path",
        vec![point(1.0, 2.0), point(3.0, 4.0)],
        vec![],
        |v, io| echo.echo_path(v, io),
    );
    let (v, w) = (vec![entry("a", 1), entry("", 2)], vec![entry("bcd", 3)]);
    report.echo("echo_entries", v, w, |v, io| {
        let entries: Vec<_> = v.iter().map(EntryBuf::as_view).collect();
        echo.echo_entries(&entries, io)
    });
    let matrices = vec![matrix(0), matrix(100)];
    report.echo("echo_matrices", matrices, vec![], |v, io| {
        echo.echo_matrices(v, io)
    });
    report.echo(
        "echo_documents",
        (0..6).map(document).collect(),
        vec![],
        |v, io| {
            let arena = Arena::new(ARENA);
            echo.echo_documents(&document_views(v, &arena)?, io)
        },
    );
}

pub(super) fn check_arrays(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let echo = &subject.echo;
    let digest = |first: u8| std::array::from_fn(|i| first + i as u8);
    report.echo("echo_digest", digest(0), digest(100), |v, io| {
        echo.echo_digest(v, io)
    });
    report.echo("echo_matrix", matrix(0), matrix(1000), |v, io| {
        echo.echo_matrix(v, io)
    });
    let cube = |first: i32| [matrix(first), matrix(-first)];
    report.echo("echo_cube", cube(1), cube(2000), |v, io| {
        echo.echo_cube(v, io)
    });
    let triangle = |x: f64| [0.0, 1.0, 2.0].map(|y| point(x, y));
    report.echo("echo_triangle", triangle(0.0), triangle(1.0), |v, io| {
        echo.echo_triangle(v, io)
    });
    let labels = |n: i32| [0, 1, 2].map(|i| (n * i).to_string());
    report.echo("echo_labels", labels(1), labels(1000), |v, io| {
        let views: Labels<'_> = v.each_ref().map(String::as_str);
        echo.echo_labels(&views, io)
    });
    let (v, w) = ([vec![0, 1, 2, 3], vec![]], [vec![], vec![1]]);
    report.echo("echo_rows", v, w, |v, io| {
        let views: Rows<'_> = v.each_ref().map(Vec::as_slice);
        echo.echo_rows(&views, io)
    });
    Ok(())
}

fn matrix(first: i32) -> Matrix {
    [0, 1, 2].map(|row| [0, 1, 2, 3].map(|column| first + row * 10 + column))
}

/// Room for the views of a few documents.
const ARENA: usize = 64 << 10;
