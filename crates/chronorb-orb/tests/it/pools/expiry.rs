//! Requests whose end time has passed: by every strategy, before they get a thread and while they
//! wait for one.

use chronorb_giop::{EndTimes, ResponseFlags, UtcTime, Version};
use chronorb_orb::ThreadpoolStrategy::{self, LeaderFollowers, Reactive, ThreadPerConnection};
use chronorb_orb::poa::{Policy, PriorityModel};
use chronorb_orb::{Incident, OrbConfig, SystemException, SystemExceptionKind, minor};
use std::time::{Duration, SystemTime};

use crate::support::adapters::until;
use crate::support::pools::{Bench, Buffering, Case, LANED, Raw, STRATEGIES, Threads};

const LATE: SystemException =
    SystemException::no(SystemExceptionKind::Timeout, minor::TIMEOUT_REQUEST_END);
const REPLY_LATE: SystemException =
    SystemException::no(SystemExceptionKind::Timeout, minor::TIMEOUT_REPLY_END);
const HOUR: Duration = Duration::from_secs(3600);

fn bench(
    strategy: ThreadpoolStrategy,
    buffering: Buffering,
    configure: impl FnOnce(&mut OrbConfig),
) -> Bench {
    let case = Case {
        strategy,
        lanes: 0,
        buffering,
        borrowing: false,
        threads: Threads::Static,
        model: PriorityModel::ClientPropagated,
    };
    Bench::with(case, configure)
}

fn now() -> UtcTime {
    SystemTime::now().into()
}

/// The content of the context for these times.
fn policies(request: Option<UtcTime>, reply: Option<UtcTime>) -> Option<Vec<u8>> {
    let mut room = [0; EndTimes::LARGEST];
    Some(EndTimes { request, reply }.encode(&mut room).to_vec())
}

/// Sends a request to a servant that holds it, and returns the answer.
fn ask(raw: &mut Raw, response: ResponseFlags, number: u32) -> Option<SystemException> {
    let request = raw.request(Version::V1_2, response, b"hold", number, 8);
    raw.send(&request);
    let (_, of, exception) = raw.reply();
    assert_eq!(of, number);
    exception
}

fn expired(bench: &Bench) -> u64 {
    let incidents = bench.server.snapshot().incidents;
    let mut counts = incidents.iter();
    let count = counts.find(|(incident, _)| *incident == Incident::ExpiredRequest);
    count.expect("it has a count").1
}

#[test]
fn a_server_does_not_serve_what_has_expired() {
    for strategy in STRATEGIES.iter().chain(&[Reactive, ThreadPerConnection]) {
        println!("{strategy:?}");
        let bench = bench(*strategy, Buffering::Off, |_| {});
        bench.floor.open();
        let past = Some(now().before(HOUR));
        let future = Some(now() + HOUR);
        let mut raw = bench.raw(0);
        let cases = [
            (past, None, Some(LATE)),
            (past, future, Some(LATE)),
            (None, past, Some(REPLY_LATE)),
            (future, past, Some(REPLY_LATE)),
            (future, future, None),
            (None, None, None),
        ];
        let mut late = 0;
        for (number, (request, reply, expected)) in (1..).zip(cases) {
            raw.invocation_policies = policies(request, reply);
            for response in [ResponseFlags::SyncWithServer, ResponseFlags::SyncWithTarget] {
                assert_eq!(ask(&mut raw, response, number), expected);
                late += u64::from(expected.is_some());
            }
            if expected.is_none() {
                bench.floor.begun(number);
            }
            assert_eq!(bench.floor.has_begun(number), expected.is_none());
        }
        assert_eq!(expired(&bench), late);
        // There is no answer to a oneway; a later one shows that it was not served.
        raw.invocation_policies = policies(past, None);
        let oneway = raw.request(Version::V1_2, ResponseFlags::None, b"hold", 90, 8);
        raw.send(&oneway);
        until("it was not counted", || expired(&bench) == late + 1);
        assert!(!bench.floor.has_begun(90));
    }
}

