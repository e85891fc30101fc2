//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::{Value, json};

use super::bursts::BurstRow;
use super::connections::ConnectionRow;
use super::fan_out::FanOutFigures;
use super::outcome::EventsOutcome;
use super::peers::{PeerFigures, PeerSystem};
use super::priority::PriorityRow;
use super::push::{PushCase, PushFigures, PushRow};
use super::ring::RingRow;
use super::slow::SlowRow;
use super::timers::TimerFigures;
use super::{Events, claims};
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{begin, by_columns, by_percentile, capitalised, curve, end, rights};
use crate::stats::Summary;

impl Findings for EventsOutcome {
    fn headline(&self) -> String {
        let parts = [
            (!self.priority.is_empty()).then(|| priority_finding(self)),
            self.pushes.as_ref().and_then(push_finding),
            self.fan_out.as_ref().map(fan_out_finding),
            (!self.bursts.is_empty()).then(|| burst_finding(&self.bursts)),
            (!self.connections.is_empty()).then(|| connection_finding(&self.connections)),
            self.timers.as_ref().map(timer_finding),
            slow_finding(&self.slow),
            ring_finding(&self.ring),
            self.peers.as_ref().and_then(peer_finding),
        ];
        let first = parts.into_iter().flatten().next();
        first.map_or_else(|| Events::TITLE.to_owned(), |finding| capitalised(&finding))
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = rights::caveats(self.real_time, self.one_cpu, &self.environment);
        let pushes = self.pushes.as_ref().map(|of| of.refused.as_str());
        let fan_out = self.fan_out.as_ref().map(|of| of.refused.as_str());
        let refused = [pushes, fan_out].into_iter().flatten();
        let refused = refused.filter(|of| !of.is_empty());
        caveats.extend(refused.map(|of| format!("Not all could be counted: {of}.")));
        let absent = self.peers.iter().flat_map(|peers| &peers.absent);
        caveats
            .extend(absent.map(|of| format!("{} takes no part: {}.", of.system.name(), of.reason)));
        caveats
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Events::NAME, self, json!({"rows": self.rows()}))
    }

    fn document(&self) -> Document {
        let mut document = begin(self, LEAD);
        if !self.priority.is_empty() {
            let finding = capitalised(&priority_finding(self));
            let parts = (
                [priority_chart(&self.priority)],
                [priority_table(&self.priority)],
            );
            document = document.part(finding, parts.0, parts.1);
        }
        if let Some(pushes) = &self.pushes {
            let finding = push_finding(pushes);
            let finding = finding.unwrap_or_else(|| "instructions were not counted".to_owned());
            let parts = ([push_chart(pushes)], [push_table(pushes)]);
            document = document.part(capitalised(&finding), parts.0, parts.1);
        }
        if let Some(fan_out) = &self.fan_out {
            let finding = capitalised(&fan_out_finding(fan_out));
            let parts = ([fan_out_chart(fan_out)], [fan_out_table(fan_out)]);
            document = document.part(finding, parts.0, parts.1);
        }
        if !self.bursts.is_empty() {
            let finding = capitalised(&burst_finding(&self.bursts));
            document = document.part(finding, [], [burst_table(&self.bursts)]);
        }
        if !self.connections.is_empty() {
            let finding = capitalised(&connection_finding(&self.connections));
            document = document.part(finding, [], [connection_table(&self.connections)]);
        }
        if let Some(timers) = &self.timers {
            let finding = capitalised(&timer_finding(timers));
            document = document.part(finding, [], [timer_table(timers)]);
        }
        if let Some(finding) = slow_finding(&self.slow) {
            document = document.part(capitalised(&finding), [], [slow_table(&self.slow)]);
        }
        if let Some(finding) = ring_finding(&self.ring) {
            document = document.part(capitalised(&finding), [], [ring_table(&self.ring)]);
        }
        if let Some(peers) = &self.peers {
            let finding = peer_finding(peers).unwrap_or_default();
            let parts = ([peer_chart(peers)], [peer_table(peers)]);
            document = document.part(capitalised(&finding), parts.0, parts.1);
        }
        end(
            document,
            NOTES.map(str::to_owned),
            &self.environment,
            &self.plan.command(),
        )
    }
}

fn priority_finding(outcome: &EventsOutcome) -> String {
    let of = |lanes, loaded| {
        let row = outcome.urgent(lanes, loaded);
        row.map_or_else(|| "–".to_owned(), |row| units::time(row.latency.p999_us))
    };
    format!(
        "99.9 % of urgent events arrive within {} beside a saturated lane, and within {} without \
         a load; without lanes it is {} and {}",
        of(true, true),
        of(true, false),
        of(false, true),
        of(false, false),
    )
}

