//! A server with one pool, and its clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use chronorb_giop::{MessageType, Version};
use chronorb_orb::poa::{Poa, Policy, PriorityModel};
use chronorb_orb::rtcorba::ThreadpoolId;
use chronorb_orb::{Object, Orb, OrbConfig, SystemException};
use chronorb_rt::ThreadInfo;

use super::{
    ActiveCall, BALLAST, Callers, Case, Floor, HoldingServant, Raw, SentRequest, corba, look,
    native,
};
use crate::support::adapters::{key_of, until};
use crate::support::{orb, orb_with};

/// A server with one pool, and its clients.
pub(crate) struct Bench {
    pub(crate) case: Case,
    pub(crate) server: Orb,
    pub(crate) client: Orb,
    pub(crate) callers: Callers,
    pub(crate) pool: ThreadpoolId,
    pub(crate) floor: Arc<Floor>,
    /// The POAs that the pool serves.
    pub(crate) poas: Vec<Poa>,
    /// The object for each class of requests.
    pub(crate) objects: Vec<Object>,
    /// An object for each class whose reference has the endpoint of its requests.
    doors: Vec<Object>,
    orb_id: String,
    /// Idle manual connections.
    peers: Vec<(usize, Raw)>,
}

impl Bench {
    pub(crate) fn new(case: Case) -> Self {
        Self::with(case, |_| {})
    }

    pub(crate) fn with(case: Case, configure: impl FnOnce(&mut OrbConfig)) -> Self {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        // Tests of one process distinguish their threads by it.
        let orb_id = format!("bench{}", NUMBERS.fetch_add(1, Ordering::Relaxed));
        let server = orb_with(|config| {
            config.orb_id.clone_from(&orb_id);
            config.threads = 1.into();
            config.threadpool_strategy = case.strategy;
            // Dynamic threads do not end, unless a test sets another value.
            config.dynamic_thread_idle_timeout = Duration::from_secs(3600);
            configure(config);
        });
        let client = orb();
        let pool = case.create(&server).expect("the pool opens");
        let root = server.root_poa().expect("the endpoint opens");
        root.manager().activate().expect("it was not deactivated");
        let floor = Arc::new(Floor::default());
        let poa = |name: &str, model, priority| {
            let policies = [
                Policy::Threadpool(pool),
                Policy::PriorityModel(model, corba(priority)),
            ];
            let poa = root.create_poa(name, Some(root.manager()), &policies);
            poa.expect("the policies agree")
        };
        let declared: Vec<Poa> = case
            .priorities()
            .iter()
            .map(|p| poa(&format!("declared {p}"), PriorityModel::ServerDeclared, *p))
            .collect();
        let propagated = poa(
            "propagated",
            PriorityModel::ClientPropagated,
            case.priorities()[0],
        );
        let remote = |poa: &Poa| {
            let object = poa
                .serve(HoldingServant(floor.clone()))
                .expect("it activates");
            let text = server.object_to_string(&object);
            client.string_to_object(&text).expect("the reference reads")
        };
        let doors: Vec<Object> = declared.iter().map(remote).collect();
        let objects = match case.model {
            PriorityModel::ServerDeclared => doors.clone(),
            PriorityModel::ClientPropagated => {
                vec![remote(&propagated); case.priorities().len()]
            }
        };
        let mut poas = declared;
        poas.push(propagated);
        Self {
            case,
            callers: Callers::new(&client),
            peers: Vec::new(),
            server,
            client,
            pool,
            floor,
            poas,
            objects,
            doors,
            orb_id,
        }
    }

    /// Returns another held servant, from the clients' point of view.
    pub(crate) fn serve(&self, poa: &Poa) -> Object {
        let object = poa
            .serve(HoldingServant(self.floor.clone()))
            .expect("it activates");
        let text = self.server.object_to_string(&object);
        self.client
            .string_to_object(&text)
            .expect("the reference reads")
    }

    /// Returns the priority of a client for requests of a class; `None` if the server declares it.
    pub(crate) fn priority_of_client(&self, class: usize) -> Option<i16> {
        let priorities = self.case.priorities();
        match self.case.model {
            PriorityModel::ClientPropagated => Some(priorities[class]),
            PriorityModel::ServerDeclared if class == 0 => None,
            PriorityModel::ServerDeclared => Some(priorities[priorities.len() - 1 - class]),
        }
    }

    /// Sends a request to the held servant of a class on an idle connection. It has been sent on
    /// return.
    pub(crate) fn hold(&mut self, class: usize, number: u32) -> SentRequest {
        self.hold_with(class, number, BALLAST)
    }

    /// Like [`hold`](Self::hold), with this many octets of payload.
    pub(crate) fn hold_with(&mut self, class: usize, number: u32, octets: usize) -> SentRequest {
        let idle = self.peers.iter().position(|(of, _)| *of == class);
        let mut raw = match idle {
            Some(idle) => self.peers.swap_remove(idle).1,
            None => self.raw(class),
        };
        raw.hold(Version::V1_2, number, octets);
        SentRequest { class, number, raw }
    }

    /// Like [`hold`](Self::hold), and waits until the servant runs.
    pub(crate) fn hold_now(&mut self, class: usize, number: u32) -> SentRequest {
        let asked = self.hold(class, number);
        self.floor.begun(number);
        asked
    }

