//! Fail-over policies, with servers that die at each moment of a call, against a model of what the
//! policies say.

use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use chronorb_giop::{
    Component, IiopProfile, Ior, TAG_ALTERNATE_IIOP_ADDRESS, TAG_INTERNET_IOP, TaggedComponent,
    TaggedProfile, Version, minor,
};
use chronorb_orb::CompletionStatus::{self, Maybe, No};
use chronorb_orb::ConnectionStrategy;
use chronorb_orb::SystemExceptionKind::{self as Kind, CommFailure, InvPolicy, Timeout, Transient};
use chronorb_orb::rtcorba::{
    ClientPolicy, FailoverPolicy, FailoverSemantics, Heartbeat, RebindMode, RetryBudget,
    SetOverride,
};
use chronorb_orb::{Object, Orb, SystemException};
use chronorb_rt::{Deadline, PiMutex};

use FailoverSemantics::{AtLeastOnce, AtMostOnce, BestEffort, OrbDefault};

use crate::support::asynchronous::{WAYS, begin_add};
use crate::support::raw_server::{Message, Peer, reply};
use crate::support::strategies::STRATEGIES;
use crate::support::{
    PATIENCE, PROBE_ID, add, kind_and_completion, orb_with, with_longer_times, with_short_timeout,
};

/// The event at which a server dies, or its conduct if it does not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Moment {
    /// Before a client connects.
    BeforeConnect,
    /// After an answered call, between two calls.
    BeforeSend,
    /// After the request, before the reply.
    BeforeReply,
    /// After a part of the reply.
    InReply,
    /// Never: the server raises `TRANSIENT`.
    Busy,
    /// Never: the server answers no request.
    Silent,
    /// Never: the server answers all.
    Never,
}

/// A server with one object.
struct Replica {
    address: SocketAddr,
    /// The number of requests that were read.
    executions: Arc<AtomicUsize>,
    life: Arc<Life>,
}

/// The sockets of a server, which all end with it.
struct Life {
    address: SocketAddr,
    is_over: AtomicBool,
    streams: PiMutex<Vec<TcpStream>>,
    acceptor: PiMutex<Option<JoinHandle<()>>>,
    accepted: AtomicUsize,
    /// The number of connections that the clients have ended.
    ended: AtomicUsize,
}

impl Life {
    /// Closes all sockets of the server, as the kernel does for a process that was killed.
    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        let acceptor = self.acceptor.lock().take();
        if let Some(acceptor) = acceptor {
            // The acceptor has to notice.
            let _ = TcpStream::connect(self.address);
            acceptor.join().expect("it does not fail");
        }
        for stream in self.streams.lock().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Replica {
    fn start(moment: Moment) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self::start_at(listener, moment)
    }

    fn start_at(listener: TcpListener, moment: Moment) -> Self {
        let address = listener.local_addr().expect("it is bound");
        let executions = Arc::new(AtomicUsize::new(0));
        let life = Arc::new(Life {
            address,
            is_over: AtomicBool::new(false),
            streams: PiMutex::default(),
            acceptor: PiMutex::default(),
            accepted: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        });
        let (own, count) = (life.clone(), executions.clone());
        let acceptor = std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { return };
                if own.is_over.load(Ordering::SeqCst) {
                    return;
                }
                own.accepted.fetch_add(1, Ordering::SeqCst);
                stream
                    .set_read_timeout(Some(PATIENCE))
                    .expect("a socket has a time-out");
                let copy = stream.try_clone().expect("descriptors are left");
                own.streams.lock().push(copy);
                let peer = Peer {
                    stream,
                    number,
                    body: Vec::new(),
                };
                let (life, count) = (own.clone(), count.clone());
                std::thread::spawn(move || serve(peer, moment, &life, &count));
            }
        });
        *life.acceptor.lock() = Some(acceptor);
        if moment == Moment::BeforeConnect {
            life.end();
        }
        Self {
            address,
            executions,
            life,
        }
    }

    fn executions(&self) -> usize {
        self.executions.load(Ordering::SeqCst)
    }

    fn connections(&self) -> usize {
        self.life.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.life.end();
    }
}

