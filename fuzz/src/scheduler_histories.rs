//! Histories of what clients register at a scheduling service.

use chronorb_rt::peak_octets;
use chronorb_sched::LevelStrategy;
use chronorb_sched_service::idl::rtec_base::DependencyTypeT;
use chronorb_sched_service::idl::rtec_scheduler::{
    CriticalityT, ImportanceT, InfoTypeT, RtInfoEnabledTypeT, Scheduler, SchedulingAnomalyBuf,
};
use chronorb_sched_service::{Limits, SchedulingService};

use crate::bounds::within_its_octets;
use crate::endsystem::orb;
use crate::typed::Choices;

/// The greatest number of calls.
const CALLS: usize = 400;
/// The octets of a request without arguments.
const REQUEST: usize = 64;
/// The octets of the arguments that set the needs of an operation.
const NEEDS: usize = 72;
/// The octets of a dependency.
const DEPENDENCY: usize = 16;

/// Applies a history of creations, needs, dependencies and computations to a new service, as calls
/// within the process. Memory and work are in proportion to the octets of the requests, no
/// computation exhausts its steps, and the same operations have the same schedule.
pub fn scheduler_histories(data: &[u8]) {
    let mut choices = Choices::new(data);
    let orb = orb(&[], |_| {});
    let root = orb.root_poa().expect("it opens");
    let strategy = choices.of(&[
        LevelStrategy::RateMonotonic,
        LevelStrategy::EarliestDeadline,
        LevelStrategy::LeastLaxity,
        LevelStrategy::MaximumUrgency,
        LevelStrategy::MaximumUrgencyOfCriticalSet,
        LevelStrategy::RateMonotonicLaxity,
    ]);
    let limits = Limits {
        periods: choices.of(&[64, 4]),
        ..Limits::default()
    };
    let service = SchedulingService::new().strategy(strategy).limits(limits);
    let object = service.serve_in(&root).expect("it is served");
    root.manager().activate().expect("it begins");
    let scheduler = Scheduler::unchecked_narrow(&object);
    // The first call of a thread prepares it.
    let _ = scheduler.lookup("");
    let mut history = ScheduleHistory {
        scheduler: &scheduler,
        octets: 0,
        handles: 0,
    };
    within_its_octets("a history", || {
        for _ in 0..CALLS {
            if choices.is_empty() {
                break;
            }
            history.step(&mut choices);
        }
        ((), history.octets)
    });
    history.check();
    // No call is under way.
    let _ = orb.shutdown(true);
}

/// A service, and what it was sent.
struct ScheduleHistory<'a> {
    scheduler: &'a Scheduler,
    octets: usize,
    handles: i32,
}

impl ScheduleHistory<'_> {
    /// Makes a call. Exceptions are answers.
    fn step(&mut self, choices: &mut Choices<'_>) {
        self.octets += REQUEST;
        match choices.pick(12) {
            0..3 => {
                // Few names, so that some are used twice.
                let name = format!("operation {}", choices.any::<u8>());
                self.octets += name.len();
                if let Ok(handle) = self.scheduler.create(&name) {
                    self.handles += 1;
                    assert_eq!(handle, self.handles, "handles are given in order");
                    assert_eq!(self.scheduler.lookup(&name).ok(), Some(handle));
                }
            }
            3..6 => {
                self.octets += NEEDS;
                self.set(choices);
            }
            6..9 => {
                self.octets += DEPENDENCY;
                let (from, to) = (self.handle(choices), self.handle(choices));
                let kind = choices.of(&[DependencyTypeT::OneWayCall, DependencyTypeT::TwoWayCall]);
                let calls = choices.of(&[1, 2, 0, -1, i32::MAX]);
                if choices.rarely(4) {
                    let _ = self.scheduler.remove_dependency(from, to, calls, kind);
                } else {
                    let _ = self.scheduler.add_dependency(from, to, calls, kind);
                }
            }
            9 => {
                let handle = self.handle(choices);
                let enabled = choices.of(&[
                    RtInfoEnabledTypeT::RtInfoDisabled,
                    RtInfoEnabledTypeT::RtInfoEnabled,
                    RtInfoEnabledTypeT::RtInfoNonVolatile,
                ]);
                let _ = self.scheduler.set_rt_info_enable_state(handle, enabled);
            }
            10 => self.compute(choices.of(&[(1, 99), (99, 1), (5, 5), (i32::MIN, i32::MAX)])),
            _ => {
                let _ = self.scheduler.get_rt_info_set();
                let _ = self.scheduler.priority(self.handle(choices));
            }
        }
    }

    fn handle(&self, choices: &mut Choices<'_>) -> i32 {
        // One of them does not exist.
        i32::try_from(choices.pick(self.handles.cast_unsigned() as usize + 1)).unwrap_or(0) + 1
    }

    fn set(&self, choices: &mut Choices<'_>) {
        let handle = self.handle(choices);
        let criticality = choices.of(&[
            CriticalityT::VeryLowCriticality,
            CriticalityT::MediumCriticality,
            CriticalityT::VeryHighCriticality,
        ]);
        let kind = choices.of(&[
            InfoTypeT::Operation,
            InfoTypeT::Conjunction,
            InfoTypeT::Disjunction,
            InfoTypeT::RemoteDependant,
        ]);
        let time = choices.of(&[1_000, 0, 1, u64::MAX]) ^ u64::from(choices.any::<u8>());
        let period = choices.of(&[10_000, 0, 1, -1, i32::MAX]);
        let period = period ^ i32::from(choices.any::<u8>());
        let threads = choices.of(&[0, 1, i32::MAX, -1]);
        let importance = ImportanceT::LowImportance;
        let of = self.scheduler;
        if choices.rarely(4) {
            let _ = of.reset(
                handle,
                criticality,
                time,
                time,
                time,
                period,
                importance,
                0,
                threads,
                kind,
            );
        } else {
            let _ = of.set(
                handle,
                criticality,
                time,
                time,
                time,
                period,
                importance,
                0,
                threads,
                kind,
            );
        }
    }

    /// Computes twice, which must have the same result.
    fn compute(&self, (least, greatest): (i32, i32)) {
        let [first, second] = [(); 2].map(|()| self.scheduler.compute_scheduling(least, greatest));
        let (Ok(first), Ok(second)) = (&first, &second) else {
            assert_eq!(first.is_ok(), second.is_ok(), "the same, computed again");
            return;
        };
        assert_eq!(
            format!("{first:?}"),
            format!("{second:?}"),
            "the same, computed again"
        );
        first.anomalies.iter().for_each(check_steps);
    }

    /// Sees that the service still serves, and that calls are made on this thread, whose memory is
    /// counted.
    fn check(&self) {
        let name = "the last operation";
        let (created, held) = peak_octets(|| self.scheduler.create(name));
        let handle = created.expect("there is room for it");
        assert!(held > 0, "the call was made on another thread");
        assert_eq!(self.scheduler.lookup(name).ok(), Some(handle));
    }
}

/// A budget in proportion to the operations, rates and dependencies is enough for so few.
fn check_steps(anomaly: &SchedulingAnomalyBuf) {
    let words = &anomaly.description;
    assert!(!words.contains("steps"), "{words}");
}
