//! Urgent events through a channel, alone and beside a saturated lane of low priority.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, Thread, ThreadBuilder, sleep_until};
use serde::{Deserialize, Serialize};

use super::PATIENCE;
use super::plan::EventsPlan;
use super::site::{ChannelOrder, ChannelProcess, Client, Receiver, push_now};
use crate::awake::Awake;
use crate::bench::work::set_priority;
use crate::bench::{Cpus, priority};
use crate::error::LabError;
use crate::process::{self, Child, Parent, Ready};
use crate::report::rounds;
use crate::stats::{Record, Summary};
use crate::watch::Watch;

/// The urgent events of one case.
#[derive(Clone, Debug, Serialize)]
pub struct PriorityRow {
    /// Whether the channel has a lane for each priority.
    pub lanes: bool,
    /// Whether the load was on.
    pub loaded: bool,
    /// The time from the creation of an event to its consumer.
    pub latency: Summary,
    /// The events of low priority that the channel took meanwhile, in a second.
    pub low_per_s: f64,
    /// The events of low priority that were lost, of those that the channel took.
    pub low_lost: u64,
    /// All latencies.
    #[serde(skip)]
    pub record: Record,
}

/// The order of the process with the load.
#[derive(Debug, Deserialize, Serialize)]
struct LoadOrder {
    reference: String,
    suppliers: u32,
}

/// Measures all cases. Returns whether the urgent threads had real-time priorities.
pub(super) fn measure(
    plan: &EventsPlan,
    watch: &Watch,
    rows: &mut Vec<PriorityRow>,
) -> Result<bool, LabError> {
    let cpus = Cpus::of_this_process()?;
    let mut real_time = true;
    for lanes in [true, false] {
        for loaded in [false, true] {
            let of = if lanes { "with lanes" } else { "without lanes" };
            let beside = if loaded { ", beside a load" } else { "" };
            watch.begin(&format!("urgent events {of}{beside}"));
            // An idle processor sleeps, and its wake-up would count for the case without a load.
            let awake = (!loaded).then(|| Awake::competing_on(cpus.iter()));
            let awake = awake.transpose();
            let awake = awake.map_err(LabError::work("keeping processors awake"))?;
            let (row, urgent) = case(plan, lanes, loaded)?;
            drop(awake);
            real_time &= urgent;
            rows.push(row);
        }
    }
    Ok(real_time)
}

fn case(plan: &EventsPlan, lanes: bool, loaded: bool) -> Result<(PriorityRow, bool), LabError> {
    let order = if lanes {
        ChannelOrder {
            lanes: vec![HIGH, LOW],
            ..ChannelOrder::default()
        }
    } else {
        ChannelOrder {
            threads: 1,
            ..ChannelOrder::default()
        }
    };
    let channel = ChannelProcess::start(&order)?;
    let client = Client::start(channel.reference(), Some(HIGH))?;
    let receiver = Receiver::timed(WARM_UP + plan.urgent);
    let _proxy = client.subscribe(HIGH_TYPE, 1, &receiver)?;
    let supplier = client.supplier(HIGH_TYPE)?;
    let load = loaded.then(|| {
        let order = LoadOrder {
            reference: channel.reference().to_owned(),
            suppliers: LOW_SUPPLIERS,
        };
        Child::start("load", LOAD, &order)
    });
    let load = load.transpose()?;
    let load: Option<Child> = load.map(|(child, Ready {})| child);
    let before = client.statistics()?;
    let begin = Monotonic::now();
    let (orb, events) = (client.orb.clone(), WARM_UP + plan.urgent);
    let pushing = ThreadBuilder::new("urgent").spawn(move || {
        let urgent = set_priority(&orb, priority(HIGH)).is_ok();
        let begin = Monotonic::now();
        for number in 0..events {
            sleep_until(begin + PERIOD * number);
            push_now(&supplier, HIGH_TYPE, &[])?;
        }
        Ok::<_, LabError>(urgent)
    });
    let pushing: Thread<Result<bool, LabError>> =
        pushing.map_err(LabError::work("starting a supplier"))?;
    let urgent = pushing.join();
    let urgent = urgent.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    receiver.await_taken(events.into())?;
    let length = Monotonic::now().since(begin);
    let after = client.statistics()?;
    if let Some(load) = load {
        load.dismiss(Deadline::after(PATIENCE))?;
    }
    let latencies = receiver.latencies();
    let record = rounds::record(latencies.get(WARM_UP as usize..).unwrap_or_default());
    let low = (after.received - before.received).saturating_sub(events.into());
    let row = PriorityRow {
        lanes,
        loaded,
        latency: record.summary(),
        low_per_s: low as f64 / length.as_secs_f64(),
        low_lost: after.lost - before.lost,
        record,
    };
    drop(client);
    channel.stop()?;
    Ok((row, urgent))
}

/// Pushes events of low priority without a pause to a consumer that computes, until it is told to
/// end.
pub(crate) fn load_main(order: &str) -> Result<(), LabError> {
    let order: LoadOrder = process::order(order)?;
    let parent = Parent::or_exit();
    let client = Client::start(&order.reference, None)?;
    let receiver = Receiver::busy(LOW_WORK);
    let _proxy = client.subscribe(LOW_TYPE, 2, &receiver)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let pushed = Arc::new(AtomicU64::new(0));
    // Each has a connection of its own, and all are connected before the flood begins.
    let suppliers = (0..order.suppliers).map(|_| {
        let client = Client::start(&order.reference, None)?;
        let supplier = client.supplier(LOW_TYPE)?;
        Ok((client, supplier))
    });
    let suppliers = suppliers.collect::<Result<Vec<_>, LabError>>()?;
    let threads = suppliers.iter().map(|(_, supplier)| {
        let supplier = supplier.clone();
        let (is_over, pushed) = (is_over.clone(), pushed.clone());
        let thread = ThreadBuilder::new("low").spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                if push_now(&supplier, LOW_TYPE, &[]).is_err() {
                    // The channel has ended, or the ORB.
                    break;
                }
                pushed.fetch_add(1, Ordering::Relaxed);
            }
        });
        thread.map_err(LabError::work("starting a supplier"))
    });
    let threads = threads.collect::<Result<Vec<_>, _>>()?;
    let limit = Deadline::after(PATIENCE);
    while pushed.load(Ordering::Relaxed) < ENOUGH && !limit.has_passed() {
        std::thread::sleep(Duration::from_millis(1));
    }
    process::tell(&Ready {})?;
    let _end: Option<Ready> = parent.hear()?;
    is_over.store(true, Ordering::Relaxed);
    // Pushes that wait for the channel end with the ORB.
    drop((suppliers, client));
    for thread in threads {
        // It cannot panic.
        let _ = thread.join();
    }
    Ok(())
}

/// The part of a process that is the load.
pub(crate) const LOAD: &str = "events-load";
/// A real-time priority of Linux.
pub(super) const HIGH: i16 = 24_000;
/// Ordinary scheduling.
const LOW: i16 = 0;
const HIGH_TYPE: i32 = 20;
const LOW_TYPE: i32 = 21;
const PERIOD: Duration = Duration::from_millis(1);
const WARM_UP: u32 = 100;
const LOW_SUPPLIERS: u32 = 4;
/// The computing of the consumer of low priority for each event.
const LOW_WORK: Duration = Duration::from_micros(50);
/// The events of the load before it counts as running.
const ENOUGH: u64 = 100;
