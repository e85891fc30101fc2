//! The straightforward computation of a schedule: a test oracle for the one with a budget.
//!
//! The oracle computes the flow of all connected operations for each rate, and analyses each task.

mod flow;

use std::cmp::Reverse;

use chronorb_sched::{
    LevelOrder, LevelStrategy, Task, compare_to_processor, dispatch_levels, guaranteed,
    subpriorities,
};

use crate::compute::{Place, Schedule};
use crate::cycles::find_cycles;
use crate::idl::rtec_scheduler::{
    AnomalySeverity, ConfigInfoBuf, DispatchingTypeT, SchedulingAnomalyBuf,
};
use crate::model::{CallEdge, Rate, Snapshot};
use flow::{OracleFlow, OracleGraph, loads};

/// The greatest number of names in an anomaly.
const NAMES: usize = 16;

/// The result of a computation. Without a schedule, an anomaly is fatal.
#[derive(Debug)]
pub(crate) struct OracleComputation {
    pub(crate) schedule: Option<Schedule>,
    pub(crate) anomalies: Vec<SchedulingAnomalyBuf>,
}

/// Computes a schedule. It follows from names, needs and dependencies, and not from the order in
/// which they were registered.
pub(crate) fn compute(
    model: &Snapshot,
    strategy: LevelStrategy,
    range: (i32, i32),
) -> OracleComputation {
    let mut computation = OracleComputation {
        schedule: None,
        anomalies: Vec::new(),
    };
    let calls = model.calls();
    let count = model.operations.len();
    let (mut into, mut out) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for (number, edge) in calls.iter().enumerate() {
        into[edge.callee].push(number);
        out[edge.caller].push(number);
    }
    let mut active: Vec<_> = (0..count).filter(|it| model.is_enabled(*it)).collect();
    active.sort_by(|a, b| model.operations[*a].name.cmp(&model.operations[*b].name));
    for operation in &active {
        computation.check(model, *operation);
    }
    let order = computation.order(model, &active, &calls);
    let is_fatal = |one: &SchedulingAnomalyBuf| one.severity == AnomalySeverity::AnomalyFatal;
    if computation.anomalies.iter().any(is_fatal) {
        return computation;
    }
    let graph = OracleGraph {
        calls: &calls,
        order: &order,
        into: &into,
        out: &out,
    };
    let (rates, reached) = computation.admit(model, &graph, &active);
    // Of operations that are alike, callers and suppliers come first.
    let depths = graph.depths();
    active.sort_by_key(|it| depths[*it]);
    computation.assign(model, strategy, range, &active, rates, &reached);
    computation
}

impl OracleComputation {
    fn tell(&mut self, severity: AnomalySeverity, description: String) {
        self.anomalies.push(SchedulingAnomalyBuf {
            description,
            severity,
        });
    }

