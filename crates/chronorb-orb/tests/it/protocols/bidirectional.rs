//! Bidirectional GIOP: servers call back on the connections of their clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, mpsc};

use chronorb_cdr::{Arena, Frame};
use chronorb_giop::codesets::CodeSetComponentInfo;
use chronorb_giop::{
    Component, IiopProfile, MessageHeader, MessageProtocol, MessageType, RequestHeader,
    ResponseFlags, ServiceContext, Target, Version, contexts, encode_request, finish_message,
    start_message,
};
use chronorb_orb::poa::{Poa, Policy};
use chronorb_orb::rtcorba::{BidirectionalMode, ClientPolicy, ClientPolicyKind, SetOverride};
use chronorb_orb::{
    BidirectionalConnections, CompletionStatus, Incident, Object, Orb, SystemException,
    SystemExceptionKind, ThreadpoolStrategy, minor,
};

use crate::support::adapters::{profile_of, until};
use crate::support::asynchronous::begin_add;
use crate::support::laned::{LANES, PROPAGATED, Pool, bands, corba, pool_policy};
use crate::support::raw_server::{CLOSE_CONNECTION, Peer, object_at, raw_server, reply};
use crate::support::strategies::STRATEGIES;
use crate::support::{
    Latch, PATIENCE, Probe, ProbeSkeleton, add, echo, invalid_policy, kind_and_completion, nothing,
    orb_with, priority, relayed,
};

const BOTH: Policy = Policy::Bidirectional(BidirectionalMode::Both);

/// An ORB whose pool has one thread.
pub(super) fn alone(mode: BidirectionalConnections) -> Orb {
    orb_with(|config| {
        config.bidirectional = mode;
        config.threads = "1".parse().expect("a number");
    })
}

/// A client that takes callbacks, and a server that makes them.
struct Sides {
    server: Orb,
    client: Orb,
    /// The server's probe from the point of view of the client.
    object: Object,
    served: Arc<Probe>,
    /// The client's probe as the client names it.
    own: Object,
    /// The client's probe from the point of view of the server.
    callback: Object,
    called: Arc<Probe>,
}

/// Lets calls of an ORB offer callbacks.
pub(super) fn offer(client: &Orb) {
    let policies = [ClientPolicy::Bidirectional(BidirectionalMode::Both)];
    let manager = client.policy_manager();
    let set = manager.set_policy_overrides(&policies, SetOverride::Add);
    set.expect("one policy");
}

pub(super) fn serve(poa: &Poa) -> (Arc<Probe>, Object) {
    let probe = Arc::new(Probe::default());
    let served = poa.serve(ProbeSkeleton(probe.clone()));
    poa.manager().activate().expect("it was not deactivated");
    (probe, served.expect("it activates"))
}

/// A POA of an ORB that takes callbacks.
pub(super) fn callbacks(orb: &Orb, more: &[Policy]) -> Poa {
    let root = orb.root_poa().expect("the ORB runs");
    let policies: Vec<_> = [BOTH].iter().chain(more).cloned().collect();
    let made = root.create_poa("callbacks", None, &policies);
    made.expect("the policies agree")
}

pub(super) fn at(orb: &Orb, object: &Object) -> Object {
    let object = orb.ior_to_object(object.ior().clone());
    object.expect("it is not nil")
}

impl Sides {
    fn of(server: Orb, client: Orb) -> Self {
        Self::with(server, client, &[], &[])
    }

    fn with(server: Orb, client: Orb, of_server: &[Policy], of_client: &[Policy]) -> Self {
        let root = server.root_poa().expect("the ORB runs");
        let (served, object) = serve(&root.create_poa("objects", None, of_server).expect("made"));
        let (called, own) = serve(&callbacks(&client, of_client));
        offer(&client);
        Self {
            object: at(&client, &object),
            callback: at(&server, &own),
            server,
            client,
            served,
            own,
            called,
        }
    }

