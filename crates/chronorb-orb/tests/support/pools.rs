//! Thread pools under virtual load: servants that a test holds and lets go, so that a busy thread is a fact and
//! not a matter of time, and clients that wait for them.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use chronorb_cdr::{Decoder, Frame};
use chronorb_giop::contexts::{RT_CORBA_PRIORITY, encode_priority};
use chronorb_giop::{
    HEADER_LEN, LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader, MessageType,
    ReplyHeader, ReplyStatus, RequestHeader, ResponseFlags, ServiceContext, Target, Version,
    encode_locate_request, encode_request, finish_message, start_message,
};
use chronorb_orb::codegen::v1::{bad_operation, reply_error};
use chronorb_orb::poa::{Poa, Policy, PriorityModel};
use chronorb_orb::rtcorba::{
    Lane, Priority, RequestBuffering, Threadpool, ThreadpoolId, ThreadpoolLanes,
};
use chronorb_orb::{
    Call, Object, Operation, Orb, OrbConfig, ReplyWriter, Skeleton, SystemException,
    SystemExceptionKind, ThreadpoolStrategy,
};
use chronorb_rt::{Deadline, Gate, PiMutex, ThreadInfo};

use super::adapters::{key_of, omg, profile_of, until};
use super::{PATIENCE, PROBE_ID, call, has_real_time, orb, orb_with};

pub(crate) const LOW: i16 = 8_000;
pub(crate) const MID: i16 = 16_000;
pub(crate) const HIGH: i16 = 24_000;

pub(crate) fn corba(value: i16) -> Priority {
    Priority::new(value).expect("not negative")
}

/// What the default mapping makes of a priority, where the process may use it.
pub(crate) fn native(value: i16) -> i32 {
    match (value, has_real_time()) {
        (LOW, true) => 24,
        (MID, true) => 48,
        (HIGH, true) => 72,
        _ => 0,
    }
}

/// What a request gets for which there is no room.
pub(crate) fn no_room() -> SystemException {
    omg(SystemExceptionKind::Transient, 1)
}

/// Where held servants are: who runs now, and who may go on.
#[derive(Default)]
pub(crate) struct Floor {
    state: PiMutex<FloorState>,
    changes: Changes,
}

#[derive(Default)]
struct FloorState {
    sights: Vec<Sight>,
    released: BTreeSet<u32>,
    open: bool,
    running: usize,
    most: usize,
    notes: u32,
}

/// Counts the changes, for who waits for one.
struct Changes(Gate);

impl Default for Changes {
    fn default() -> Self {
        Self(Gate::new(0))
    }
}

/// What a servant sees of its thread.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    /// The number of the request.
    pub(crate) number: u32,
    pub(crate) tid: u32,
    /// The lane whose thread it is, by its name; `None` for a thread of no lane.
    pub(crate) lane: Option<usize>,
    /// The priority of the request.
    pub(crate) corba: Option<i16>,
    /// That of the thread by `RTCORBA::Current`.
    pub(crate) current: Option<i16>,
    pub(crate) native: i32,
}

impl Sight {
    fn of(call: &Call<'_>, number: u32) -> Self {
        Self {
            number,
            tid: chronorb_rt::thread_id(),
            lane: lane_of_thread(),
            corba: call.priority().map(Priority::value),
            current: call.orb().rt_current().priority().ok().map(|p| p.value()),
            native: chronorb_rt::current().map_or(-1, |s| i32::from(s.priority)),
        }
    }
}

/// The calling thread's lane: threads of lanes are named `pool:lane.number orb`.
fn lane_of_thread() -> Option<usize> {
    let thread = std::thread::current();
    let (_, lane) = thread.name()?.split_once(':')?;
    lane.split_once('.')?.0.parse().ok()
}

impl Floor {
    fn change<R>(&self, change: impl FnOnce(&mut FloorState) -> R) -> R {
        let mut state = self.state.lock();
        let result = change(&mut state);
        self.changes.0.set(self.changes.0.get().wrapping_add(1));
        result
    }

    /// Waits until `find` finds something; a test that gets stuck fails here.
    fn await_some<R>(&self, what: &str, find: impl Fn(&FloorState) -> Option<R>) -> R {
        let deadline = Deadline::after(PATIENCE);
        loop {
            let seen = self.changes.0.get();
            if let Some(found) = find(&self.state.lock()) {
                return found;
            }
            assert!(!deadline.has_passed(), "{what}");
            self.changes.0.wait_while(seen, deadline);
        }
    }

