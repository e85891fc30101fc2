//! Sentences on the rights and the processors that an experiment had.

use crate::environment::Environment;

/// Returns the caveats of a run without real-time priorities, on one processor, or on a busy host.
pub(crate) fn caveats(real_time: bool, one_cpu: bool, environment: &Environment) -> Vec<String> {
    let real_time = (!real_time).then_some(NOT_REAL_TIME);
    let one_cpu = one_cpu.then_some(ONE_CPU);
    let known = [real_time, one_cpu].into_iter().flatten();
    let known = known.map(str::to_owned);
    known.chain(environment.stolen_caveat()).collect()
}

/// Returns the note that memory was locked, or that it was not.
pub(crate) fn memory(processes: &str, locked: bool) -> String {
    if locked {
        format!("The memory of {processes} was locked.")
    } else {
        "Memory could not be locked, since this process may not.".to_owned()
    }
}

const NOT_REAL_TIME: &str = "These figures are not real-time: this process may not use real-time \
     priorities, so that all threads ran under the ordinary scheduler.";
const ONE_CPU: &str = "There is only one processor: all processes shared it, whatever the plan \
     asked for.";
