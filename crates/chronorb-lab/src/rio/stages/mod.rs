//! The stages of a call at the server, by the kernel's own tracing: the times from the request's
//! packet to the reply's, and the counts of system calls, wake-ups and packets.

mod call;
mod trace;

use std::collections::BTreeMap;
use std::time::Duration;

use chronorb_probe::system_call_name;
use chronorb_testnet::{Host, INTERFACE};
use serde::Serialize;

use self::call::{PathStage, ServedCall, WokenThreads, calls};
use self::trace::EventTrace;
use super::LINK_RATE;
use super::calls::{CallSite, Io};
use super::class::{PacketClass, Processing};
use super::outcome::RioOutcome;
use super::packets::Load;
use super::path::PacketPath;
use super::site::RioMachine;
use crate::awake::Awake;
use crate::error::LabError;
use crate::inversion::{Architecture, BulkLoad, InversionRun, InversionTrial, Mode, Periods};
use crate::stats::{Record, Summary};
use crate::watch::Watch;
use crate::work::Speed;

/// The stages of a call by one path at one rate. Their times and counts are means of the calls
/// between the first and the last quartile of their length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// The path of the packets of calls.
    #[serde(rename = "way")]
    pub path: PacketPath,
    /// The load beside the calls.
    pub load: Load,
    /// The rate at which calls are made.
    pub calls_per_s: u32,
    /// The times from packet to packet of all traced calls.
    #[serde(flatten)]
    pub all: Summary,
    /// The time in the kernel's queue of received packets.
    pub queue_us: f64,
    /// The time from there to the wake-up of a thread.
    pub receive_us: f64,
    /// The time from the wake-up until that thread runs.
    pub wake_us: f64,
    /// The time in the class's own thread.
    pub class_us: f64,
    /// The time in the lane's thread until the ORB has the message.
    pub input_us: f64,
    /// The time in the ORB and the servant.
    pub orb_us: f64,
    /// The time from the reply to the system call that sends.
    pub output_us: f64,
    /// The time in the system call that sends, until the packet reaches the other end of the cable.
    pub transmit_us: f64,
    /// The part of these times in system calls, but for the one that sends.
    pub system_us: f64,
    /// The system calls from packet to packet.
    pub system_calls: f64,
    /// The same by the stages in which they begin, and their names.
    pub system_calls_by_name: String,
    /// The wake-ups from packet to packet.
    pub wake_ups: f64,
    /// The switches between threads from packet to packet.
    pub switches: f64,
    /// The system calls until the next request.
    pub all_system_calls: f64,
    /// The wake-ups until the next request.
    pub all_wake_ups: f64,
    /// The packets received until the next request.
    pub packets_in: f64,
    /// The packets sent until the next request.
    pub packets_out: f64,
}

impl StageRow {
    /// Returns the time from packet to packet.
    pub(super) fn whole_us(&self) -> f64 {
        self.stages_us().iter().sum()
    }

    /// Returns the times of all stages.
    pub(super) const fn stages_us(&self) -> [f64; PathStage::ALL.len()] {
        [
            self.queue_us,
            self.receive_us,
            self.wake_us,
            self.class_us,
            self.input_us,
            self.orb_us,
            self.output_us,
            self.transmit_us,
        ]
    }

    /// Returns the path and the rate in words.
    pub(super) fn title(&self) -> String {
        let beside = match self.load {
            Load::Quiet => "",
            Load::Bulk => ", bulk",
        };
        format!("{}, {}/s{beside}", self.path.title(), self.calls_per_s)
    }

