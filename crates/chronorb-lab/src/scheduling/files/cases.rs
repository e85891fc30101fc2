//! The schedule files of the part, their variants, and what is known of each without a run.

use chronorb_sched::Time;
use chronorb_schedule::{
    Assignment, Numbers, Operation, Schedule, ScheduleErrors, SimulationRun, Work,
};
use fastrand::Rng;

use crate::error::LabError;

/// A schedule file that is analysed, simulated and run.
pub(super) struct ScheduleFile {
    /// The name of the file without its ending.
    pub(super) name: &'static str,
    text: &'static str,
    /// The operation by which the variants are compared.
    pub(super) watched: &'static str,
    variants: &'static [FileVariant],
}

/// The numbers of threads that a file is run with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FileVariant {
    /// As the file has them.
    Written,
    /// So many threads of the first lane.
    LaneThreads(u32),
    /// So many threads of the first operation.
    ActivityThreads(u32),
}

/// A variant of a file, with its analysis and the phasings in which it takes long.
pub(super) struct FileCase {
    pub(super) file: &'static ScheduleFile,
    variant: FileVariant,
    pub(super) schedule: Schedule,
    pub(super) assignment: Assignment,
    numbers: Numbers,
    /// The worst response of each operation; `None` without a bound.
    pub(super) analysed: Vec<Option<Time>>,
    /// The longest response of each operation in all phasings.
    pub(super) simulated: Vec<Time>,
    /// All phasings.
    phasings: Vec<Vec<Time>>,
    /// The phasings that are run.
    worst: Vec<usize>,
}

/// The costs of the execution of a piece beside its time in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieceCosts {
    /// The time of a call that is added to each piece.
    pub(super) overhead: Time,
    /// The millionths by which an execution takes longer on a processor that also has its
    /// interrupts and measures its wake-ups.
    pub(super) dilation: u64,
}

impl PieceCosts {
    /// Returns the longer time of an execution.
    fn dilated(self, time: Time) -> Time {
        let more = u128::from(time) * u128::from(self.dilation);
        let more = u64::try_from(more.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        time.saturating_add(more)
    }
}

/// The responses of the operations of a case, with the costs of pieces.
pub(super) struct CostedResponses {
    pub(super) analysed: Vec<Option<Time>>,
    pub(super) simulated: Vec<Time>,
}

impl ScheduleFile {
    /// Returns the variants of the file.
    pub(super) fn cases(&'static self) -> impl Iterator<Item = Result<FileCase, LabError>> {
        let variants = self.variants.iter();
        variants.map(move |variant| FileCase::of(self, *variant))
    }

    /// Returns the number of variants.
    pub(super) fn variants(&self) -> u32 {
        self.variants.len() as u32
    }

    /// Returns the name that reports give a variant.
    fn title(&self, variant: FileVariant) -> String {
        match variant {
            FileVariant::Written => self.name.to_owned(),
            FileVariant::LaneThreads(threads) | FileVariant::ActivityThreads(threads) => {
                let plural = if threads == 1 { "" } else { "s" };
                format!("{}, {threads} thread{plural}", self.name)
            }
        }
    }
}

impl FileCase {
    fn of(file: &'static ScheduleFile, variant: FileVariant) -> Result<Self, LabError> {
        let mut schedule = parse(file).map_err(LabError::work(PARSING))?;
        match variant {
            FileVariant::Written => {}
            FileVariant::LaneThreads(threads) => schedule.lanes[0].threads = Some(threads),
            FileVariant::ActivityThreads(threads) => schedule.operations[0].threads = threads,
        }
        let assignment = schedule.assign().map_err(LabError::work(ANALYSING))?;
        let numbers = assignment.numbers(&schedule);
        let results = assignment.analysis.operations.iter();
        let analysed = results.map(|it| it.response.time()).collect();
        let mut case = Self {
            phasings: phasings(&schedule),
            file,
            variant,
            schedule,
            assignment,
            numbers,
            analysed,
            simulated: Vec::new(),
            worst: Vec::new(),
        };
        let each = case.simulate(&case.schedule)?;
        case.simulated = longest(&each);
        case.worst = case.worst_phasings(&each);
        Ok(case)
    }

    /// Returns the name in reports.
    pub(super) fn title(&self) -> String {
        self.file.title(self.variant)
    }

    /// Returns the phasing in which the watched operation takes longest, the common first arrival,
    /// and the phasings in which the others take longest.
    ///
    /// The common arrival leaves the order of requests to chance, so that it is no worst one.
    fn worst_phasings(&self, responses: &[Vec<Time>]) -> Vec<usize> {
        let of = |operation: usize| {
            let apart = responses.iter().enumerate().skip(1);
            let most = apart.max_by_key(|(_, responses)| responses[operation]);
            most.map_or(0, |(phasing, _)| phasing)
        };
        let watched = self.schedule.operation(self.file.watched).unwrap_or(0);
        let mut worst = vec![of(watched), 0];
        for operation in 0..self.schedule.operations.len() {
            let phasing = of(operation);
            if !worst.contains(&phasing) {
                worst.push(phasing);
            }
        }
        worst
    }

