//! The default pool grows while all its threads are busy, and shrinks when they are idle.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_orb::{LaneSnapshot, Orb, ThreadCount, ThreadpoolStrategy};
use chronorb_rt::Deadline;

use crate::support::adapters::pause;
use crate::support::{PATIENCE, add, nothing, orb_with, served_by};

/// Returns a server whose default pool has so many threads, of which idle ones end soon or never.
fn server_of(least: u32, most: u32, idle_timeout: Duration) -> Orb {
    orb_with(|config| {
        config.threads = ThreadCount::new(least, most).expect("the bounds are in order");
        config.threadpool_strategy = ThreadpoolStrategy::LeaderFollowers;
        config.dynamic_thread_idle_timeout = idle_timeout;
    })
}

const NEVER: Duration = Duration::from_secs(3600);

fn lane(server: &Orb) -> LaneSnapshot {
    server.snapshot().pools.remove(0).lanes.remove(0)
}

/// Waits until the lane is as wanted.
fn until(server: &Orb, is_reached: impl Fn(&LaneSnapshot) -> bool) {
    let deadline = Deadline::after(PATIENCE);
    while !is_reached(&lane(server)) {
        let LaneSnapshot {
            threads, staying, ..
        } = lane(server);
        assert!(
            !deadline.has_passed(),
            "{} threads, {staying} stay",
            threads.len()
        );
        pause();
    }
}

#[test]
fn requests_are_served_although_all_threads_are_in_upcalls() {
    let s = served_by(server_of(1, 3, NEVER));
    std::thread::scope(|clients| {
        for _ in 0..2 {
            clients.spawn(|| assert_eq!(nothing(&s.object, "wait"), Ok(())));
        }
        until(&s.server, |lane| lane.threads.len() == 3);
        assert_eq!(add(&s.object, 1, 2), Ok(3));
        s.probe.gate.set(2);
    });
}

#[test]
fn each_of_several_busy_connections_gets_a_thread() {
    const CLIENTS: usize = 6;
    let s = served_by(server_of(2, 16, NEVER));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|clients| {
        for _ in 0..CLIENTS {
            clients.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(add(&s.object, 1, 2), Ok(3));
                }
            });
        }
        until(&s.server, |lane| lane.staying == CLIENTS);
        is_over.store(true, Ordering::Relaxed);
    });
    let threads = lane(&s.server).threads.len();
    assert!(threads > CLIENTS, "one waits for all: {threads}");
}

#[test]
fn a_pool_does_not_grow_beyond_its_bound() {
    let s = served_by(server_of(1, 2, NEVER));
    std::thread::scope(|clients| {
        for _ in 0..4 {
            clients.spawn(|| {
                for n in 0..500 {
                    assert_eq!(add(&s.object, n, 1), Ok(n + 1));
                    assert!(lane(&s.server).threads.len() <= 2);
                }
            });
        }
    });
}

#[test]
fn a_pool_that_has_grown_shrinks_although_connections_stay_open() {
    let s = served_by(server_of(2, 16, Duration::from_millis(20)));
    for _ in 0..2 {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|clients| {
            for _ in 0..4 {
                clients.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        assert_eq!(add(&s.object, 1, 2), Ok(3));
                    }
                    // The connection belongs to this thread, and is idle until it ends.
                    until(&s.server, |lane| lane.threads.len() == 2);
                });
            }
            until(&s.server, |lane| lane.threads.len() > 4);
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(add(&s.object, 2, 2), Ok(4), "it serves on");
    }
}