    /// Summarises traced calls. Returns nothing without a call.
    fn of(case: Case, mut calls: Vec<ServedCall>) -> Option<Self> {
        calls.sort_by(|one, other| one.whole_us().total_cmp(&other.whole_us()));
        let mut all = Record::new();
        for call in &calls {
            let whole = Duration::from_secs_f64(call.whole_us().max(0.0) / 1e6);
            all.add(Duration::ZERO, whole);
        }
        let quarter = calls.len() / 4;
        let typical = &calls[quarter..calls.len() - quarter];
        let number = typical.len() as f64;
        if typical.is_empty() {
            return None;
        }
        let mean = |of: fn(&ServedCall) -> f64| typical.iter().map(of).sum::<f64>() / number;
        let stages_us = typical
            .iter()
            .fold([0.0; PathStage::ALL.len()], |sums, call| {
                std::array::from_fn(|stage| sums[stage] + call.stages_us[stage] / number)
            });
        let [
            queue_us,
            receive_us,
            wake_us,
            class_us,
            input_us,
            orb_us,
            output_us,
            transmit_us,
        ] = stages_us;
        let mut by_name: BTreeMap<(PathStage, u64), u32> = BTreeMap::new();
        for (call, count) in typical.iter().flat_map(|call| &call.system_calls) {
            *by_name.entry(*call).or_default() += count;
        }
        let named = PathStage::ALL.into_iter().filter_map(|stage| {
            // What another thread of the machine does now and then is not named.
            let of_stage = by_name
                .iter()
                .filter(|((begins, _), _)| *begins == stage)
                .map(|((_, call), count)| (system_call_name(*call), f64::from(*count) / number))
                .filter(|(_, each)| *each >= LEAST_SHARE)
                .map(|(name, each)| format!("{name} {each:.1}"));
            let of_stage: Vec<_> = of_stage.collect();
            (!of_stage.is_empty()).then(|| format!("{}: {}", stage.name(), of_stage.join(", ")))
        });
        let named: Vec<_> = named.collect();
        let (path, load, calls_per_s) = case;
        Some(Self {
            path,
            load,
            calls_per_s,
            all: all.summary(),
            queue_us,
            receive_us,
            wake_us,
            class_us,
            input_us,
            orb_us,
            output_us,
            transmit_us,
            system_us: mean(|call| call.system_us),
            system_calls: mean(|call| f64::from(call.system_calls.values().sum::<u32>())),
            system_calls_by_name: named.join("; "),
            wake_ups: mean(|call| call.wake_ups.into()),
            switches: mean(|call| call.switches.into()),
            all_system_calls: mean(|call| call.afterwards.system_calls.into()),
            all_wake_ups: mean(|call| call.afterwards.wake_ups.into()),
            packets_in: mean(|call| call.afterwards.packets_in.into()),
            packets_out: mean(|call| call.afterwards.packets_out.into()),
        })
    }
}

/// A path, the load beside the calls, and their rate.
type Case = (PacketPath, Load, u32);

/// Traces calls by each path. The outcome gets their rows, or the reason why there are none.
pub(super) fn measure(
    outcome: &mut RioOutcome,
    machine: &RioMachine,
    awake: &Awake,
    watch: &Watch,
) -> Result<(), LabError> {
    let plan = outcome.plan.calls.clone();
    let steps = Speed::measure().steps(outcome.plan.bulk_work);
    let [_, cpu] = machine.ends();
    for load in [Load::Quiet, Load::Bulk] {
        let is_bulk = load == Load::Bulk;
        let rate = if is_bulk {
            outcome.plan.bulk_rate
        } else {
            LINK_RATE
        };
        let site = CallSite::build(machine, rate)?;
        let server = site.server()?;
        let mut run = InversionRun::begin(&plan, &site.site, watch);
        run.awake = is_bulk.then_some((awake, cpu));
        for (path, _, calls_per_s) in cases().filter(|(_, of, _)| *of == load) {
            let period = Duration::from_secs(1) / calls_per_s;
            let periods = Periods {
                high: period,
                low: period,
            };
            let (io, processing) = match path {
                PacketPath::Kernel => (Io::Kernel, Processing::Arrival),
                PacketPath::Scheduled => (Io::Rio, Processing::Demand),
                _ => (Io::Rio, Processing::Arrival),
            };
            let bulk = is_bulk.then(|| PacketClass::of_flow("bulk", Processing::Arrival, None));
            let calls_of = [server.low(Processing::Demand), server.high(processing)];
            let lanes: Vec<_> = bulk.into_iter().chain(calls_of).collect();
            let trace = match EventTrace::begin(cpu) {
                Ok(trace) => trace,
                Err(why) => {
                    outcome.untraced = Some(why.to_string());
                    return Ok(());
                }
            };
            let name = format!("stages, {}, {calls_per_s}/s", path.title());
            let trial = InversionTrial {
                length: outcome.plan.traced,
                options: server.options(io, &lanes, None),
                trace_marker: Some(trace.marker()),
                bulk: is_bulk.then_some(BulkLoad { steps, sends: true }),
                ..run.trial(Architecture::RealTime, Mode::Short, 0, periods, &name)
            };
            run.try_one(&trial)?;
            let events = trace.end([INTERFACE, Host::B.port()]);
            let events = events.map_err(LabError::work("reading the trace"))?;
            let threads = match path {
                PacketPath::Scheduled => WokenThreads::All,
                _ => WokenThreads::Sender,
            };
            let row = StageRow::of((path, load, calls_per_s), calls(&events, threads));
            outcome.stages.extend(row);
        }
    }
    Ok(())
}

