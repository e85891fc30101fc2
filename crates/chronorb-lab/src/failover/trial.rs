//! The processes, and one trial after the other.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};
use rustix::process::{Pid, Signal, kill_process};

use super::PART;
use super::order::{
    Completion, FailoverOrder, FailoverTrial, RecorderReference, ServerOrder, ThreadCalls,
};
use super::outcome::CaseFigures;
use super::plan::{FailoverCase, FailoverPlan, Plug, Semantics};
use crate::error::LabError;
use crate::process::{Child, Ready};

/// The client, the backup, and the figures so far.
pub(super) struct FailoverFleet {
    plan: FailoverPlan,
    folder: RecordsFolder,
    client: Child,
    backup: Server,
    /// The executions of the backup in earlier trials, in octets of its record.
    seen: usize,
    figures: Vec<CaseFigures>,
    /// The moments of the deaths.
    dice: fastrand::Rng,
}

/// The folder of the records, which is removed in the end.
struct RecordsFolder(PathBuf);

impl RecordsFolder {
    fn make() -> Result<Self, LabError> {
        let (process, time) = (std::process::id(), Monotonic::now().as_nanos());
        let folder = std::env::temp_dir().join(format!("chronorb-failover-{process}-{time}"));
        fs::create_dir(&folder).map_err(LabError::work("making a folder for records"))?;
        Ok(Self(folder))
    }
}

impl Drop for RecordsFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server, and the file of its record.
struct Server {
    child: Child,
    reference: String,
    record: PathBuf,
}

impl Server {
    fn start(number: u32, folder: &RecordsFolder) -> Result<Self, LabError> {
        let record = folder.0.join(format!("server-{number}"));
        File::create(&record).map_err(LabError::work("making a record"))?;
        let order = FailoverOrder::Server(ServerOrder {
            number,
            record: record.clone(),
        });
        let name = format!("server {number}");
        let (child, told): (_, RecorderReference) = Child::start(name, PART, &order)?;
        Ok(Self {
            child,
            reference: told.reference,
            record,
        })
    }

    /// Returns the numbers of the executed calls, from an octet of the record on.
    fn executed(&self, from: usize) -> Result<(Vec<u64>, usize), LabError> {
        executed(&self.record, from)
    }
}

/// Returns the numbers of the executed calls, from an octet of a record on, and its length.
fn executed(record: &Path, from: usize) -> Result<(Vec<u64>, usize), LabError> {
    let octets = fs::read(record).map_err(LabError::work("reading a record"))?;
    let numbers = octets[from..].as_chunks().0.iter();
    let numbers = numbers.map(|number| u64::from_le_bytes(*number)).collect();
    Ok((numbers, octets.len()))
}

impl FailoverFleet {
    /// Starts the client and the backup.
    pub(super) fn start(plan: &FailoverPlan) -> Result<Self, LabError> {
        let folder = RecordsFolder::make()?;
        let backup = Server::start(BACKUP, &folder)?;
        let order = FailoverOrder::Client(plan.clone());
        let (client, Ready {}) = Child::start("client", PART, &order)?;
        Ok(Self {
            plan: plan.clone(),
            folder,
            client,
            backup,
            seen: 0,
            figures: FailoverCase::ALL.map(CaseFigures::new).into(),
            dice: fastrand::Rng::with_seed(Monotonic::now().as_nanos()),
        })
    }

