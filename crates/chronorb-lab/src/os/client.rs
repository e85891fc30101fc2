//! The clients: threads of one process, each with a priority and a connection of its own.

use std::fs;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use chronorb::prelude::*;
use chronorb_rt::{Monotonic, Usage};

use super::order::{ClientOrder, Measured, Pace, Ready, Run};
use super::server::{orb, priority};
use crate::error::LabError;
use crate::idl::demo::Work;
use crate::process::{self, Parent};
use crate::schedule::{SystemClock, Window, closed_loop, periodic};
use crate::stats::Record;

/// Connects, and calls as the parent says, measurement by measurement. The process ends at once when
/// standard input ends before that.
pub(super) fn call(order: &ClientOrder) -> Result<(), LabError> {
    let parent = Parent::listen(|| std::process::exit(ABANDONED));
    let orb = orb(order.class, order.lock_memory)?;
    thread::scope(|scope| {
        let (connected, connections) = mpsc::channel();
        let callers: Vec<_> = (0..order.callers.len())
            .map(|index| {
                let (tell, runs) = mpsc::channel();
                let (answer, answers) = mpsc::channel();
                let (connected, orb) = (connected.clone(), &orb);
                let caller = scope.spawn(move || {
                    let work = connect(orb, order, order.callers[index])?;
                    // Nobody waits for this caller any more when another one failed.
                    let _ = connected.send(());
                    drop(connected);
                    call_in_each(&work, index, &runs, &answer)
                });
                (tell, answers, caller)
            })
            .collect();
        drop(connected);
        // A caller that fails to connect does not report: then nobody is started, and it says what is wrong.
        if connections.iter().count() == callers.len() {
            process::tell(&Ready {})?;
            while let Some(run) = parent.hear::<Option<Run>>()? {
                let before = switches_of(order.server);
                for (tell, ..) in &callers {
                    let _ = tell.send(run.clone());
                }
                let mut measured = Measured {
                    calls: Vec::new(),
                    client_switches: 0,
                    server_switches: 0,
                };
                for (_, answers, _) in &callers {
                    let Ok((calls, switches)) = answers.recv() else {
                        break;
                    };
                    measured.calls.push(calls);
                    measured.client_switches += switches;
                }
                if measured.calls.len() < callers.len() {
                    break;
                }
                measured.server_switches = switches_of(order.server).saturating_sub(before);
                process::tell(&measured)?;
            }
        }
        for (tell, _, caller) in callers {
            drop(tell);
            caller
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(())
    })
}

/// Gives the thread its priority and its class, and finds the object with everything on the way there.
fn connect(orb: &Orb, order: &ClientOrder, native: u8) -> Result<Work, LabError> {
    orb.rt_current()
        .set_priority(priority(native))
        .map_err(LabError::work("setting the priority"))?;
    let work = orb
        .string_to_object(&order.reference)
        .and_then(|object| Work::narrow(&object))
        .map_err(LabError::work("finding the object"))?
        .ok_or_else(|| LabError::work("finding the object")("it does no such work"))?;
    for _ in 0..WARM_UP_CALLS {
        cube(&work, 1)?;
    }
    order.class.finish_this_thread(native)?;
    Ok(work)
}

/// One calling thread: does its part of each measurement that it is told of.
fn call_in_each(
    work: &Work,
    index: usize,
    runs: &Receiver<Run>,
    answer: &Sender<(Record, u64)>,
) -> Result<(), LabError> {
    for run in runs {
        let window = Window {
            start: Monotonic::from_nanos(run.at_ns),
            length: run.length,
        };
        let call = || cube(work, run.steps);
        let pace = run.paces.get(index).copied().unwrap_or(Pace::Rest);
        let before = Usage::of_thread();
        let calls = match pace {
            Pace::Rest => Record::new(),
            Pace::WakeEvery(period) => {
                periodic(&SystemClock, window, period, || Ok::<_, LabError>(()))?
            }
            Pace::CallEvery(period) => periodic(&SystemClock, window, period, call)?,
            Pace::BackToBack => closed_loop(&SystemClock, window, call)?,
        };
        let after = Usage::of_thread();
        // The parent thread hears the end of the channel where this fails.
        let _ = answer.send((calls, switches(after) - switches(before)));
    }
    Ok(())
}

/// One call; looks at what comes back.
fn cube(work: &Work, steps: u32) -> Result<(), LabError> {
    let cube = work
        .cube(VALUE, steps)
        .map_err(LabError::work("calling the server"))?;
    match cube {
        CUBE => Ok(()),
        _ => Err(LabError::work("calling the server")(format!(
            "{VALUE}³ is not {cube}"
        ))),
    }
}

fn switches(usage: Usage) -> u64 {
    usage.voluntary_switches + usage.involuntary_switches
}

/// The context switches of all threads that a process has, as far as the kernel tells.
fn switches_of(process: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let statuses =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    statuses.map(|status| switches_in(&status)).sum()
}

/// The context switches in `/proc/PID/task/TID/status`, of both kinds.
fn switches_in(status: &str) -> u64 {
    let lines = status.lines().filter_map(|line| line.split_once(':'));
    let counts = lines.filter(|(name, _)| name.ends_with("voluntary_ctxt_switches"));
    counts
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

const VALUE: u8 = 11;
const CUBE: i32 = 1331;
/// Enough to have the code and stack in memory on both sides.
const WARM_UP_CALLS: u32 = 100;
/// The exit status of a client whose parent is gone.
const ABANDONED: i32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_both_kinds_count() {
        let status = "Name:\tlane\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(switches_in(status), 157);
        assert_eq!(switches_in("Name:\tlane\n"), 0);
    }
}