fn serve(mut peer: Peer, moment: Moment, life: &Life, executions: &AtomicUsize) {
    while let Some(message) = peer.message() {
        let (id, (a, b)) = match message {
            // A silent server is silent to all.
            Message::Locate { .. } if moment == Moment::Silent => continue,
            Message::Locate { id } => {
                peer.here(id);
                continue;
            }
            Message::Cancel { .. } => continue,
            Message::Request { id, arguments } => (id, arguments),
        };
        executions.fetch_add(1, Ordering::SeqCst);
        let whole = reply(id, a + b);
        match moment {
            Moment::BeforeConnect | Moment::BeforeReply => life.end(),
            Moment::InReply => {
                peer.send(&whole[..20]);
                life.end();
            }
            Moment::Busy => peer.send(&transient(id)),
            Moment::Silent => {}
            Moment::BeforeSend | Moment::Never => peer.send(&whole),
        }
    }
    life.ended.fetch_add(1, Ordering::SeqCst);
}

/// Returns a reply of GIOP 1.2 with `TRANSIENT`, completed `NO`.
fn transient(request_id: u32) -> Vec<u8> {
    let name = b"IDL:omg.org/CORBA/TRANSIENT:1.0\0";
    let mut body = request_id.to_le_bytes().to_vec();
    for word in [2, 0, name.len() as u32] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    // The body of the reply begins at a multiple of 8 of the message: 12 + 12 octets.
    body.extend_from_slice(name);
    for word in [minor::REQUEST_DISCARDED, 1] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    let mut octets = b"GIOP\x01\x02\x01\x01".to_vec();
    octets.extend_from_slice(&(body.len() as u32).to_le_bytes());
    octets.extend_from_slice(&body);
    octets
}

/// The form in which a reference names several addresses.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Components of one profile.
    Alternates,
    /// Profiles with one key.
    Profiles,
    /// Profiles with a key each.
    Objects,
}

const FORMS: [Form; 3] = [Form::Alternates, Form::Profiles, Form::Objects];

fn reference(orb: &Orb, addresses: &[SocketAddr], form: Form) -> Object {
    let profile = |key: usize, address: &SocketAddr, components: Vec<TaggedComponent>| {
        let profile = IiopProfile {
            version: Version::V1_2,
            host: address.ip().to_string(),
            port: address.port(),
            object_key: format!("key{key}").into_bytes(),
            components,
        };
        TaggedProfile {
            tag: TAG_INTERNET_IOP,
            data: profile.encode().expect("it fits"),
        }
    };
    let alternate = |address: &SocketAddr| {
        let component = Component::AlternateIiopAddress {
            host: address.ip().to_string(),
            port: address.port(),
        };
        let component = component.tagged().expect("it fits");
        assert_eq!(component.tag, TAG_ALTERNATE_IIOP_ADDRESS);
        component
    };
    let profiles = match form {
        Form::Alternates => {
            let others = addresses[1..].iter().map(alternate).collect();
            vec![profile(0, &addresses[0], others)]
        }
        Form::Profiles => addresses
            .iter()
            .map(|a| profile(0, a, Vec::new()))
            .collect(),
        Form::Objects => addresses
            .iter()
            .enumerate()
            .map(|(key, a)| profile(key, a, Vec::new()))
            .collect(),
    };
    let ior = Ior {
        type_id: PROBE_ID.to_owned(),
        profiles,
    };
    let text = ior.to_string();
    orb.string_to_object(&text).expect("the reference reads")
}

fn client(strategy: ConnectionStrategy) -> Orb {
    orb_with(|config| config.client_connection = strategy)
}

fn policy(semantics: FailoverSemantics) -> FailoverPolicy {
    FailoverPolicy {
        semantics,
        ..FailoverPolicy::default()
    }
}

fn with(object: &Object, policy: FailoverPolicy) -> Object {
    object
        .with_policy_overrides(&[ClientPolicy::Failover(policy)], SetOverride::Add)
        .expect("it can be followed")
}