    fn alone() -> Self {
        let server = alone(BidirectionalConnections::Accept);
        Self::of(server, alone(BidirectionalConnections::Offer))
    }

    /// The connections that the client has accepted.
    fn accepted(&self) -> u64 {
        let pools = self.client.snapshot().pools;
        let lanes = pools.iter().flat_map(|pool| &pool.lanes);
        lanes.map(|lane| lane.accepted).sum()
    }
}

impl Drop for Sides {
    fn drop(&mut self) {
        self.served.gate.set(u32::MAX);
        self.called.gate.set(u32::MAX);
        let _ = self.client.shutdown(true);
        let _ = self.server.shutdown(true);
    }
}

pub(super) fn noted(orb: &Orb, incident: Incident) -> u64 {
    let counts = orb.snapshot().incidents;
    let count = counts.iter().find(|(known, _)| *known == incident);
    count.expect("all are counted").1
}

#[test]
fn callbacks_as_in_the_book() -> Result<(), Box<dyn std::error::Error>> {
    let orb = alone(BidirectionalConnections::Offer);
    let root = orb.root_poa()?;
    let policies = [Policy::Bidirectional(BidirectionalMode::Both)];
    let poa = root.create_poa("callbacks", Some(root.manager()), &policies)?;
    let policies = [ClientPolicy::Bidirectional(BidirectionalMode::Both)];
    orb.policy_manager()
        .set_policy_overrides(&policies, SetOverride::Add)?;
    let (_, own) = serve(&poa);
    let server = alone(BidirectionalConnections::Accept);
    let (_, object) = serve(&server.root_poa()?);
    relayed(&at(&orb, &object), &own)?;
    let pools = orb.snapshot().pools;
    assert_eq!(pools[0].lanes[0].accepted, 0);
    orb.shutdown(true)?;
    Ok(server.shutdown(true)?)
}

/// TAO reads only the first service context that it knows, so with the code sets before it calls
/// back on a connection of its own. TAO's client writes the listen points first.
#[test]
fn listen_points_are_announced_before_the_code_sets_as_tao_reads_them() {
    let client = alone(BidirectionalConnections::Offer);
    let _callbacks = serve(&callbacks(&client, &[]));
    offer(&client);
    let (tell, told) = mpsc::channel();
    let server = raw_server(move |mut peer| {
        let request = peer.request().expect("a request comes");
        tell.send(peer.body.clone()).expect("the test waits");
        peer.answer(request);
        peer.until_the_end();
    });
    let mut ior = object_at(&client, server.address).ior().clone();
    let mut profile = IiopProfile::decode(&ior.profiles[0].data).expect("our own");
    let code_sets = Component::CodeSets(CodeSetComponentInfo::ours());
    profile.components = vec![code_sets.tagged().expect("it fits")];
    ior.profiles = vec![profile.tagged().expect("it fits")];
    let object = client.ior_to_object(ior).expect("it is not nil");
    assert_eq!(add(&object, 1, 2), Ok(3));
    let body = told.recv_timeout(PATIENCE).expect("a request came");
    let size = (body.len() as u32).to_le_bytes();
    let message = [&b"GIOP\x01\x02\x01\0"[..], &size, &body].concat();
    let mut frame = Frame::new(message.len(), message.len());
    frame.extend_from_slice(&message).expect("there is room");
    let header = MessageHeader::parse(&message).expect("it is whole");
    let arena = Arena::new(1 << 10);
    let mut d = header.decoder(&mut frame, &arena);
    let request = RequestHeader::decode(&mut d, header.protocol).expect("our own");
    let ids: Vec<_> = request.contexts.iter().map(|context| context.id).collect();
    assert_eq!(ids[..2], [contexts::BI_DIR_IIOP, contexts::CODE_SETS]);
    client.shutdown(true).expect("it runs");
}

