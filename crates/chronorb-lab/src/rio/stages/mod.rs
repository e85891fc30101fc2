//! The stages of a call at the server, by the kernel's own tracing: the times from the request's
//! packet to the reply's, and the counts of system calls, wake-ups and packets.

mod call;
mod trace;

use std::collections::BTreeMap;
use std::time::Duration;

use chronorb_probe::system_call_name;
use chronorb_testnet::{Host, INTERFACE};
use serde::Serialize;

use self::call::{ServedCall, calls};
use self::trace::EventTrace;
use super::LINK_RATE;
use super::calls::{CallSite, Io};
use super::class::Processing;
use super::outcome::RioOutcome;
use super::path::PacketPath;
use super::site::RioMachine;
use crate::error::LabError;
use crate::inversion::{Architecture, InversionRun, InversionTrial, Mode};
use crate::watch::Watch;

/// The stages of a call by one path. Times and counts are means of the calls between the first and
/// the last quartile of their length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// The path of the packets of calls.
    #[serde(rename = "way")]
    pub path: PacketPath,
    /// The number of traced calls.
    pub calls: usize,
    /// The time from the request's packet to the wake-up of a thread.
    pub receive_us: f64,
    /// The time from the wake-up until that thread runs.
    pub wake_us: f64,
    /// The time in system calls, but for the one that sends.
    pub system_us: f64,
    /// The time in the process.
    pub user_us: f64,
    /// The time in the system call that sends, until the packet reaches the other end of the cable.
    pub transmit_us: f64,
    /// The system calls from packet to packet.
    pub system_calls: f64,
    /// The same by their names.
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
        STAGES.iter().map(|(_, of)| of(self)).sum()
    }

    /// Summarises traced calls. Returns nothing without a call.
    fn of(path: PacketPath, mut calls: Vec<ServedCall>) -> Option<Self> {
        calls.sort_by(|one, other| one.whole_us().total_cmp(&other.whole_us()));
        let quarter = calls.len() / 4;
        let typical = &calls[quarter..calls.len() - quarter];
        let number = typical.len() as f64;
        if typical.is_empty() {
            return None;
        }
        let mean = |of: fn(&ServedCall) -> f64| typical.iter().map(of).sum::<f64>() / number;
        let mut by_name: BTreeMap<u64, u32> = BTreeMap::new();
        for (call, count) in typical.iter().flat_map(|call| &call.system_calls) {
            *by_name.entry(*call).or_default() += count;
        }
        // What another thread of the machine does now and then is not named.
        let named = by_name
            .iter()
            .map(|(call, count)| (system_call_name(*call), f64::from(*count) / number))
            .filter(|(_, each)| *each >= LEAST_SHARE)
            .map(|(name, each)| format!("{name} {each:.1}"));
        let named: Vec<_> = named.collect();
        Some(Self {
            path,
            calls: calls.len(),
            receive_us: mean(|call| call.receive_us),
            wake_us: mean(|call| call.wake_us),
            system_us: mean(|call| call.system_us),
            user_us: mean(|call| call.user_us),
            transmit_us: mean(|call| call.transmit_us),
            system_calls: mean(|call| f64::from(call.system_calls.values().sum::<u32>())),
            system_calls_by_name: named.join(", "),
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
    let mode = Mode::Short;
    let Some(periods) = mode.periods() else {
        return Ok(());
    };
    for path in PATHS {
        let (io, processing) = match path {
            PacketPath::Kernel => (Io::Kernel, Processing::Arrival),
            PacketPath::Scheduled => (Io::Rio, Processing::Demand),
            _ => (Io::Rio, Processing::Arrival),
        };
        let lanes = [server.low(Processing::Demand), server.high(processing)];
        let name = format!("stages, {}", path.title());
        let trial = InversionTrial {
            length: outcome.plan.traced,
            options: server.options(io, &lanes, None),
            ..run.trial(Architecture::RealTime, mode, 0, periods, &name)
        };
        let trace = match EventTrace::begin(cpu) {
            Ok(trace) => trace,
            Err(why) => {
                outcome.untraced = Some(why.to_string());
                return Ok(());
            }
        };
        run.try_one(&trial)?;
        let events = trace.end([INTERFACE, Host::B.port()]);
        let events = events.map_err(LabError::work("reading the trace"))?;
        outcome.stages.extend(StageRow::of(path, calls(&events)));
    }
    Ok(())
}

/// Returns the approximate duration.
pub(super) fn length(traced: Duration) -> Duration {
    (traced + AROUND) * PATHS.len() as u32
}

/// A stage of a call: its name and its time.
pub(super) type NamedTime = (&'static str, fn(&StageRow) -> f64);

/// The stages, in their order.
pub(super) const STAGES: [NamedTime; 5] = [
    ("receive", |row| row.receive_us),
    ("wake-up", |row| row.wake_us),
    ("other system calls", |row| row.system_us),
    ("process", |row| row.user_us),
    ("transmit", |row| row.transmit_us),
];
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
        let call = |user_us| ServedCall {
            user_us,
            wake_ups: 1,
            system_calls: BTreeMap::from([(u64::MAX, 2)]),
            ..ServedCall::default()
        };
        let calls = [900.0, 10.0, 1.0, 12.0].map(call);
        let row = StageRow::of(PacketPath::Arrival, calls.to_vec()).expect("there are calls");
        assert_eq!((row.calls, row.user_us, row.whole_us()), (4, 11.0, 11.0));
        assert_eq!((row.system_calls, row.wake_ups), (2.0, 1.0));
        assert_eq!(
            row.system_calls_by_name,
            format!("syscall_{} 2.0", u64::MAX)
        );
        assert_eq!(StageRow::of(PacketPath::Arrival, Vec::new()), None);
    }
}