/// Returns what is compared: all paths alone, and beside bulk data those of E13 loaded with
/// packets.
fn cases() -> impl Iterator<Item = Case> {
    let quiet = CALLS_PER_S.into_iter();
    let quiet = quiet.flat_map(|rate| PATHS.map(|path| (path, Load::Quiet, rate)));
    let beside_bulk = [PacketPath::Kernel, PacketPath::Arrival];
    quiet.chain(beside_bulk.map(|path| (path, Load::Bulk, BESIDE_BULK_PER_S)))
}

/// Returns the approximate duration.
pub(super) fn length(traced: Duration) -> Duration {
    (traced + AROUND) * cases().count() as u32
}

/// The names of the stages, in their order.
pub(super) const STAGES: [&str; PathStage::ALL.len()] = {
    let mut names = [""; PathStage::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PathStage::ALL[at].name();
        at += 1;
    }
    names
};
/// The rates of calls: the paper's, at which other work has replaced the caches' content since the
/// last call, and one at which most of it is left.
pub(super) const CALLS_PER_S: [u32; 2] = [20, 1_000];
/// The rate of calls beside bulk data, as in E13 loaded with packets.
const BESIDE_BULK_PER_S: u32 = 200;
/// The paths that are compared.
const PATHS: [PacketPath; 3] = [
    PacketPath::Kernel,
    PacketPath::Arrival,
    PacketPath::Scheduled,
];
/// The least mean count of a system call that is named.
const LEAST_SHARE: f64 = 0.05;
const AROUND: Duration = Duration::from_millis(1_500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_and_the_fastest_calls_do_not_count() {
        let call = |orb_us| {
            let mut call = ServedCall {
                wake_ups: 1,
                system_calls: BTreeMap::from([((PathStage::Orb, u64::MAX), 2)]),
                ..ServedCall::default()
            };
            call.stages_us[PathStage::Orb as usize] = orb_us;
            call
        };
        let calls = [900.0, 10.0, 1.0, 12.0].map(call);
        let case = (PacketPath::Arrival, Load::Quiet, 20);
        let row = StageRow::of(case, calls.to_vec()).expect("there are calls");
        assert_eq!((row.all.calls, row.orb_us, row.whole_us()), (4, 11.0, 11.0));
        assert!((row.all.mean_us - 230.75).abs() < 1e-6, "{:?}", row.all);
        assert_eq!((row.system_calls, row.wake_ups), (2.0, 1.0));
        assert_eq!(
            row.system_calls_by_name,
            format!("ORB and servant: syscall_{} 2.0", u64::MAX)
        );
        assert_eq!(StageRow::of(case, Vec::new()), None);
    }
}