#[test]
fn the_allowance_for_clocks_is_a_setting() {
    let served_with = |skew| {
        let bench = bench(LeaderFollowers, Buffering::Off, |config| {
            config.clock_skew = skew;
        });
        bench.floor.open();
        let mut raw = bench.raw(0);
        raw.invocation_policies = policies(Some(now().before(HOUR)), None);
        let answer = ask(&mut raw, ResponseFlags::SyncWithTarget, 1);
        assert_eq!(expired(&bench), u64::from(answer.is_some()));
        answer
    };
    assert_eq!(served_with(None), None);
    assert_eq!(served_with(Some(2 * HOUR)), None);
    assert_eq!(served_with(Some(HOUR / 2)), Some(LATE));
    assert_eq!(served_with(Some(Duration::ZERO)), Some(LATE));
}

#[test]
fn malformed_policies_are_refused() {
    let bench = bench(LeaderFollowers, Buffering::Off, |_| {});
    bench.floor.open();
    let mut raw = bench.raw(0);
    let whole = policies(Some(now() + HOUR), None).expect("it is one");
    for length in [0, 1, 7, 15, 30] {
        raw.invocation_policies = Some(whole[..length].to_vec());
        let refused = ask(&mut raw, ResponseFlags::SyncWithTarget, 1);
        let kind = refused.map(|exception| exception.kind);
        assert_eq!(kind, Some(SystemExceptionKind::Marshal), "{length} octets");
    }
    assert!(!bench.floor.has_begun(1));
    // The connection goes on.
    raw.invocation_policies = Some(whole);
    assert_eq!(ask(&mut raw, ResponseFlags::SyncWithTarget, 2), None);
}

/// A request that expires in the buffer is answered as soon as there is a thread for it.
#[test]
fn a_request_may_expire_while_it_waits_for_a_thread() {
    let responses = [ResponseFlags::SyncWithServer, ResponseFlags::SyncWithTarget];
    for (strategy, response) in LANED.iter().flat_map(|s| responses.map(|r| (*s, r))) {
        println!("{strategy:?} {response:?}");
        let mut bench = bench(strategy, Buffering::Requests, |config| {
            config.clock_skew = Some(Duration::ZERO);
        });
        let held = [1, 2].map(|number| bench.hold_now(0, number));
        let mut raw = bench.raw(0);
        let end = match response {
            // One that has not expired would be answered already.
            ResponseFlags::SyncWithServer => now(),
            _ => now() + Duration::from_millis(50),
        };
        raw.invocation_policies = policies(Some(end), None);
        let request = raw.request(Version::V1_2, response, b"hold", 3, 8);
        raw.send(&request);
        if !bench.case.has_queues() {
            bench.barrier(0);
        }
        until("the clock stands still", || now() > end);
        bench.floor.open();
        assert_eq!(raw.reply(), (Version::V1_2, 3, Some(LATE)));
        assert!(!bench.floor.has_begun(3));
        for sent in held {
            assert_eq!(bench.answer(sent), Ok(()));
        }
        assert_eq!(expired(&bench), 1);
    }
}

#[test]
fn a_request_may_expire_at_a_holding_manager() {
    let bench = bench(LeaderFollowers, Buffering::Off, |config| {
        config.clock_skew = Some(Duration::ZERO);
    });
    bench.floor.open();
    let root = bench.server.root_poa().expect("it is open");
    let poa = root.create_poa("holding", None, &[Policy::Threadpool(bench.pool)]);
    let poa = poa.expect("the policies agree");
    let mut raw = Raw::to(&bench.serve(&poa));
    let end = now() + Duration::from_millis(50);
    raw.invocation_policies = policies(Some(end), None);
    let request = raw.request(Version::V1_2, ResponseFlags::SyncWithTarget, b"hold", 1, 8);
    raw.send(&request);
    until("the clock stands still", || now() > end);
    poa.manager().activate().expect("it was not deactivated");
    assert_eq!(raw.reply(), (Version::V1_2, 1, Some(LATE)));
    assert!(!bench.floor.has_begun(1));
}
