//! Clients: threads that call one object of [`Work`] at a pace, each with a priority and a
//! connection of its own.

use std::time::Duration;

use chronorb_rt::{Monotonic, Policy, Usage};
use serde::{Deserialize, Serialize};

use super::callers::with_callers;
use super::server::{orb, priority};
use super::work::{self, VALUE};
use crate::error::LabError;
use crate::idl::lab::Work;
use crate::process::{self, Parent, Ready};
use crate::schedule::{SystemClock, Window, closed_loop, periodic};
use crate::stats::Record;
use crate::usage;

/// A client: the options of its ORB, and its threads.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ClientSpec {
    /// The options of the ORB.
    pub(crate) options: Vec<String>,
    /// The object that it calls.
    pub(crate) reference: String,
    /// The priority of each thread; without it, the thread sets none.
    pub(crate) threads: Vec<Option<i16>>,
    /// The number of calls of each thread before it is connected.
    pub(crate) warm_up: u32,
    /// The process of the server, where its context switches are counted.
    pub(crate) server: Option<u32>,
}

/// A span in which the threads call.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PacedRun {
    /// The beginning, by the monotonic clock.
    pub(crate) at_ns: u64,
    /// The length of the span.
    pub(crate) length: Duration,
    /// The pace of each thread; a thread without one rests.
    pub(crate) paces: Vec<Pace>,
    /// The work of a call.
    pub(crate) steps: u32,
}

/// The pace of a thread.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Pace {
    /// No calls.
    Rest,
    /// No calls, but the waking up that they would take.
    WakeEvery(Duration),
    /// A call each period.
    CallEvery(Duration),
    /// A call as soon as the one before was answered.
    BackToBack,
}

/// The calls of a span.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct MeasuredCalls {
    /// The calls of each thread.
    pub(crate) calls: Vec<Record>,
    /// The context switches of the calling threads.
    pub(crate) client_switches: u64,
    /// The context switches of all threads of the server, where they are counted.
    pub(crate) server_switches: u64,
    /// Whether all threads had real-time priorities.
    pub(crate) real_time: bool,
}

/// The calls of one thread.
struct ThreadCalls {
    record: Record,
    switches: u64,
    real_time: bool,
}

/// Runs the client of an order.
pub(crate) fn client_main(order: &str) -> Result<(), LabError> {
    let spec: ClientSpec = process::order(order)?;
    spec.run(|_| Ok(()))
}

impl ClientSpec {
    /// Connects all threads, and measures each span that the parent orders. `connected` is called
    /// by each thread when it is connected.
    pub(crate) fn run(
        &self,
        connected: impl Fn(usize) -> Result<(), LabError> + Sync,
    ) -> Result<(), LabError> {
        let parent = Parent::or_exit();
        let orb = orb(&self.options)?;
        let connect = |index: usize| {
            let work = work::find(&orb, self.threads[index].map(priority), &self.reference)?;
            (0..self.warm_up).try_for_each(|_| work::call(&work, VALUE, 1))?;
            connected(index)?;
            Ok(work)
        };
        let call = |work: &mut Work, index: usize, run: &PacedRun| run.call(work, index);
        with_callers(self.threads.len(), connect, call, |callers| {
            process::tell(&Ready {})?;
            while let Some(run) = parent.hear::<Option<PacedRun>>()? {
                let switches = || self.server.map_or(0, |server| usage::of(server).switches);
                let before = switches();
                let threads = callers.run(&run)?;
                process::tell(&MeasuredCalls {
                    client_switches: threads.iter().map(|of| of.switches).sum(),
                    server_switches: switches().saturating_sub(before),
                    real_time: threads.iter().all(|of| of.real_time),
                    calls: threads.into_iter().map(|of| of.record).collect(),
                })?;
            }
            Ok(())
        })
    }
}

impl PacedRun {
    /// A span that begins then, in which all threads work so much in each call.
    pub(crate) fn new(start: Monotonic, length: Duration, paces: &[Pace], steps: u32) -> Self {
        Self {
            at_ns: start.as_nanos(),
            length,
            paces: paces.to_vec(),
            steps,
        }
    }

    fn call(&self, work: &Work, index: usize) -> Result<ThreadCalls, LabError> {
        let window = Window {
            start: Monotonic::from_nanos(self.at_ns),
            length: self.length,
        };
        let call = || work::call(work, VALUE, self.steps);
        let pace = self.paces.get(index).copied().unwrap_or(Pace::Rest);
        let before = Usage::of_thread();
        let record = match pace {
            Pace::Rest => Record::new(),
            Pace::WakeEvery(period) => {
                periodic(&SystemClock, window, period, || Ok::<_, LabError>(()))?
            }
            Pace::CallEvery(period) => periodic(&SystemClock, window, period, call)?,
            Pace::BackToBack => closed_loop(&SystemClock, window, call)?,
        };
        let after = Usage::of_thread();
        let switches = |usage: Usage| usage.voluntary_switches + usage.involuntary_switches;
        Ok(ThreadCalls {
            record,
            switches: switches(after) - switches(before),
            real_time: is_real_time(),
        })
    }
}

/// Whether this thread has a real-time priority.
fn is_real_time() -> bool {
    chronorb_rt::current().is_ok_and(|scheduling| scheduling.policy != Policy::Other)
}

/// The part of a process that is such a client.
pub(crate) const CLIENT: &str = "client";