#[test]
fn a_nested_callback_needs_one_thread_on_either_side() {
    for strategy in STRATEGIES {
        let server = alone(BidirectionalConnections::Accept);
        let client = orb_with(|config| {
            config.bidirectional = BidirectionalConnections::Offer;
            config.threads = "1".parse().expect("a number");
            config.client_connection = strategy;
        });
        let s = Sides::of(server, client);
        for _ in 0..3 {
            let called = relayed(&s.object, &s.own).expect("the callback is served");
            assert_eq!(called.0, -1, "{strategy:?}: neither side has priorities");
        }
        assert_eq!(s.accepted(), 0, "{strategy:?}");
    }
}

#[test]
fn both_sides_call_at_any_time_and_from_several_threads() {
    let s = Sides::alone();
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let s = &s;
            scope.spawn(move || {
                for i in 0..50 {
                    let object = if number % 2 == 0 {
                        &s.object
                    } else {
                        &s.callback
                    };
                    assert_eq!(add(object, i, number), Ok(i + number));
                }
            });
        }
    });
    s.callback.validate_connection().expect("it is there");
    let text = "ä".repeat(100_000);
    assert_eq!(echo(&s.callback, &text).as_deref(), Ok(&*text));
    assert_eq!(echo(&s.object, &text).as_deref(), Ok(&*text));
    assert_eq!(s.accepted(), 0);
}

#[test]
fn asynchronous_calls_and_oneways_go_both_ways() {
    let s = Sides::alone();
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    for object in [&s.object, &s.callback] {
        let pending: Vec<_> = (0..20)
            .map(|i| begin_add(object, i, 1).expect("it is sent"))
            .collect();
        for (i, pending) in pending.into_iter().enumerate() {
            assert_eq!(pending.wait(), Ok(i as i32 + 1));
        }
    }
    let note = chronorb_orb::Operation::oneway("note");
    s.callback.invoke_oneway(&note, &|_| Ok(())).expect("sent");
    s.called.gate.reach(1);
    assert_eq!(s.accepted(), 0);
}

#[test]
fn a_client_that_offers_nothing_is_called_at_its_own_endpoint() {
    let s = Sides::alone();
    let normal = [ClientPolicy::Bidirectional(BidirectionalMode::Normal)];
    let object = s.object.with_policy_overrides(&normal, SetOverride::Add);
    let object = object.expect("one policy");
    assert_eq!(
        object.client_policy(ClientPolicyKind::Bidirectional),
        Some(normal[0].clone())
    );
    relayed(&object, &s.own).expect("the callback is served");
    assert_eq!(s.accepted(), 1);
}

#[test]
fn an_offer_is_not_accepted_unless_the_server_is_told_to() {
    for mode in [
        BidirectionalConnections::Off,
        BidirectionalConnections::Offer,
    ] {
        let s = Sides::of(alone(mode), alone(BidirectionalConnections::Offer));
        relayed(&s.object, &s.own).expect("the callback is served");
        assert_eq!(s.accepted(), 1, "{mode:?}");
    }
}

#[test]
fn a_connection_that_the_server_has_made_stays_in_use() {
    let s = Sides::alone();
    assert_eq!(add(&s.callback, 1, 2), Ok(3));
    assert_eq!(s.accepted(), 1);
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    // A new binding of the same thread.
    assert_eq!(add(&at(&s.server, &s.own), 1, 2), Ok(3));
    assert_eq!(s.accepted(), 1);
}

#[test]
fn a_server_calls_only_objects_that_take_callbacks() {
    let s = Sides::alone();
    let root = s.client.root_poa().expect("the ORB runs");
    let (_, private) = serve(&root);
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    let exception =
        SystemException::no(SystemExceptionKind::NoPermission, minor::NOT_BIDIRECTIONAL);
    let private = at(&s.server, &private);
    assert_eq!(add(&private, 1, 2), Err(exception));
    let refused = private.validate_connection().expect_err("it is not called");
    assert_eq!(refused, exception.into());
    assert_eq!(add(&s.callback, 1, 2), Ok(3));
}

