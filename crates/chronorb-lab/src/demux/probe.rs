//! What is timed: some look-ups of one kind in a row.

use std::hint::black_box;
use std::time::Instant;

use chronorb_orb::poa::Poa;
use chronorb_orb::stages::{Frame, Stages, Target};

use super::operations::Find;
use super::population::Octets;

/// Look-ups of one stage by one strategy in one table.
pub(super) trait Probe {
    /// Looks up these entries, one after the other.
    ///
    /// What names them is brought into the cache before, as a message is that was just received;
    /// the table is as it is.
    fn run(&mut self, entries: &[u32]) -> Sample;
}

/// What some look-ups in a row took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// In all, with the reading of the clock.
    pub(super) ns: f64,
    /// How many look-ups found something.
    pub(super) found: usize,
}

/// Times `found` for each of the items.
#[inline]
fn time<T>(items: impl Iterator<Item = T>, mut found: impl FnMut(T) -> bool) -> Sample {
    let start = Instant::now();
    let mut count = 0;
    for item in items {
        count += usize::from(black_box(found(black_box(item))));
    }
    Sample {
        ns: start.elapsed().as_nanos() as f64,
        found: count,
    }
}

/// What it takes to read the clock and find nothing to do, in ns.
pub(super) fn clock_cost() -> f64 {
    let mut costs: Vec<f64> = (0..10_001)
        .map(|_| time([].iter(), |(): &()| true).ns)
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// The octets of a batch, near at hand.
fn gather(batch: &mut Octets, all: &Octets, entries: &[u32]) {
    batch.clear();
    for &entry in entries {
        batch.push(all.get(entry as usize));
    }
}

/// From an object key to its POA.
pub(super) struct PoaProbe {
    pub(super) stages: Stages,
    pub(super) keys: Octets,
    pub(super) batch: Octets,
}

impl Probe for PoaProbe {
    fn run(&mut self, entries: &[u32]) -> Sample {
        gather(&mut self.batch, &self.keys, entries);
        time(self.batch.iter(), |key| self.stages.find_poa(key))
    }
}

/// From an object's id to its servant.
pub(super) struct ServantProbe {
    pub(super) stages: Stages,
    pub(super) poa: Poa,
    pub(super) keys: Octets,
    pub(super) batch: Octets,
    /// Whether the key says where the object is.
    pub(super) hint: bool,
}

impl Probe for ServantProbe {
    fn run(&mut self, entries: &[u32]) -> Sample {
        gather(&mut self.batch, &self.keys, entries);
        let targets: Vec<Target<'_>> = self
            .batch
            .iter()
            .filter_map(Target::parse)
            .map(|target| match self.hint {
                true => target,
                false => target.without_hint(),
            })
            .collect();
        time(targets.iter(), |target| {
            self.stages.find_servant(&self.poa, *target)
        })
    }
}

/// From the name of an operation to its number.
pub(super) struct OperationProbe<F> {
    pub(super) find: F,
    pub(super) names: Octets,
    pub(super) batch: Octets,
}

impl<F: Find> Probe for OperationProbe<F> {
    fn run(&mut self, entries: &[u32]) -> Sample {
        gather(&mut self.batch, &self.names, entries);
        time(self.batch.iter(), |name| self.find.find(name).is_some())
    }
}

/// From the octets of a message to the object key, or to the skeleton and back.
pub(super) struct MessageProbe {
    pub(super) stages: Stages,
    pub(super) messages: Octets,
    pub(super) frames: Vec<Frame>,
    pub(super) whole: bool,
}

impl Probe for MessageProbe {
    fn run(&mut self, entries: &[u32]) -> Sample {
        while self.frames.len() < entries.len() {
            self.frames.push(Frame::new(FRAME, FRAME));
        }
        let frames = &mut self.frames[..entries.len()];
        for (frame, &entry) in frames.iter_mut().zip(entries) {
            frame.clear();
            frame
                .extend_from_slice(self.messages.get(entry as usize))
                .expect("requests without arguments are short");
        }
        let stages = &mut self.stages;
        if self.whole {
            time(frames.iter_mut(), |message| stages.serve(message))
        } else {
            time(frames.iter_mut(), |message| stages.read_request(message))
        }
    }
}

/// Room for one request.
const FRAME: usize = 512;
