//! Hostile servers: whatever one sends, the call ends with the right exception, the next one
//! succeeds, and no resource is leaked.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_giop::Ior;
use chronorb_orb::SystemExceptionKind::{
    self as Kind, CommFailure, ImpLimit, InvObjref, Marshal, Timeout, Transient, Unknown,
};
use chronorb_orb::{CompletionStatus, Object, SystemException};
use chronorb_rt::{Deadline, list};
use rustix::net::sockopt::set_socket_linger;

use crate::support::asynchronous::{WAYS, begin_add};
use crate::support::descriptors::spawn;
use crate::support::raw_server::{
    CLOSE_CONNECTION, Message, Peer, forward, fragments, object_at, raw_server, reply, wide_reply,
};
use crate::support::strategies::STRATEGIES;
use crate::support::{PATIENCE, add, echo, name_of, orb_with};

/// The expected result of the client.
enum ExpectedResult {
    /// The sum.
    Answer,
    Exception(Kind, CompletionStatus),
}

use ExpectedResult::{Answer, Exception};

const NO: CompletionStatus = CompletionStatus::No;
const MAYBE: CompletionStatus = CompletionStatus::Maybe;

/// An attack: the reaction to a request, the number of requests that it applies to, and the
/// expected result of the client. The connection continues if `acts` returns `true`.
struct Attack {
    name: &'static str,
    requests: usize,
    acts: fn(&mut Peer, u32) -> bool,
    told: ExpectedResult,
}

const fn attack(
    name: &'static str,
    told: ExpectedResult,
    acts: fn(&mut Peer, u32) -> bool,
) -> Attack {
    Attack {
        name,
        requests: 1,
        acts,
        told,
    }
}

/// Returns a whole message of GIOP 1.2, little-endian.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut octets = b"GIOP\x01\x02\x01".to_vec();
    octets.push(kind);
    octets.extend_from_slice(&(body.len() as u32).to_le_bytes());
    octets.extend_from_slice(body);
    octets
}

/// Returns a reply of this status, with this body behind its header.
fn reply_of(id: u32, status: u32, body: &[u8]) -> Vec<u8> {
    let words = [id, status, 0];
    let mut octets: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    // The body is aligned to 8 octets of the message.
    octets.extend_from_slice(&[0; 4][..octets.len().wrapping_neg().wrapping_sub(12) % 8 % 5]);
    octets.extend_from_slice(body);
    message(1, &octets)
}

/// Returns a system exception with this identifier, as octets with or without their NUL.
fn exception(id: u32, name: &[u8], completed: u32) -> Vec<u8> {
    let mut body = (name.len() as u32).to_le_bytes().to_vec();
    body.extend_from_slice(name);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend_from_slice(&7_u32.to_le_bytes());
    body.extend_from_slice(&completed.to_le_bytes());
    reply_of(id, 2, &body)
}

fn long_name() -> Vec<u8> {
    let mut name = vec![b'x'; 40_000];
    name.push(0);
    name
}

