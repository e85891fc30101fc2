//! Large messages, and many concurrent calls.

use chronorb::data::Arena;
use chronorb::prelude::*;

use super::{NIL, Subject};
use crate::idl::*;
use crate::values::{document, document_views, entry, filling, views};
use crate::{Failure, Report};

pub(super) fn check(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let echo = &subject.echo;
    for count in [0, 1, 1_000, 10_000, HUNDRED_THOUSAND, 1_000_000] {
        report.check(&format!("fill {count}"), || {
            Ok(echo.fill(count as u32)? == filling(count))
        });
        report.check(&format!("sum {count}"), || {
            Ok(echo.sum(&filling(count))? == sum_of_filling(count))
        });
    }
    check_cuts(echo, report);
    check_echoes(echo, report);

    let text = "t".repeat(HUNDRED_THOUSAND - 1);
    report.echo("echo_string 99999", text, "short".to_owned(), |v, io| {
        echo.echo_string(v, io)
    });
    report.check("call_octets 100000", || {
        let relations = subject.hub.get_relations()?.ok_or(NIL)?;
        let count = relations.call_octets(Some(echo), &filling(HUNDRED_THOUSAND))?;
        Ok(count as usize == HUNDRED_THOUSAND)
    });
    // The call behind it must wait for the whole oneway request, which has no reply.
    report.check("note_longs 50000, and a call behind it", || {
        let notes = subject.hub.get_notes()?.ok_or(NIL)?;
        notes.note_longs("fifty thousand", &numbers(50_000))?;
        Ok(echo.echo_octet(2, &mut 1)? == (2, 1))
    });
    Ok(())
}

/// Checks messages around the buffer size of peers, 8 KiB: these lengths put the cut at every
/// position of the arguments.
fn check_cuts(echo: &Echo, report: &mut Report) {
    report.check("fill around the size of a buffer", || {
        for count in 8000..8300 {
            if echo.fill(count as u32)? != filling(count) {
                return Ok(false);
            }
        }
        Ok(true)
    });
    report.check("sum around the size of a buffer", || {
        for count in 8000..8300 {
            if echo.sum(&filling(count))? != sum_of_filling(count) {
                return Ok(false);
            }
        }
        Ok(true)
    });
    report.check("echo_entry around the size of a buffer", || {
        for length in 8100..8250 {
            let v = entry(&"k".repeat(length), 2);
            let mut io = entry("short", 1);
            let (result, o) = echo.echo_entry(&v.as_view(), &mut io)?;
            if result != v || o != entry("short", 1) || io != v {
                return Ok(false);
            }
        }
        Ok(true)
    });
    report.check("echo_document around the size of a buffer", || {
        let arena = Arena::new(1 << 20);
        for length in 7900..8250 {
            let mut v = document(4);
            v.first.key = "k".repeat(length);
            let mut io = document(3);
            let sent = v.clone();
            let (result, o) = echo.echo_document(&sent.as_view_in(&arena)?, &mut io)?;
            if result != v || o != document(3) || io != v {
                return Ok(false);
            }
        }
        Ok(true)
    });
}

fn check_echoes(echo: &Echo, report: &mut Report) {
    let (v, w) = (filling(HUNDRED_THOUSAND), filling(3));
    report.echo("echo_octets 100000", v, w, |v, io| echo.echo_octets(v, io));
    let (v, w) = (numbers(HUNDRED_THOUSAND), numbers(9_999));
    report.echo("echo_longs 100000", v, w, |v, io| echo.echo_longs(v, io));
    report.echoed("echo_doubles 100000", echo_many_doubles(echo));
    report.echoed("echo_words 20000", echo_many_words(echo));
    report.echoed("echo_documents 500", echo_many_documents(echo));
}

/// Echoes with results that borrow from a scope, which has more room than that of the thread.
/// Numbers that are not aligned in the message need it too.
fn echo_many_doubles(echo: &Echo) -> Result<[bool; 3], SystemException> {
    let reals = |n: u32| (0..n).map(|i| f64::from(i) / 7.0).collect::<Vec<_>>();
    let (v, w) = (reals(100_000), reals(5_000));
    let mut scope = Scope::new(ROOM);
    let mut io = w.as_slice();
    let (result, o) = echo.echo_doubles_in(&mut scope, &v, &mut io)?;
    Ok([result == v, o == w, io == v])
}

fn echo_many_words(echo: &Echo) -> Result<[bool; 3], SystemException> {
    let word = |i: usize| char::from(b'a' + (i % 26) as u8).to_string().repeat(i % 11);
    let words = |n: usize| (0..n).map(word).collect::<Vec<String>>();
    let (v, w) = (words(20_000), words(3_000));
    let (v, w): (Vec<&str>, Vec<&str>) = (views(&v), views(&w));
    let mut scope = Scope::new(ROOM);
    let mut io = w.as_slice();
    let (result, o) = echo.echo_words_in(&mut scope, &v, &mut io)?;
    Ok([result == v, o == w, io == v])
}

fn echo_many_documents(echo: &Echo) -> Result<[bool; 3], SystemException> {
    let documents = |n: i32| (0..n).map(document).collect::<Vec<_>>();
    let (v, w) = (documents(500), documents(10));
    let arena = Arena::new(ROOM);
    let (v, w) = (document_views(&v, &arena)?, document_views(&w, &arena)?);
    let mut scope = Scope::new(ROOM);
    let mut io = w.as_slice();
    let (result, o) = echo.echo_documents_in(&mut scope, &v, &mut io)?;
    Ok([result == v, o == w, io == v])
}

pub(super) fn check_threads(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let echo = &subject.echo;
    let right: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || right_answers(echo, thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(0))
            .sum()
    });
    let wanted = (THREADS * CALLS) as usize;
    let detail = format!("{right} of {wanted} right");
    report.ok(right == wanted, "calls of four threads at a time", &detail);
    Ok(())
}

/// Returns the number of calls of one thread with the right result.
fn right_answers(echo: &Echo, thread: i32) -> usize {
    let answer = |call: i32| -> Result<bool, SystemException> {
        let v = thread * CALLS + call;
        let mut io = thread;
        let echoed = echo.echo_long(v, &mut io)? == (v, thread) && io == v;
        let count = v as usize * 50;
        Ok(echoed && echo.fill(count as u32)? == filling(count))
    };
    (0..CALLS)
        .filter(|&call| answer(call).is_ok_and(|right| right))
        .count()
}

fn numbers(count: usize) -> Vec<i32> {
    (0..count as u32)
        .map(|i| i.wrapping_mul(2_654_435_761) as i32)
        .collect()
}

fn sum_of_filling(count: usize) -> u32 {
    filling(count).iter().map(|&octet| u32::from(octet)).sum()
}

const HUNDRED_THOUSAND: usize = 100_000;
const THREADS: i32 = 4;
const CALLS: i32 = 100;
/// The room for the longest results.
const ROOM: usize = 8 << 20;
