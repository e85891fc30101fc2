//! Servers that send unsolicited replies: all calls complete, and none gets the result of another.

use std::sync::Arc;

use chronorb_orb::{
    CompletionStatus, ConnectionStrategy, Object, Orb, PendingReply, SystemException,
    SystemExceptionKind as Kind, minor,
};
use chronorb_rt::PiMutex;

use crate::support::asynchronous::{WAYS, begin_add, poll_for};
use crate::support::raw_server::{
    Peer, RawServer, fragments, object_at, raw_server, reply, wide_reply,
};
use crate::support::strategies::STRATEGIES;
use crate::support::{Latch, add, orb_with};

/// The maximum number of unsolicited replies of a server.
const MAX_STRAYS: u32 = 1000;

fn at(strategy: ConnectionStrategy, server: &RawServer) -> (Orb, Object) {
    eprintln!("with {strategy:?}");
    let orb = orb_with(|config| config.client_connection = strategy);
    let object = object_at(&orb, server.address);
    (orb, object)
}

/// Returns unsolicited replies, with request ids before `id`.
fn strays(id: u32, number: u32) -> Vec<u8> {
    let stray = |n| reply(id.wrapping_add(1 << 20).wrapping_add(n), 0);
    (0..number).flat_map(stray).collect()
}

const ENDED: SystemException = SystemException::new(
    Kind::Marshal,
    minor::MALFORMED_MESSAGE,
    CompletionStatus::Maybe,
);

#[test]
fn so_many_replies_to_nothing_are_passed_over_and_more_end_the_connection() {
    for strategy in STRATEGIES {
        for (way, take) in WAYS {
            eprintln!("one that {way}");
            let server = raw_server(|mut peer: Peer| {
                while let Some((id, (a, b))) = peer.request() {
                    peer.send(&strays(id, a as u32));
                    peer.answer((id, (0, b)));
                }
            });
            let (orb, object) = at(strategy, &server);
            let ask = |strays: u32| take(begin_add(&object, strays as i32, 7).expect("it begins"));
            assert_eq!(ask(MAX_STRAYS), Ok(7));
            assert_eq!(server.connections(), 1);
            assert_eq!(ask(MAX_STRAYS + 1), Err(ENDED));
            assert_eq!(ask(0), Ok(7), "on a new connection");
            assert_eq!(server.connections(), 2);
            let _ = orb.shutdown(true);
        }
        let server = raw_server(|mut peer: Peer| {
            while let Some((id, (a, b))) = peer.request() {
                peer.send(&strays(id, a as u32));
                peer.answer((id, (0, b)));
            }
        });
        let (orb, object) = at(strategy, &server);
        assert_eq!(add(&object, MAX_STRAYS as i32, 7), Ok(7));
        assert_eq!(add(&object, MAX_STRAYS as i32 + 1, 7), Err(ENDED));
        assert_eq!(add(&object, 0, 7), Ok(7));
        let _ = orb.shutdown(true);
    }
}

#[test]
fn a_second_reply_does_not_take_the_place_of_the_first() {
    for strategy in STRATEGIES {
        let server = raw_server(|mut peer: Peer| {
            let [first, second] = [(); 2].map(|()| peer.request().expect("a request comes"));
            peer.send(&reply(first.0, 1));
            peer.send(&reply(first.0, 2));
            peer.send(&reply(second.0, 3));
            peer.answer_all();
        });
        let (orb, object) = at(strategy, &server);
        let first = begin_add(&object, 0, 0).expect("it begins");
        let second = begin_add(&object, 0, 0).expect("it begins");
        // By then both to the first one are there.
        assert_eq!(second.wait(), Ok(3));
        assert_eq!(first.wait(), Ok(1));
        let next = begin_add(&object, 2, 2).expect("it begins");
        assert_eq!(next.wait(), Ok(4));
        let _ = orb.shutdown(true);
    }
}

#[test]
fn the_ids_of_requests_are_not_known_before() {
    for strategy in STRATEGIES {
        let ids = Arc::new(PiMutex::new(Vec::new()));
        let seen = ids.clone();
        let server = raw_server(move |mut peer: Peer| {
            let first = peer.request().expect("a request comes");
            seen.lock().push(first.0);
            peer.answer(first);
            peer.until_the_end();
        });
        for _ in 0..3 {
            let (orb, object) = at(strategy, &server);
            assert_eq!(add(&object, 1, 2), Ok(3));
            let _ = orb.shutdown(true);
        }
        let ids = ids.lock();
        assert!(
            ids.len() == 3 && ids.iter().any(|id| *id != ids[0]),
            "{ids:?}"
        );
    }
}