fn priority_case(row: &PriorityRow) -> String {
    let lanes = if row.lanes { "lanes" } else { "no lanes" };
    let load = if row.loaded { "beside a load" } else { "alone" };
    format!("{lanes}, {load}")
}

fn priority_chart(rows: &[PriorityRow]) -> Chart {
    let curves = rows.iter().map(|row| {
        let mark = if row.loaded { Mark::Line } else { Mark::Dashes };
        curve(mark, priority_case(row), &row.record)
    });
    by_percentile("urgent events", curves)
}

fn times(summary: &Summary) -> [String; 4] {
    let of = [
        summary.p50_us,
        summary.p99_us,
        summary.p999_us,
        summary.max_us,
    ];
    of.map(units::time)
}

fn priority_table(rows: &[PriorityRow]) -> Table {
    by_columns(
        "Urgent events, from creation to consumer",
        rows,
        priority_case,
        [
            ("events", |row| units::count(row.latency.calls)),
            ("p50", |row| times(&row.latency)[0].clone()),
            ("p99", |row| times(&row.latency)[1].clone()),
            ("p99.9", |row| times(&row.latency)[2].clone()),
            ("longest", |row| times(&row.latency)[3].clone()),
            ("low events/s", |row| units::count(row.low_per_s as u64)),
            ("of these lost", |row| units::count(row.low_lost)),
        ],
    )
}

fn push_finding(pushes: &PushFigures) -> Option<String> {
    if let Some(push) = pushes.instructions(PushCase::Consumers(1)) {
        let call = pushes.instructions(PushCase::Call)?;
        return Some(format!(
            "within a process a push takes {push:.0} instructions, and the call of a trait \
             {call:.0}"
        ));
    }
    let [none, all] = [0, 999].map(|others| pushes.instructions(PushCase::OtherTypes(others)));
    Some(format!(
        "a push takes {:.0} instructions with 999 subscribers of other types, and {:.0} with none",
        all?, none?
    ))
}

fn push_case(row: &PushRow) -> String {
    match row.case {
        PushCase::Call => "no channel, a call of the trait".to_owned(),
        PushCase::Consumers(number) => format!("consumers: {number}"),
        PushCase::OtherTypes(number) => format!("1 consumer, others by type: {number}"),
        PushCase::OtherSources(number) => format!("1 consumer, others by source: {number}"),
        PushCase::Masks(number) => format!("1 consumer, others by mask: {number}"),
    }
}

fn push_chart(pushes: &PushFigures) -> Chart {
    let caption = "Instructions of a push by the number of subscribers, on logarithmic axes.";
    let series = |name, of: fn(PushCase) -> Option<u32>| {
        let points = pushes.rows.iter().filter_map(|row| {
            let subscribers = of(row.case)?;
            Some((f64::from(subscribers), row.instructions?))
        });
        Series::new(Mark::Line, name, points.collect::<Vec<_>>())
    };
    let all = [
        series("consumers", |case| match case {
            PushCase::Consumers(number) => Some(number),
            _ => None,
        }),
        series("one consumer, others by type", |case| match case {
            PushCase::OtherTypes(number) => Some(number + 1),
            _ => None,
        }),
        series("one consumer, others by source", |case| match case {
            PushCase::OtherSources(number) => Some(number + 1),
            _ => None,
        }),
        series("one consumer, others by mask", |case| match case {
            PushCase::Masks(number) => Some(number + 1),
            _ => None,
        }),
    ];
    let subscribers = Axis::log("subscribers", Unit::Count);
    let instructions = Axis::log("instructions", Unit::Count);
    Chart::new(caption, subscribers, instructions).series(all)
}

fn push_table(pushes: &PushFigures) -> Table {
    let heading = format!("A push; counts of {}", units::count(pushes.pushes.into()));
    by_columns(
        heading,
        &pushes.rows,
        push_case,
        [
            ("instructions", |row| {
                let counted = row.instructions.map(|of| format!("{of:.0}"));
                counted.unwrap_or_else(|| "–".to_owned())
            }),
            ("time", |row| units::time(row.nanos / 1e3)),
            ("allocations", |row| row.allocations.to_string()),
            ("locks", |row| row.lock_operations.to_string()),
            ("system calls", |row| {
                let counted = row.system_calls.map(|of| of.to_string());
                counted.unwrap_or_else(|| "–".to_owned())
            }),
        ],
    )
}

