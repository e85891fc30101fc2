//! From registered operations to priorities: the scheduling that clients ask for.

use chronorb_sched::{LevelOrder, LevelStrategy, Task, dispatch_levels, subpriorities};

use crate::admit::{Admission, Refusal, admit};
use crate::budget::{Budget, BudgetError};
use crate::cycles::find_cycles;
use crate::flow::{Graph, OperationFlow};
use crate::idl::rtec_scheduler::{
    AnomalySeverity, ConfigInfoBuf, CriticalityT, DispatchingTypeT, SchedulingAnomalyBuf,
};
use crate::late::{LevelTasks, late};
use crate::model::{CallEdge, Limits, Rate, Snapshot};

/// The greatest number of names in an anomaly.
const NAMES: usize = 16;

/// The greatest number of octets in the texts of all anomalies.
const TEXTS: usize = 1 << 20;

/// The priorities of an operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    pub(crate) thread: i32,
    pub(crate) subpriority: i32,
    pub(crate) level: i32,
    /// The period at which the operation runs: its own, or the least of its callers.
    pub(crate) period: u32,
    /// The greatest criticality of the operation and those that depend on it.
    pub(crate) criticality: CriticalityT,
}

/// A schedule: the priorities of operations, by index, and the levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) places: Vec<Option<Place>>,
    /// The rate that was admitted, by index.
    pub(crate) rates: Vec<Option<Rate>>,
    pub(crate) levels: Vec<ConfigInfoBuf>,
}

/// The result of a computation. Without a schedule, an anomaly is fatal.
#[derive(Debug)]
pub(crate) struct Computation {
    pub(crate) schedule: Option<Schedule>,
    pub(crate) anomalies: Vec<SchedulingAnomalyBuf>,
    octets: usize,
    /// The anomalies that are left out, and the worst severity of them.
    left_out: (usize, AnomalySeverity),
    has_fatal: bool,
}

/// Computes a schedule. It follows from names, needs and dependencies, and not from the order in
/// which they were registered.
pub(crate) fn compute(
    snapshot: &Snapshot,
    limits: &Limits,
    strategy: LevelStrategy,
    range: (i32, i32),
) -> Computation {
    let budget = Budget::new(snapshot, limits);
    // The analysis has as many steps as the choice of rates, so that it does not depend on those
    // that were left.
    let mut budgets = [budget.clone(), budget];
    compute_within(snapshot, limits.periods, strategy, range, &mut budgets)
}

/// Computes a schedule with a budget for the choice of rates, and another one for the analysis.
pub(crate) fn compute_within(
    snapshot: &Snapshot,
    periods: usize,
    strategy: LevelStrategy,
    range: (i32, i32),
    budgets: &mut [Budget; 2],
) -> Computation {
    let mut computation = Computation {
        schedule: None,
        anomalies: Vec::new(),
        octets: 0,
        left_out: (0, AnomalySeverity::AnomalyNone),
        has_fatal: false,
    };
    computation.run(snapshot, periods, strategy, range, budgets);
    computation.tell_left_out();
    computation
}

impl Computation {
    fn run(
        &mut self,
        snapshot: &Snapshot,
        periods: usize,
        strategy: LevelStrategy,
        range: (i32, i32),
        [choice, analysis]: &mut [Budget; 2],
    ) {
        let calls = snapshot.calls();
        let count = snapshot.operations.len();
        let (mut into, mut out) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for (number, edge) in calls.iter().enumerate() {
            into[edge.callee].push(number);
            out[edge.caller].push(number);
        }
        let mut active: Vec<_> = (0..count).filter(|it| snapshot.is_enabled(*it)).collect();
        let names = |a: &usize, b: &usize| {
            let [a, b] = [a, b].map(|it| &snapshot.operations[*it].name);
            a.cmp(b)
        };
        active.sort_by(names);
        for operation in &active {
            self.check(snapshot, *operation);
        }
        let order = self.order(snapshot, &active, &calls);
        if self.has_fatal {
            return;
        }
        let graph = Graph {
            calls: &calls,
            order: &order,
            into: &into,
            out: &out,
            periods,
        };
        let admission = match admit(snapshot, &graph, &active, choice) {
            Ok(admission) => admission,
            Err(error) => {
                let text = format!("the schedule is not computed: {error}");
                self.tell(AnomalySeverity::AnomalyFatal, text);
                return;
            }
        };
        self.tell_admission(snapshot, &active, periods, &admission);
        if self.has_fatal {
            return;
        }
        // Of operations that are alike, callers and suppliers come first.
        let depths = graph.depths();
        active.sort_by_key(|it| depths[*it]);
        let criticalities = graph.criticalities(&admission.rates);
        let placed = self.placed(snapshot, &active, &admission);
        let task = |index: &usize| {
            let flow = &admission.flows[*index];
            let importance = admission.rates[*index].map_or(0, |rate| rate.importance as u8);
            let period = flow.period().unwrap_or(1);
            let task = Task::new(flow.demand.max(1), u64::from(period));
            task.with_criticality(criticalities[*index] as u8, importance)
        };
        let tasks: Vec<_> = placed.iter().map(task).collect();
        self.assign(
            snapshot,
            strategy,
            range,
            (&placed, &tasks, &criticalities),
            (&graph, admission),
            analysis,
        );
    }

