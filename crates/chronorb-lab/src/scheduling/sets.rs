//! The task sets of the experiment.

use std::time::Duration;

use chronorb_sched::{Task, Time, assign_deadline_monotonic, assign_rate_monotonic};

/// A task set: names, tasks in nanoseconds, with priorities.
#[derive(Clone, Debug)]
pub(super) struct TaskSet {
    pub(super) name: &'static str,
    pub(super) tasks: Vec<(String, Task)>,
}

impl TaskSet {
    /// Creates a set from values in a common unit.
    fn of(name: &'static str, unit: Duration, values: &[(Time, Time)]) -> Self {
        let nanos = nanos(unit);
        let tasks = values.iter().enumerate().map(|(index, (cost, period))| {
            let task = Task::new(cost * nanos, period * nanos);
            (format!("task {}", index + 1), task)
        });
        let tasks = tasks.collect();
        Self { name, tasks }
    }

    /// Assigns a priority of its own to each task, by deadline.
    fn by_deadline(mut self) -> Self {
        let mut tasks = self.plain();
        assign_deadline_monotonic(&mut tasks);
        self.replace(&tasks);
        self
    }

    /// Returns the tasks without their names.
    pub(super) fn plain(&self) -> Vec<Task> {
        self.tasks.iter().map(|(_, task)| *task).collect()
    }

    fn replace(&mut self, tasks: &[Task]) {
        for ((_, old), new) in self.tasks.iter_mut().zip(tasks) {
            *old = *new;
        }
    }
}

/// Returns the eight operations of the overload, each of 18 ms: four rates, each once with low and
/// once with high criticality. The low ones have high importance. Priorities are by rate, then
/// importance.
pub(super) fn overload() -> TaskSet {
    let mut tasks = Vec::new();
    for (rate, period) in [(20, 50), (10, 100), (5, 200), (1, 1000)] {
        let task = Task::new(18 * MS, period * MS);
        tasks.push((format!("low {rate} Hz"), task.with_criticality(0, 4)));
        tasks.push((format!("high {rate} Hz"), task.with_criticality(4, 0)));
    }
    let mut set = TaskSet {
        name: "overload",
        tasks,
    };
    let mut plain = set.plain();
    assign_rate_monotonic(&mut plain);
    set.replace(&plain);
    set
}

/// Returns the overload with priorities by criticality, then rate.
pub(super) fn overload_by_criticality() -> TaskSet {
    let mut set = overload();
    let count = set.tasks.len() as u32;
    for (_, task) in &mut set.tasks {
        task.priority += u32::from(task.criticality) * count;
    }
    set
}

/// Returns the overload with a priority for each criticality.
pub(super) fn overload_of_two_levels() -> TaskSet {
    let mut set = overload();
    for (_, task) in &mut set.tasks {
        task.priority = 1 + u32::from(task.criticality > 0);
    }
    set
}

/// Returns the sets that are analysed, simulated and measured.
pub(super) fn analysed() -> [TaskSet; 3] {
    let four = [(10, 50), (15, 100), (20, 200), (100, 1000)];
    let short = [(1, 10), (5, 40), (5, 40), (10, 80)].map(|(cost, period)| (cost * 2, period * 2));
    let twelve = [
        (2, 20),
        (2, 25),
        (3, 40),
        (4, 50),
        (5, 80),
        (5, 100),
        (8, 125),
        (10, 200),
        (10, 250),
        (20, 400),
        (25, 500),
        (50, 1000),
    ];
    let mut bands = TaskSet::of("three lanes", Duration::from_micros(250), &twelve);
    for (index, (_, task)) in bands.tasks.iter_mut().enumerate() {
        task.priority = match index {
            0..4 => 3,
            4..9 => 2,
            _ => 1,
        };
    }
    [
        TaskSet::of("four rates", Duration::from_micros(100), &four).by_deadline(),
        TaskSet::of("short jobs", Duration::from_micros(200), &short).by_deadline(),
        bands,
    ]
}

pub(super) fn nanos(duration: Duration) -> Time {
    Time::try_from(duration.as_nanos()).unwrap_or(Time::MAX)
}

const MS: Time = 1_000_000;

#[cfg(test)]
mod tests {
    use chronorb_sched::{Preemption, Response, is_schedulable, responses, utilisation};

    use super::*;

    #[test]
    fn the_analysed_sets_are_schedulable_and_leave_room_for_other_threads() {
        for set in analysed() {
            let tasks = set.plain();
            assert_eq!(
                is_schedulable(&tasks, Preemption::Preemptive),
                Ok(true),
                "{}",
                set.name
            );
            assert!(utilisation(&tasks) < 800_000_000, "{}", set.name);
        }
    }

    #[test]
    fn three_lanes_are_enough_for_twelve_tasks() {
        let [.., set] = analysed();
        let times = responses(&set.plain(), Preemption::Preemptive).unwrap();
        let units = times.into_iter().filter_map(Response::time);
        let units: Vec<_> = units.map(|time| time / 250_000).collect();
        assert_eq!(units, [11, 11, 11, 11, 66, 66, 66, 66, 66, 296, 296, 296]);
    }
}
