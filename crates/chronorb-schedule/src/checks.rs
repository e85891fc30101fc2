//! Checks of an operation's values beside each other.

use chronorb_sched::Time;

use crate::error::Mistakes;
use crate::operations::RawOperation;
use crate::pieces::lock_over_call;
use crate::schedule::{Operation, Processor};
use crate::units::readable_time;

/// Refuses what has no effect, and sections of locks that no analysis covers.
pub(crate) fn check_use(
    raw: &RawOperation,
    operation: &Operation,
    processor: &Processor,
    mistakes: &mut Mistakes<'_>,
) {
    let keys = [
        ("jitter", raw.jitter.is_some()),
        ("threads", raw.threads.is_some()),
    ];
    for (key, _) in keys.into_iter().filter(|(_, is_given)| *is_given) {
        if raw.period.is_none() {
            let problem = format!(
                "{}: {key} is for an operation with a period: this one is released by what \
                 calls it",
                raw.name
            );
            mistakes.add(&raw.span, problem);
        }
    }
    if let Some(over) = lock_over_call(operation) {
        let problem = format!(
            "{} holds the lock {} for {}, and executes for less before it waits for a call: \
             a lock that is held over a call cannot be analysed",
            raw.name,
            over.lock,
            readable_time(over.time)
        );
        mistakes.add(&raw.span, problem);
    }
    if !operation.locks.is_empty() && processor.cpu.is_none() {
        let problem = format!(
            "{} takes locks, and the processor {} has no cpu: its threads may run at the same \
             time on several CPUs, where the bounds of one do not hold. Give it a cpu by a \
             [[processor]]",
            raw.name, processor.name
        );
        mistakes.add(&raw.span, problem);
    }
}

/// Refuses a lock of an operation that an operation on another processor takes, by inheritance:
/// the holder there can be preempted by any work above the priority that it inherits.
pub(crate) fn refuse_shared_lock(
    raw: &RawOperation,
    lock: &str,
    (own, other): (&Processor, &Processor),
    mistakes: &mut Mistakes<'_>,
) {
    let problem = format!(
        "{} takes the lock {lock} on the processor {}, and it is also taken on {}: only with \
         locks = \"ceiling\" can a lock of several processors be analysed",
        raw.name, own.name, other.name
    );
    mistakes.add(&raw.span, problem);
}

/// Refuses times that exceed the execution time.
pub(crate) fn check_times(
    raw: &RawOperation,
    mistakes: &mut Mistakes<'_>,
    notes: &mut Vec<String>,
) {
    let held = raw
        .locks
        .iter()
        .try_fold(0_u64, |sum, lock| sum.checked_add(lock.time));
    let before = raw.calls.iter().try_fold(0_u64, |sum, call| {
        let all = call.before.unwrap_or(0).checked_mul(call.count.into())?;
        sum.checked_add(all)
    });
    let Some(cost) = raw.cost else { return };
    if held.is_none_or(|held| held > cost) {
        let problem = format!("{} holds its locks for longer than it executes", raw.name);
        mistakes.add(&raw.span, problem);
    }
    if before.is_none_or(|before| before > cost) {
        let problem = format!(
            "{} executes for longer before its calls than its wcet",
            raw.name
        );
        mistakes.add(&raw.span, problem);
    }
    check_least(raw, cost, mistakes);
    let some = raw.calls.iter().any(|call| call.before.is_some());
    if some && raw.calls.iter().any(|call| call.before.is_none()) {
        let problem = format!(
            "{}: give before for all of its calls, or for none",
            raw.name
        );
        mistakes.add(&raw.span, problem);
    }
    if !raw.calls.is_empty() && !some {
        let note = format!(
            "{}: its execution time is divided evenly around its calls; before says where they \
             are",
            raw.name
        );
        notes.push(note);
    }
}

/// Refuses least times that exceed the longest ones.
fn check_least(raw: &RawOperation, cost: Time, mistakes: &mut Mistakes<'_>) {
    if let Some(least) = raw.least.as_ref().filter(|least| least.value > cost) {
        let problem = format!(
            "{}: least, {}, is above its wcet, {}",
            raw.name,
            readable_time(least.value),
            readable_time(cost)
        );
        mistakes.add(&least.span, problem);
    }
    for call in &raw.calls {
        let Some(least) = &call.least else { continue };
        let problem = match call.before {
            Some(before) if least.value <= before => continue,
            Some(before) => format!(
                "least, {}, is above before, {}",
                readable_time(least.value),
                readable_time(before)
            ),
            None => "least of a call is the least of its before, which is missing".to_owned(),
        };
        mistakes.add(&least.span, problem);
    }
}