#[test]
fn callbacks_are_served_by_the_lane_of_their_band() {
    for (of_client, connections) in [(None, 3), (Some(bands(&[(0, 20), (21, 40)])), 2)] {
        let server = orb_with(|config| config.bidirectional = BidirectionalConnections::Accept);
        let client = orb_with(|config| config.bidirectional = BidirectionalConnections::Offer);
        let model = Policy::PriorityModel(PROPAGATED, corba(LANES[0]));
        let of = |orb: &Orb| {
            let pool = pool_policy(orb, Pool::Lanes).expect("it has lanes");
            vec![pool, model.clone()]
        };
        let (its, own) = (of(&server), of(&client));
        let s = Sides::with(server, client, &its, &own);
        if let Some(bands) = of_client {
            let policy = [ClientPolicy::PriorityBandedConnection(bands)];
            let manager = s.client.policy_manager();
            manager
                .set_policy_overrides(&policy, SetOverride::Add)
                .expect("one policy");
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for lane in LANES {
                    let current = s.client.rt_current();
                    current.set_priority(corba(lane)).expect("it is mapped");
                    let (its, _) = priority(&s.object).expect("it is served");
                    assert_eq!(its, lane);
                    // With bands the connection leads to one lane of the client.
                    if connections == LANES.len() {
                        let (its, _) = relayed(&s.object, &s.own).expect("it is served");
                        assert_eq!(its, lane);
                    }
                }
            });
        });
        if connections == LANES.len() {
            assert_eq!(s.accepted(), 0);
        }
        let pools = s.server.snapshot().pools;
        let lanes = pools.iter().flat_map(|pool| &pool.lanes);
        let accepted: u64 = lanes.map(|lane| lane.accepted).sum();
        assert!(accepted >= connections as u64, "{accepted}");
        let pools = s.client.snapshot().pools;
        let lanes = pools.iter().flat_map(|pool| &pool.lanes);
        let held = lanes.filter(|lane| lane.connections > 0).count();
        assert_eq!(held, connections, "each band has a connection, in its lane");
    }
}

#[test]
fn the_end_of_the_client_ends_callbacks_in_progress() {
    let s = Sides::alone();
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| nothing(&s.callback, "wait"));
        s.called.gate.reach(1);
        s.client.shutdown(false).expect("it runs");
        // The request in progress is answered.
        s.called.gate.set(2);
        assert_eq!(waiting.join().expect("no panic"), Ok(()));
    });
    let lost = add(&s.callback, 1, 2).expect_err("the client is gone");
    // Another ORB of this machine may have its port by now.
    let kinds = [
        SystemExceptionKind::Transient,
        SystemExceptionKind::ObjectNotExist,
    ];
    assert!(kinds.contains(&lost.kind), "{lost}");
}

#[test]
fn the_end_of_the_server_ends_calls_and_the_next_server_calls_back_again() {
    let s = Sides::alone();
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| nothing(&s.object, "wait"));
        s.served.gate.reach(1);
        s.server.shutdown(false).expect("it runs");
        s.served.gate.set(2);
        assert_eq!(waiting.join().expect("no panic"), Ok(()));
    });
    let next = alone(BidirectionalConnections::Accept);
    let (_, object) = serve(&next.root_poa().expect("the ORB runs"));
    relayed(&at(&s.client, &object), &s.own).expect("the callback is served");
    assert_eq!(s.accepted(), 0);
    next.shutdown(true).expect("it runs");
}