    /// Like [`hold`](Self::hold), and waits until the server, which has no thread for it, has read
    /// it.
    pub(crate) fn hold_buffered(&mut self, class: usize, number: u32) -> SentRequest {
        let asked = self.hold(class, number);
        self.barrier(class);
        assert!(!self.floor.has_begun(number), "{number} waits");
        assert!(!asked.is_answered(), "{number} waits");
        asked
    }

    /// Returns the result of a request.
    pub(crate) fn answer(&mut self, mut asked: SentRequest) -> Result<(), SystemException> {
        let (_, number, exception) = asked.raw.reply();
        assert_eq!(number, asked.number);
        self.peers.push((asked.class, asked.raw));
        exception.map_or(Ok(()), Err)
    }

    /// Makes a client call the held servant of a class.
    pub(crate) fn call(&mut self, class: usize, number: u32) -> ActiveCall {
        let priority = self.priority_of_client(class);
        self.callers.hold(priority, &self.objects[class], number)
    }

    /// Makes a client call an unheld operation of a class, and returns what it observed.
    pub(crate) fn look(&mut self, class: usize) -> Result<(u32, i16, i16, i32), SystemException> {
        let (sender, sight) = mpsc::channel();
        let object = self.objects[class].clone();
        let priority = self.priority_of_client(class);
        let calling = self.callers.run(priority, 0, move || {
            let seen = look(&object)?;
            sender.send(seen).expect("it is waited for");
            Ok(())
        });
        self.callers.answer(calling)?;
        Ok(sight.recv().expect("it was sent"))
    }

    /// Returns the expected observation of a request of a class that its own lane serves.
    pub(crate) fn own_sight(&self, class: usize) -> (u32, i16, i16, i32) {
        let mut order = self.case.order().iter();
        let lane = match self.case.lanes {
            0 => 0,
            _ => order.position(|of| *of == class).expect("it has a lane"),
        };
        let priority = self.case.priorities()[class];
        (lane as u32, priority, priority, native(priority))
    }

    /// Returns a manual connection for requests of a class: to their endpoint and object, and with
    /// their priority.
    pub(crate) fn raw(&self, class: usize) -> Raw {
        let mut raw = Raw::to(&self.doors[class]);
        raw.key = key_of(&self.objects[class]);
        if self.case.model == PriorityModel::ClientPropagated {
            raw.priority = Some(self.case.priorities()[class]);
        }
        raw
    }

    /// Returns when the thread that reads for a class has processed all earlier messages. Works
    /// only if all other threads are busy and requests are buffered, because the reading thread
    /// answers garbage.
    pub(crate) fn barrier(&self, class: usize) {
        let mut peer = self.raw(class);
        peer.send(b"Are you there?");
        let (header, _) = peer.receive().expect("an answer");
        assert_eq!(header.kind, MessageType::MessageError);
    }

    /// Returns the threads of the pool.
    pub(crate) fn threads(&self) -> Vec<ThreadInfo> {
        let pool = format!("{}:", self.pool.number());
        let id = format!(" {}", self.orb_id);
        chronorb_rt::list_of(|name, _| name.starts_with(&pool) && name.ends_with(&id))
    }

    /// Waits until the pool has this many threads.
    pub(crate) fn await_threads(&self, count: usize) {
        let what = format!("the pool never had {count} threads");
        until(&what, || self.threads().len() == count);
    }

    /// Waits until none of the pool's threads is at work.
    pub(crate) fn await_all_rest(&self) {
        self.threads()
            .iter()
            .for_each(|thread| await_rest(thread.tid));
    }

    /// Waits until each of the pool's threads has its original native priority.
    pub(crate) fn await_home(&self) {
        until("threads did not get their priority back", || {
            self.threads().iter().all(|thread| {
                let lane = thread.name.split(':').nth(1).expect("it has a lane");
                let lane = lane.split('.').next().expect("it has a lane");
                let class = self
                    .case
                    .class_of_lane(lane.parse().expect("it has a number"));
                let priority = self.case.priorities()[class];
                i32::from(thread.scheduling.priority) == native(priority)
            })
        });
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.floor.open();
        let _ = self.client.shutdown(false);
        // A failed test may have left a servant waiting.
        let _ = self.server.shutdown(!std::thread::panicking());
    }
}

/// Waits until a thread sleeps; after a request, it then waits for the next.
///
/// A thread that waits for a lock sleeps too, so two looks must find one and the same sleep.
pub(crate) fn await_rest(tid: u32) {
    let path = format!("/proc/self/task/{tid}/status");
    let mut last_sleep = None;
    until("a thread never came to rest", || {
        let status = match std::fs::read_to_string(&path) {
            Ok(status) => status,
            // Other tests of the process may have used up its descriptors.
            Err(error) => return is_gone(&error),
        };
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
        let sleeps = field("State:").is_some_and(|state| state.trim().starts_with('S'));
        let sleep = field("voluntary_ctxt_switches:").filter(|_| sleeps);
        let sleep = sleep.and_then(|number| number.trim().parse::<u64>().ok());
        let before = std::mem::replace(&mut last_sleep, sleep);
        sleep.is_some() && sleep == before
    });
}

/// Whether the error of reading a thread's state is that the thread has ended.
fn is_gone(error: &std::io::Error) -> bool {
    const NO_SUCH_THREAD: i32 = 3;
    error.kind() == std::io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_THREAD)
}
