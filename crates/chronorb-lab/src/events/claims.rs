//! The statements that are judged.

use chronorb_report::units;

use super::connections::ConnectionRow;
use super::fan_out::FanOutFigures;
use super::outcome::EventsOutcome;
use super::peers::{PeerFigures, PeerSystem};
use super::push::{PushCase, PushFigures};
use super::ring::RingRow;
use super::slow::{OUTBOX, PAYLOAD, SlowRow};
use super::timers::TimerFigures;
use crate::Claim;

/// Returns all claims of the parts that were run.
pub(super) fn of(outcome: &EventsOutcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    if !outcome.priority.is_empty() {
        claims.extend([keeps_priority(outcome), needs_lanes(outcome)]);
    }
    if let Some(pushes) = &outcome.pushes {
        if pushes
            .rows
            .iter()
            .any(|row| matches!(row.case, PushCase::Consumers(_)))
        {
            claims.extend([pushes_fast(pushes), pushes_quietly(pushes)]);
        }
        if pushes.rows.iter().any(|row| !row.case.is_of_consumers()) {
            claims.extend([filters_flat(pushes), masks_cheaply(pushes)]);
        }
    }
    if let Some(fan_out) = &outcome.fan_out {
        claims.extend([sends_once(fan_out), encodes_once(fan_out)]);
    }
    if !outcome.bursts.is_empty() {
        claims.push(tells_losses(outcome));
    }
    if !outcome.connections.is_empty() {
        claims.push(connects_flat(&outcome.connections));
    }
    if let Some(timers) = &outcome.timers {
        claims.extend([keeps_time(timers), ticks_in_time(timers)]);
    }
    if let [alone, beside] = outcome.slow.as_slice() {
        claims.extend([
            delays_nobody(alone, beside),
            counts_slow(beside),
            keeps_memory(beside),
        ]);
    }
    if !outcome.ring.is_empty() {
        claims.extend([
            publishes_flat(&outcome.ring),
            wakes_once(&outcome.ring),
            tells_lapped(&outcome.ring),
        ]);
    }
    if let Some(peers) = &outcome.peers {
        let rivals = PeerSystem::ALL.into_iter();
        let rivals = rivals.filter_map(|system| Some((system, system.rival()?)));
        claims.extend(rivals.map(|(system, ours)| is_ahead(peers, ours, system)));
    }
    claims
}

fn keeps_priority(outcome: &EventsOutcome) -> Claim {
    let claim = "Lanes: p99.9 of urgent events beside a saturated lane is at most 1.5 of that \
                 without a load";
    let of = |loaded| {
        let row = outcome.urgent(true, loaded).filter(|_| outcome.real_time);
        row.map(|row| row.latency.p999_us)
    };
    Claim::aim(claim).times([of(true), of(false)], "{}, without a load {}", |ratio| {
        ratio <= 1.5
    })
}

fn needs_lanes(outcome: &EventsOutcome) -> Claim {
    let claim = "Without lanes the same load doubles p99.9 of urgent events at least";
    let of = |loaded| {
        let row = outcome.urgent(false, loaded).filter(|_| outcome.real_time);
        row.map(|row| row.latency.p999_us)
    };
    Claim::aim(claim).times([of(true), of(false)], "{}, without a load {}", |ratio| {
        ratio >= 2.0
    })
}

fn pushes_fast(pushes: &PushFigures) -> Claim {
    let claim = "Within a process a push to one consumer takes at most 600 instructions more than \
                 the call of its trait";
    let push = pushes.instructions(PushCase::Consumers(1));
    let measured = push.zip(pushes.instructions(PushCase::Call));
    let measured = measured.map(|(push, call)| {
        let words = format!("{push:.0} and {call:.0} instructions");
        (push - call <= 600.0, words)
    });
    Claim::aim(claim).holds(measured)
}