    /// Returns the deadline of an operation.
    pub(super) fn deadline(&self, operation: usize) -> Time {
        self.assignment.analysis.operations[operation].deadline
    }

    /// Returns the first arrivals of a run, by activity. Runs take the phasings in turn.
    pub(super) fn phasing(&self, round: u32) -> &[Time] {
        &self.phasings[self.worst[round as usize % self.worst.len()]]
    }

    /// Returns the operations that clients execute, each with its period.
    pub(super) fn activities(&self) -> impl Iterator<Item = (usize, &Operation, Time)> {
        let operations = self.schedule.operations.iter().enumerate();
        operations.filter_map(|(index, it)| Some((index, it, it.period?)))
    }

    /// Analyses and simulates the file with the costs of each piece of an execution.
    pub(super) fn with_costs(&self, costs: PieceCosts) -> Result<CostedResponses, LabError> {
        let mut schedule = self.schedule.clone();
        for node in &mut schedule.nodes {
            node.overhead = costs.overhead;
        }
        for operation in &mut schedule.operations {
            operation.cost = costs.dilated(operation.cost);
            for used in &mut operation.locks {
                used.time = costs.dilated(used.time);
            }
            let calls = operation.calls.iter_mut();
            for before in calls.filter_map(|it| it.before.as_mut()) {
                *before = costs.dilated(*before);
            }
        }
        let analysis = schedule
            .to_task_sets(&self.assignment.band_ranks())
            .and_then(|sets| sets.analyse(&schedule))
            .map_err(LabError::work(ANALYSING))?;
        Ok(CostedResponses {
            analysed: analysis
                .operations
                .iter()
                .map(|it| it.response.time())
                .collect(),
            simulated: longest(&self.simulate(&schedule)?),
        })
    }

    /// Returns the number of pieces that a job of an activity executes, with those of the
    /// operations that it calls.
    pub(super) fn pieces(&self, operation: usize) -> u64 {
        let calls = self.schedule.operations[operation].calls.iter();
        let of_calls = calls.map(|call| {
            let own = u64::from(!call.oneway);
            (own + self.pieces(call.operation)) * u64::from(call.count)
        });
        1 + of_calls.sum::<u64>()
    }