const ATTACKS: &[Attack] = &[
    attack("garbage", Exception(Marshal, MAYBE), |peer, _| {
        peer.send(&[0xa5; 64]);
        true
    }),
    attack("another protocol", Exception(Marshal, MAYBE), |peer, _| {
        peer.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        true
    }),
    attack("a reply to nothing", Answer, |peer, id| {
        peer.send(&reply(id.wrapping_add(77), 1));
        peer.send(&reply(id, 3));
        true
    }),
    attack("two replies", Answer, |peer, id| {
        peer.send(&reply(id, 3));
        peer.send(&reply(id, 4));
        true
    }),
    attack("a reply in parts", Answer, |peer, id| {
        let parts = fragments(&reply(id, 3), 8);
        peer.send(&parts.concat());
        true
    }),
    attack(
        "parts without end",
        Exception(ImpLimit, MAYBE),
        |peer, id| {
            let part = message(7, &[&id.to_le_bytes()[..], &[0; 60]].concat());
            let part = [&part[..6], &[3], &part[7..]].concat();
            let mut first = reply(id, 3);
            first[6] = 3;
            peer.send(&first);
            peer.send(&part.repeat(4000));
            true
        },
    ),
    attack("empty parts", Exception(ImpLimit, MAYBE), |peer, id| {
        let part = message(7, &id.to_le_bytes());
        let part = [&part[..6], &[3], &part[7..]].concat();
        let mut first = reply(id, 3);
        first[6] = 3;
        peer.send(&first);
        peer.send(&part.repeat(70_000));
        true
    }),
    attack(
        "a part of nothing",
        Exception(Marshal, MAYBE),
        |peer, id| {
            peer.send(&message(7, &id.wrapping_add(5).to_le_bytes()));
            true
        },
    ),
    attack("a forward to nil", Exception(InvObjref, NO), |peer, id| {
        peer.send(&forward(id, &Ior::nil()));
        true
    }),
    Attack {
        name: "forwards to itself",
        requests: 9,
        acts: |peer, id| {
            let orb = orb_with(|_| {});
            let here = peer.stream.local_addr().expect("it is bound");
            peer.send(&forward(id, object_at(&orb, here).ior()));
            true
        },
        told: Exception(Transient, NO),
    },
    attack(
        "the present addressing",
        Exception(InvObjref, NO),
        |p, id| {
            p.send(&reply_of(id, 5, &[0, 0]));
            true
        },
    ),
    attack("addressing by profile", Answer, |peer, id| {
        peer.send(&reply_of(id, 5, &[1, 0]));
        true
    }),
    attack("addressing by reference", Answer, |peer, id| {
        peer.send(&reply_of(id, 5, &[2, 0]));
        true
    }),
    attack("no addressing", Exception(Marshal, MAYBE), |peer, id| {
        peer.send(&reply_of(id, 5, &[99, 0]));
        true
    }),
    attack("a long exception", Exception(Unknown, MAYBE), |peer, id| {
        peer.send(&exception(id, &long_name(), 2));
        true
    }),
    attack(
        "text without its end",
        Exception(Marshal, MAYBE),
        |p, id| {
            p.send(&exception(id, b"IDL:x", 0));
            true
        },
    ),
    attack(
        "half an exception",
        Exception(Marshal, MAYBE),
        |peer, id| {
            peer.send(&reply_of(id, 2, &[200, 0, 0, 0, b'x']));
            true
        },
    ),
    attack("no completion", Exception(Marshal, MAYBE), |peer, id| {
        peer.send(&exception(id, b"IDL:omg.org/CORBA/UNKNOWN:1.0\0", 99));
        true
    }),
    attack("no status", Exception(Marshal, MAYBE), |peer, id| {
        peer.send(&reply_of(id, 99, &[]));
        true
    }),
    attack("a goodbye", Answer, |peer, _| {
        peer.send(CLOSE_CONNECTION);
        false
    }),
    attack("the end", Exception(CommFailure, MAYBE), |_, _| false),
    attack("a reset", Exception(CommFailure, MAYBE), |peer, _| {
        set_socket_linger(&peer.stream, Some(Duration::ZERO)).expect("it is a socket");
        false
    }),
    attack(
        "half a header",
        Exception(CommFailure, MAYBE),
        |peer, id| {
            peer.send(&reply(id, 3)[..7]);
            false
        },
    ),
    attack("half a reply", Exception(CommFailure, MAYBE), |peer, id| {
        peer.send(&reply(id, 3)[..20]);
        false
    }),
    attack(
        "a goodbye in a reply",
        Exception(CommFailure, MAYBE),
        |p, id| {
            p.send(&fragments(&wide_reply(id, 3, 100), 40)[0]);
            p.send(CLOSE_CONNECTION);
            false
        },
    ),
    attack("a great size", Exception(ImpLimit, MAYBE), |peer, _| {
        peer.send(b"GIOP\x01\x02\x01\x01\xff\xff\xff\xff");
        true
    }),
    attack("a size too small", Exception(Marshal, MAYBE), |peer, _| {
        peer.send(&message(1, &[0; 3]));
        true
    }),
    attack("version 0.0", Exception(Marshal, MAYBE), |peer, id| {
        peer.send(&with_version(id, 0, 0));
        true
    }),
    attack("version 1.9", Exception(Marshal, MAYBE), |peer, id| {
        peer.send(&with_version(id, 1, 9));
        true
    }),
    attack("version 2.0", Exception(Marshal, MAYBE), |peer, id| {
        peer.send(&with_version(id, 2, 0));
        true
    }),
    attack(
        "the other byte order",
        Exception(ImpLimit, MAYBE),
        |peer, id| {
            let mut octets = reply(id, 3);
            octets[6] ^= 1;
            peer.send(&octets);
            true
        },
    ),
    attack("many contexts", Answer, |peer, id| {
        peer.send(&with_contexts(id, 7000, 7000));
        true
    }),
    attack(
        "more contexts than octets",
        Exception(Marshal, MAYBE),
        |peer, id| {
            peer.send(&with_contexts(id, u32::MAX, 0));
            true
        },
    ),
    attack("a request", Exception(CommFailure, MAYBE), |peer, id| {
        peer.send(&message(0, &[&id.to_le_bytes()[..], &[0; 40]].concat()));
        true
    }),
    attack("a cancelling", Exception(CommFailure, MAYBE), |peer, id| {
        peer.send(&message(2, &id.to_le_bytes()));
        true
    }),
    attack("an error", Exception(CommFailure, MAYBE), |peer, _| {
        peer.send(&message(6, &[]));
        true
    }),
    attack("silence", Exception(Timeout, MAYBE), |_, _| true),
    attack(
        "silence in a reply",
        Exception(Timeout, MAYBE),
        |peer, id| {
            let whole = wide_reply(id, 3, 1000);
            peer.send(&whole[..500]);
            // The client gives the call up, or the connection.
            let goes_on = peer.message().is_some();
            peer.send(&whole[500..]);
            goes_on
        },
    ),
    attack(
        "single octets past the deadline",
        Exception(Timeout, MAYBE),
        |peer, id| {
            // Without an end, where the client does not cancel the call.
            let whole = wide_reply(id, 3, 60_000);
            let mut octets = whole.iter();
            for octet in octets.by_ref() {
                peer.send(&[*octet]);
                if peer.has_message(DRIP) {
                    break;
                }
            }
            let goes_on = peer.message().is_some();
            peer.send(octets.as_slice());
            goes_on
        },
    ),
];