fn pushes_quietly(pushes: &PushFigures) -> Claim {
    let claim = "Within a process pushes neither allocate nor lock, and make no system call";
    let sum = |of: fn(&super::PushRow) -> u64| pushes.rows.iter().map(of).sum::<u64>();
    let allocations = sum(|row| row.allocations);
    let locks = sum(|row| row.lock_operations);
    let system_calls = pushes
        .rows
        .iter()
        .map(|row| row.system_calls)
        .sum::<Option<u64>>();
    let measured = system_calls.map(|calls| {
        let words = format!(
            "{allocations} allocations, {locks} locks and {calls} system calls in {} pushes",
            units::count(u64::from(pushes.pushes) * pushes.rows.len() as u64)
        );
        (allocations + locks + calls == 0, words)
    });
    Claim::aim(claim).holds(measured)
}

fn filters_flat(pushes: &PushFigures) -> Claim {
    let claim = "A push takes as many instructions with 999 subscribers of other types or sources \
                 as with none, within a tenth";
    let ends = |case: fn(u32) -> PushCase| {
        let [none, all] = [0, 999].map(|others| pushes.instructions(case(others)));
        none.zip(all)
    };
    let measured = ends(PushCase::OtherTypes).zip(ends(PushCase::OtherSources));
    let measured = measured.map(|(types, sources)| {
        let words = format!(
            "{:.0} and {:.0} by type, {:.0} and {:.0} by source",
            types.1, types.0, sources.1, sources.0
        );
        let is_flat = |(none, all): (f64, f64)| all <= none * 1.1;
        (is_flat(types) && is_flat(sources), words)
    });
    let why = "subscribers are found in a trie of hashes, which is deeper with more of them";
    Claim::aim(claim).holds(measured).because(why)
}

fn masks_cheaply(pushes: &PushFigures) -> Claim {
    let claim = "A subscriber whose mask does not match costs a push at most 40 instructions";
    let [one, many] = [1, 99].map(|others| pushes.instructions(PushCase::Masks(others)));
    let measured = one.zip(many).map(|(one, many)| {
        let each = (many - one) / 98.0;
        (each <= 40.0, format!("{each:.1} instructions"))
    });
    let why = "each subscriber with masks is asked by its whole filter";
    Claim::aim(claim).holds(measured).because(why)
}

fn sends_once(fan_out: &FanOutFigures) -> Claim {
    let claim = "Over TCP each further consumer of an event costs one system call, which sends";
    let sends = fan_out.of_further(|row| row.sends);
    let all = fan_out.of_further(|row| row.system_calls);
    let measured = sends.zip(all).map(|(sends, all)| {
        let words = format!("{sends:.2} that send, {all:.2} in all");
        (sends <= 1.0 && all <= 1.01, words)
    });
    Claim::aim(claim).holds(measured)
}

fn encodes_once(fan_out: &FanOutFigures) -> Claim {
    let claim = "Over TCP an event is encoded once: a further consumer allocates less than a \
                 hundredth of its octets";
    let octets = fan_out.of_further(|row| Some(row.allocated_octets));
    let allocations = fan_out.of_further(|row| Some(row.allocations));
    let measured = octets.zip(allocations).map(|(octets, allocations)| {
        let words = format!("{allocations:.3} allocations, {octets:.1} octets");
        (octets * 100.0 < fan_out.payload as f64, words)
    });
    Claim::aim(claim).holds(measured)
}

fn tells_losses(outcome: &EventsOutcome) -> Claim {
    let claim = "In bursts, what consumers take and what the channel tells as lost is all that \
                 they asked for";
    let sum = |of: fn(&super::BurstRow) -> u64| outcome.bursts.iter().map(of).sum::<u64>();
    let (asked, taken, lost) = (
        sum(|row| row.asked),
        sum(|row| row.taken),
        sum(|row| row.lost),
    );
    let [asked_for, taken_of, lost_of] = [asked, taken, lost].map(units::count);
    let words = format!("{asked_for} asked for, {taken_of} taken, {lost_of} lost");
    let equal = outcome
        .bursts
        .iter()
        .all(|row| row.taken + row.lost == row.asked);
    Claim::aim(claim).holds((asked > 0).then_some((equal, words)))
}