/// The result that a policy promises if the first server fails and the second does not.
fn expected(
    policy: Option<FailoverSemantics>,
    moment: Moment,
) -> Result<i32, (Kind, CompletionStatus)> {
    let repeats_unbegun = matches!(policy, Some(BestEffort | AtLeastOnce));
    let repeats_uncertain = policy == Some(AtLeastOnce);
    match moment {
        // Any ORB tries all addresses while it connects, and no request was lost.
        Moment::BeforeConnect | Moment::BeforeSend | Moment::Never => Ok(3),
        Moment::Busy if repeats_unbegun => Ok(3),
        Moment::Busy => Err((Transient, No)),
        Moment::BeforeReply | Moment::InReply if repeats_uncertain => Ok(3),
        Moment::BeforeReply | Moment::InReply => Err((CommFailure, Maybe)),
        Moment::Silent => Err((Timeout, Maybe)),
    }
}

/// Has the next call look whether the server has closed its idle connection: its deadline is far
/// from that of the call before.
fn pass_time(orb: &Orb) {
    let longer = ClientPolicy::RelativeRoundtripTimeout(2 * PATIENCE);
    orb.policy_manager()
        .set_policy_overrides(&[longer], SetOverride::Add)
        .expect("one of a kind");
}

const POLICIES: [Option<FailoverSemantics>; 4] =
    [None, Some(OrbDefault), Some(BestEffort), Some(AtLeastOnce)];

const DEATHS: [Moment; 6] = [
    Moment::BeforeConnect,
    Moment::BeforeSend,
    Moment::BeforeReply,
    Moment::InReply,
    Moment::Busy,
    Moment::Never,
];

#[test]
fn calls_end_as_their_policy_says_at_each_moment_of_death() {
    type CallKind = (&'static str, fn(&Object) -> Result<i32, SystemException>);
    let asynchronous: CallKind = ("asynchronous", |object| {
        (WAYS[0].1)(begin_add(object, 1, 2)?)
    });
    let handler: CallKind = ("handler", |object| (WAYS[2].1)(begin_add(object, 1, 2)?));
    let kinds: [CallKind; 3] = [
        ("synchronous", |object| add(object, 1, 2)),
        asynchronous,
        handler,
    ];
    for strategy in STRATEGIES {
        for (name, call) in kinds {
            for (semantics, moment) in POLICIES
                .into_iter()
                .flat_map(|policy| DEATHS.map(|moment| (policy, moment)))
            {
                for form in FORMS {
                    let what = format!("{strategy:?} {name} {semantics:?} {moment:?} {form:?}");
                    let orb = client(strategy);
                    let servers = [Replica::start(moment), Replica::start(Moment::Never)];
                    let addresses = servers.each_ref().map(|server| server.address);
                    let mut object = reference(&orb, &addresses, form);
                    if let Some(semantics) = semantics {
                        object = with(&object, policy(semantics));
                    }
                    if moment == Moment::BeforeSend {
                        assert_eq!(call(&object), Ok(3), "{what}");
                        servers[0].life.end();
                        pass_time(&orb);
                    }
                    let before = servers.each_ref().map(Replica::executions);
                    let result = call(&object);
                    let told = result.map_err(|e| (e.kind, e.completed));
                    assert_eq!(told, expected(semantics, moment), "{what}");
                    let executions = servers.each_ref().map(Replica::executions);
                    let calls = [executions[0] - before[0], executions[1] - before[1]];
                    let is_known_dead =
                        matches!(moment, Moment::BeforeConnect | Moment::BeforeSend);
                    let first = usize::from(!is_known_dead);
                    let second = usize::from(result.is_ok() && moment != Moment::Never);
                    assert_eq!(calls, [first, second], "{what}");
                    orb.shutdown(true).expect("not from a servant");
                }
            }
        }
    }
}

#[test]
fn a_call_ends_with_the_last_failure_if_all_addresses_fail() {
    let orb = client(ConnectionStrategy::Exclusive);
    let busy = [(); 3].map(|()| Replica::start(Moment::Busy));
    let addresses = busy.each_ref().map(|server| server.address);
    let object = with(
        &reference(&orb, &addresses, Form::Profiles),
        policy(BestEffort),
    );
    assert_eq!(kind_and_completion(add(&object, 1, 2)), (Transient, No));
    assert_eq!(busy.each_ref().map(Replica::executions), [1, 1, 1]);

    // The first may have executed it, so the whole call may have been executed.
    let servers = [Moment::BeforeReply, Moment::Busy].map(Replica::start);
    let addresses = servers.each_ref().map(|server| server.address);
    let object = with(
        &reference(&orb, &addresses, Form::Profiles),
        policy(AtLeastOnce),
    );
    assert_eq!(kind_and_completion(add(&object, 1, 2)), (Transient, Maybe));

    let servers = [Moment::BeforeReply, Moment::BeforeConnect].map(Replica::start);
    let addresses = servers.each_ref().map(|server| server.address);
    let object = with(
        &reference(&orb, &addresses, Form::Profiles),
        policy(AtLeastOnce),
    );
    let (kind, completed) = kind_and_completion(add(&object, 1, 2));
    assert_eq!((kind, completed), (CommFailure, Maybe));
}

#[test]
fn a_busy_server_is_not_suspected() {
    let orb = client(ConnectionStrategy::Exclusive);
    let servers = [Moment::Busy, Moment::Never].map(Replica::start);
    let addresses = servers.each_ref().map(|server| server.address);
    let object = with(
        &reference(&orb, &addresses, Form::Alternates),
        policy(BestEffort),
    );
    assert_eq!(add(&object, 1, 2), Ok(3));
    // Another thread begins with the first address again.
    let called = std::thread::spawn(move || add(&object, 1, 2)).join();
    assert_eq!(called.expect("it does not panic"), Ok(3));
    assert_eq!(servers.each_ref().map(Replica::executions), [2, 2]);
}

#[test]
fn an_address_that_refuses_is_avoided_by_all_threads_for_a_time() {
    for suspicion in [Duration::MAX, Duration::ZERO] {
        let orb = client(ConnectionStrategy::Exclusive);
        let servers = [Moment::BeforeConnect, Moment::Never].map(Replica::start);
        let addresses = servers.each_ref().map(|server| server.address);
        let policy = FailoverPolicy {
            suspicion,
            ..policy(BestEffort)
        };
        let object = with(&reference(&orb, &addresses, Form::Alternates), policy);
        assert_eq!(add(&object, 1, 2), Ok(3));
        // The server is there again, at the same address.
        let listener = TcpListener::bind(addresses[0]).expect("it was ours");
        let again = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection comes");
            let mut first = [0; 1];
            stream.read(&mut first).is_ok_and(|read| read > 0)
        });
        let other = with(&object, policy);
        let call = move || match suspicion {
            Duration::ZERO => with_short_timeout(&other, |hasty| add(hasty, 1, 2)),
            _ => add(&other, 1, 2),
        };
        let called = std::thread::spawn(call).join();
        let called = called.expect("it does not panic");
        if suspicion.is_zero() {
            assert!(called.is_err(), "it is the one that does not answer");
        } else {
            assert_eq!(called, Ok(3));
            assert!(!again.is_finished(), "nothing was sent there");
            drop(TcpStream::connect(addresses[0]));
        }
        assert_eq!(again.join().expect("it ends"), suspicion.is_zero());
    }
}