    /// Says what it sees and waits until it is released.
    fn hold(&self, sight: Sight) {
        let number = sight.number;
        self.change(|state| {
            state.sights.push(sight);
            state.running += 1;
            state.most = state.most.max(state.running);
        });
        self.await_some(&format!("request {number} was never released"), |state| {
            (state.open || state.released.contains(&number)).then_some(())
        });
        self.change(|state| state.running -= 1);
    }

    /// Lets one request go on, which may not have begun.
    pub(crate) fn release(&self, number: u32) {
        self.change(|state| state.released.insert(number));
    }

    /// Lets all requests go on, those that come too.
    pub(crate) fn open(&self) {
        self.change(|state| state.open = true);
    }

    /// Holds requests again.
    pub(crate) fn shut(&self) {
        self.change(|state| state.open = false);
    }

    /// What a request saw when it began.
    pub(crate) fn begun(&self, number: u32) -> Sight {
        self.await_some(&format!("request {number} never began"), |state| {
            let mut sights = state.sights.iter();
            sights.find(|sight| sight.number == number).cloned()
        })
    }

    /// What the request saw that was the `n`th to begin.
    pub(crate) fn nth_begun(&self, n: usize) -> Sight {
        self.await_some(&format!("none was the {n}th to begin"), |state| {
            state.sights.get(n).cloned()
        })
    }

    pub(crate) fn count_begun(&self) -> usize {
        self.state.lock().sights.len()
    }

    pub(crate) fn has_begun(&self, number: u32) -> bool {
        let state = self.state.lock();
        state.sights.iter().any(|sight| sight.number == number)
    }

    /// How many are held now.
    pub(crate) fn running(&self) -> usize {
        self.state.lock().running
    }

    /// Waits until so many are held at the same time.
    pub(crate) fn await_running(&self, count: usize) {
        self.await_some(&format!("there never were {count} at work"), |state| {
            (state.running >= count).then_some(())
        });
    }

    /// How many were held at the same time, at most.
    pub(crate) fn most(&self) -> usize {
        self.state.lock().most
    }

    /// How many oneways were served.
    pub(crate) fn notes(&self) -> u32 {
        self.state.lock().notes
    }
}

/// A servant that is held on the floor.
pub(crate) struct Held(pub(crate) Arc<Floor>);

impl Skeleton for Held {
    fn repository_id(&self) -> &'static str {
        PROBE_ID
    }

    fn is_a(&self, id: &str) -> bool {
        id == PROBE_ID
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            b"hold" | b"hold_and_panic" => {
                let number = d.read_u32()?;
                d.read_octet_seq()?;
                self.0.hold(Sight::of(call, number));
                assert!(operation == b"hold", "the servant was asked to panic");
                reply.normal()?.write_u32(number).map_err(reply_error)
            }
            b"note" => {
                self.0.change(|state| state.notes += 1);
                Ok(())
            }
            b"look" => {
                let sight = Sight::of(call, 0);
                let lane = sight.lane.map_or(u32::MAX, |lane| lane as u32);
                let e = reply.normal()?;
                e.write_u32(lane)
                    .and_then(|()| e.write_i16(sight.corba.unwrap_or(-1)))
                    .and_then(|()| e.write_i16(sight.current.unwrap_or(-1)))
                    .and_then(|()| e.write_i32(sight.native))
                    .map_err(reply_error)
            }
            _ => Err(bad_operation()),
        }
    }
}

/// Lane, CORBA priority, that by `RTCORBA::Current` and the native one, as a request that is not held sees them.
pub(crate) fn look(object: &Object) -> Result<(u32, i16, i16, i32), SystemException> {
    call(object, "look", &|_| Ok(()), |d| {
        Ok((d.read_u32()?, d.read_i16()?, d.read_i16()?, d.read_i32()?))
    })
}

/// A oneway that is counted.
pub(crate) fn note(object: &Object) -> Result<(), SystemException> {
    object.invoke_oneway(&Operation::oneway("note"), &|_| Ok(()))
}

