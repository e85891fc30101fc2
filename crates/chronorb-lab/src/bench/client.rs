//! Clients: threads that call one object of [`Work`] at a pace, each with a priority and a
//! connection of its own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb::prelude::{SystemException, SystemExceptionKind};
use chronorb_rt::{Deadline, Monotonic, Policy, Usage, sleep_until};
use serde::{Deserialize, Serialize};

use super::callers::{elapsed_ns, with_callers};
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
    /// The same without records, until all threads have made so many calls together, however long
    /// it takes.
    Together(u32),
    /// Calls without records that occupy a thread of the server for so long, but no processor.
    Occupy(Duration),
    /// Calls without records that compute and rest in turn until the span ends.
    Endless {
        /// The time of computing.
        compute: Duration,
        /// The time of each rest.
        rest: Duration,
    },
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
    /// The time from the first call of the first thread to the last reply.
    pub(crate) elapsed_ns: u64,
    /// The number of calls without records that were refused (`TRANSIENT`).
    pub(crate) refused: u64,
    /// The longest time for which endless work was kept from computing.
    pub(crate) longest_stop_us: u32,
}

/// The calls of one thread.
struct ThreadCalls {
    record: Record,
    switches: u64,
    real_time: bool,
    /// The beginning of the first call, and the end of the last.
    span: (Monotonic, Monotonic),
    load: Load,
}

/// The effect of calls without records.
#[derive(Default)]
struct Load {
    refused: u64,
    longest_stop_us: u32,
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
            (0..self.warm_up).try_for_each(|_| warm_up(&work))?;
            connected(index)?;
            Ok(work)
        };
        let left = AtomicU32::new(0);
        let call = |work: &mut Work, index: usize, run: &PacedRun| run.call(work, index, &left);
        with_callers(self.threads.len(), connect, call, |callers| {
            process::tell(&Ready {})?;
            while let Some(run) = parent.hear::<Option<PacedRun>>()? {
                let switches = || self.server.map_or(0, |server| usage::of(server).switches);
                let before = switches();
                left.store(run.together(), Ordering::Relaxed);
                let threads = callers.run(&run)?;
                let spans: Vec<_> = threads.iter().map(|of| of.span).collect();
                let loads = || threads.iter().map(|of| &of.load);
                process::tell(&MeasuredCalls {
                    client_switches: threads.iter().map(|of| of.switches).sum(),
                    server_switches: switches().saturating_sub(before),
                    real_time: threads.iter().all(|of| of.real_time),
                    elapsed_ns: elapsed_ns(&spans),
                    refused: loads().map(|load| load.refused).sum(),
                    longest_stop_us: loads().map(|load| load.longest_stop_us).max().unwrap_or(0),
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

    /// Returns the number of calls that all threads make together, where they do.
    fn together(&self) -> u32 {
        let calls = self.paces.iter().map(|pace| match pace {
            Pace::Together(calls) => *calls,
            _ => 0,
        });
        calls.max().unwrap_or(0)
    }

    fn call(&self, work: &Work, index: usize, left: &AtomicU32) -> Result<ThreadCalls, LabError> {
        let window = Window {
            start: Monotonic::from_nanos(self.at_ns),
            length: self.length,
        };
        let call = || work::call(work, VALUE, self.steps);
        let pace = self.paces.get(index).copied().unwrap_or(Pace::Rest);
        let (mut first, mut load) = (window.start, Load::default());
        let mut record = Record::new();
        let before = Usage::of_thread();
        match pace {
            Pace::Rest => {}
            Pace::WakeEvery(period) => {
                record = periodic(&SystemClock, window, period, || Ok::<_, LabError>(()))?;
            }
            Pace::CallEvery(period) => record = periodic(&SystemClock, window, period, call)?,
            Pace::BackToBack => record = closed_loop(&SystemClock, window, call)?,
            Pace::Together(_) => {
                sleep_until(window.start);
                first = Monotonic::now();
                let take = |left: u32| left.checked_sub(1);
                // All threads end together, because a faster thread takes more of the calls.
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                    .is_ok()
                {
                    call()?;
                }
            }
            Pace::Occupy(length) => {
                load = window.load(|_| work.occupy(micros(length)).map(|()| 0))?;
            }
            Pace::Endless { compute, rest } => {
                load = window.load(|until| {
                    work.work_until(until.as_nanos(), micros(compute), micros(rest))
                })?;
            }
        }
        let after = Usage::of_thread();
        let switches = |usage: Usage| usage.voluntary_switches + usage.involuntary_switches;
        Ok(ThreadCalls {
            record,
            switches: switches(after) - switches(before),
            real_time: is_real_time(),
            span: (first, Monotonic::now()),
            load,
        })
    }
}

impl Window {
    /// Calls back to back. `call` gets the end of the span, and returns the longest stop in µs. A
    /// refused call is repeated after a while.
    fn load(
        self,
        call: impl Fn(Monotonic) -> Result<u32, SystemException>,
    ) -> Result<Load, LabError> {
        let mut load = Load::default();
        let until = self.start + self.length;
        sleep_until(self.start);
        while Monotonic::now() < until {
            match call(until) {
                Ok(stop_us) => load.longest_stop_us = load.longest_stop_us.max(stop_us),
                Err(exception) if exception.kind == SystemExceptionKind::Transient => {
                    load.refused += 1;
                    sleep_until(until.min(Monotonic::now() + RETRY));
                }
                Err(exception) => return Err(LabError::work("loading the server")(exception)),
            }
        }
        Ok(load)
    }
}

/// Makes a call that is not measured. More threads may connect at a time than a buffer holds
/// requests, so a refused call is repeated.
fn warm_up(work: &Work) -> Result<(), LabError> {
    let deadline = Deadline::after(PATIENCE);
    loop {
        match work.cube(VALUE, 1) {
            Err(exception)
                if exception.kind == SystemExceptionKind::Transient && !deadline.has_passed() =>
            {
                sleep_until(Monotonic::now() + Duration::from_millis(1));
            }
            reply => return work::check(VALUE, reply),
        }
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// Whether this thread has a real-time priority.
fn is_real_time() -> bool {
    chronorb_rt::current().is_ok_and(|scheduling| scheduling.policy != Policy::Other)
}

/// The part of a process that is such a client.
pub(crate) const CLIENT: &str = "client";
/// The time for which a thread tries to connect to a server whose buffers are full.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time after which a refused call is repeated.
const RETRY: Duration = Duration::from_millis(5);