/// Otherwise calls go to a server that has just failed, although another one may have been
/// suspected by mistake.
#[test]
fn of_suspected_addresses_the_one_that_was_suspected_first_is_tried_first() {
    let is_so = |form, attempt_timeout| {
        let orb = client(ConnectionStrategy::Exclusive);
        let policy = FailoverPolicy {
            suspicion: Duration::from_secs(3600),
            attempt_timeout: Some(attempt_timeout),
            ..policy(AtLeastOnce)
        };
        // The second server is suspected first, and is there again.
        let servers = [Moment::BeforeConnect, Moment::Never].map(Replica::start);
        let addresses = servers.each_ref().map(|server| server.address);
        let object = with(&reference(&orb, &addresses, form), policy);
        assert_eq!(add(&object, 1, 2), Ok(3), "{form:?}");
        let listener = TcpListener::bind(addresses[0]).expect("it was ours");
        let second = Replica::start_at(listener, Moment::Never);
        let first = Replica::start(Moment::Silent);
        let object = reference(&orb, &[first.address, second.address], form);
        let object = with(&object, policy);
        (1..4).all(|calls| {
            // Each thread has its own binding.
            let object = object.clone();
            let called = std::thread::spawn(move || add(&object, 1, 2)).join();
            let called = called.expect("it does not panic");
            // Only the first call went to the first server.
            let executions = [&first, &second].map(Replica::executions);
            called == Ok(3) && executions == [1, calls]
        })
    };
    for form in FORMS {
        // On a busy machine the server that answers may need longer.
        let first = Duration::from_millis(100);
        with_longer_times(first, |time| is_so(form, time).then_some(()));
    }
}

