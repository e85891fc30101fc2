//! Worked cases with their numbers, and properties of random task sets.

mod admission;
mod any_input;
mod cases;
mod deadlines;
mod late;
mod local_deadlines;
mod many_steps;
mod ordered;
mod overload;
mod properties;
mod rates;
mod transactions;

use chronorb_sched::{Response, Task};

/// Returns tasks (cost, period), the most urgent one first.
fn ranked(tasks: &[(u64, u64)]) -> Vec<Task> {
    ranked_tasks(tasks.iter().map(|(cost, period)| Task::new(*cost, *period)))
}

/// Returns tasks (cost, period, deadline), the most urgent one first.
fn ranked_by_deadline(tasks: &[(u64, u64, u64)]) -> Vec<Task> {
    let tasks = tasks.iter();
    ranked_tasks(
        tasks.map(|(cost, period, deadline)| Task::new(*cost, *period).with_deadline(*deadline)),
    )
}

fn ranked_tasks(tasks: impl IntoIterator<Item = Task>) -> Vec<Task> {
    let tasks = tasks.into_iter().zip((0..1000).rev());
    tasks
        .map(|(task, priority)| task.with_priority(priority))
        .collect()
}

fn bounded<const N: usize>(times: [u64; N]) -> Vec<Response> {
    times.map(Response::Bounded).to_vec()
}
