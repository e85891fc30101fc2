//! Thread pools of all kinds under random load: many clients of random priorities, panicking
//! servants, peers that disconnect in the middle, threads that come and go.
//!
//! Prints its seed on failure. `CHRONORB_STRESS_SEED` repeats a seed, and `CHRONORB_STRESS_ROUNDS`
//! runs more rounds.

use chronorb_giop::{HEADER_LEN, ResponseFlags, Version};
use chronorb_orb::{SystemException, SystemExceptionKind, ThreadpoolStrategy};
use std::io::Write;
use std::time::Duration;

use crate::support::adapters::until;
use crate::support::call;
use crate::support::pools::{
    BALLAST, Bench, Buffering, Case, LANED, Raw, STRATEGIES, Threads, cases, corba, note,
};

/// Random numbers that are reproducible from their seed.
struct Dice(fastrand::Rng);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    fn throw(&mut self, sides: usize) -> usize {
        self.0.usize(..sides)
    }

    fn one_of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.throw(things.len())]
    }
}

#[test]
fn every_call_ends_every_seat_comes_back_and_every_thread_goes_home() {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse().expect("a number"))
    };
    leave_expected_panics_out();
    let rounds = number("CHRONORB_STRESS_ROUNDS").unwrap_or(24);
    let first = number("CHRONORB_STRESS_SEED").unwrap_or(1);
    for seed in first..first + rounds {
        let told = OnPanic(seed);
        play(&mut Dice::new(seed), seed);
        drop(told);
    }
}

/// Prints the seed on a panic.
struct OnPanic(u64);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("CHRONORB_STRESS_SEED={} CHRONORB_STRESS_ROUNDS=1", self.0);
        }
    }
}

fn leave_expected_panics_out() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<&str>();
        if text.is_none_or(|text| !text.contains("asked to panic")) {
            before(info);
        }
    }));
}

fn play(dice: &mut Dice, seed: u64) {
    let strategy = dice.one_of(STRATEGIES);
    let lanes = if LANED.contains(&strategy) {
        dice.one_of(&[0, 1, 3, 3])
    } else {
        0
    };
    let case = dice.one_of(&cases(strategy, lanes));
    let idle = Duration::from_micros(100 << dice.throw(8));
    let bench = Bench::with(case, |config| config.dynamic_thread_idle_timeout = idle);
    bench.floor.open();
    std::thread::scope(|scope| {
        let bench = &bench;
        for client in 0..6 {
            let mut dice = Dice::new(seed * 1_000 + client);
            scope.spawn(move || call_on(bench, &mut dice));
        }
        for peer in 0..2 {
            let mut dice = Dice::new(seed * 1_000 + 100 + peer);
            scope.spawn(move || be_a_nuisance(bench, &mut dice));
        }
    });
    if dice.throw(3) > 0 {
        stands_as_at_first(bench, case);
    } else {
        ends_under_load(bench, dice);
    }
}

/// Calls repeatedly as a client.
fn call_on(bench: &Bench, dice: &mut Dice) {
    let class = dice.throw(bench.objects.len());
    if let Some(priority) = bench.priority_of_client(class) {
        let current = bench.client.rt_current();
        current.set_priority(corba(priority)).expect("it has one");
    }
    let object = &bench.objects[class];
    for number in 0..100 {
        let operation = dice.one_of(&["hold", "hold", "hold", "hold_and_panic", "note"]);
        if operation == "note" {
            note(object).expect("it is sent");
            continue;
        }
        let ballast = vec![0_u8; dice.throw(2 * BALLAST)];
        let write = |e: &mut chronorb_cdr::Encoder<'_>| {
            e.write_u32(number)?;
            e.write_octet_seq(&ballast)
        };
        let answer = call(object, operation, &write, |d| d.read_u32());
        assert_is_expected(bench.case, answer.map(drop).err());
    }
}

/// Asserts that a request has a permitted outcome while the server is up.
fn assert_is_expected(case: Case, exception: Option<SystemException>) {
    match exception {
        None => {}
        Some(no_room) if no_room == crate::support::pools::no_room() => {
            assert!(case.buffering != Buffering::Off, "{case:?}: {no_room}");
        }
        Some(panicked) => assert_eq!(panicked.kind, SystemExceptionKind::Unknown, "{case:?}"),
    }
}

/// Sends requests in pieces and in batches, cancels some, and disconnects at random.
fn be_a_nuisance(bench: &Bench, dice: &mut Dice) {
    for _ in 0..40 {
        let class = dice.throw(bench.objects.len());
        let mut raw = bench.raw(class);
        let requests = 1 + dice.throw(4) as u32;
        for number in 0..requests {
            let operation: &[u8] = dice.one_of(&[&b"hold"[..], b"hold_and_panic"]);
            let octets = dice.throw(BALLAST);
            let flags = ResponseFlags::SyncWithTarget;
            let whole = raw.request(Version::V1_2, flags, operation, number, octets);
            let sent = match dice.throw(4) {
                0 => in_fragments(&whole),
                1 => [whole.clone(), cancellation(&whole)].concat(),
                _ => whole,
            };
            let cut = match dice.throw(8) {
                0 => dice.throw(sent.len()),
                _ => sent.len(),
            };
            raw.stream.write_all(&sent[..cut]).expect("it is there");
            if cut < sent.len() {
                break;
            }
            if number + 1 == requests && dice.throw(2) == 0 {
                read_all(bench, &mut raw, requests);
            }
        }
    }
}