fn hold(
    object: &Object,
    operation: &'static str,
    number: u32,
    octets: usize,
) -> Result<(), SystemException> {
    let ballast = vec![0_u8; octets];
    let write = |e: &mut chronorb_cdr::Encoder<'_>| {
        e.write_u32(number)?;
        e.write_octet_seq(&ballast)
    };
    call(object, operation, &write, |d| d.read_u32()).map(|back| assert_eq!(back, number))
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that call through an ORB, each on connections of its own, which stay.
pub(crate) struct Callers {
    orb: Orb,
    /// Those that wait for nothing, by their priority.
    idle: Vec<(Option<i16>, mpsc::Sender<Job>)>,
}

/// A call under way.
pub(crate) struct Calling {
    pub(crate) number: u32,
    priority: Option<i16>,
    client: mpsc::Sender<Job>,
    answer: mpsc::Receiver<Result<(), SystemException>>,
}

impl Callers {
    pub(crate) fn new(orb: &Orb) -> Self {
        Self {
            orb: orb.clone(),
            idle: Vec::new(),
        }
    }

    /// Calls from a thread of this priority.
    pub(crate) fn run(
        &mut self,
        priority: Option<i16>,
        number: u32,
        call: impl FnOnce() -> Result<(), SystemException> + Send + 'static,
    ) -> Calling {
        let idle = self.idle.iter().position(|(of, _)| *of == priority);
        let client = match idle {
            Some(idle) => self.idle.swap_remove(idle).1,
            None => self.start(priority),
        };
        let (sender, answer) = mpsc::channel();
        let job: Job = Box::new(move || {
            let _ = sender.send(call());
        });
        client.send(job).expect("it waits for it");
        Calling {
            number,
            priority,
            client,
            answer,
        }
    }

    /// Asks a held servant.
    pub(crate) fn hold(&mut self, priority: Option<i16>, object: &Object, number: u32) -> Calling {
        self.hold_with(priority, object, number, BALLAST)
    }

    /// The same, with so many octets to carry.
    pub(crate) fn hold_with(
        &mut self,
        priority: Option<i16>,
        object: &Object,
        number: u32,
        octets: usize,
    ) -> Calling {
        let object = object.clone();
        let call = move || hold(&object, "hold", number, octets);
        self.run(priority, number, call)
    }

    /// Asks a held servant that panics then.
    pub(crate) fn hold_and_panic(
        &mut self,
        priority: Option<i16>,
        object: &Object,
        number: u32,
    ) -> Calling {
        let object = object.clone();
        let call = move || hold(&object, "hold_and_panic", number, BALLAST);
        self.run(priority, number, call)
    }

    /// What a request came to.
    pub(crate) fn answer(&mut self, calling: Calling) -> Result<(), SystemException> {
        let answer = calling.answer.recv_timeout(2 * PATIENCE);
        let answer = answer.unwrap_or_else(|_| panic!("request {} hangs", calling.number));
        self.idle.push((calling.priority, calling.client));
        answer
    }

    fn start(&self, priority: Option<i16>) -> mpsc::Sender<Job> {
        let (sender, jobs) = mpsc::channel::<Job>();
        let orb = self.orb.clone();
        std::thread::spawn(move || {
            if let Some(priority) = priority {
                let current = orb.rt_current();
                current
                    .set_priority(corba(priority))
                    .expect("it has a native priority");
            }
            jobs.into_iter().for_each(|job| job());
        });
        sender
    }
}

/// What requests carry where it does not matter how much it is.
pub(crate) const BALLAST: usize = 1_000;
/// Octets that two requests with [`BALLAST`] have room in, and three have not.
pub(crate) const ROOM_FOR_TWO: usize = 2_600;

/// How many threads a lane has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Threads {
    Static,
    Mixed,
    Dynamic,
}

impl Threads {
    /// Static and dynamic ones.
    pub(crate) fn counts(self) -> (u32, u32) {
        match self {
            Self::Static => (2, 0),
            Self::Mixed => (1, 1),
            Self::Dynamic => (0, 2),
        }
    }
}

/// What bounds the requests that wait; always so that there is room for two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Buffering {
    Off,
    Requests,
    Octets,
}

impl Buffering {
    pub(crate) fn setting(self) -> Option<RequestBuffering> {
        match self {
            Self::Off => None,
            Self::Requests => Some(RequestBuffering {
                max_requests: 2,
                max_octets: 0,
            }),
            Self::Octets => Some(RequestBuffering {
                max_requests: 0,
                max_octets: ROOM_FOR_TWO,
            }),
        }
    }