#[test]
fn a_lost_connection_ends_calls_of_both_sides() {
    let server = alone(BidirectionalConnections::Accept);
    let client = alone(BidirectionalConnections::Offer);
    let (called, own) = serve(&callbacks(&client, &[]));
    offer(&client);
    let (key, profile) = (profile_of(&own).object_key, profile_of(&own));
    let raw = raw_server(move |mut peer| {
        let (id, _) = peer.request().expect("a call");
        assert_eq!(
            id % 2,
            0,
            "the side that opened the connection has the even numbers"
        );
        peer.send(&request(&key, b"wait", 1, &[]));
        called.gate.reach(1);
        // Neither the call nor the callback is answered.
        drop(peer);
        called.gate.set(2);
    });
    let object = object_at(&client, raw.address);
    let lost = kind_and_completion(add(&object, 1, 2));
    assert_eq!(
        lost,
        (SystemExceptionKind::CommFailure, CompletionStatus::Maybe)
    );
    assert_ne!(profile.port, 0);
    client.shutdown(true).expect("it runs");
    server.shutdown(true).expect("it runs");
}

/// A request of GIOP 1.2 in this machine's byte order.
fn request(key: &[u8], operation: &[u8], id: u32, list: &[ServiceContext<'_>]) -> Vec<u8> {
    let mut frame = Frame::new(512, 1 << 20);
    let mut e = start_message(&mut frame, Version::V1_2, MessageType::Request).expect("room");
    let header = RequestHeader {
        request_id: id,
        response: ResponseFlags::SyncWithTarget,
        target: Target::Key(key),
        operation,
        contexts: list,
    };
    encode_request(&mut e, Version::V1_2, &header).expect("room");
    if operation == b"add" {
        e.align(8).expect("room");
        e.write_i32(20)
            .and_then(|()| e.write_i32(22))
            .expect("room");
    }
    finish_message(&mut frame);
    frame.as_slice().to_vec()
}

/// A client on a bare socket.
struct RawClient {
    stream: TcpStream,
    key: Vec<u8>,
}

impl RawClient {
    fn to(object: &Object) -> Self {
        let profile = IiopProfile::decode(&object.ior().profiles[0].data).expect("our own");
        let stream = TcpStream::connect((profile.host.as_str(), profile.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        let key = profile.object_key;
        Self { stream, key }
    }

    /// Calls `add` with these listen points, and waits for the reply.
    fn announce(&mut self, points: &[(&str, u16)], id: u32) {
        let data = contexts::encode_listen_points(points.iter().copied()).expect("they fit");
        self.announce_octets(&data, id);
    }

    fn announce_octets(&mut self, data: &[u8], id: u32) {
        let id_of_context = contexts::BI_DIR_IIOP;
        let list = [ServiceContext {
            id: id_of_context,
            data,
        }];
        let message = request(&self.key, b"add", id, &list);
        self.stream.write_all(&message).expect("it is sent");
        assert_eq!(self.message().0, MessageType::Reply);
    }

    /// The kind and the request id of the next message.
    fn message(&mut self) -> (MessageType, Option<u32>) {
        let mut header = [0; 12];
        self.stream.read_exact(&mut header).expect("a message");
        let parsed = MessageHeader::parse(&header).expect("a header");
        let mut body = vec![0; parsed.size as usize];
        self.stream.read_exact(&mut body).expect("a whole message");
        let id = body.get(..4).map(|id| id.try_into().expect("four"));
        (parsed.kind, id.map(u32::from_le_bytes))
    }
}

#[test]
fn a_server_has_odd_request_numbers_and_asks_on_the_connection() {
    let server = alone(BidirectionalConnections::Accept);
    let (_, object) = serve(&server.root_poa().expect("the ORB runs"));
    let mut raw = RawClient::to(&object);
    raw.announce(&[("127.0.0.1", 9)], 2);
    let address = ([127, 0, 0, 1], 9).into();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let callback = object_at(&server, address);
            (0..3).map(|i| add(&callback, i, 1)).collect::<Vec<_>>()
        });
        for _ in 0..3 {
            let (kind, id) = raw.message();
            let id = id.expect("a request");
            assert_eq!((kind, id % 2), (MessageType::Request, 1));
            raw.stream.write_all(&reply(id, 7)).expect("it is sent");
        }
        assert_eq!(call.join().expect("no panic"), [Ok(7); 3]);
    });
    server.shutdown(true).expect("it runs");
}

