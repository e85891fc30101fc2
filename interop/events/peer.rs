//! The parts that the programs in Rust share: the clock, the lines between a program and its
//! parent, and the latencies of consumers. README.md describes the lines.

use std::io::{self, BufRead, Write};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// The octets of the payload of an event. The first 8 are its stamp.
pub const PAYLOAD: usize = 64;

/// A process of a system.
pub enum Part {
    Supply {
        warm_up: u64,
        events: u64,
        period: Duration,
    },
    Consume {
        address: String,
        consumers: usize,
        events: usize,
    },
}

/// Reads the arguments, or ends the process.
pub fn part() -> Part {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = all.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| usage());
    match words[..] {
        ["supply", _, warm_up, events, period] => Part::Supply {
            warm_up: number(warm_up),
            events: number(events),
            period: Duration::from_nanos(number(period)),
        },
        ["consume", address, consumers, events] => Part::Consume {
            address: address.to_owned(),
            consumers: number(consumers) as usize,
            events: number(events) as usize,
        },
        _ => usage(),
    }
}

fn usage() -> ! {
    eprintln!("supply ADDRESS WARM_UP EVENTS PERIOD_NS | consume ADDRESS CONSUMERS EVENTS");
    std::process::exit(2)
}

/// The time of `CLOCK_MONOTONIC` in nanoseconds.
pub fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time can be written to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Writes a line to the parent.
pub fn tell(line: &str) {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    if written.is_err() {
        std::process::exit(1);
    }
}

/// Waits for a line of the parent. Returns whether there was one before the end of the input.
pub fn hear() -> bool {
    let mut line = String::new();
    io::stdin()
        .lock()
        .read_line(&mut line)
        .is_ok_and(|read| read > 0)
}

/// Pushes events at their times, first the warm-up, whose stamps are 0.
pub fn supply(warm_up: u64, events: u64, period: Duration, mut push: impl FnMut([u8; PAYLOAD])) {
    let begin = now();
    for number in 0..warm_up + events {
        let due = begin + number * period.as_nanos() as u64;
        while let Some(left) = due.checked_sub(now()).filter(|left| *left > 0) {
            std::thread::sleep(Duration::from_nanos(left));
        }
        let stamp = if number < warm_up { 0 } else { now() };
        let mut payload = [7; PAYLOAD];
        payload[..8].copy_from_slice(&stamp.to_ne_bytes());
        push(payload);
    }
    tell("{}");
}

/// The latencies of all consumers of a process.
#[derive(Default)]
pub struct Latencies {
    all: Mutex<Vec<u64>>,
    changed: Condvar,
}

impl Latencies {
    /// Takes the payload of an event, on any thread.
    pub fn take(&self, payload: &[u8]) {
        let time = now();
        let stamp = payload
            .first_chunk()
            .map_or(0, |of| u64::from_ne_bytes(*of));
        if stamp != 0 {
            self.all.lock().unwrap().push(time - stamp);
            self.changed.notify_one();
        }
    }

    /// Waits for so many, for at most two seconds, and writes those that came.
    pub fn conclude(&self, number: usize) {
        let all = self.all.lock().unwrap();
        let limit = Duration::from_secs(2);
        let waited = self
            .changed
            .wait_timeout_while(all, limit, |all| all.len() < number);
        let (all, _) = waited.unwrap();
        let texts: Vec<_> = all.iter().map(u64::to_string).collect();
        tell(&format!("[{}]", texts.join(",")));
    }
}
