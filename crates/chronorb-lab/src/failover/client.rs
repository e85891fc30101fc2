//! The client, whose threads call while the server dies.

use std::sync::Barrier;
use std::thread;

use chronorb::prelude::*;
use chronorb_orb::rtcorba::{ClientPolicy, SetOverride};
use chronorb_orb::{Collocation, Ior};
use chronorb_rt::Monotonic;

use super::order::{FailedCall, FailoverTrial, ThreadCalls};
use super::plan::FailoverPlan;
use super::server::orb;
use crate::error::LabError;
use crate::idl::failover::Recorder;
use crate::process::{self, Parent, Ready};
use crate::stats::Record;

/// Calls as the parent says, trial by trial. The process ends at once when standard input ends
/// before that.
pub(super) fn call(plan: &FailoverPlan) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    let orb = orb()?;
    process::tell(&Ready {})?;
    while let Some(trial) = parent.hear::<Option<FailoverTrial>>()? {
        let recorder = recorder(&orb, plan, &trial)?;
        let ready = Barrier::new(plan.threads as usize + 1);
        let calls = thread::scope(|scope| {
            let threads: Vec<_> = (0..plan.threads)
                .map(|thread| {
                    let (recorder, trial, ready) = (&recorder, &trial, &ready);
                    scope.spawn(move || call_until_moved(recorder, plan, trial, thread, ready))
                })
                .collect();
            ready.wait();
            let told = process::tell(&Ready {});
            let calls = threads.into_iter().map(|thread| thread.join());
            let calls: Result<Vec<ThreadCalls>, LabError> = calls
                .map(|calls| calls.expect("no thread panics"))
                .collect();
            told?;
            calls
        })?;
        process::tell(&calls)?;
    }
    Ok(())
}

/// Returns the object of both servers, with the policy of the trial.
fn recorder(orb: &Orb, plan: &FailoverPlan, trial: &FailoverTrial) -> Result<Recorder, LabError> {
    let finding = || LabError::work("finding the objects");
    let mut both: Option<Ior> = None;
    for reference in &trial.servers {
        let object = orb.string_to_object(reference).map_err(finding())?;
        let ior = object.ior().clone();
        match &mut both {
            Some(both) => both.profiles.extend(ior.profiles),
            None => both = Some(ior),
        }
    }
    let both = both.unwrap_or_else(Ior::nil).to_string();
    let policies = [
        ClientPolicy::Failover(plan.policy(trial.policy)),
        ClientPolicy::RelativeRoundtripTimeout(plan.timeout),
    ];
    let object = orb.string_to_object(&both).map_err(finding())?;
    let object = object.with_collocation(Collocation::Off);
    let object = object.with_policy_overrides(&policies, SetOverride::Set);
    let object = object.map_err(finding())?;
    Ok(Recorder::from_object(object))
}

/// Calls back to back until the backup has answered, and some calls more.
fn call_until_moved(
    recorder: &Recorder,
    plan: &FailoverPlan,
    trial: &FailoverTrial,
    thread: u32,
    ready: &Barrier,
) -> Result<ThreadCalls, LabError> {
    let bound = recorder.as_object().validate_connection();
    ready.wait();
    bound.map_err(LabError::work("binding the object"))?;
    let mut all = ThreadCalls {
        first_call: trial.first_call + (u64::from(thread) << THREAD_SHIFT),
        calls: 0,
        failures: Vec::new(),
        answered: Record::new(),
        moved_ns: 0,
    };
    let (begin, mut after) = (Monotonic::now(), 0);
    while after < plan.calls_after {
        let call = all.first_call + all.calls;
        let start = Monotonic::now();
        let result = recorder.record(call);
        let end = Monotonic::now();
        all.calls += 1;
        match result {
            Ok(server) if server == trial.backup => {
                if all.moved_ns == 0 {
                    all.moved_ns = end.as_nanos();
                }
                after += 1;
            }
            Ok(_) => all.answered.add(start.since(begin), end.since(start)),
            Err(exception) => all.failures.push(FailedCall {
                call,
                completed: exception.completed.into(),
                exception: exception.to_string(),
            }),
        }
        if all.failures.len() > MOST_FAILURES {
            let calling = LabError::work("calling the backup");
            return Err(calling("no call succeeds any more"));
        }
    }
    Ok(all)
}

/// The numbers of the threads' calls differ in these bits.
const THREAD_SHIFT: u32 = 24;
/// More failures of one thread in a trial are no fail-over.
const MOST_FAILURES: usize = 1_000;