/// The reply, the promise that nothing else was begun, and the end of the connection may be read by
/// three threads.
#[test]
fn messages_before_the_end_of_a_client_are_handled_in_order() {
    for _ in 0..50 {
        let server = orb_with(|config| config.bidirectional = BidirectionalConnections::Accept);
        let (_, object) = serve(&server.root_poa().expect("the ORB runs"));
        let mut raw = RawClient::to(&object);
        raw.announce(&[("127.0.0.1", 9)], 2);
        let (server, callback) = (&server, &object_at(&server, ([127, 0, 0, 1], 9).into()));
        std::thread::scope(|scope| {
            let calls = [(); 2].map(|()| scope.spawn(move || add(callback, 1, 2)));
            let (_, id) = raw.message();
            raw.message();
            let last = [&reply(id.expect("a request"), 7), CLOSE_CONNECTION].concat();
            raw.stream.write_all(&last).expect("it is sent");
            drop(raw);
            let results = calls.map(|call| call.join().expect("no panic"));
            assert!(results.contains(&Ok(7)), "{results:?}");
            let lost = results.iter().find_map(|result| result.err());
            let lost = lost.map(|lost| (lost.kind, lost.completed));
            let not_begun = (SystemExceptionKind::Transient, CompletionStatus::No);
            assert_eq!(lost, Some(not_begun));
        });
        server.shutdown(true).expect("it runs");
    }
}

#[test]
fn claims_of_foreign_listen_points_count_for_no_other_reference() {
    let server = alone(BidirectionalConnections::Accept);
    let (_, object) = serve(&server.root_poa().expect("the ORB runs"));
    let victim = raw_server(|peer| peer.answer_all());
    let port = victim.address.port();
    let mut raw = RawClient::to(&object);
    let foreign = [
        ("127.0.0.2", port),
        ("localhost", port),
        ("", port),
        ("10.0.0.1", port),
    ];
    raw.announce(&foreign, 2);
    let refused = || noted(&server, Incident::ListenPointRefused);
    assert_eq!(refused(), 0);
    assert_eq!(add(&object_at(&server, victim.address), 1, 2), Ok(3));
    assert_eq!(victim.connections(), 1, "the victim is asked itself");
    // Octets that are no listen points.
    raw.announce_octets(&[1, 0, 0, 0, 255, 255, 255, 255], 4);
    raw.announce_octets(&[], 6);
    assert_eq!(refused(), 2);
    // More listen points than a connection may have: at once, and one after the other.
    let many: Vec<_> = (1..=17).map(|port| ("127.0.0.1", port)).collect();
    raw.announce(&many, 8);
    assert_eq!(refused(), 3);
    raw.announce(&many[..12], 10);
    raw.announce(&many[..12], 12);
    assert_eq!(refused(), 3, "they were known");
    raw.announce(&many[12..], 14);
    assert_eq!(refused(), 8);
    server.shutdown(true).expect("it runs");
}

#[test]
fn a_later_claim_does_not_replace_a_connection_in_use() {
    let server = alone(BidirectionalConnections::Accept);
    let (_, object) = serve(&server.root_poa().expect("the ORB runs"));
    let (mut first, mut second) = (RawClient::to(&object), RawClient::to(&object));
    let asked = |raw: &mut RawClient| {
        std::thread::scope(|scope| {
            let call = scope.spawn(|| add(&object_at(&server, ([127, 0, 0, 1], 9).into()), 1, 2));
            let (_, id) = raw.message();
            let answer = reply(id.expect("a request"), 3);
            raw.stream.write_all(&answer).expect("it is sent");
            assert_eq!(call.join().expect("no panic"), Ok(3));
        });
    };
    first.announce(&[("127.0.0.1", 9)], 2);
    asked(&mut first);
    second.announce(&[("127.0.0.1", 9)], 2);
    asked(&mut first);
    drop(first);
    let connections = || server.snapshot().pools[0].lanes[0].connections;
    until("the first connection has ended", || connections() == 1);
    asked(&mut second);
    server.shutdown(true).expect("it runs");
}

