//! The timed code: a batch of look-ups of one kind.

use std::hint::black_box;
use std::time::Instant;

use chronorb_orb::poa::Poa;
use chronorb_orb::stages::{Frame, Stages, Target};

use super::operations::Find;
use super::population::OctetTable;
use crate::stats::quantile;

/// Looks up entries in a table, one after the other.
///
/// A probe brings the names of the entries into the cache before it reads the clock, because a
/// message is in the cache when it was just received. It does nothing for the table.
pub(super) type Probe = Box<dyn FnMut(&[u32]) -> BatchTime>;

/// The time of a batch of look-ups.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchTime {
    /// The time of all look-ups together, with the reading of the clock.
    pub(super) ns: f64,
    /// The number of look-ups that found their entry.
    pub(super) successes: usize,
}

/// Times a look-up for each of the items.
#[inline]
fn time<T>(items: impl Iterator<Item = T>, mut look_up: impl FnMut(T) -> bool) -> BatchTime {
    let start = Instant::now();
    let mut successes = 0;
    for item in items {
        successes += usize::from(black_box(look_up(black_box(item))));
    }
    BatchTime {
        ns: start.elapsed().as_nanos() as f64,
        successes,
    }
}

/// Returns the time in ns of an empty batch: the reading of the clock.
pub(super) fn clock_cost() -> f64 {
    let empty = |_| time([].iter(), |(): &()| true).ns;
    let mut costs: Vec<f64> = (0..10_001).map(empty).collect();
    quantile(&mut costs, 0.5)
}

/// Returns a probe that finds the POA of an object key.
pub(super) fn of_poas(stages: Stages, keys: OctetTable) -> Probe {
    let mut batch = OctetTable::default();
    Box::new(move |entries| {
        batch.gather(&keys, entries);
        time(batch.iter(), |key| stages.find_poa(key))
    })
}

/// Returns a probe that finds the servant of an object id, with the hint in the object key or
/// without it.
pub(super) fn of_servants(stages: Stages, poa: Poa, keys: OctetTable, hint: bool) -> Probe {
    let mut batch = OctetTable::default();
    Box::new(move |entries| {
        batch.gather(&keys, entries);
        let targets = batch.iter().filter_map(Target::parse);
        let targets = targets.map(|target| if hint { target } else { target.without_hint() });
        let targets: Vec<Target<'_>> = targets.collect();
        time(targets.iter(), |target| stages.find_servant(&poa, *target))
    })
}

/// Returns a probe that finds the number of an operation.
pub(super) fn of_operations(find: impl Find, names: OctetTable) -> Probe {
    let mut batch = OctetTable::default();
    Box::new(move |entries| {
        batch.gather(&names, entries);
        time(batch.iter(), |name| find(name).is_some())
    })
}

/// Returns a probe that has the stages process messages.
pub(super) fn of_messages(
    mut stages: Stages,
    messages: OctetTable,
    process: impl Fn(&mut Stages, &mut Frame) -> bool + 'static,
) -> Probe {
    let mut frames = Vec::new();
    Box::new(move |entries| {
        frames.resize_with(entries.len().max(frames.len()), || Frame::new(FRAME, FRAME));
        let frames = &mut frames[..entries.len()];
        for (frame, &entry) in frames.iter_mut().zip(entries) {
            let message = messages.get(entry as usize);
            frame.clear();
            let copied = frame.extend_from_slice(message);
            copied.expect("requests without arguments are short");
        }
        time(frames.iter_mut(), |message| process(&mut stages, message))
    })
}

/// The capacity for one request.
const FRAME: usize = 512;