    /// How many may wait.
    pub(crate) fn room(self) -> Option<usize> {
        self.setting().map(|_| 2)
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) strategy: ThreadpoolStrategy,
    /// 0 for a pool without lanes.
    pub(crate) lanes: usize,
    pub(crate) buffering: Buffering,
    pub(crate) borrowing: bool,
    pub(crate) threads: Threads,
    pub(crate) model: PriorityModel,
}

/// All rows of a strategy and a number of lanes.
pub(crate) fn cases(strategy: ThreadpoolStrategy, lanes: usize) -> Vec<Case> {
    let borrowing: &[bool] = if lanes > 0 { &[false, true] } else { &[false] };
    let mut cases = Vec::new();
    for buffering in [Buffering::Off, Buffering::Requests, Buffering::Octets] {
        for borrowing in borrowing {
            for threads in [Threads::Static, Threads::Mixed, Threads::Dynamic] {
                for model in [
                    PriorityModel::ClientPropagated,
                    PriorityModel::ServerDeclared,
                ] {
                    cases.push(Case {
                        strategy,
                        lanes,
                        buffering,
                        borrowing: *borrowing,
                        threads,
                        model,
                    });
                }
            }
        }
    }
    cases
}

impl Case {
    /// The priorities that requests come at, the least urgent first: their number is a request's class.
    pub(crate) fn priorities(&self) -> &'static [i16] {
        match self.lanes {
            1 => &[MID],
            _ => &[LOW, MID, HIGH],
        }
    }

    /// The classes of the lanes in the order in which the pool is given them; it is not that of priorities.
    pub(crate) fn order(&self) -> &'static [usize] {
        match self.lanes {
            3 => &[2, 0, 1],
            _ => &[0],
        }
    }

    /// The class whose lane has the number; 0 without lanes.
    pub(crate) fn class_of_lane(&self, lane: usize) -> usize {
        self.order()[lane]
    }

    fn create(&self, server: &Orb) -> Result<ThreadpoolId, SystemException> {
        let (static_threads, dynamic_threads) = self.threads.counts();
        let request_buffering = self.buffering.setting();
        if self.lanes == 0 {
            return server.rt().create_threadpool(&Threadpool {
                stack_size: 0,
                static_threads,
                dynamic_threads,
                default_priority: corba(LOW),
                request_buffering,
            });
        }
        let lane = |class: &usize| Lane {
            priority: corba(self.priorities()[*class]),
            static_threads,
            dynamic_threads,
        };
        server.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
            stack_size: 0,
            lanes: self.order().iter().map(lane).collect(),
            allow_borrowing: self.borrowing,
            request_buffering,
        })
    }
}

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
    /// The object that each class of requests is for.
    pub(crate) objects: Vec<Object>,
    /// An object for each class whose reference tells the endpoint that its requests come in by.
    doors: Vec<Object>,
    orb_id: String,
    /// Connections by hand on which nothing is asked now.
    peers: Vec<(usize, Raw)>,
}

impl Bench {
    pub(crate) fn new(case: Case) -> Self {
        Self::with(case, |_| {})
    }