/// Returns a reply of 3 with this many contexts, each with invalid code sets, and their count.
fn with_contexts(id: u32, count: u32, contexts: u32) -> Vec<u8> {
    let words = [id, 0, count].into_iter();
    let contexts = (0..contexts).flat_map(|_| [1, 0]);
    // The body is aligned to 8 octets already.
    let words = words.chain(contexts).chain([3]);
    let octets: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    message(1, &octets)
}

fn with_version(id: u32, major: u8, minor: u8) -> Vec<u8> {
    let mut octets = reply(id, 3);
    octets[4..6].copy_from_slice(&[major, minor]);
    octets
}

/// The time between two octets of a reply.
const DRIP: Duration = Duration::from_millis(5);
/// Long enough to send a request on a loaded machine.
const SHORT: Duration = Duration::from_millis(200);

/// Long enough to write a long message, and to begin to read it.
const ENOUGH: Duration = Duration::from_secs(2);

/// A way to make a call and take its result.
type Call = fn(&Object) -> Result<i32, SystemException>;

fn calls() -> Vec<(&'static str, Call)> {
    let mut calls: Vec<(&'static str, Call)> = vec![("calls", |object| add(object, 1, 2))];
    let asynchronous: [Call; 4] = [
        |object| WAYS[0].1(begin_add(object, 1, 2)?),
        |object| WAYS[1].1(begin_add(object, 1, 2)?),
        |object| WAYS[2].1(begin_add(object, 1, 2)?),
        |object| WAYS[3].1(begin_add(object, 1, 2)?),
    ];
    calls.extend(
        WAYS.iter()
            .zip(asynchronous)
            .map(|((way, _), call)| (*way, call)),
    );
    calls
}

/// Runs the attack against the first requests, with a server that behaves afterwards, for all kinds
/// of calls and strategies.
fn meet(attack: &Attack) {
    for strategy in STRATEGIES {
        for (way, call) in calls() {
            let case = format!("{}: {strategy:?}, one that {way}", attack.name);
            let (acts, requests) = (attack.acts, attack.requests);
            let seen = Arc::new(AtomicUsize::new(0));
            let server = raw_server(move |mut peer: Peer| {
                while let Some(message) = peer.message() {
                    let Message::Request { id, arguments } = message else {
                        continue;
                    };
                    if seen.fetch_add(1, Ordering::SeqCst) >= requests {
                        peer.answer((id, arguments));
                    } else if !acts(&mut peer, id) {
                        return;
                    }
                }
            });
            let orb = orb_with(|config| {
                config.client_connection = strategy;
                config.max_message_size = 64 << 10;
                config.max_buffered_octets = 64 << 10;
            });
            let object = object_at(&orb, server.address);
            let result = match attack.told {
                Exception(Timeout, _) => call_for_a_moment(call, &object),
                _ => call(&object),
            };
            match attack.told {
                Answer => assert_eq!(result, Ok(3), "{case}"),
                Exception(kind, completed) => {
                    let told = result.map_err(|exception| (exception.kind, exception.completed));
                    assert_eq!(told, Err((kind, completed)), "{case}");
                }
            }
            assert_eq!(call(&object), Ok(3), "the next call after {case}");
            orb.shutdown(true).expect("it ends");
        }
    }
}

/// Calls with a short timeout. On a loaded machine the timeout may pass before the request is sent,
/// which the exception shows; then it calls again.
fn call_for_a_moment(call: Call, object: &Object) -> Result<i32, SystemException> {
    let is_unsent = |result: &Result<i32, SystemException>| {
        result.is_err_and(|e| (e.kind, e.completed) == (Timeout, CompletionStatus::No))
    };
    let deadline = Deadline::after(PATIENCE);
    loop {
        let result = call(&object.with_timeout(SHORT));
        if !is_unsent(&result) || deadline.has_passed() {
            return result;
        }
    }
}

/// Returns the numbers of the ORBs' threads and of open descriptors, without those of the test's
/// servers.
fn left() -> (usize, usize) {
    let of_orbs = ["ami.", "conn.", "aside", "names"];
    let threads = list();
    let threads = threads.iter().filter(|thread| {
        let name = &thread.name;
        of_orbs.iter().any(|prefix| name.starts_with(prefix))
    });
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("they are listed");
    (threads.count(), descriptors.count())
}

/// Returns the peak memory of the process in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.trim().strip_suffix(" kB"));
    peak.and_then(|text| text.parse().ok()).expect("a number")
}

