//! The scopes of oneways: every combination of scope, version of GIOP, strategy and state of the
//! buffer, beside a model.

use chronorb_giop::{ResponseFlags, Version};
#[cfg(feature = "baselines")]
use chronorb_orb::ThreadpoolStrategy::WorkerPool;
use chronorb_orb::ThreadpoolStrategy::{self, HalfSyncHalfAsync, LeaderFollowers};
use chronorb_orb::poa::PriorityModel;
use chronorb_orb::rtcorba::{ClientPolicy, SetOverride, SyncScope};
use chronorb_orb::{Operation, SystemException};

use crate::support::pools::{Bench, Buffering, Case, SentRequest, Threads, no_room};

const STRATEGIES: &[ThreadpoolStrategy] = &[
    LeaderFollowers,
    HalfSyncHalfAsync,
    #[cfg(feature = "baselines")]
    WorkerPool,
];
const SCOPES: [SyncScope; 4] = [
    SyncScope::None,
    SyncScope::WithTransport,
    SyncScope::WithServer,
    SyncScope::WithTarget,
];

/// The state of a lane with two threads, and a buffer for two requests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Buffer {
    /// A thread is free.
    Unused,
    /// All threads are busy.
    HasRoom,
    Full,
}

const BUFFERS: [Buffer; 3] = [Buffer::Unused, Buffer::HasRoom, Buffer::Full];

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Never,
    /// Before the servant has ended, or even begun.
    Early(Result<(), SystemException>),
    /// When the servant has ended.
    Late,
}

/// The model.
fn expected(scope: SyncScope, version: Version, buffer: Buffer) -> Answer {
    match scope {
        SyncScope::None | SyncScope::WithTransport => Answer::Never,
        _ if buffer == Buffer::Full => Answer::Early(Err(no_room())),
        SyncScope::WithServer if version >= Version::V1_2 => Answer::Early(Ok(())),
        SyncScope::WithServer | SyncScope::WithTarget => Answer::Late,
    }
}

fn response(scope: SyncScope) -> ResponseFlags {
    match scope {
        SyncScope::None | SyncScope::WithTransport => ResponseFlags::None,
        SyncScope::WithServer => ResponseFlags::SyncWithServer,
        SyncScope::WithTarget => ResponseFlags::SyncWithTarget,
    }
}

/// Returns a bench whose lane has this state, and the requests that occupy it.
fn prepared(strategy: ThreadpoolStrategy, buffer: Buffer) -> (Bench, Vec<SentRequest>) {
    let mut bench = Bench::new(Case {
        strategy,
        lanes: 0,
        buffering: Buffering::Requests,
        borrowing: false,
        threads: Threads::Static,
        model: PriorityModel::ClientPropagated,
    });
    let mut held = Vec::new();
    if buffer != Buffer::Unused {
        held.extend([1, 2].map(|number| bench.hold_now(0, number)));
    }
    if buffer == Buffer::Full {
        held.extend([3, 4].map(|number| bench.hold_buffered(0, number)));
    }
    (bench, held)
}

#[test]
fn a_server_answers_as_the_scope_says() {
    for strategy in STRATEGIES {
        for scope in SCOPES {
            for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
                for buffer in BUFFERS {
                    println!("{strategy:?} {scope:?} {version} {buffer:?}");
                    check_server(*strategy, scope, version, buffer);
                }
            }
        }
    }
}

fn check_server(strategy: ThreadpoolStrategy, scope: SyncScope, version: Version, buffer: Buffer) {
    let (mut bench, held) = prepared(strategy, buffer);
    let mut raw = bench.raw(0);
    let request = raw.request(version, response(scope), b"hold", 9, 8);
    raw.send(&request);
    let expected = expected(scope, version, buffer);
    if let Answer::Early(result) = expected {
        let (of, number, exception) = raw.reply();
        assert_eq!((of, number, exception), (version, 9, result.err()));
    }
    match buffer {
        Buffer::Unused => drop(bench.floor.begun(9)),
        Buffer::HasRoom | Buffer::Full => {
            bench.barrier(0);
            assert!(!bench.floor.has_begun(9), "all threads are busy");
        }
    }
    bench.floor.open();
    if expected == Answer::Late {
        assert_eq!(raw.reply(), (version, 9, None));
    }
    for sent in held {
        assert_eq!(bench.answer(sent), Ok(()));
    }
    if buffer != Buffer::Full {
        bench.floor.begun(9);
    }
    bench.await_all_rest();
    // A second answer would come before this one.
    let request = raw.request(version, ResponseFlags::SyncWithTarget, b"pass", 10, 8);
    raw.send(&request);
    assert_eq!(raw.reply(), (version, 10, None));
    assert_eq!(bench.floor.has_begun(9), buffer != Buffer::Full);
}

#[test]
fn a_client_waits_as_the_scope_says() {
    for strategy in STRATEGIES {
        for scope in SCOPES {
            for buffer in BUFFERS {
                println!("{strategy:?} {scope:?} {buffer:?}");
                check_client(*strategy, scope, buffer);
            }
        }
    }
}

fn check_client(strategy: ThreadpoolStrategy, scope: SyncScope, buffer: Buffer) {
    let (mut bench, held) = prepared(strategy, buffer);
    let policies = [ClientPolicy::SyncScope(scope)];
    let object = bench.objects[0].with_policy_overrides(&policies, SetOverride::Set);
    let object = object.expect("there is one policy");
    let priority = bench.priority_of_client(0);
    let calling = bench.callers.run(priority, 9, move || {
        object.invoke_oneway(&Operation::oneway("hold"), &|e| {
            e.write_u32(9)?;
            e.write_octet_seq(&[0; 8])
        })
    });
    let expected = expected(scope, Version::V1_2, buffer);
    // A late answer comes after the servant was released.
    if expected == Answer::Late {
        if buffer == Buffer::Unused {
            bench.floor.begun(9);
        }
        bench.floor.open();
    }
    let result = match expected {
        Answer::Early(result) => result,
        Answer::Never | Answer::Late => Ok(()),
    };
    assert_eq!(bench.callers.answer(calling), result);
    bench.floor.open();
    for sent in held {
        assert_eq!(bench.answer(sent), Ok(()));
    }
    if result.is_ok() && !(buffer == Buffer::Full && expected == Answer::Never) {
        bench.floor.begun(9);
    }
}