fn read_all(bench: &Bench, raw: &mut Raw, requests: u32) {
    for _ in 0..requests {
        let (_, _, exception) = raw.reply();
        assert_is_expected(bench.case, exception);
    }
}

/// Returns a request in two messages.
fn in_fragments(whole: &[u8]) -> Vec<u8> {
    let cut = (whole.len() / 2).next_multiple_of(8);
    let mut sent = whole[..cut].to_vec();
    sent[6] |= 2;
    sent[8..HEADER_LEN].copy_from_slice(&((cut - HEADER_LEN) as u32).to_ne_bytes());
    sent.extend(with_id(whole, 7, &whole[cut..]));
    sent
}

fn cancellation(whole: &[u8]) -> Vec<u8> {
    with_id(whole, 2, &[])
}

/// Returns a message of another type about the same request.
fn with_id(whole: &[u8], kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = whole[..HEADER_LEN].to_vec();
    message[7] = kind;
    message[8..].copy_from_slice(&((4 + body.len()) as u32).to_ne_bytes());
    message.extend(&whole[HEADER_LEN..HEADER_LEN + 4]);
    message.extend(body);
    message
}

/// Asserts that the pool is as it was created, with its full capacity.
fn stands_as_at_first(mut bench: Bench, case: Case) {
    let (static_threads, dynamic_threads) = case.threads.counts();
    let lanes = case.lanes.max(1);
    let plain = case.strategy == ThreadpoolStrategy::LeaderFollowers
        && case.threads != Threads::Dynamic
        && case.buffering == Buffering::Off
        && !(case.borrowing && lanes > 1);
    #[cfg(feature = "baselines")]
    let chained = case.strategy == ThreadpoolStrategy::FilterChain;
    #[cfg(not(feature = "baselines"))]
    let chained = false;
    until("the pool never was as it was made", || {
        let snapshot = bench.server.snapshot();
        let pool = snapshot.pools.iter().find(|pool| pool.number == 1);
        let lanes = &pool.expect("it is there").lanes;
        let most_urgent = lanes.iter().map(|lane| lane.priority).max().flatten();
        lanes.iter().all(|lane| {
            // In a filter chain, the most urgent lane reads for all.
            let reads = !plain && (!chained || lane.priority == most_urgent);
            let threads = lane.threads.len().saturating_sub(usize::from(reads));
            (lane.connections, lane.queued) == (0, 0)
                && (lane.seats, threads) == (static_threads, static_threads as usize)
        })
    });
    bench.await_all_rest();
    bench.await_home();
    // All permits are free: as many requests as there may be threads run at the same time.
    bench.floor.shut();
    let classes = bench.objects.len();
    let each = (static_threads + dynamic_threads) as usize;
    let asked: Vec<_> = (0..lanes * each)
        .map(|n| {
            bench.hold(
                if lanes == 1 { n % classes } else { n % lanes },
                1_000 + n as u32,
            )
        })
        .collect();
    bench.floor.await_running(lanes * each);
    bench.floor.open();
    for asked in asked {
        assert_eq!(bench.answer(asked), Ok(()), "{case:?}");
    }
    bench.await_all_rest();
    bench.await_home();
    for poa in &bench.poas {
        poa.destroy(true, true).expect("this is no upcall");
    }
    let ended = bench.server.rt().destroy_threadpool(bench.pool);
    ended.expect("nothing uses it");
    bench.await_threads(0);
}

/// Shuts down the server while clients call. Their calls end all the same, and so do its threads.
fn ends_under_load(bench: Bench, dice: &mut Dice) {
    let begun = bench.floor.count_begun();
    let more = dice.throw(40);
    std::thread::scope(|scope| {
        let bench = &bench;
        for client in 0..6 {
            let class = client % bench.objects.len();
            scope.spawn(move || {
                let object = &bench.objects[class];
                let write = |e: &mut chronorb_cdr::Encoder<'_>| {
                    e.write_u32(0)?;
                    e.write_octet_seq(&[])
                };
                loop {
                    let answer = call(object, "hold", &write, |d| d.read_u32());
                    match answer.map_err(|exception| exception.kind) {
                        Ok(_) => {}
                        Err(SystemExceptionKind::Timeout) => panic!("{:?}: it hangs", bench.case),
                        Err(_) if bench.server.snapshot().pools.is_empty() => return,
                        Err(_) if bench.threads().is_empty() => return,
                        Err(_) => {}
                    }
                }
            });
        }
        until("there are no calls", || {
            bench.floor.count_begun() >= begun + more
        });
        bench.server.shutdown(false).expect("this is no upcall");
        until("threads never ended", || bench.threads().is_empty());
    });
}