#[test]
fn a_silent_server_takes_only_its_share_of_the_time() {
    for strategy in STRATEGIES {
        let orb = client(strategy);
        let servers = [Moment::Silent, Moment::Never].map(Replica::start);
        let addresses = servers.each_ref().map(|server| server.address);
        let object = reference(&orb, &addresses, Form::Alternates);
        // The server that answers may need a while on a busy machine.
        with_longer_times(Duration::from_millis(50), |time| {
            let share = FailoverPolicy {
                attempt_timeout: Some(time),
                ..policy(AtLeastOnce)
            };
            (add(&with(&object, share), 1, 2) == Ok(3)).then_some(())
        });
        // Half of the time, since there are two addresses.
        with_longer_times(Duration::from_millis(100), |time| {
            let half = with(&object.with_timeout(time), policy(AtLeastOnce));
            (add(&half, 1, 2) == Ok(3)).then_some(())
        });

        let fresh = [Moment::Silent, Moment::Never].map(Replica::start);
        let addresses = fresh.each_ref().map(|server| server.address);
        let object = reference(&orb, &addresses, Form::Alternates);
        let once = with(&object, policy(BestEffort));
        let ended = with_short_timeout(&once, |hasty| add(hasty, 1, 2));
        let ended = kind_and_completion(ended);
        assert_eq!(Err(ended), expected(Some(BestEffort), Moment::Silent));
        assert_eq!(fresh[1].executions(), 0, "it may have been executed");
    }
}

#[test]
fn heartbeats_end_the_calls_that_wait_for_a_server_that_is_silent() {
    let do_they = |strategy, semantics, time_out| {
        let orb = client(strategy);
        let servers = [Moment::Silent, Moment::Never].map(Replica::start);
        let addresses = servers.each_ref().map(|server| server.address);
        let policy = FailoverPolicy {
            // The time of the call alone would end it much later.
            attempt_timeout: Some(PATIENCE),
            heartbeat: Some(Heartbeat {
                interval: Duration::from_millis(10),
                time_out,
            }),
            ..policy(semantics)
        };
        let object = with(&reference(&orb, &addresses, Form::Alternates), policy);
        let threads = [(); 3].map(|()| {
            let object = object.clone();
            std::thread::spawn(move || add(&object, 1, 2))
        });
        let ended = threads.map(|thread| {
            let told = thread.join().expect("it does not panic");
            match told.map_err(|e| (e.kind, e.completed)) {
                // A call that began after the death was told goes to the second at once.
                Err((CommFailure, Maybe)) => semantics == BestEffort,
                told => told == Ok(3),
            }
        });
        // The address is suspected.
        let goes_on = add(&object, 1, 2) == Ok(3);
        orb.shutdown(true).expect("not from a servant");
        goes_on && !ended.contains(&false)
    };
    for strategy in STRATEGIES {
        for semantics in [BestEffort, AtLeastOnce] {
            // On a busy machine the server that answers may need longer.
            with_longer_times(Duration::from_millis(50), |time_out| {
                do_they(strategy, semantics, time_out).then_some(())
            });
        }
    }
}

#[test]
fn a_silent_server_does_not_make_those_suspected_that_answer() {
    // On a busy machine those that answer may need longer.
    with_longer_times(Duration::from_millis(100), |time_out| {
        is_only_the_silent_one_suspected(time_out).then_some(())
    });
}

