//! The client: its threads call, and it reports the costs of both sides.

use chronorb_rt::{Usage, counts_of_others};

use super::super::client::{connect, count, find, mark, server_so_far};
use super::super::counts::ProcessCosts;
use super::super::order::{ClientPart, Pass};
use super::callers::with_callers;
use super::configuration::{Configuration, HIGH};
use crate::error::LabError;
use crate::process::{self, Begin, Parent, Ready};

/// Connects, reports, waits for the order to begin, calls, and reports the costs of both sides.
pub(in super::super) fn call(
    configuration: &Configuration,
    pass: Pass,
    part: &ClientPart,
) -> Result<(), LabError> {
    // A call waits for its reply as long as the parent lives.
    let parent = Parent::or_exit();
    let orb = configuration.orb(pass)?;
    // This thread is asleep while the others call.
    let bench = connect(&orb, Some(HIGH), &find(&orb, &part.objects[0])?)?;
    let (callers, [others, server]) = with_callers(&orb, part, |threads| {
        server_so_far(&bench)?;
        process::tell(&Ready {})?;
        let Begin {} = parent.hear()?;
        if pass == Pass::Trace {
            mark(Some(&bench), 1, || threads.run())?;
            return Ok([None; 2]);
        }
        let others = || ProcessCosts::of_threads(counts_of_others(), Usage::of_process(), 0);
        count(Some(&bench), others, 1, || threads.run())
    })?;
    let callers = ProcessCosts::of_threads(callers, Usage::default(), 0);
    process::tell(&[others.map(|others| others.plus(callers)), server])?;
    Ok(())
}