    /// Tells what is wrong with an operation alone.
    fn check(&mut self, model: &Snapshot, index: usize) {
        let operation = &model.operations[index];
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
    fn order(&mut self, model: &Snapshot, active: &[usize], calls: &[CallEdge]) -> Vec<usize> {
        let name = |index: usize| &model.operations[index].name;
        let edges: Vec<_> = calls
            .iter()
            .map(|edge| (edge.caller, edge.callee))
            .collect();
        let mut cycles = find_cycles(model.operations.len(), &edges);
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
        let mut missing = vec![0_usize; model.operations.len()];
        let mut callees = vec![Vec::new(); model.operations.len()];
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

    /// Chooses a rate for each operation: the lowest of all, then greater ones as long as the
    /// processor has room, both by criticality and importance. Returns the flow of these rates.
    fn admit(
        &mut self,
        model: &Snapshot,
        graph: &OracleGraph<'_>,
        active: &[usize],
    ) -> (Vec<Option<Rate>>, Vec<OracleFlow>) {
        let by_rate = |index: &usize| {
            let mut rates = model.operations[*index].rates.clone();
            // Without a period the rate is that of the callers, which nothing here can lower.
            rates.sort_by_key(|rate| (rate.period != 0, Reverse(rate.period)));
            (*index, rates)
        };
        let mut choices: Vec<_> = active.iter().map(by_rate).collect();
        // `active` is by name, and this order is stable.
        choices.sort_by_key(|(_, rates)| {
            Reverse(
                rates
                    .first()
                    .map(|rate| (rate.criticality, rate.importance)),
            )
        });
        let mut chosen = vec![None; model.operations.len()];
        for (index, rates) in &choices {
            chosen[*index] = rates.first().copied();
        }
        let mut reached = graph.flow(&chosen);
        if !fits(&reached) {
            self.tell_excess(model, graph, &choices, &chosen);
            return (chosen, reached);
        }
        let most = choices
            .iter()
            .map(|(_, rates)| rates.len())
            .max()
            .unwrap_or(0);
        // Another rate changes the flow of the operations that are connected with it, only.
        let (set_of, sets) = graph.components();
        for number in 1..most {
            for (index, rates) in &choices {
                let Some(rate) = rates.get(number) else {
                    continue;
                };
                let connected = set_of[*index].map_or(&[][..], |set| &sets[set]);
                let before = chosen[*index].replace(*rate);
                let flow_before = connected.iter().map(|it| reached[*it].clone());
                let flow_before: Vec<_> = flow_before.collect();
                graph.flow_along(connected, &chosen, &mut reached);
                if fits(&reached) {
                    continue;
                }
                chosen[*index] = before;
                for (operation, flow) in connected.iter().zip(flow_before) {
                    reached[*operation] = flow;
                }
                let name = &model.operations[*index].name;
                let text = format!(
                    "operation {name} is not admitted at a period of {} us, because the \
                     utilisation would exceed the processor",
                    rate.period / 10
                );
                self.tell(AnomalySeverity::AnomalyWarning, text);
            }
        }
        (chosen, reached)
    }

    /// Names the operations beyond the longest prefix, by criticality, that fits.
    fn tell_excess(
        &mut self,
        model: &Snapshot,
        graph: &OracleGraph<'_>,
        choices: &[(usize, Vec<Rate>)],
        chosen: &[Option<Rate>],
    ) {
        let with = |count: usize| {
            let mut prefix = vec![None; chosen.len()];
            for (index, _) in &choices[..count] {
                prefix[*index] = chosen[*index];
            }
            fits(&graph.flow(&prefix))
        };
        let (mut good, mut bad) = (0, choices.len());
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if with(middle) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        for (index, _) in &choices[good..] {
            let name = &model.operations[*index].name;
            let text = format!(
                "operation {name} is not admitted, because the utilisation would exceed the \
                 processor"
            );
            self.tell(AnomalySeverity::AnomalyError, text);
        }
    }

    fn assign(
        &mut self,
        model: &Snapshot,
        strategy: LevelStrategy,
        range: (i32, i32),
        active: &[usize],
        rates: Vec<Option<Rate>>,
        reached: &[OracleFlow],
    ) {
        let mut schedule = Schedule {
            places: vec![None; model.operations.len()],
            rates,
            levels: Vec::new(),
        };
        let mut placed = Vec::new();
        let mut tasks = Vec::new();
        for index in active {
            let flow = &reached[*index];
            let Some(period) = flow.period() else {
                self.tell_unresolved(model, *index, flow);
                continue;
            };
            let importance = schedule.rates[*index].map_or(0, |rate| rate.importance as u8);
            placed.push(*index);
            let task = Task::new(flow.demand.max(1), u64::from(period));
            tasks.push(task.with_criticality(flow.criticality as u8, importance));
        }
        let model_calls = model.calls();
        let levels = dispatch_levels(&tasks, strategy).unwrap_or_default();
        let places = subpriorities(&tasks, &levels).unwrap_or_default();
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
            let flow = &reached[*index];
            let rate = schedule.rates[*index].unwrap_or_default();
            let is_called = model_calls.iter().any(|edge| edge.callee == *index);
            let is_own = rate.period > 0 && (rate.threads > 0 || !is_called);
            schedule.places[*index] = Some(Place {
                thread: of_level(place.level),
                subpriority: place.fixed as i32,
                level: place.level as i32,
                period: if is_own {
                    rate.period
                } else {
                    flow.period().unwrap_or(0)
                },
                criticality: flow.criticality,
            });
        }
        for (number, level) in levels.iter().enumerate() {
            let dispatched = level
                .tasks
                .iter()
                .map(|it| &reached[placed[*it]].dispatched);
            let mut periods: Vec<_> = dispatched
                .flat_map(|it| it.keys())
                .map(|it| *it as i32)
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
        self.tell_late(model, &placed, &schedule, reached, &levels);
        self.schedule = Some(schedule);
    }

    fn tell_unresolved(&mut self, model: &Snapshot, index: usize, flow: &OracleFlow) {
        let operation = &model.operations[index];
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
    fn tell_late(
        &mut self,
        model: &Snapshot,
        placed: &[usize],
        schedule: &Schedule,
        reached: &[OracleFlow],
        levels: &[chronorb_sched::DispatchLevel],
    ) {
        // A dispatch of several periods is as many tasks.
        let mut tasks = Vec::new();
        let mut owners = Vec::new();
        let mut shared: Vec<chronorb_sched::DispatchLevel> = Vec::new();
        let mut last = None;
        for (number, level) in levels.iter().enumerate() {
            let thread = schedule.levels[number].thread_priority;
            let is_new = last.replace(thread) != Some(thread);
            if is_new || shared.is_empty() {
                shared.push(chronorb_sched::DispatchLevel {
                    tasks: Vec::new(),
                    order: level.order,
                });
            }
            let Some(target) = shared.last_mut() else {
                continue;
            };
            for index in level.tasks.iter().map(|it| placed[*it]) {
                for load in loads(&reached[index]).filter(|load| load.cost > 0) {
                    target.tasks.push(tasks.len());
                    tasks.push(Task::new(load.cost, load.period));
                    owners.push(index);
                }
            }
        }
        let mut late: Vec<_> = match guaranteed(&tasks, &shared, false) {
            Ok(verdicts) => {
                let late = owners.iter().zip(verdicts).filter(|(_, meets)| !meets);
                late.map(|(index, _)| *index).collect()
            }
            Err(error) => {
                let text = format!("the schedule is not analysed: {error}");
                self.tell(AnomalySeverity::AnomalyError, text);
                return;
            }
        };
        late.dedup();
        for index in late {
            let name = &model.operations[index].name;
            let text = format!("operation {name} may miss its deadlines");
            self.tell(AnomalySeverity::AnomalyError, text);
        }
    }
}

/// Whether all dispatches together need at most the processor.
fn fits(reached: &[OracleFlow]) -> bool {
    let loads = reached.iter().flat_map(loads);
    let tasks: Vec<_> = loads
        .map(|load| Task::new(load.cost, load.period))
        .collect();
    compare_to_processor(&tasks).is_le()
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
