//! Many interval timers on one lane: their lateness, and their drift.

use std::sync::Arc;
use std::time::Duration;

use chronorb_channel::{Channel, Event, Filter, Lane};
use chronorb_rt::{Monotonic, PiMutex, Scheduling, ThreadBuilder, sleep_until};
use serde::Serialize;

use super::plan::EventsPlan;
use crate::awake::Awake;
use crate::bench::Cpus;
use crate::error::LabError;
use crate::report::rounds;
use crate::stats::Summary;

/// The figures of the part.
#[derive(Clone, Debug, Serialize)]
pub struct TimerFigures {
    /// The timers.
    pub timers: u32,
    /// The lateness of all ticks.
    pub lateness: Summary,
    /// The lateness of a thread that does nothing else, at the same priority and time.
    pub thread: Summary,
    /// The ticks whose times were not at a multiple of their interval since the first one.
    pub drifted: u64,
    /// The ticks that are missing between two others of a timer.
    pub missing: u64,
    /// Those of them whose lane was later than the interval at the tick before, so that they were
    /// over when it came.
    pub overrun: u64,
    /// Whether the lane had a real-time priority.
    pub real_time: bool,
}

/// The ticks of a timer: the time at which each was due, in units of 100 ns, and the lateness in
/// nanoseconds.
type Ticks = PiMutex<Vec<(u64, u64)>>;

/// Runs the timers.
pub(super) fn measure(plan: &EventsPlan) -> Result<TimerFigures, LabError> {
    let cpus = Cpus::of_this_process()?;
    let awake = Awake::competing_on(cpus.iter());
    let awake = awake.map_err(LabError::work("keeping processors awake"))?;
    let fifo = || Lane::new("timers").scheduling(Scheduling::fifo(PRIORITY));
    let started = Channel::<u64>::builder().lane(fifo()).start();
    let real_time = started.is_ok();
    let channel = match started {
        Ok(channel) => channel,
        // Without the right to priorities.
        Err(_) => {
            let plain = Channel::builder().lane(Lane::new("timers"));
            plain.start().map_err(LabError::work(STARTING))?
        }
    };
    let timers = (0..plan.timers).map(|number| {
        let interval = Duration::from_millis(u64::from(number % LONGEST_MS + 1));
        let run = plan.timer_run.as_millis() / interval.as_millis();
        let ticks = Arc::new(Ticks::new(Vec::with_capacity(run as usize * 2 + 16)));
        let kept = ticks.clone();
        let consumer = move |set: &[Event<u64>]| {
            let now = Monotonic::now().as_nanos();
            let due = set[0].header.creation_time;
            kept.lock().push((due, now.saturating_sub(due * 100)));
        };
        let subscription = channel.subscribe(Filter::each(interval));
        let subscription = subscription
            .queue(1, Default::default())
            .call_on(0, consumer);
        let subscription = subscription.map_err(LabError::work(STARTING))?;
        Ok((interval, ticks, subscription))
    });
    let timers = timers.collect::<Result<Vec<_>, LabError>>()?;
    let sleeper = ThreadBuilder::new("sleeper");
    let sleeper = if real_time {
        sleeper.scheduling(Scheduling::fifo(PRIORITY))
    } else {
        sleeper
    };
    let wakes = plan.timer_run.as_millis() as u32;
    let sleeper = sleeper.spawn(move || {
        let begin = Monotonic::now();
        let lateness = (1..=wakes).map(|number| {
            let due = begin + Duration::from_millis(number.into());
            sleep_until(due);
            Monotonic::now().since(due).as_nanos() as u64
        });
        lateness.collect::<Vec<_>>()
    });
    let sleeper = sleeper.map_err(LabError::work(STARTING))?;
    let slept = sleeper.join();
    let slept = slept.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    channel.close();
    drop(awake);
    let mut lateness = Vec::new();
    let (mut drifted, mut missing, mut overrun) = (0, 0, 0);
    for (interval, ticks, _) in &timers {
        let ticks = ticks.lock();
        let units = interval.as_nanos() as u64 / 100;
        for pair in ticks.windows(2) {
            let apart = pair[1].0 - pair[0].0;
            drifted += u64::from(!apart.is_multiple_of(units));
            let skipped = (apart / units).saturating_sub(1);
            missing += skipped;
            overrun += skipped.min(pair[0].1 / interval.as_nanos() as u64);
        }
        lateness.extend(ticks.iter().map(|(_, lateness)| *lateness));
    }
    Ok(TimerFigures {
        timers: plan.timers,
        lateness: rounds::record(&lateness).summary(),
        thread: rounds::record(&slept).summary(),
        drifted,
        missing,
        overrun,
        real_time,
    })
}

const PRIORITY: u8 = 60;
/// The longest interval. Timers have 1 ms, 2 ms and so on up to this.
const LONGEST_MS: u32 = 1_000;
const STARTING: &str = "starting timers";
