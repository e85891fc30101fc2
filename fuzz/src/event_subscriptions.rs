//! Subscriptions to events: entries as a consumer sends them, then events and time.

use std::sync::Arc;
use std::time::Duration;

use crate::bounds::within;
use chronorb_events::{
    Entry, Event, Lane, Limits, Notation, Program, Rules, read_entries, write_entries,
};

/// The octets of an entry.
const ENTRY: usize = 6;
/// The octets of an entry in a message: a `Dependency`, with its event.
const ENTRY_IN_MESSAGE: usize = 64;
/// The greatest number of events and steps of time.
const STEPS: usize = 256;

/// Reads a subscription, compiles it, and runs events and timers against it.
///
/// The first octet holds the number of entries, the notation and the rules. Entries have two
/// octets of source, one of type and three of time. The other octets are events and steps of time.
pub fn event_subscriptions(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let count = usize::from(first & 0x3f).min(rest.len() / ENTRY);
    let notation = if first & 0x40 == 0 {
        Notation::Prefix
    } else {
        Notation::Basic
    };
    let rules = if first & 0x80 == 0 {
        Rules::Corrected
    } else {
        Rules::Tao
    };
    let (entries, steps) = rest.split_at(count * ENTRY);
    let entries: Vec<_> = entries.chunks_exact(ENTRY).map(entry).collect();
    let limits = Limits {
        least_time: Duration::from_micros(100),
        firings_per_second: u64::MAX,
        ..Limits::default()
    };
    let octets = entries.len() * ENTRY_IN_MESSAGE;
    let read = || read_entries(&entries, notation, rules, &limits);
    let Ok(filter) = within("reading", octets, read) else {
        return;
    };
    let written = write_entries(&filter);
    let again = read_entries(&written, Notation::Prefix, rules, &limits);
    let compile = || Program::compile(&filter, rules, &limits);
    let Ok(program) = within("compiling", octets, compile) else {
        return;
    };
    assert_eq!(
        again.as_ref(),
        Ok(&filter),
        "a valid filter changed on its way"
    );
    assert!(
        written.len() <= 2 * entries.len() + 1,
        "a filter has as many nodes as entries"
    );
    let steps = &steps[..steps.len().min(STEPS)];
    let octets = octets + steps.len() * ENTRY_IN_MESSAGE;
    within("running", octets, || run(program, entries.len(), steps));
}

fn run(program: Program, leaves: usize, steps: &[u8]) {
    let mut lane = Lane::new();
    let id = lane.subscribe(Arc::new(program), 0, 0);
    let mut now = 0;
    let mut pushed = 0;
    let mut delivered = 0;
    for step in steps {
        let mut deliver = |to, set: &[Event<u32>]| {
            assert_eq!(to, id);
            assert!(
                !set.is_empty() && set.len() <= leaves,
                "a set has at most an event a leaf"
            );
            delivered += set.len();
        };
        match step & 3 {
            0 => {
                now += 1_000_000 << (step >> 2 & 0x1f);
                lane.expire(now, &mut deliver);
                let due = lane.next_due();
                assert!(
                    due.is_none_or(|due| due > now),
                    "a timer that is due has fired"
                );
            }
            _ => {
                let event = Event::new(i32::from(step >> 4), i32::from(step & 0x0f) + 12, pushed);
                lane.push(&event, now, &mut deliver);
                pushed += 1;
            }
        }
    }
    assert!(
        delivered <= leaves * steps.len(),
        "{delivered} events are delivered by {} steps to {leaves} leaves",
        steps.len()
    );
    assert!(lane.unsubscribe(id));
    assert_eq!(lane.next_due(), None, "timers end with their subscription");
}

fn entry(octets: &[u8]) -> Entry {
    let time = u32::from_le_bytes([octets[3], octets[4], octets[5], 0]);
    Entry {
        source: i32::from(i16::from_le_bytes([octets[0], octets[1]])),
        event_type: i32::from(octets[2]),
        time: u64::from(time),
    }
}