#[test]
fn replies_that_nobody_fetches_are_bounded_and_the_greatest_pays() {
    const MOST: usize = 1 << 20;
    const CALLS: usize = 8;
    for strategy in STRATEGIES {
        let server = raw_server(|mut peer: Peer| {
            let requests = [(); CALLS + 1].map(|()| peer.request().expect("a request comes"));
            for (n, (id, _)) in requests[..CALLS].iter().enumerate() {
                peer.send(&wide_reply(*id, n as i32, 300_000 + n));
            }
            peer.send(&reply(requests[CALLS].0, 100));
            peer.answer_all();
        });
        eprintln!("with {strategy:?}");
        let orb = orb_with(|config| {
            config.client_connection = strategy;
            config.max_buffered_octets = MOST;
        });
        let object = object_at(&orb, server.address);
        let calls: Vec<PendingReply<i32>> = (0..=CALLS)
            .map(|_| begin_add(&object, 0, 0).expect("it begins"))
            .collect();
        let mut results = calls.into_iter().rev().map(PendingReply::wait);
        assert_eq!(results.next(), Some(Ok(100)), "a small one does not pay");
        let results: Vec<_> = results.collect();
        let refused = SystemException::new(
            Kind::ImpLimit,
            minor::TOO_MANY_REPLY_OCTETS,
            CompletionStatus::Maybe,
        );
        let kept = results.iter().filter(|result| result.is_ok()).count();
        let dropped = results.iter().filter(|r| **r == Err(refused)).count();
        assert_eq!(kept + dropped, CALLS, "{results:?}");
        // A frame has up to twice the length of its message.
        assert!((1..=MOST / 300_000).contains(&kept), "{kept} were kept");
        let next = begin_add(&object, 2, 2).expect("it begins");
        assert_eq!(next.wait(), Ok(4));
        let _ = orb.shutdown(true);
    }
}

#[test]
fn a_look_at_a_long_reply_returns_although_more_of_it_comes() {
    const LONG: usize = 8 << 20;
    for strategy in STRATEGIES {
        let looked = Arc::new(Latch::default());
        let go_on = looked.clone();
        let server = raw_server(move |mut peer: Peer| {
            let (id, _) = peer.request().expect("a request comes");
            let whole = wide_reply(id, 7, LONG);
            let (first, last) = whole.split_at(LONG / 2);
            peer.send(first);
            go_on.reach(1);
            peer.send(last);
            // In parts as well.
            let (id, _) = peer.request().expect("another one comes");
            for part in fragments(&wide_reply(id, 8, LONG), 1 << 16) {
                peer.send(&part);
            }
            peer.answer_all();
        });
        let (orb, object) = at(strategy, &server);
        let mut pending = begin_add(&object, 0, 0).expect("it begins");
        for _ in 0..100 {
            assert_eq!(pending.try_get(), None);
        }
        looked.set(1);
        assert_eq!(poll_for(&mut pending), Ok(7));
        let mut pending = begin_add(&object, 0, 0).expect("it begins");
        assert_eq!(poll_for(&mut pending), Ok(8));
        let _ = orb.shutdown(true);
    }
}

/// A server that sends datagrams without end, none of which is a reply to a received request.
#[cfg(feature = "diop")]
mod flooded {
    use std::net::{SocketAddr, UdpSocket};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use chronorb_giop::{IiopProfile, Ior, TAG_DIOP, TaggedProfile, Version};
    use chronorb_rt::Deadline;

    use super::*;
    use crate::support::{PATIENCE, with_short_timeout};

    struct Flood {
        address: SocketAddr,
        sent: Arc<AtomicUsize>,
        ends: Arc<AtomicBool>,
    }