    fn tell(&mut self, severity: AnomalySeverity, description: String) {
        self.has_fatal |= severity == AnomalySeverity::AnomalyFatal;
        self.octets = self.octets.saturating_add(description.len());
        if self.octets > TEXTS {
            let (count, worst) = self.left_out;
            self.left_out = (count + 1, worst.min(severity));
            return;
        }
        self.anomalies.push(SchedulingAnomalyBuf {
            description,
            severity,
        });
    }

    fn tell_left_out(&mut self) {
        let (count, severity) = self.left_out;
        if count > 0 {
            let description = format!("{count} more anomalies are left out");
            self.anomalies.push(SchedulingAnomalyBuf {
                description,
                severity,
            });
        }
    }

    /// Tells what the choice of rates did not admit.
    fn tell_admission(
        &mut self,
        snapshot: &Snapshot,
        active: &[usize],
        periods: usize,
        admission: &Admission,
    ) {
        let name = |index: usize| &snapshot.operations[index].name;
        let is_excessive = |it: &&usize| admission.flows[**it].is_excessive;
        for index in active.iter().filter(is_excessive) {
            let text = format!(
                "operation {} runs at more than {periods} different periods, its own and those of \
                 its callers; use fewer",
                name(*index)
            );
            self.tell(AnomalySeverity::AnomalyFatal, text);
        }
        for index in &admission.excess {
            let text = format!(
                "operation {} is not admitted, because the utilisation would exceed the processor",
                name(*index)
            );
            self.tell(AnomalySeverity::AnomalyError, text);
        }
        for (index, rate, refusal) in &admission.refused {
            let reason = match refusal {
                Refusal::Processor => "the utilisation would exceed the processor".to_owned(),
                Refusal::Periods => {
                    format!("an operation would run at more than {periods} different periods")
                }
            };
            let text = format!(
                "operation {} is not admitted at a period of {} us, because {reason}",
                name(*index),
                rate.period / 10
            );
            self.tell(AnomalySeverity::AnomalyWarning, text);
        }
        if admission.untried > 0 {
            let text = format!(
                "{} further rates are not admitted, because their computation exceeds its steps; \
                 use fewer rates or dependencies",
                admission.untried
            );
            self.tell(AnomalySeverity::AnomalyWarning, text);
        }
    }

    /// Tells what is wrong with an operation alone.
    fn check(&mut self, snapshot: &Snapshot, index: usize) {
        let operation = &snapshot.operations[index];
        let name = &operation.name;
        if operation
            .rates
            .iter()
            .any(|rate| rate.threads > 0 && rate.period == 0)
        {
            let text = format!("operation {name} has threads and no period; give it a period");
            self.tell(AnomalySeverity::AnomalyFatal, text);
        }
    }

    /// The operations, callers before callees. Cycles are anomalies.
    fn order(&mut self, snapshot: &Snapshot, active: &[usize], calls: &[CallEdge]) -> Vec<usize> {
        let name = |index: usize| &snapshot.operations[index].name;
        let edges: Vec<_> = calls
            .iter()
            .map(|edge| (edge.caller, edge.callee))
            .collect();
        let mut cycles = find_cycles(snapshot.operations.len(), &edges);
        for cycle in &mut cycles {
            cycle.sort_by_key(|index| name(*index));
        }
        cycles.sort_by_key(|cycle| name(cycle[0]));
        for cycle in &cycles {
            let names: Vec<_> = cycle.iter().take(NAMES).map(|it| &**name(*it)).collect();
            let more = cycle.len() - names.len();
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let text = format!(
                "operations call each other in a cycle: {}{more}",
                names.join(", ")
            );
            self.tell(AnomalySeverity::AnomalyFatal, text);
        }
        if !cycles.is_empty() {
            return Vec::new();
        }
        let mut missing = vec![0_usize; snapshot.operations.len()];
        let mut callees = vec![Vec::new(); snapshot.operations.len()];
        for (caller, callee) in edges {
            missing[callee] += 1;
            callees[caller].push(callee);
        }
        let mut order: Vec<_> = active
            .iter()
            .copied()
            .filter(|it| missing[*it] == 0)
            .collect();
        let mut at = 0;
        while let Some(caller) = order.get(at).copied() {
            at += 1;
            for callee in &callees[caller] {
                missing[*callee] -= 1;
                if missing[*callee] == 0 {
                    order.push(*callee);
                }
            }
        }
        order
    }

    /// Returns the operations that run, and tells why others do not.
    fn placed(
        &mut self,
        snapshot: &Snapshot,
        active: &[usize],
        admission: &Admission,
    ) -> Vec<usize> {
        let mut placed = Vec::new();
        for index in active {
            let flow = &admission.flows[*index];
            if flow.period().is_some() {
                placed.push(*index);
            } else {
                self.tell_unresolved(snapshot, *index, flow);
            }
        }
        placed
    }

