//! The regular work of a name server: the end of leases and iterators, and the check of objects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chronorb::SystemExceptionKind;
use chronorb_rt::{Deadline, Gate, Monotonic, SpawnError, Thread, ThreadBuilder};

use crate::change::{BindingKind, Target};
use crate::server::ReapPolicy;
use crate::state::ServerState;
use crate::tree::ListEntry;

/// The thread of the regular work; it ends when this is dropped or the ORB is shut down.
#[derive(Debug)]
pub(crate) struct Housekeeper {
    stop: Arc<Gate>,
    thread: Option<Thread<()>>,
}

impl Housekeeper {
    pub(crate) fn start(
        shared: Arc<ServerState>,
        reaping: Option<ReapPolicy>,
    ) -> Result<Self, SpawnError> {
        let stop = Arc::new(Gate::new(RUNNING));
        let gate = stop.clone();
        let thread = ThreadBuilder::new("naming").spawn(move || {
            let mut reaper = reaping.map(|reaping| Reaper::new(reaping, shared.now()));
            let is_over = || gate.get() != RUNNING || shared.orb.is_shut_down();
            let mut retry = LeaseRetry::default();
            while !is_over() {
                retry.run(&shared);
                if let Some(reaper) = &mut reaper {
                    reaper.run(&shared, &is_over);
                }
                gate.wait_while(RUNNING, Deadline::after(PERIOD));
            }
        })?;
        let thread = Some(thread);
        Ok(Self { stop, thread })
    }
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        self.stop.set(STOPPED);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by its hook.
            let _ = thread.join();
        }
    }
}

/// The rounds in which ended leases are removed: all of them, or fewer while the journal fails.
#[derive(Debug, Default)]
pub(crate) struct LeaseRetry {
    /// The rounds that are left out before the next attempt.
    left_out: u32,
    /// The failures in a row.
    failures: u32,
}

impl LeaseRetry {
    /// Ends iterators, and leases if it is the turn of that; returns whether it was.
    pub(crate) fn run(&mut self, shared: &ServerState) -> bool {
        let now = shared.now();
        shared.iterators.lock().end_unused(now, &shared.limits);
        if let Some(left_out) = self.left_out.checked_sub(1) {
            self.left_out = left_out;
            return false;
        }
        if end_leases(shared) {
            self.failures = 0;
        } else {
            // 1, 3, 7 … rounds, at most 63: about a minute.
            self.failures = (self.failures + 1).min(6);
            self.left_out = (1 << self.failures) - 1;
        }
        true
    }
}

/// Removes bindings whose leases have ended; `false` if the journal fails.
pub(crate) fn end_leases(shared: &ServerState) -> bool {
    loop {
        let removed = shared.change(|tree, now| {
            let changes = tree.ended(BATCH, now);
            let n = changes.len();
            Ok((changes, n))
        });
        match removed {
            Ok(BATCH) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}

/// The check of all bound objects.
#[derive(Debug)]
pub(crate) struct Reaper {
    reaping: ReapPolicy,
    next: Monotonic,
    /// The checks in a row that did not find an object.
    failures: Failures,
}

impl Reaper {
    pub(crate) fn new(reaping: ReapPolicy, now: Monotonic) -> Self {
        Self {
            next: now + reaping.interval,
            reaping,
            failures: HashMap::new(),
        }
    }

    /// Checks all objects if it is time for that.
    pub(crate) fn run(&mut self, shared: &ServerState, is_over: &dyn Fn() -> bool) {
        if shared.now() < self.next {
            return;
        }
        let before = std::mem::take(&mut self.failures);
        let mut context = None;
        while let Some(next) = shared.read(|tree, _| tree.context_after(context)) {
            context = Some(next);
            let mut after: Option<Arc<[u8]>> = None;
            loop {
                let from = after.as_deref();
                let (page, has_others) = shared.read(|tree, now| tree.page(next, from, BATCH, now));
                for entry in &page {
                    if is_over() {
                        return;
                    }
                    self.check(shared, next, entry, &before);
                }
                after = page.last().map(|entry| entry.key.clone());
                if !has_others || after.is_none() {
                    break;
                }
            }
        }
        self.next = shared.now() + self.reaping.interval;
    }

    fn check(&mut self, shared: &ServerState, context: u64, entry: &ListEntry, before: &Failures) {
        let is_object = entry.kind == BindingKind::Object;
        if !is_object || self.is_there(shared, &entry.target) {
            return;
        }
        let key = (context, entry.key.clone());
        // The binding may have another target than at the last check.
        let failures = before
            .get(&key)
            .filter(|(target, _)| *target == entry.target);
        let failures = failures.map_or(1, |(_, failures)| failures + 1);
        if failures >= CHECKS {
            let removed = shared.change(|tree, _| {
                let removal = tree.removal_of(context, entry);
                Ok((removal.into_iter().collect(), ()))
            });
            if removed.is_ok() {
                return;
            }
        }
        self.failures.insert(key, (entry.target.clone(), failures));
    }

    fn is_there(&self, shared: &ServerState, target: &Target) -> bool {
        use SystemExceptionKind::{CommFailure, ObjectNotExist, Transient};
        // A nil reference and one that cannot be read are bound on purpose.
        let Ok(Some(object)) = shared.object(target) else {
            return true;
        };
        match object.with_timeout(self.reaping.timeout).non_existent() {
            Ok(is_gone) => !is_gone,
            Err(exception) => !matches!(exception.kind, CommFailure | ObjectNotExist | Transient),
        }
    }
}

/// The failures of the check before.
type Failures = HashMap<(u64, Arc<[u8]>), (Target, u32)>;

const RUNNING: u32 = 0;
const STOPPED: u32 = 1;
/// The time between two rounds of the regular work.
const PERIOD: Duration = Duration::from_secs(1);
/// The bindings that are handled under one lock.
const BATCH: usize = 256;
/// The checks in a row after which an object is unbound.
const CHECKS: u32 = 3;