fn is_only_the_silent_one_suspected(time_out: Duration) -> bool {
    let orb = client(ConnectionStrategy::Exclusive);
    let policy = FailoverPolicy {
        attempt_timeout: Some(PATIENCE),
        suspicion: Duration::MAX,
        standbys: 3,
        heartbeat: Some(Heartbeat {
            interval: Duration::from_millis(1),
            time_out,
        }),
        ..policy(OrbDefault)
    };
    // Both are asked in the same rounds, in any order.
    let moments = [Moment::Never, Moment::Silent, Moment::Never, Moment::Never];
    let servers = moments.map(Replica::start);
    let addresses = servers.each_ref().map(|server| server.address);
    let object = with(&reference(&orb, &addresses, Form::Alternates), policy);
    if object.validate_connection().is_err() {
        return false;
    }
    // The silent one is suspected after some rounds, and its connections end.
    let silent = &servers[1].life;
    let deadline = Deadline::after(PATIENCE);
    while silent.ended.load(Ordering::SeqCst) == 0 {
        assert!(!deadline.has_passed(), "it is never suspected");
        std::thread::yield_now();
    }
    add(&object, 1, 2) == Ok(3) && servers[0].executions() == 1
}

#[test]
fn an_explicit_binding_connects_to_stand_bys_in_advance() {
    for form in FORMS {
        for strategy in STRATEGIES {
            let orb = client(strategy);
            let servers = [(); 3].map(|()| Replica::start(Moment::Never));
            let addresses = servers.each_ref().map(|server| server.address);
            let policy = FailoverPolicy {
                standbys: 1,
                ..policy(AtLeastOnce)
            };
            let object = with(&reference(&orb, &addresses, form), policy);
            object.validate_connection().expect("the servers are there");
            // A backlog accepts connections before the server does.
            let connections = || servers.each_ref().map(Replica::connections);
            while connections() != [1, 1, 0] {
                std::thread::yield_now();
            }
            servers[0].life.end();
            assert_eq!(add(&object, 1, 2), Ok(3));
            assert_eq!(connections(), [1, 1, 0], "{form:?} {strategy:?}");
            assert_eq!(servers[1].executions(), 1);
        }
    }
}

#[test]
fn the_budget_limits_repeated_requests() {
    let orb = client(ConnectionStrategy::Exclusive);
    let servers = [Moment::Busy, Moment::Never].map(Replica::start);
    let addresses = servers.each_ref().map(|server| server.address);
    let policy = FailoverPolicy {
        retries: RetryBudget {
            per_second: 0,
            burst: 9,
        },
        ..policy(BestEffort)
    };
    let object = with(&reference(&orb, &addresses, Form::Alternates), policy);
    assert_eq!(kind_and_completion(add(&object, 1, 2)), (Transient, No));
    assert_eq!(servers[1].executions(), 0);
}

#[test]
fn a_binding_that_must_stay_does_not_fail_over() {
    let orb = client(ConnectionStrategy::Exclusive);
    let servers = [Moment::Busy, Moment::Never].map(Replica::start);
    let addresses = servers.each_ref().map(|server| server.address);
    let policies = [
        ClientPolicy::Failover(policy(AtLeastOnce)),
        ClientPolicy::Rebind(RebindMode::NoReconnect),
    ];
    let object = reference(&orb, &addresses, Form::Alternates);
    let object = object.with_policy_overrides(&policies, SetOverride::Set);
    let object = object.expect("they can be followed");
    assert_eq!(kind_and_completion(add(&object, 1, 2)), (Transient, No));
}

#[test]
fn policies_that_cannot_be_followed_are_refused() {
    let orb = client(ConnectionStrategy::Exclusive);
    let at_most_once = policy(AtMostOnce);
    let heartbeat = |interval, time_out| FailoverPolicy {
        heartbeat: Some(Heartbeat { interval, time_out }),
        ..policy(BestEffort)
    };
    let second = Duration::from_secs(1);
    let no_time = FailoverPolicy {
        attempt_timeout: Some(Duration::ZERO),
        ..policy(BestEffort)
    };
    for policy in [
        at_most_once,
        heartbeat(Duration::ZERO, second),
        heartbeat(second, Duration::ZERO),
        no_time,
    ] {
        let policy = [ClientPolicy::Failover(policy)];
        let refused = SystemException::no(InvPolicy, minor::FAILOVER_UNSUPPORTED);
        let manager = orb.policy_manager();
        let set = manager.set_policy_overrides(&policy, SetOverride::Add);
        assert_eq!(set, Err(refused));
        let current = orb.policy_current();
        let set = current.set_policy_overrides(&policy, SetOverride::Add);
        assert_eq!(set, Err(refused));
        assert!(manager.policy_overrides(&[]).is_empty());
    }
}