    pub(crate) fn with(case: Case, configure: impl FnOnce(&mut OrbConfig)) -> Self {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        // Tests of one process tell their threads apart by it.
        let orb_id = format!("bench{}", NUMBERS.fetch_add(1, Ordering::Relaxed));
        let server = orb_with(|config| {
            config.orb_id.clone_from(&orb_id);
            config.threads = 1;
            config.threadpool_strategy = case.strategy;
            // Threads on demand stay, unless a test says otherwise.
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
            let object = poa.serve(Held(floor.clone())).expect("it activates");
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

    /// The priority of a client for requests of a class: what a server declares is not for the client to say.
    pub(crate) fn priority_of_client(&self, class: usize) -> Option<i16> {
        let priorities = self.case.priorities();
        match self.case.model {
            PriorityModel::ClientPropagated => Some(priorities[class]),
            PriorityModel::ServerDeclared if class == 0 => None,
            PriorityModel::ServerDeclared => Some(priorities[priorities.len() - 1 - class]),
        }
    }

    /// Asks the held servant of a class, on a connection on which nothing else is asked. When this returns it has been
    /// sent.
    pub(crate) fn hold(&mut self, class: usize, number: u32) -> Asked {
        self.hold_with(class, number, BALLAST)
    }

    /// The same, with so many octets to carry.
    pub(crate) fn hold_with(&mut self, class: usize, number: u32, octets: usize) -> Asked {
        let idle = self.peers.iter().position(|(of, _)| *of == class);
        let mut raw = match idle {
            Some(idle) => self.peers.swap_remove(idle).1,
            None => self.raw(class),
        };
        raw.hold(Version::V1_2, number, octets);
        Asked { class, number, raw }
    }

    /// The same, and waits until it is at work.
    pub(crate) fn hold_now(&mut self, class: usize, number: u32) -> Asked {
        let asked = self.hold(class, number);
        self.floor.begun(number);
        asked
    }

    /// The same, and waits until the server, which has no thread for it, has read it.
    pub(crate) fn hold_buffered(&mut self, class: usize, number: u32) -> Asked {
        let mut asked = self.hold(class, number);
        self.barrier(class);
        assert!(!self.floor.has_begun(number), "{number} waits");
        assert!(!asked.is_answered(), "{number} waits");
        asked
    }

    /// What a request came to.
    pub(crate) fn answer(&mut self, mut asked: Asked) -> Result<(), SystemException> {
        let (_, number, exception) = asked.raw.reply();
        assert_eq!(number, asked.number);
        self.peers.push((asked.class, asked.raw));
        exception.map_or(Ok(()), Err)
    }

    /// Has a client call the held servant of a class.
    pub(crate) fn call(&mut self, class: usize, number: u32) -> Calling {
        let priority = self.priority_of_client(class);
        self.callers.hold(priority, &self.objects[class], number)
    }

    /// Has a client's request of a class served at once, and tells what it saw.
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

    /// What a request of a class sees that is served by its own lane.
    pub(crate) fn own_sight(&self, class: usize) -> (u32, i16, i16, i32) {
        let mut order = self.case.order().iter();
        let lane = match self.case.lanes {
            0 => 0,
            _ => order.position(|of| *of == class).expect("it has a lane"),
        };
        let priority = self.case.priorities()[class];
        (lane as u32, priority, priority, native(priority))
    }

    /// A connection by hand for requests of a class: to their endpoint and object, and with their priority.
    pub(crate) fn raw(&self, class: usize) -> Raw {
        let mut raw = Raw::to(&self.doors[class]);
        raw.key = key_of(&self.objects[class]);
        if self.case.model == PriorityModel::ClientPropagated {
            raw.priority = Some(self.case.priorities()[class]);
        }
        raw
    }

    /// Returns when the thread that reads for a class has seen to all that came before. Only where all others are
    /// busy, and requests are buffered: what is no GIOP is answered by who reads it.
    pub(crate) fn barrier(&self, class: usize) {
        let mut peer = self.raw(class);
        peer.stream.write_all(b"Are you there?").expect("it is");
        let (header, _) = peer.receive().expect("an answer");
        assert_eq!(header.kind, MessageType::MessageError);
    }

    /// The threads of the pool.
    pub(crate) fn threads(&self) -> Vec<ThreadInfo> {
        let pool = format!("{}:", self.pool.number());
        let id = format!(" {}", self.orb_id);
        let mut threads = chronorb_rt::list();
        threads.retain(|t| t.name.starts_with(&pool) && t.name.ends_with(&id));
        threads
    }

    /// Waits until the pool has so many threads.
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

    /// Waits until each of the pool's threads has the native priority that it was made with.
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
        // A test that has failed may have left a servant waiting.
        let _ = self.server.shutdown(!std::thread::panicking());
    }
}

/// Waits until a thread sleeps: one that has served a request then waits for the next.
pub(crate) fn await_rest(tid: u32) {
    let path = format!("/proc/self/task/{tid}/stat");
    until("a thread never came to rest", || {
        let Ok(stat) = std::fs::read_to_string(&path) else {
            // It has left.
            return true;
        };
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        state == Some('S')
    });
}

/// A request that was sent by hand.
pub(crate) struct Asked {
    class: usize,
    number: u32,
    pub(crate) raw: Raw,
}

impl Asked {
    /// Whether there is an answer yet.
    pub(crate) fn is_answered(&mut self) -> bool {
        let stream = &self.raw.stream;
        stream.set_nonblocking(true).expect("it is TCP");
        let peeked = stream.peek(&mut [0]);
        stream.set_nonblocking(false).expect("it is TCP");
        peeked.is_ok()
    }
}

/// A connection by hand.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    key: Vec<u8>,
    /// The priority that goes with requests.
    priority: Option<i16>,
}

impl Raw {
    /// One to the endpoint that a reference tells; its requests are for that object.
    pub(crate) fn to(object: &Object) -> Self {
        let profile = profile_of(object);
        let stream = TcpStream::connect((profile.host.as_str(), profile.port));
        let stream = stream.expect("it listens");
        stream.set_nodelay(true).expect("it is TCP");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("it is not zero");
        Self {
            stream,
            key: profile.object_key,
            priority: None,
        }
    }

