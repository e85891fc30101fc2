//! Threads that count with the processor time that others leave.

use std::fs;
use std::sync::mpsc;

use chronorb_rt::{Monotonic, Scheduling, ThreadBuilder, sleep_until};
use rustix::process::{setpriority_process, setsid};

use super::order::{Scavenge, Scavenged, ScavengerOrder};
use crate::error::LabError;
use crate::process::{self, Parent, Ready};
use crate::work;

/// Counts on each processor, measurement by measurement.
///
/// Scavengers are ordinary threads: every real-time thread goes before them. Of the ordinary threads they have the
/// greatest weight, where that is permitted, so that other programs take little.
pub(super) fn scavenge(order: &ScavengerOrder) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    gain_weight();
    let scavengers: Vec<_> = order
        .cpus
        .iter()
        .map(|cpu| {
            let (tell, windows) = mpsc::channel::<Scavenge>();
            let (answer, counts) = mpsc::channel();
            let scavenger = ThreadBuilder::new("scavenger")
                .scheduling(Scheduling::OTHER)
                .affinity(&[*cpu])
                .spawn(move || {
                    let _ = setpriority_process(None, LEAST_NICE);
                    for window in windows {
                        let _ = answer.send(count(window));
                    }
                });
            scavenger.map(|_| (tell, counts))
        })
        .collect::<Result<_, _>>()
        .map_err(LabError::work("starting a scavenger"))?;
    process::tell(&Ready {})?;
    while let Some(window) = parent.hear::<Option<Scavenge>>()? {
        for (tell, _) in &scavengers {
            let _ = tell.send(window);
        }
        let counts = scavengers
            .iter()
            .filter_map(|(_, counts)| counts.recv().ok());
        process::tell(&Scavenged {
            counts: counts.collect(),
        })?;
    }
    Ok(())
}

/// Gives this process a group of its own among those that share time (sched(7), autogroups), and that the greatest
/// weight. Where it is refused, or there are no such groups, scavengers get what they get.
fn gain_weight() {
    let _ = setsid();
    let _ = fs::write("/proc/self/autogroup", LEAST_NICE.to_string());
}

/// How far a thread counts in its time.
fn count(window: Scavenge) -> u64 {
    let start = Monotonic::from_nanos(window.at_ns);
    let until = start + window.length;
    let mut count = 0;
    sleep_until(start);
    while Monotonic::now() < until {
        work::cube(7, STEPS);
        count += 1;
    }
    count
}

/// Work of about a µs, so that a count tells a share of the time well.
const STEPS: u32 = 500;
const LEAST_NICE: i32 = -20;
