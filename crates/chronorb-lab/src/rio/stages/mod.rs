//! The stages of a call at the server, by the kernel's own tracing: the times from the request's
//! packet to the reply's, and the counts of system calls, wake-ups and packets.

mod call;
mod trace;

use std::collections::BTreeMap;
use std::time::Duration;

use chronorb_probe::system_call_name;
use chronorb_testnet::{Host, INTERFACE};
use serde::Serialize;

use self::call::{PathStage, ServedCall, calls};
use self::trace::EventTrace;
use super::LINK_RATE;
use super::calls::{CallSite, Io};
use super::class::Processing;
use super::outcome::RioOutcome;
use super::path::PacketPath;
use super::site::RioMachine;
use crate::error::LabError;
use crate::inversion::{Architecture, InversionRun, InversionTrial, Mode, Periods};
use crate::watch::Watch;

/// The stages of a call by one path at one rate. Times and counts are means of the calls between
/// the first and the last quartile of their length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// The path of the packets of calls.
    #[serde(rename = "way")]
    pub path: PacketPath,
    /// The rate at which calls are made.
    pub calls_per_s: u32,
    /// The number of traced calls.
    pub calls: usize,
    /// The time from the request's packet to the wake-up of a thread.
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
        format!("{}, {}/s", self.path.title(), self.calls_per_s)
    }

    /// Summarises traced calls. Returns nothing without a call.
    fn of(path: PacketPath, calls_per_s: u32, mut calls: Vec<ServedCall>) -> Option<Self> {
        calls.sort_by(|one, other| one.whole_us().total_cmp(&other.whole_us()));
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
        Some(Self {
            path,
            calls_per_s,
            calls: calls.len(),
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

/// Traces calls by each path. The outcome gets their rows, or the reason why there are none.
pub(super) fn measure(
    outcome: &mut RioOutcome,
    machine: &RioMachine,
    watch: &Watch,
) -> Result<(), LabError> {
    let site = CallSite::build(machine, LINK_RATE)?;
    let server = site.server()?;
    let plan = outcome.plan.calls.clone();
    let run = InversionRun::begin(&plan, &site.site, watch);
    let [_, cpu] = machine.ends();
    let cases = CALLS_PER_S.into_iter();
    let cases = cases.flat_map(|calls_per_s| PATHS.map(|path| (path, calls_per_s)));
    for (path, calls_per_s) in cases {
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
        let lanes = [server.low(Processing::Demand), server.high(processing)];
        let name = format!("stages, {}, {calls_per_s}/s", path.title());
        let trace = match EventTrace::begin(cpu) {
            Ok(trace) => trace,
            Err(why) => {
                outcome.untraced = Some(why.to_string());
                return Ok(());
            }
        };
        let trial = InversionTrial {
            length: outcome.plan.traced,
            options: server.options(io, &lanes, None),
            trace_marker: Some(trace.marker()),
            ..run.trial(Architecture::RealTime, Mode::Short, 0, periods, &name)
        };
        run.try_one(&trial)?;
        let events = trace.end([INTERFACE, Host::B.port()]);
        let events = events.map_err(LabError::work("reading the trace"))?;
        let row = StageRow::of(path, calls_per_s, calls(&events));
        outcome.stages.extend(row);
    }
    Ok(())
}

/// Returns the approximate duration.
pub(super) fn length(traced: Duration) -> Duration {
    (traced + AROUND) * (PATHS.len() * CALLS_PER_S.len()) as u32
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
        let row = StageRow::of(PacketPath::Arrival, 20, calls.to_vec()).expect("there are calls");
        assert_eq!((row.calls, row.orb_us, row.whole_us()), (4, 11.0, 11.0));
        assert_eq!((row.system_calls, row.wake_ups), (2.0, 1.0));
        assert_eq!(
            row.system_calls_by_name,
            format!("ORB and servant: syscall_{} 2.0", u64::MAX)
        );
        assert_eq!(StageRow::of(PacketPath::Arrival, 20, Vec::new()), None);
    }
}
