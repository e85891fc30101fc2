//! The regular work of a name server: the end of leases and iterators, and the check of objects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chronorb::SystemExceptionKind;
use chronorb::quota::Origin;
use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex, SpawnError, Thread, ThreadBuilder};

use crate::change::{BindingKind, Target};
use crate::server::ReapPolicy;
use crate::state::ServerState;
use crate::tree::ListEntry;

/// The threads of the regular work; they end when this is dropped or the ORB is shut down.
#[derive(Debug)]
pub(crate) struct Housekeeper {
    stop: Arc<Gate>,
    threads: Vec<Thread<()>>,
}

impl Housekeeper {
    pub(crate) fn start(
        shared: Arc<ServerState>,
        reaping: Option<ReapPolicy>,
    ) -> Result<Self, SpawnError> {
        let mut housekeeper = Self {
            stop: Arc::new(Gate::new(RUNNING)),
            threads: Vec::new(),
        };
        let mut retry = LeaseRetry::default();
        housekeeper.spawn("naming", &shared, move |shared, _| {
            retry.run(shared);
        })?;
        if let Some(reaping) = reaping {
            let mut reaper = Reaper::new(reaping, shared.now());
            housekeeper.spawn("naming-reaper", &shared, move |shared, stop| {
                reaper.run(shared, stop);
            })?;
        }
        Ok(housekeeper)
    }

    /// Makes a thread that does a part of the work in each period.
    fn spawn(
        &mut self,
        name: &str,
        shared: &Arc<ServerState>,
        mut work: impl FnMut(&Arc<ServerState>, &Arc<Gate>) + Send + 'static,
    ) -> Result<(), SpawnError> {
        let (shared, stop) = (shared.clone(), self.stop.clone());
        let thread = ThreadBuilder::new(name).spawn(move || {
            while !is_over(&shared, &stop) {
                work(&shared, &stop);
                stop.wait_while(RUNNING, Deadline::after(PERIOD));
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        self.stop.set(STOPPED);
        for thread in self.threads.drain(..) {
            // A panic of the thread was printed by its hook.
            let _ = thread.join();
        }
    }
}

fn is_over(shared: &ServerState, stop: &Gate) -> bool {
    stop.get() != RUNNING || shared.orb.is_shut_down()
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
        let removed = shared.change(NOT_CHARGED, |tree, now| {
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

    /// Checks all objects if it is time for that, several of them at a time.
    pub(crate) fn run(&mut self, shared: &Arc<ServerState>, stop: &Arc<Gate>) {
        if shared.now() < self.next {
            return;
        }
        let round = Arc::new(CheckRound {
            shared: shared.clone(),
            stop: stop.clone(),
            timeout: self.reaping.timeout,
            cursor: PiMutex::new(Cursor::default()),
            before: std::mem::take(&mut self.failures),
            after: PiMutex::new(HashMap::new()),
        });
        // Without further threads this one checks alone.
        let others: Vec<_> = (1..AT_A_TIME)
            .map_while(|_| {
                let round = round.clone();
                let thread = ThreadBuilder::new("naming-check").spawn(move || round.run());
                thread.ok()
            })
            .collect();
        round.run();
        for thread in others {
            // A panic of the thread was printed by its hook.
            let _ = thread.join();
        }
        self.failures = std::mem::take(&mut *round.after.lock());
        self.next = shared.now() + self.reaping.interval;
    }
}

/// A check of all objects, which several threads make together.
struct CheckRound {
    shared: Arc<ServerState>,
    stop: Arc<Gate>,
    /// The time limit for each object.
    timeout: Duration,
    cursor: PiMutex<Cursor>,
    before: Failures,
    after: PiMutex<Failures>,
}

/// The position of a check in all bindings.
#[derive(Default)]
struct Cursor {
    context: Option<u64>,
    page: std::vec::IntoIter<ListEntry>,
    /// The key of the last binding of the page.
    after: Option<Arc<[u8]>>,
    /// Whether the context has bindings behind the page.
    has_others: bool,
}

impl Cursor {
    fn next(&mut self, shared: &ServerState) -> Option<(u64, ListEntry)> {
        loop {
            if let Some(entry) = self.page.next() {
                return Some((self.context?, entry));
            }
            if !self.has_others {
                let next = shared.read(|tree, _| tree.context_after(self.context));
                self.context = Some(next?);
                self.after = None;
            }
            let context = self.context?;
            let from = self.after.as_deref();
            let (page, has_others) = shared.read(|tree, now| tree.page(context, from, BATCH, now));
            self.has_others = has_others && !page.is_empty();
            self.after = page.last().map(|entry| entry.key.clone());
            self.page = page.into_iter();
        }
    }
}

impl CheckRound {
    /// Checks objects until all are checked.
    fn run(&self) {
        while !is_over(&self.shared, &self.stop) {
            let next = self.cursor.lock().next(&self.shared);
            let Some((context, entry)) = next else { return };
            self.check(context, &entry);
        }
    }

    fn check(&self, context: u64, entry: &ListEntry) {
        let is_object = entry.kind == BindingKind::Object;
        if !is_object || self.is_there(&entry.target) {
            return;
        }
        let key = (context, entry.key.clone());
        // The binding may have another target than at the last check.
        let before = self.before.get(&key);
        let failures = before.filter(|(target, _)| *target == entry.target);
        let failures = failures.map_or(1, |(_, failures)| failures + 1);
        if failures >= CHECKS {
            let removed = self.shared.change(NOT_CHARGED, |tree, _| {
                let removal = tree.removal_of(context, entry);
                Ok((removal.into_iter().collect(), ()))
            });
            if removed.is_ok() {
                return;
            }
        }
        let failed = (entry.target.clone(), failures);
        self.after.lock().insert(key, failed);
    }

    fn is_there(&self, target: &Target) -> bool {
        use SystemExceptionKind::{CommFailure, ObjectNotExist, Transient};
        // A nil reference and one that cannot be read are bound on purpose.
        let Ok(Some(object)) = self.shared.object(target) else {
            return true;
        };
        match object.with_timeout(self.timeout).non_existent() {
            Ok(is_gone) => !is_gone,
            Err(exception) => !matches!(exception.kind, CommFailure | ObjectNotExist | Transient),
        }
    }
}

/// The failures of the check before.
type Failures = HashMap<(u64, Arc<[u8]>), (Target, u32)>;

/// The origin for changes that only remove.
const NOT_CHARGED: fn() -> Origin = || Origin::Process;
/// The objects that are checked at the same time.
pub(crate) const AT_A_TIME: usize = 16;
pub(crate) const RUNNING: u32 = 0;
const STOPPED: u32 = 1;
/// The time between two rounds of the regular work.
const PERIOD: Duration = Duration::from_secs(1);
/// The bindings that are handled under one lock.
pub(crate) const BATCH: usize = 256;
/// The checks in a row after which an object is unbound.
const CHECKS: u32 = 3;