    fn assign(
        &mut self,
        snapshot: &Snapshot,
        strategy: LevelStrategy,
        range: (i32, i32),
        (placed, tasks, criticalities): (&[usize], &[Task], &[CriticalityT]),
        (graph, admission): (&Graph<'_>, Admission),
        budget: &mut Budget,
    ) {
        let Admission { rates, flows, .. } = admission;
        let mut schedule = Schedule {
            places: vec![None; snapshot.operations.len()],
            rates,
            levels: Vec::new(),
        };
        let levels = dispatch_levels(tasks, strategy).unwrap_or_default();
        let places = subpriorities(tasks, &levels).unwrap_or_default();
        let thread = threads(levels.len(), range);
        if thread.len() < levels.len() {
            let text = format!(
                "{} levels of dispatching share {} priorities from {} to {}",
                levels.len(),
                thread.len(),
                range.0,
                range.1
            );
            self.tell(AnomalySeverity::AnomalyError, text);
        }
        let of_level = |level: usize| thread[level.min(thread.len() - 1)];
        for (index, place) in placed.iter().zip(places.iter().flatten()) {
            let own = schedule.rates[*index].filter(|rate| graph.has_own_period(*index, rate));
            let period = own
                .map(|rate| rate.period)
                .or_else(|| flows[*index].period());
            schedule.places[*index] = Some(Place {
                thread: of_level(place.level),
                subpriority: place.fixed as i32,
                level: place.level as i32,
                period: period.unwrap_or(0),
                criticality: criticalities[*index],
            });
        }
        for (number, level) in levels.iter().enumerate() {
            let flows = level.tasks.iter().map(|it| &flows[placed[*it]]);
            let mut periods: Vec<_> = flows
                .flat_map(|flow| &flow.dispatched)
                .map(|(period, _)| *period as i32)
                .collect();
            periods.sort_unstable();
            periods.dedup();
            schedule.levels.push(ConfigInfoBuf {
                preemption_priority: number as i32,
                thread_priority: of_level(number),
                dispatching_type: match level.order {
                    LevelOrder::Static => DispatchingTypeT::StaticDispatching,
                    LevelOrder::Deadline => DispatchingTypeT::DeadlineDispatching,
                    LevelOrder::Laxity => DispatchingTypeT::LaxityDispatching,
                },
                timer_periods: periods,
            });
        }
        let mut shared: Vec<LevelTasks> = Vec::new();
        let mut last = None;
        for (number, level) in levels.iter().enumerate() {
            let thread = schedule.levels[number].thread_priority;
            if last.replace(thread) != Some(thread) {
                shared.push(LevelTasks {
                    tasks: Vec::new(),
                    is_static: level.order == LevelOrder::Static,
                });
            }
            // A dispatch of several periods is as many tasks.
            for index in level.tasks.iter().map(|it| placed[*it]) {
                let loads = flows[index].loads().filter(|load| load.cost > 0);
                if let Some(target) = shared.last_mut() {
                    target.tasks.extend(loads.map(|load| (index, load)));
                }
            }
        }
        self.tell_late(snapshot, &late(&shared, budget));
        self.schedule = Some(schedule);
    }

    fn tell_unresolved(&mut self, snapshot: &Snapshot, index: usize, flow: &OperationFlow) {
        let operation = &snapshot.operations[index];
        let name = &operation.name;
        if flow.is_unresolved && operation.rates.is_empty() {
            let text = format!("operation {name} was created and never set");
            self.tell(AnomalySeverity::AnomalyWarning, text);
        } else if flow.is_unresolved {
            let text = format!("operation {name} has no period, and nothing calls it");
            self.tell(AnomalySeverity::AnomalyError, text);
        } else {
            let text = format!("operation {name} is called by operations of other schedulers only");
            self.tell(AnomalySeverity::AnomalyWarning, text);
        }
    }

    /// Names the operations whose deadlines are not guaranteed. Operations of levels that share a
    /// priority count as equally urgent.
    fn tell_late(&mut self, snapshot: &Snapshot, late: &Result<Vec<usize>, BudgetError>) {
        let late = match late {
            Ok(late) => late,
            Err(error) => {
                let text = format!("the schedule is not analysed: {error}");
                self.tell(AnomalySeverity::AnomalyError, text);
                return;
            }
        };
        for index in late {
            let name = &snapshot.operations[*index].name;
            let text = format!("operation {name} may miss its deadlines");
            self.tell(AnomalySeverity::AnomalyError, text);
        }
    }
}

/// The priorities of threads for a number of levels, the most urgent one first.
fn threads(levels: usize, (minimum, maximum): (i32, i32)) -> Vec<i32> {
    let count = i64::from(minimum).abs_diff(i64::from(maximum)) + 1;
    let count = usize::try_from(count)
        .unwrap_or(usize::MAX)
        .min(levels.max(1));
    let step = if minimum <= maximum { -1 } else { 1 };
    (0..count as i32)
        .map(|number| maximum + step * number)
        .collect()
}