fn fan_out_finding(fan_out: &FanOutFigures) -> String {
    let further = fan_out.of_further(|row| row.system_calls);
    further.map_or_else(
        || "system calls were not traced".to_owned(),
        |calls| format!("each further consumer of an event costs {calls:.2} system calls"),
    )
}

fn fan_out_chart(fan_out: &FanOutFigures) -> Chart {
    let caption = "The work of the channel for one event by the number of consumers.";
    let series = |mark, name, of: fn(&super::FanOutRow) -> Option<f64>| {
        let points = fan_out.rows.iter();
        let points = points.filter_map(|row| Some((f64::from(row.consumers), of(row)?)));
        Series::new(mark, name, points.collect::<Vec<_>>())
    };
    let all = [
        series(Mark::Line, "system calls", |row| row.system_calls),
        series(Mark::Dashes, "of these sends", |row| row.sends),
        series(Mark::Line, "allocations", |row| Some(row.allocations)),
    ];
    let consumers = Axis::linear("consumers", Unit::Count);
    Chart::new(
        caption,
        consumers,
        Axis::linear("for an event", Unit::Number),
    )
    .series(all)
}

fn fan_out_table(fan_out: &FanOutFigures) -> Table {
    by_columns(
        "The channel's work for an event, by consumers",
        &fan_out.rows,
        |row| units::count(row.consumers.into()),
        [
            ("system calls", |row| number(row.system_calls)),
            ("of these sends", |row| number(row.sends)),
            ("allocations", |row| number(Some(row.allocations))),
            ("allocated", |row| units::bytes(row.allocated_octets)),
        ],
    )
}

fn number(of: Option<f64>) -> String {
    of.map_or_else(|| "–".to_owned(), |of| format!("{of:.2}"))
}

fn burst_finding(rows: &[BurstRow]) -> String {
    let most = rows.iter().map(|row| row.events_per_s).fold(0.0, f64::max);
    let lost = rows.iter().map(|row| row.lost).sum();
    format!(
        "a channel takes up to {} events in a second; {} deliveries of bursts are lost, and told",
        units::count(most as u64),
        units::count(lost)
    )
}

fn burst_table(rows: &[BurstRow]) -> Table {
    by_columns(
        "Bursts",
        rows,
        |row| row.what.clone(),
        [
            ("pushed", |row| units::count(row.pushed)),
            ("deliveries", |row| units::count(row.asked)),
            ("taken", |row| units::count(row.taken)),
            ("told lost", |row| units::count(row.lost)),
            ("events/s", |row| units::count(row.events_per_s as u64)),
        ],
    )
}

fn connection_finding(rows: &[ConnectionRow]) -> String {
    let last = rows.last();
    last.map_or_else(String::new, |row| {
        format!(
            "a client of {} connects in {}, and disconnects in {}",
            units::count(u64::from(row.each) * 2),
            units::time(row.connect_us),
            units::time(row.disconnect_us)
        )
    })
}

fn connection_table(rows: &[ConnectionRow]) -> Table {
    by_columns(
        "Suppliers and as many consumers",
        rows,
        |row| format!("{}, {}", units::count(row.each.into()), row.order.title()),
        [
            ("a connection", |row| units::time(row.connect_us)),
            ("a disconnection", |row| units::time(row.disconnect_us)),
        ],
    )
}

fn timer_finding(timers: &TimerFigures) -> String {
    format!(
        "99.9 % of the ticks of {} timers come within {}, and {} are elsewhere than they should",
        units::count(timers.timers.into()),
        units::time(timers.lateness.p999_us),
        units::count(timers.drifted)
    )
}

fn timer_table(timers: &TimerFigures) -> Table {
    let rows = [
        ("ticks on the lane", &timers.lateness),
        ("a thread that sleeps", &timers.thread),
    ];
    let lines = rows.map(|(name, summary)| {
        let cells = [vec![units::count(summary.calls)], times(summary).to_vec()];
        (name.to_owned(), cells.concat())
    });
    Table::new(
        "Lateness",
        ["times", "p50", "p99", "p99.9", "longest"],
        lines,
    )
}

fn slow_finding(rows: &[SlowRow]) -> Option<String> {
    let [alone, beside] = rows else {
        return None;
    };
    Some(format!(
        "99.9 % of a consumer's events arrive within {} beside one that takes nothing, and within \
         {} without it",
        units::time(beside.latency.p999_us),
        units::time(alone.latency.p999_us)
    ))
}