fn note(object: &Object) -> Result<(), SystemException> {
    let note = chronorb_orb::Operation::oneway("note");
    object.invoke_oneway(&note, &|_| Ok(()))
}

#[test]
fn no_oneway_is_sent_on_a_bidirectional_connection_that_the_server_has_closed() {
    let (ended, arrived) = (Arc::<Latch>::default(), Arc::<Latch>::default());
    let (tell_end, tell_arrival) = (ended.clone(), arrived.clone());
    let server = raw_server(move |mut peer: Peer| {
        peer.request().expect("a request comes");
        if peer.number > 0 {
            tell_arrival.set(1);
            return peer.until_the_end();
        }
        peer.send(CLOSE_CONNECTION);
        drop(peer);
        tell_end.set(1);
    });
    let client = alone(BidirectionalConnections::Offer);
    let (probe, own) = serve(&callbacks(&client, &[]));
    offer(&client);
    let object = object_at(&client, server.address);
    // The only thread that reads connections is busy, so that it does not read the end.
    let caller = orb_with(|_| {});
    let own = at(&caller, &own);
    std::thread::scope(|scope| {
        scope.spawn(|| nothing(&own, "wait").expect("it is served"));
        probe.gate.reach(1);
        assert_eq!(note(&object), Ok(()));
        ended.reach(1);
        // Another thread, and another reference.
        scope.spawn(|| assert_eq!(note(&object_at(&client, server.address)), Ok(())));
        arrived.reach(1);
        probe.gate.set(2);
    });
    assert_eq!(server.connections(), 2);
    let _ = caller.shutdown(true);
    let _ = client.shutdown(true);
}

#[test]
fn no_callback_is_sent_on_a_connection_that_the_client_has_closed() {
    let arrived = Arc::<Latch>::default();
    let tell_arrival = arrived.clone();
    let endpoint = raw_server(move |mut peer: Peer| {
        peer.request().expect("a request comes");
        tell_arrival.set(1);
        peer.until_the_end();
    });
    let server = alone(BidirectionalConnections::Accept);
    let (probe, object) = serve(&server.root_poa().expect("the ORB runs"));
    let mut raw = RawClient::to(&object);
    raw.announce(&[("127.0.0.1", endpoint.address.port())], 2);
    let callback = object_at(&server, endpoint.address);
    assert_eq!(note(&callback), Ok(()));
    assert_eq!(
        raw.message().0,
        MessageType::Request,
        "it came by the connection"
    );
    let caller = orb_with(|_| {});
    let object = at(&caller, &object);
    std::thread::scope(|scope| {
        scope.spawn(|| nothing(&object, "wait").expect("it is served"));
        probe.gate.reach(1);
        raw.stream.write_all(CLOSE_CONNECTION).expect("it is sent");
        drop(raw);
        scope.spawn(|| assert_eq!(note(&object_at(&server, endpoint.address)), Ok(())));
        arrived.reach(1);
        probe.gate.set(2);
    });
    assert_eq!(endpoint.connections(), 1, "that of the claimed address");
    let _ = caller.shutdown(true);
    let _ = server.shutdown(true);
}

#[test]
fn a_request_on_a_connection_that_is_not_bidirectional_gets_message_error() {
    for strategy in STRATEGIES {
        let client = orb_with(|config| config.client_connection = strategy);
        let (_, own) = serve(&client.root_poa().expect("the ORB runs"));
        let key = profile_of(&own).object_key;
        let (told, tell) = mpsc::channel();
        let raw = raw_server(move |mut peer| {
            peer.request().expect("a call");
            peer.send(&request(&key, b"add", 1, &[]));
            let mut answer = [0; 12];
            peer.stream.read_exact(&mut answer).expect("an answer");
            told.send(MessageHeader::parse(&answer).expect("a header").kind)
                .expect("the test waits");
        });
        let lost = kind_and_completion(add(&object_at(&client, raw.address), 1, 2));
        let maybe = CompletionStatus::Maybe;
        assert_eq!(
            lost,
            (SystemExceptionKind::CommFailure, maybe),
            "{strategy:?}"
        );
        let answer = tell.recv_timeout(PATIENCE);
        assert_eq!(answer, Ok(MessageType::MessageError), "{strategy:?}");
        client.shutdown(true).expect("it runs");
    }
}