#[test]
fn the_attacked_process() {
    if std::env::var_os(ATTACKED).is_none() {
        return;
    }
    let servers = ATTACKS.len() * STRATEGIES.len() * calls().len();
    let (_, descriptors) = left();
    std::thread::scope(|scope| {
        for attack in ATTACKS {
            scope.spawn(move || meet(attack));
        }
    });
    // The peers' ends are closed by their threads.
    let deadline = Deadline::after(PATIENCE);
    loop {
        let now = left();
        if now.0 == 0 && now.1 <= descriptors + servers {
            break;
        }
        assert!(
            !deadline.has_passed(),
            "{now:?} of {descriptors} and {servers}"
        );
        std::thread::yield_now();
    }
    assert!(peak() < MOST_KIB, "{} KiB at most", peak());
}

#[test]
fn no_attack_of_a_server_harms_its_clients() {
    let this = std::env::current_exe().expect("it runs");
    let mut command = Command::new(this);
    let name = name_of(the_attacked_process);
    command.args(["--exact", name, "--test-threads=1", "--nocapture"]);
    let mut process = spawn(command.env(ATTACKED, "1")).expect("it starts");
    assert!(process.wait().expect("it ends").success());
}

#[test]
fn a_server_that_reads_nothing_holds_no_call_past_its_deadline() {
    // More than the kernel's buffers of a connection take.
    let long = "x".repeat(20 << 20);
    std::thread::scope(|scope| {
        for strategy in STRATEGIES {
            let long = &long;
            scope.spawn(move || {
                let server = raw_server(|peer: Peer| match peer.number {
                    0 => std::thread::park_timeout(PATIENCE),
                    _ => peer.answer_all(),
                });
                let orb = orb_with(|config| {
                    config.client_connection = strategy;
                    config.max_message_size = 32 << 20;
                });
                let object = object_at(&orb, server.address);
                let told = echo(&object.with_timeout(ENOUGH), long);
                let told = told.map_err(|exception| (exception.kind, exception.completed));
                assert_eq!(told, Err((Timeout, NO)), "{strategy:?}");
                assert_eq!(add(&object, 1, 2), Ok(3), "the next call, {strategy:?}");
                orb.shutdown(true).expect("it ends");
            });
        }
    });
}

const ATTACKED: &str = "CHRONORB_TEST_ATTACKED";
/// The permitted peak. Most of it are the stacks and frames of the servers and clients themselves.
const MOST_KIB: u64 = 512 << 10;