    impl Flood {
        fn start() -> Self {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
            let address = socket.local_addr().expect("it is bound");
            let this = Self {
                address,
                sent: Arc::default(),
                ends: Arc::default(),
            };
            let (sent, ends) = (this.sent.clone(), this.ends.clone());
            std::thread::spawn(move || {
                let mut request = [0; 1 << 10];
                let (_, client) = socket.recv_from(&mut request).expect("a request comes");
                let id = u32::from_le_bytes(request[12..16].try_into().expect("four"));
                let until = Deadline::after(PATIENCE);
                let mut stray = id;
                while !ends.load(Ordering::Relaxed) && !until.has_passed() {
                    stray = stray.wrapping_add(1 << 8) | 1 << 31;
                    if stray != id {
                        let _ = socket.send_to(&reply(stray, 0), client);
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                }
                ends.store(true, Ordering::Relaxed);
            });
            this
        }

        fn object(&self, orb: &Orb) -> Object {
            let profile = IiopProfile {
                version: Version::V1_2,
                host: self.address.ip().to_string(),
                port: self.address.port(),
                object_key: b"key".to_vec(),
                components: Vec::new(),
            };
            let ior = Ior {
                type_id: crate::support::PROBE_ID.to_owned(),
                profiles: vec![TaggedProfile {
                    tag: TAG_DIOP,
                    data: profile.encode().expect("it fits"),
                }],
            };
            let object = orb.string_to_object(&ior.to_string());
            object.expect("the reference reads")
        }

        fn await_more(&self) {
            let (before, until) = (self.sent.load(Ordering::Relaxed), Deadline::after(PATIENCE));
            while self.sent.load(Ordering::Relaxed) < before + 1000 {
                assert!(!until.has_passed(), "there is no flood");
                std::thread::yield_now();
            }
        }

        /// Ends the flood. Returns whether it was still going on.
        fn end(&self) -> bool {
            !self.ends.swap(true, Ordering::Relaxed)
        }
    }

    #[test]
    fn calls_end_at_their_deadline_although_datagrams_come_without_end() {
        for strategy in STRATEGIES {
            for (way, take) in WAYS {
                eprintln!("{strategy:?}, one that {way}");
                let flood = Flood::start();
                let orb = orb_with(|config| config.client_connection = strategy);
                let call = |hasty: &Object| take(begin_add(hasty, 1, 2)?);
                let result = with_short_timeout(&flood.object(&orb), call);
                assert!(
                    flood.end(),
                    "it ends with its deadline and not with the flood"
                );
                let late = result.expect_err("nothing is answered");
                assert_eq!(
                    (late.kind, late.minor),
                    (Kind::Timeout, minor::TIMEOUT_REPLY_END)
                );
                let _ = orb.shutdown(true);
            }
        }
    }

    #[test]
    fn a_look_waits_for_nothing_although_datagrams_come_without_end() {
        for strategy in STRATEGIES {
            let flood = Flood::start();
            let orb = orb_with(|config| config.client_connection = strategy);
            let object = flood.object(&orb);
            let mut pending = begin_add(&object, 1, 2).expect("it begins");
            for _ in 0..10 {
                flood.await_more();
                assert_eq!(pending.try_get(), None);
            }
            assert!(flood.end(), "it returns before the flood ends");
            drop(pending);
            let _ = orb.shutdown(true);
        }
    }
}

#[test]
fn an_asynchronous_call_by_a_url_is_followed_to_where_the_object_is() {
    let served = crate::support::served();
    let name = "Probe";
    served
        .server
        .register_initial_reference(name, &served.object)
        .expect("the name is free");
    let profile = &served.object.ior().profiles[0];
    let profile = chronorb_giop::IiopProfile::decode(&profile.data).expect("it is one of IIOP");
    for version in ["", "1.2@"] {
        let url = format!("corbaloc:iiop:{version}127.0.0.1:{}/{name}", profile.port);
        for strategy in STRATEGIES {
            for (way, take) in WAYS {
                eprintln!("{strategy:?}, {url}, one that {way}");
                let client = orb_with(|config| config.client_connection = strategy);
                let object = client.string_to_object(&url).expect("it reads");
                let pending = begin_add(&object, 1, 2).expect("it begins");
                assert_eq!(take(pending), Ok(3));
                let again = begin_add(&object, 3, 4).expect("it begins");
                assert_eq!(take(again), Ok(7));
                let _ = client.shutdown(true);
            }
        }
    }
}