#[test]
fn a_reply_to_no_request_gets_message_error() {
    let server = alone(BidirectionalConnections::Accept);
    let (_, object) = serve(&server.root_poa().expect("the ORB runs"));
    let mut raw = RawClient::to(&object);
    raw.stream.write_all(&reply(1, 2)).expect("it is sent");
    assert_eq!(raw.message().0, MessageType::MessageError);
    server.shutdown(true).expect("it runs");
}

#[test]
fn what_cannot_be_had_is_refused() {
    let quiet = alone(BidirectionalConnections::Accept);
    let root = quiet.root_poa().expect("the ORB runs");
    assert_eq!(invalid_policy(root.create_poa("a", None, &[BOTH])), Some(0));
    quiet.shutdown(true).expect("it runs");

    let orb = alone(BidirectionalConnections::Both);
    let first = callbacks(&orb, &[]);
    let root = orb.root_poa().expect("the ORB runs");
    let second = pool_policy(&orb, Pool::Plain).expect("a pool");
    let made = root.create_poa("b", None, &[second, BOTH]);
    assert_eq!(invalid_policy(made), Some(1));
    root.create_poa("c", None, &[BOTH]).expect("the same pool");
    drop(first);
    orb.shutdown(true).expect("it runs");

    use ThreadpoolStrategy::{Reactive, ThreadPerConnection};
    for strategy in [Reactive, ThreadPerConnection] {
        let orb = orb_with(|config| {
            config.bidirectional = BidirectionalConnections::Accept;
            config.threadpool_strategy = strategy;
        });
        let root = orb.root_poa().expect("the ORB runs");
        let probe = ProbeSkeleton(Arc::default());
        let refused = root.serve(probe).expect_err("no thread reads meanwhile");
        let source = std::error::Error::source(&refused);
        assert!(source.is_some() || format!("{refused:?}").contains("NoImplement"));
        orb.shutdown(true).expect("it runs");
    }
}

#[test]
fn an_early_message_of_the_server_is_answered() {
    // The header of a locate request and of a request for an unknown object.
    let client = alone(BidirectionalConnections::Offer);
    let (_, own) = serve(&callbacks(&client, &[]));
    offer(&client);
    let key = profile_of(&own).object_key;
    let raw = raw_server(move |mut peer| {
        let call = peer.request().expect("a call");
        for (id, key) in [(1, &key[..]), (3, b"unknown")] {
            peer.send(&request(key, b"add", id, &[]));
            let mut header = [0; 12];
            peer.stream.read_exact(&mut header).expect("a reply");
            let parsed = MessageHeader::parse(&header).expect("a header");
            let mut body = vec![0; parsed.size as usize];
            peer.stream.read_exact(&mut body).expect("a whole reply");
            let mut frame = Frame::new(512, 1 << 20);
            frame.extend_from_slice(&header).expect("room");
            frame.extend_from_slice(&body).expect("room");
            let arena = Arena::new(1024);
            let mut d = parsed.decoder(&mut frame, &arena);
            let reply = parsed.protocol.decode_reply(&mut d).expect("a reply");
            assert_eq!(reply.request_id, id);
            let is_exception = reply.status == chronorb_giop::ReplyStatus::SystemException;
            assert_eq!(is_exception, id == 3);
        }
        peer.answer(call);
    });
    assert_eq!(add(&object_at(&client, raw.address), 1, 2), Ok(3));
    client.shutdown(true).expect("it runs");
}