    /// Runs a trial with a new server, which dies.
    pub(super) fn run(&mut self, number: u32) -> Result<(), LabError> {
        let case = FailoverCase::of_trial(number);
        let plan = &self.plan;
        let server = Server::start(BACKUP + 1 + number, &self.folder)?;
        self.client.tell(&Some(FailoverTrial {
            servers: [server.reference.clone(), self.backup.reference.clone()],
            backup: BACKUP,
            policy: case.policy,
            first_call: u64::from(number) << TRIAL_SHIFT,
        }))?;
        let patience = || Deadline::after(plan.timeout * 2 + WIND_DOWN);
        let Ready {} = self.client.hear(patience())?;
        let latest = u64::try_from(plan.latest.as_nanos()).unwrap_or(u64::MAX);
        let delay = self.dice.u64(..=latest);
        sleep_until(Monotonic::now() + Duration::from_nanos(delay));
        let signal = match case.plug {
            Plug::Kill => Signal::KILL,
            Plug::Stop => Signal::STOP,
        };
        let died = Monotonic::now();
        send(&server.child, signal)?;
        let calls: Vec<ThreadCalls> = self.client.hear(patience())?;
        let executed = match case.plug {
            Plug::Kill => server.executed(0)?.0,
            Plug::Stop => {
                send(&server.child, Signal::CONT)?;
                let record = server.record.clone();
                let Server { child, .. } = server;
                // It ends after the last request that it has received.
                child.stop(patience())?;
                executed(&record, 0)?.0
            }
        };
        let (by_backup, seen) = self.backup.executed(self.seen)?;
        self.seen = seen;
        let mut times: HashMap<u64, u32> = HashMap::new();
        for call in executed.iter().chain(&by_backup) {
            *times.entry(*call).or_default() += 1;
        }
        let figures = self.figures.iter_mut().find(|of| of.case == case);
        let figures = figures.expect("there are figures of all cases");
        for thread in &calls {
            figures.add(died, thread, &mut times);
        }
        figures.trials += 1;
        // No call has these numbers.
        figures.violations += times.len() as u64;
        Ok(())
    }

    /// Ends all processes, and returns the figures.
    pub(super) fn stop(self) -> Result<Vec<CaseFigures>, LabError> {
        let Self {
            client,
            backup,
            folder,
            figures,
            ..
        } = self;
        client.dismiss(Deadline::after(WIND_DOWN))?;
        backup.child.stop(Deadline::after(WIND_DOWN))?;
        drop(folder);
        Ok(figures)
    }
}

fn send(child: &Child, signal: Signal) -> Result<(), LabError> {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let id = id.ok_or_else(|| LabError::work("ending a server")("it has no process id"))?;
    kill_process(id, signal).map_err(LabError::work("ending a server"))
}

/// Whether a call with this result may have been executed so many times under a policy: at most
/// once at each of the two servers, and under no other policy than `AT_LEAST_ONCE` at both.
pub(super) fn is_as_told(policy: Semantics, result: Option<Completion>, executions: u32) -> bool {
    let most = match policy {
        Semantics::OrbDefault | Semantics::BestEffort => 1,
        Semantics::AtLeastOnce => 2,
    };
    match result {
        None | Some(Completion::Yes) => (1..=most).contains(&executions),
        Some(Completion::No) => executions == 0,
        Some(Completion::Maybe) => executions <= most,
    }
}

/// The number of the backup; those of the servers that die follow.
const BACKUP: u32 = 0;
/// The numbers of the trials' calls differ in these bits.
const TRIAL_SHIFT: u32 = 32;
/// The time within which processes answer and end, beside that of calls.
const WIND_DOWN: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_judged_by_policy_and_result() {
        use Completion::{Maybe, No, Yes};
        let judged =
            |policy, result| [0, 1, 2, 3].map(|executions| is_as_told(policy, result, executions));
        for policy in [Semantics::OrbDefault, Semantics::BestEffort] {
            assert_eq!(judged(policy, None), [false, true, false, false]);
            assert_eq!(judged(policy, Some(Yes)), [false, true, false, false]);
            assert_eq!(judged(policy, Some(No)), [true, false, false, false]);
            assert_eq!(judged(policy, Some(Maybe)), [true, true, false, false]);
        }
        let policy = Semantics::AtLeastOnce;
        assert_eq!(judged(policy, None), [false, true, true, false]);
        assert_eq!(judged(policy, Some(No)), [true, false, false, false]);
        assert_eq!(judged(policy, Some(Maybe)), [true, true, true, false]);
    }
}