    /// Returns the longest responses of the operations in each phasing.
    fn simulate(&self, schedule: &Schedule) -> Result<Vec<Vec<Time>>, LabError> {
        let runs = self.phasings.iter().map(|first| {
            let run = SimulationRun {
                window: WINDOW,
                first: first.clone(),
                outside: Some(0),
                seed: None,
                record: false,
            };
            let outcome = schedule.simulate(&self.numbers, &run);
            let outcome = outcome.map_err(LabError::work("simulating a schedule file"))?;
            let mut responses = vec![0; schedule.operations.len()];
            for work in outcome.activities.iter().flat_map(|it| &it.works) {
                if let Work::Execution { operation } = work.work {
                    responses[operation] = work.longest.max(responses[operation]);
                }
            }
            Ok(responses)
        });
        runs.collect()
    }
}

fn parse(file: &ScheduleFile) -> Result<Schedule, ScheduleErrors> {
    let include = &mut |_: &str| Err("it includes no file".to_owned());
    Schedule::parse(&format!("{}.toml", file.name), file.text, include)
}

/// Returns a common first arrival, one for each activity at which it alone is later, and random
/// ones that are the same in each run of the experiment.
fn phasings(schedule: &Schedule) -> Vec<Vec<Time>> {
    let mut random = Rng::with_seed(SEED);
    let periods = || schedule.operations.iter().filter_map(|it| it.period);
    let mut phasings: Vec<Vec<Time>> = vec![periods().map(|_| 0).collect()];
    let activities = phasings[0].len();
    phasings.extend((0..activities).map(|late| {
        let each = (0..activities).map(|it| if it == late { LATER } else { 0 });
        each.collect()
    }));
    phasings.resize_with(PHASINGS, || {
        periods().map(|period| random.u64(0..period)).collect()
    });
    phasings
}

/// Returns the longest response of each operation in all phasings.
fn longest(phasings: &[Vec<Time>]) -> Vec<Time> {
    let responses = phasings.iter().cloned();
    let longest = responses.reduce(|longest, it| {
        let both = longest.into_iter().zip(it);
        both.map(|(longest, it)| longest.max(it)).collect()
    });
    longest.unwrap_or_default()
}

/// All files.
pub(super) const FILES: [ScheduleFile; 6] = [
    ScheduleFile {
        name: ONE_WAY,
        text: include_str!("../../../schedules/one-way-call.toml"),
        watched: "A::run",
        variants: &[FileVariant::Written],
    },
    ScheduleFile {
        name: WAITING,
        text: include_str!("../../../schedules/waiting-threads.toml"),
        watched: "C4::fast",
        variants: &[
            FileVariant::LaneThreads(1),
            FileVariant::LaneThreads(2),
            FileVariant::LaneThreads(3),
            FileVariant::Written,
        ],
    },
    ScheduleFile {
        name: "one-thread",
        text: include_str!("../../../schedules/one-thread.toml"),
        watched: "K2::run",
        variants: &[FileVariant::Written, FileVariant::LaneThreads(2)],
    },
    ScheduleFile {
        name: "nested-call",
        text: include_str!("../../../schedules/nested-call.toml"),
        watched: "B::b",
        variants: &[FileVariant::Written],
    },
    ScheduleFile {
        name: "inherited-priority",
        text: include_str!("../../../schedules/inherited-priority.toml"),
        watched: "High::control",
        variants: &[FileVariant::Written],
    },
    ScheduleFile {
        name: "activity-threads",
        text: include_str!("../../../schedules/activity-threads.toml"),
        watched: "Client::loop",
        variants: &[FileVariant::ActivityThreads(1), FileVariant::Written],
    },
];
/// The file with a one-way call.
pub(super) const ONE_WAY: &str = "one-way-call";
/// The file with operations that wait for calls.
pub(super) const WAITING: &str = "waiting-threads";
/// The simulated phasings of each variant.
const PHASINGS: usize = 200;
/// By how much the first arrival of one activity is later than that of the others, which then have
/// begun.
const LATER: Time = 2_000_000;
/// The length of a simulation.
const WINDOW: Time = 600_000_000;
/// Phasings are the same in each run of the experiment.
const SEED: u64 = 0x6669_6c65;
const PARSING: &str = "reading a schedule file";
const ANALYSING: &str = "analysing a schedule file";

#[cfg(test)]
pub(super) mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// Returns all variants of all files.
    pub(in super::super) fn cases() -> &'static [FileCase] {
        &CASES
    }

    /// They are simulated once for all tests.
    static CASES: LazyLock<Vec<FileCase>> = LazyLock::new(|| {
        let cases = FILES.iter().flat_map(ScheduleFile::cases);
        cases.map(|case| case.unwrap()).collect()
    });

    #[test]
    fn the_watched_operations_have_the_known_responses() {
        let known = cases().iter().map(|case| {
            let watched = case.schedule.operation(case.file.watched).unwrap();
            let micros = |time: Time| time / 1_000;
            let analysed = case.analysed[watched].map(micros);
            (case.title(), analysed, micros(case.simulated[watched]))
        });
        let known: Vec<_> = known.collect();
        let expected = [
            ("one-way-call", Some(15_000), 15_000),
            ("waiting-threads, 1 thread", None, 65_000),
            ("waiting-threads, 2 threads", None, 43_000),
            ("waiting-threads, 3 threads", None, 23_000),
            ("waiting-threads", Some(5_000), 3_500),
            ("one-thread", Some(55_000), 53_000),
            ("one-thread, 2 threads", Some(3_000), 2_500),
            ("nested-call", Some(13_300), 13_300),
            ("inherited-priority", Some(7_000), 6_670),
            ("activity-threads, 1 thread", None, 180_000),
            ("activity-threads", Some(23_000), 14_000),
        ];
        let expected =
            expected.map(|(file, analysed, simulated)| (file.to_owned(), analysed, simulated));
        assert_eq!(known, expected);
    }

    #[test]
    fn no_simulation_exceeds_the_analysis_with_and_without_costs() {
        for case in cases() {
            let costs = PieceCosts {
                overhead: 60_000,
                dilation: 10_000,
            };
            let costed = case.with_costs(costs).unwrap();
            let all = case.analysed.iter().zip(&case.simulated);
            let all = all.chain(costed.analysed.iter().zip(&costed.simulated));
            for (analysed, simulated) in all {
                assert!(
                    analysed.is_none_or(|it| it >= *simulated),
                    "{}",
                    case.title()
                );
            }
        }
    }

    #[test]
    fn a_job_has_the_pieces_of_its_calls() {
        for (case, activity, pieces) in [(0, "A::run", 2), (1, "C1::run", 5)] {
            let case = &cases()[case];
            let activity = case.schedule.operation(activity).unwrap();
            assert_eq!(case.pieces(activity), pieces);
        }
    }
}