fn connects_flat(rows: &[ConnectionRow]) -> Claim {
    let claim = "The time of a connection at the greatest number of clients is at most twice that \
                 at the least";
    let mean = |each: u32| {
        let rows = rows.iter().filter(|row| row.each == each);
        let times: Vec<_> = rows.map(|row| row.connect_us).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    };
    let least = rows.iter().map(|row| row.each).min().and_then(mean);
    let most = rows.iter().map(|row| row.each).max().and_then(mean);
    Claim::aim(claim).times([most, least], "{} and {}", |ratio| ratio <= 2.0)
}

fn keeps_time(timers: &TimerFigures) -> Claim {
    let claim = "Timers do not drift: each tick is due at a multiple of its interval, and none is \
                 missing";
    let ticks = timers.lateness.calls;
    let words = format!(
        "{} of {} ticks elsewhere, {} missing, {} of these while the lane was late by the interval",
        timers.drifted,
        units::count(ticks),
        timers.missing,
        timers.overrun
    );
    let holds = timers.drifted + timers.missing == 0;
    Claim::aim(claim).holds((ticks > 0).then_some((holds, words)))
}

fn ticks_in_time(timers: &TimerFigures) -> Claim {
    let claim = "p99.9 of the lateness of ticks is at most that of a thread that does nothing \
                 else, and 10 µs";
    let (ticks, thread) = (timers.lateness.p999_us, timers.thread.p999_us);
    let words = format!("{}, the thread {}", units::time(ticks), units::time(thread));
    Claim::aim(claim).holds(timers.real_time.then_some((ticks <= thread + 10.0, words)))
}

fn delays_nobody(alone: &SlowRow, beside: &SlowRow) -> Claim {
    let claim = "p99.9 of a consumer's events beside one that takes nothing is at most 1.5 of that \
                 without it";
    let times = [beside, alone].map(|row| Some(row.latency.p999_us));
    Claim::aim(claim).times(times, "{}, without it {}", |ratio| ratio <= 1.5)
}

fn counts_slow(beside: &SlowRow) -> Claim {
    let claim = "What the slow consumer takes in the end, and what the channel tells as lost, is \
                 all that was pushed";
    let [pushed, taken, lost] =
        [beside.pushed, beside.slow_taken, beside.slow_lost].map(units::count);
    let words = format!("{pushed} pushed, {taken} taken, {lost} lost");
    let holds = beside.slow_taken + beside.slow_lost == beside.pushed;
    Claim::aim(claim).holds(Some((holds, words)))
}

fn keeps_memory(beside: &SlowRow) -> Claim {
    let claim = "The channel's memory grows by the outbox of the slow consumer and 1 MiB at most";
    let bound = (OUTBOX * PAYLOAD) as u64 + (1 << 20);
    let words = units::bytes(beside.growth as f64);
    Claim::aim(claim).holds(Some((beside.growth <= bound, words)))
}

fn publishes_flat(rows: &[RingRow]) -> Claim {
    let claim = "A message to a ring of shared memory takes its publisher as long with the most \
                 cursors that poll as with one in each process of readers, within a fifth";
    let polling = || rows.iter().filter(|row| !row.sleeping);
    let ends = polling().min_by_key(|row| row.cursors);
    let ends = ends.zip(polling().max_by_key(|row| row.cursors));
    let measured = ends.map(|(least, most)| {
        let words = format!(
            "{:.0} ns with {} and {:.0} ns with {}",
            most.nanos,
            units::count(most.cursors.into()),
            least.nanos,
            units::count(least.cursors.into())
        );
        (most.nanos / least.nanos.max(1.0), words)
    });
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= 1.2)
}

fn wakes_once(rows: &[RingRow]) -> Claim {
    let claim = "A message makes at most one call to wake readers that sleep, and none for those \
                 that poll";
    let most = |sleeping| {
        let rows = rows.iter().filter(|row| row.sleeping == sleeping);
        let wakes = rows.map(|row| row.wakes).collect::<Option<Vec<_>>>()?;
        wakes.into_iter().reduce(f64::max)
    };
    let measured = most(true).zip(most(false)).map(|(sleeping, polling)| {
        let words = format!("{sleeping:.2} and {polling:.2} calls");
        (sleeping <= 1.0 && polling == 0.0, words)
    });
    Claim::aim(claim).holds(measured)
}