    /// Sends a request to a held servant.
    pub(crate) fn hold(&mut self, version: Version, number: u32, octets: usize) {
        let message = self.request(
            version,
            ResponseFlags::SyncWithTarget,
            b"hold",
            number,
            octets,
        );
        self.stream.write_all(&message).expect("it is there");
    }

    /// A message to a held servant; its request id is the number.
    pub(crate) fn request(
        &self,
        version: Version,
        response: ResponseFlags,
        operation: &[u8],
        number: u32,
        octets: usize,
    ) -> Vec<u8> {
        let mut frame = Frame::new(1024, 16 << 20);
        let mut e = start_message(&mut frame, version, MessageType::Request).expect("it fits");
        let data = self.priority.map(encode_priority);
        let contexts = data.as_ref().map(|data| ServiceContext {
            id: RT_CORBA_PRIORITY,
            data,
        });
        let header = RequestHeader {
            request_id: number,
            response,
            target: Target::Key(&self.key),
            operation,
            contexts: contexts.as_slice(),
        };
        encode_request(&mut e, version, &header).expect("it fits");
        if version >= Version::V1_2 {
            e.align(8).expect("it fits");
        }
        e.write_u32(number).expect("it fits");
        e.write_octet_seq(&vec![0; octets]).expect("it fits");
        finish_message(&mut frame);
        frame.as_slice().to_vec()
    }

    /// Asks where the object is.
    pub(crate) fn locate(&mut self, version: Version, number: u32) {
        let mut frame = Frame::new(64, 1 << 20);
        let mut e =
            start_message(&mut frame, version, MessageType::LocateRequest).expect("it fits");
        let header = LocateRequestHeader {
            request_id: number,
            target: Target::Key(&self.key),
        };
        encode_locate_request(&mut e, version, &header).expect("it fits");
        finish_message(&mut frame);
        self.stream
            .write_all(frame.as_slice())
            .expect("it is there");
    }

    /// The next message; `None` where the server has closed.
    pub(crate) fn receive(&mut self) -> Option<(MessageHeader, Vec<u8>)> {
        let mut octets = vec![0; HEADER_LEN];
        self.stream.read_exact(&mut octets).ok()?;
        let header = MessageHeader::parse(&octets).expect("the server speaks GIOP");
        octets.resize(header.message_len(), 0);
        self.stream.read_exact(&mut octets[HEADER_LEN..]).ok()?;
        Some((header, octets))
    }

    /// The next reply: its version, the number of its request, and the exception, if it is one.
    pub(crate) fn reply(&mut self) -> (Version, u32, Option<SystemException>) {
        let (message, octets) = self.receive().expect("an answer");
        assert_eq!(message.kind, MessageType::Reply);
        decoded(&octets, |d| {
            let header = ReplyHeader::decode(d, message.version).expect("a reply");
            let exception = match header.status {
                ReplyStatus::NoException => None,
                ReplyStatus::SystemException => {
                    Some(SystemException::decode(d).expect("an exception"))
                }
                other => panic!("{other:?}"),
            };
            (message.version, header.request_id, exception)
        })
    }

    /// The next answer to where an object is.
    pub(crate) fn located(&mut self) -> (u32, LocateStatus) {
        let (message, octets) = self.receive().expect("an answer");
        assert_eq!(message.kind, MessageType::LocateReply);
        decoded(&octets, |d| {
            let header = LocateReplyHeader::decode(d, message.version).expect("an answer");
            (header.request_id, header.status)
        })
    }
}

fn decoded<R>(octets: &[u8], read: impl FnOnce(&mut Decoder<'_>) -> R) -> R {
    let mut frame = Frame::new(octets.len(), octets.len());
    frame
        .extend_from_slice(octets)
        .expect("it is as long as that");
    let arena = chronorb_cdr::Arena::new(4 << 10);
    let endian = MessageHeader::parse(octets).expect("a header").endian;
    read(&mut frame.decoder(HEADER_LEN, endian, &arena))
}