fn slow_table(rows: &[SlowRow]) -> Table {
    by_columns(
        "A consumer that keeps up",
        rows,
        |row| {
            let with = if row.beside_slow {
                "beside a slow one"
            } else {
                "alone"
            };
            with.to_owned()
        },
        [
            ("p50", |row| times(&row.latency)[0].clone()),
            ("p99", |row| times(&row.latency)[1].clone()),
            ("p99.9", |row| times(&row.latency)[2].clone()),
            ("longest", |row| times(&row.latency)[3].clone()),
            ("pushed", |row| units::count(row.pushed)),
            ("lost", |row| units::count(row.fast_lost)),
            ("the slow one took", |row| units::count(row.slow_taken)),
            ("and lost", |row| units::count(row.slow_lost)),
            ("memory", |row| units::bytes(row.growth as f64)),
        ],
    )
}

fn ring_finding(rows: &[RingRow]) -> Option<String> {
    let polling = rows.iter().filter(|row| !row.sleeping);
    let most = polling.max_by_key(|row| row.cursors)?;
    Some(format!(
        "a message to a ring of shared memory with {} cursors takes its publisher {:.0} ns",
        units::count(most.cursors.into()),
        most.nanos
    ))
}

fn ring_table(rows: &[RingRow]) -> Table {
    by_columns(
        "A ring of shared memory",
        rows,
        |row| {
            let way = if row.sleeping {
                "that sleep"
            } else {
                "that poll"
            };
            format!("{} cursors {way}", units::count(row.cursors.into()))
        },
        [
            ("for a message", |row| format!("{:.0} ns", row.nanos)),
            ("calls to wake", |row| number(row.wakes)),
            ("published", |row| units::count(row.published)),
            ("taken", |row| units::count(row.taken)),
            ("told lost", |row| units::count(row.lost)),
        ],
    )
}

fn peer_finding(peers: &PeerFigures) -> Option<String> {
    let most = peers.rows.iter().map(|row| row.consumers).max()?;
    let rows = peers.rows.iter().filter(|row| row.consumers == most);
    let each = rows.map(|row| {
        let time = units::time(row.latency.p50_us);
        format!("{} {time}", row.system.name())
    });
    let each = each.collect::<Vec<_>>().join(", ");
    Some(format!(
        "half of the events reach {} consumers within these times: {each}",
        units::count(most.into())
    ))
}

fn peer_chart(peers: &PeerFigures) -> Chart {
    let caption = "The median time from the push of an event to a consumer, on logarithmic axes.";
    let series = PeerSystem::ALL.map(|system| {
        let mark = if system.rival().is_some() {
            Mark::Dashes
        } else {
            Mark::Line
        };
        let rows = peers.rows.iter().filter(|row| row.system == system);
        let points = rows.map(|row| (f64::from(row.consumers), row.latency.p50_us));
        Series::new(mark, system.name(), points.collect::<Vec<_>>())
    });
    let consumers = Axis::log("consumers", Unit::Count);
    Chart::new(caption, consumers, Axis::log("time", Unit::Time)).series(series)
}

fn peer_table(peers: &PeerFigures) -> Table {
    by_columns(
        "Systems in turns, from the push of an event to a consumer",
        &peers.rows,
        |row| {
            format!(
                "{}, {}",
                row.system.name(),
                units::count(row.consumers.into())
            )
        },
        [
            ("deliveries", |row| units::count(row.latency.calls)),
            ("p50", |row| times(&row.latency)[0].clone()),
            ("p99", |row| times(&row.latency)[1].clone()),
            ("longest", |row| times(&row.latency)[3].clone()),
            ("p50 by raw TCP's", |row| number(row.of_raw)),
            ("missing", |row| units::count(row.missing)),
        ],
    )
}

const LEAD: &str = "An event channel passes events of suppliers to the consumers that subscribed \
     to them. Each part shows one property of the channel: priorities, the cost of a push, \
     filters, fan-out, losses, connections, timers, slow consumers, a ring of shared memory, and \
     other systems beside it.";
const NOTES: [&str; 5] = [
    "Over TCP the channel had a process of its own, and its clients another one. Times are by the \
     monotonic clock of the machine.",
    "Instructions were counted by single steps of the pushing thread, allocations and locks by the \
     process itself, system calls by ptrace(2).",
    "Without a load, a thread on each processor kept it awake, and competed with ordinary threads.",
    "An event was made when its supplier began to push it, one in a millisecond; late ones were \
     not left out.",
    "Other systems took the same events in turns with chronorb: 64 octets from a process with the \
     supplier to one with all consumers, whose threads slept for them.",
];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("events", &outcome());
    }
}