fn tells_lapped(rows: &[RingRow]) -> Claim {
    let claim = "Each cursor of a ring takes every message, or is told its loss";
    let sum = |of: fn(&RingRow) -> u64| rows.iter().map(of).sum::<u64>();
    let asked = |row: &RingRow| row.published * u64::from(row.cursors);
    let [all, taken, lost] =
        [sum(asked), sum(|row| row.taken), sum(|row| row.lost)].map(units::count);
    let words = format!("{all} asked for, {taken} taken, {lost} lost");
    let holds = rows.iter().all(|row| row.taken + row.lost == asked(row));
    Claim::aim(claim).holds(Some((holds, words)))
}

fn is_ahead(peers: &PeerFigures, ours: PeerSystem, other: PeerSystem) -> Claim {
    let claim = format!(
        "p50 and p99 of chronorb are at most those of {}, with every number of consumers",
        other.name()
    );
    let rows = peers.rows.iter().filter(|row| row.system == other);
    let ratios = rows.filter_map(|row| {
        let of_ours = peers.of(ours, row.consumers)?;
        let p50 = of_ours.p50_us / row.latency.p50_us;
        Some((row.consumers, p50, of_ours.p99_us / row.latency.p99_us))
    });
    let ratios: Vec<_> = ratios.collect();
    let words = ratios
        .iter()
        .map(|(consumers, p50, p99)| format!("with {consumers} {p50:.2} and {p99:.2} of them"));
    let words = words.collect::<Vec<_>>().join(", ");
    let holds = ratios
        .iter()
        .all(|(_, p50, p99)| *p50 <= 1.0 && *p99 <= 1.0);
    let measured = (!ratios.is_empty()).then_some((holds, words));
    Claim::aim(claim).holds(measured)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::plan::EventsPlan;
    use super::super::{
        AbsentPeer, BurstRow, ConnectionOrder, FanOutRow, PeerRow, PriorityRow, PushRow,
        TimerFigures,
    };
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::report::rounds;

    /// An outcome with all parts, whose figures are made up.
    pub(in super::super) fn outcome() -> EventsOutcome {
        let plan = EventsPlan::tiny();
        let urgent = |lanes, loaded, us: u64| {
            let record = rounds::record(&[us * 1000, us * 1100, us * 1200]);
            PriorityRow {
                lanes,
                loaded,
                latency: record.summary(),
                low_per_s: if loaded { 20_000.0 } else { 0.0 },
                low_lost: 0,
                record,
            }
        };
        let push = |case, instructions| PushRow {
            case,
            instructions: Some(instructions),
            nanos: instructions / 4.0,
            allocations: 0,
            lock_operations: 0,
            system_calls: Some(0),
        };
        let fan_out = |consumers: u32| FanOutRow {
            consumers,
            allocations: 3.0,
            allocated_octets: 5_000.0,
            sends: Some(consumers.into()),
            system_calls: Some(f64::from(consumers) + 2.0),
        };
        let summary = |us: u64| rounds::record(&[us * 1000; 4]).summary();
        let slow = |beside_slow| SlowRow {
            beside_slow,
            latency: summary(80),
            pushed: 20,
            fast_lost: 0,
            slow_taken: if beside_slow { 16 } else { 0 },
            slow_lost: if beside_slow { 4 } else { 0 },
            growth: 4096,
        };
        let ring = |cursors: u32, sleeping| RingRow {
            cursors,
            sleeping,
            nanos: 40.0,
            wakes: Some(if sleeping { 1.0 } else { 0.0 }),
            published: 100,
            taken: 90 * u64::from(cursors),
            lost: 10 * u64::from(cursors),
        };
        let peer = |system: PeerSystem| PeerRow {
            system,
            consumers: 8,
            latency: summary(if system.rival().is_some() { 90 } else { 50 }),
            of_raw: Some(1.5),
            missing: 0,
        };
        EventsOutcome {
            environment: Environment::example(),
            priority: vec![
                urgent(true, false, 40),
                urgent(true, true, 50),
                urgent(false, false, 40),
                urgent(false, true, 900),
            ],
            pushes: Some(PushFigures {
                rows: vec![
                    push(PushCase::Call, 10.0),
                    push(PushCase::Consumers(1), 210.0),
                    push(PushCase::OtherTypes(0), 210.0),
                    push(PushCase::OtherTypes(999), 210.0),
                    push(PushCase::OtherSources(0), 210.0),
                    push(PushCase::OtherSources(999), 220.0),
                    push(PushCase::Masks(1), 230.0),
                    push(PushCase::Masks(99), 2_190.0),
                ],
                pushes: 100,
                refused: String::new(),
            }),
            fan_out: Some(FanOutFigures {
                rows: vec![fan_out(1), fan_out(3)],
                payload: 4096,
                refused: String::new(),
            }),
            bursts: vec![BurstRow {
                what: "1 supplier, 1 consumer".to_owned(),
                pushed: 20,
                asked: 20,
                taken: 18,
                lost: 2,
                events_per_s: 50_000.0,
            }],
            connections: vec![ConnectionRow {
                each: 2,
                order: ConnectionOrder::Interleaved,
                connect_us: 120.0,
                disconnect_us: 60.0,
            }],
            timers: Some(TimerFigures {
                timers: 10,
                lateness: summary(60),
                thread: summary(55),
                drifted: 0,
                missing: 0,
                overrun: 0,
                real_time: true,
            }),
            slow: [false, true].map(slow).to_vec(),
            ring: vec![ring(2, false), ring(1_000, false), ring(2, true)],
            peers: Some(PeerFigures {
                rows: PeerSystem::ALL.map(peer).to_vec(),
                absent: vec![AbsentPeer {
                    system: PeerSystem::OmniEvents,
                    reason: "its programs are not built".to_owned(),
                }],
            }),
            ..EventsOutcome::new(&plan, false)
        }
    }

    #[test]
    fn claims_are_met_by_what_they_say() {
        let outcome = outcome();
        for claim in of(&outcome) {
            assert_eq!(claim.verdict(), Verdict::Pass, "{claim:?}");
        }
    }

    #[test]
    fn claims_are_missed_by_anything_else() {
        let mut other = outcome();
        other.priority.reverse();
        for row in &mut other.priority {
            row.lanes = !row.lanes;
        }
        if let Some(pushes) = &mut other.pushes {
            for (row, more) in pushes
                .rows
                .iter_mut()
                .zip([0.0, 900.0, 0.0, 900.0, 0.0, 0.0])
            {
                row.instructions = row.instructions.map(|of| of + more);
                row.allocations = 1;
            }
            pushes.rows[7].instructions = Some(10_000.0);
        }
        if let Some(row) = other.fan_out.as_mut().and_then(|of| of.rows.last_mut()) {
            row.sends = Some(5.0);
            row.allocated_octets *= 3.0;
        }
        other.bursts[0].lost = 0;
        let slower = ConnectionRow {
            each: 4,
            connect_us: 500.0,
            ..other.connections[0].clone()
        };
        other.connections.push(slower);
        if let Some(timers) = &mut other.timers {
            timers.drifted = 1;
            timers.lateness.p999_us = 90.0;
        }
        other.slow[1].latency.p999_us *= 2.0;
        other.slow[1].slow_lost = 0;
        other.slow[1].growth = 1 << 30;
        other.ring[1].nanos = 80.0;
        other.ring[1].wakes = Some(0.5);
        other.ring[1].lost = 0;
        if let Some(peers) = &mut other.peers {
            for row in &mut peers.rows {
                if row.system.rival().is_some() {
                    row.latency.p99_us = 40.0;
                }
            }
        }
        for claim in of(&other) {
            assert_eq!(claim.verdict(), Verdict::Missed, "{claim:?}");
        }
    }
}
