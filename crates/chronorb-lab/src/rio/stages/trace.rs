//! A trace of one processor, and of the packets that any processor queues for it, by the kernel's
//! event tracing (ftrace, tracefs).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::bench::TRACED;

/// A recording of the events of one processor, from [`begin`](Self::begin) to [`end`](Self::end).
/// Packets of bulk data are left out.
#[derive(Debug)]
pub(super) struct EventTrace {
    processor: Instance,
    /// The packets that all processors queue.
    queues: Instance,
}

/// An instance in tracefs, which changes no settings of other tracers. It replaces one that a
/// killed process has left behind.
#[derive(Debug)]
struct Instance(PathBuf);

/// An event of the traced processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TraceEvent {
    /// The time in µs.
    pub(super) at_us: f64,
    /// The thread that ran.
    pub(super) thread: u32,
    pub(super) kind: EventKind,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EventKind {
    /// The kernel takes a packet in.
    Received {
        length: u32,
        /// The time in µs for which it was in the kernel's queue of received packets.
        queued_us: f64,
    },
    /// A packet of this length reaches the other end of the cable.
    Sent(u32),
    /// A thread is woken.
    Woken(u32),
    /// The processor switches to a thread.
    SwitchTo(u32),
    /// A system call with this number begins.
    Enter(u64),
    /// A system call returns.
    Exit,
    /// A thread begins a traced stage of the ORB, by its number.
    Mark(usize),
}

impl EventTrace {
    /// Begins to record the events of a processor.
    pub(super) fn begin(cpu: usize) -> io::Result<Self> {
        Ok(Self {
            queues: Instance::begin(QUEUES, None, &[QUEUED])?,
            processor: Instance::begin(NAME, Some(cpu), EVENTS)?,
        })
    }

    /// Returns the file into which traced programs write their marks.
    pub(super) fn marker(&self) -> PathBuf {
        self.processor.0.join("trace_marker")
    }

    /// Ends the recording. Returns the events in their order. Packets are those that the first
    /// interface receives, and the second one, at the other end of its cable.
    pub(super) fn end(self, cable: [&str; 2]) -> io::Result<Vec<TraceEvent>> {
        let text = self.processor.end()?;
        Ok(parse(&text, &self.queues.end()?, cable))
    }
}

impl Instance {
    /// Begins to record events, of one processor or of all.
    fn begin(name: &str, cpu: Option<usize>, events: &[&str]) -> io::Result<Self> {
        let instances = Path::new(TRACEFS).join("instances");
        if !instances.is_dir() {
            return Err(io::Error::other(NO_TRACEFS));
        }
        let instance = instances.join(name);
        let _left_behind = fs::remove_dir(&instance);
        fs::create_dir(&instance)?;
        let this = Self(instance);
        this.set("tracing_on", "0")?;
        this.set("trace_clock", "mono")?;
        this.set("buffer_size_kb", ROOM_KIB)?;
        if let Some(cpu) = cpu {
            this.set("tracing_cpumask", &mask(cpu))?;
        }
        for event in events {
            if event.starts_with("net/") {
                this.set(&format!("events/{event}/filter"), NO_BULK)?;
            }
            this.set(&format!("events/{event}/enable"), "1")?;
        }
        this.set("tracing_on", "1")?;
        Ok(this)
    }

    /// Ends the recording. Returns its lines.
    fn end(&self) -> io::Result<String> {
        self.set("tracing_on", "0")?;
        fs::read_to_string(self.0.join("trace"))
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        let written = fs::write(self.0.join(file), value);
        written.map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // An instance that cannot be removed records nothing any more, and the next run uses it.
        let _ = self.set("tracing_on", "0");
        let _ = fs::remove_dir(&self.0);
    }
}

/// Returns the set of this processor alone: 32 of them in each hexadecimal word, the highest first.
fn mask(cpu: usize) -> String {
    format!("{:x}{}", 1_u32 << (cpu % 32), ",00000000".repeat(cpu / 32))
}

/// Reads the events of a recording, and the packets that were queued. Lines that describe something
/// else are skipped.
fn parse(text: &str, queues: &str, cable: [&str; 2]) -> Vec<TraceEvent> {
    let queued = queued(queues, cable[0]);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let events = lines.filter_map(|line| parse_line(line, &queued, cable));
    without_marking(events.collect())
}

/// The times in µs at which packets were queued, in their order, by the address of the packet,
/// which others have later.
type QueuedPackets<'t> = HashMap<&'t str, Vec<f64>>;

fn queued<'t>(text: &'t str, near: &str) -> QueuedPackets<'t> {
    let mut packets = QueuedPackets::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(line) = TraceLine::read(line) else {
            continue;
        };
        if line.event == "netif_rx" && line.field("dev=") == Some(near) {
            let packet = line.field(PACKET).unwrap_or_default();
            packets.entry(packet).or_default().push(line.at_us);
        }
    }
    packets
}

/// Takes the system calls that write marks out of a recording, and their time.
fn without_marking(events: Vec<TraceEvent>) -> Vec<TraceEvent> {
    let mut kept: Vec<TraceEvent> = Vec::with_capacity(events.len());
    let mut taken_us = 0.0;
    let mut rest = &events[..];
    loop {
        rest = match rest {
            [] => return kept,
            [enter, mark, exit, after @ ..]
                if matches!(
                    [enter.kind, mark.kind, exit.kind],
                    [EventKind::Enter(_), EventKind::Mark(_), EventKind::Exit]
                ) && [enter.thread, exit.thread] == [mark.thread; 2] =>
            {
                kept.push(TraceEvent {
                    at_us: enter.at_us - taken_us,
                    ..*mark
                });
                taken_us += exit.at_us - enter.at_us;
                after
            }
            [event, after @ ..] => {
                kept.push(TraceEvent {
                    at_us: event.at_us - taken_us,
                    ..*event
                });
                after
            }
        };
    }
}

/// A line: `COMMAND-THREAD [CPU] FLAGS SECONDS.MICROSECONDS: EVENT: FIELDS`. A command may have
/// spaces and hyphens.
struct TraceLine<'t> {
    thread: u32,
    at_us: f64,
    event: &'t str,
    fields: &'t str,
}

impl<'t> TraceLine<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let (task, rest) = line.split_once(" [")?;
        let (_, thread) = task.rsplit_once('-')?;
        let (before, fields) = rest.split_once(": ")?;
        let (_, seconds) = before.rsplit_once(' ')?;
        let (event, fields) = fields.split_once(": ")?;
        Some(Self {
            thread: thread.trim().parse().ok()?,
            at_us: seconds.parse::<f64>().ok()? * 1e6,
            event,
            fields,
        })
    }

    fn field(&self, name: &str) -> Option<&'t str> {
        let (_, value) = self.fields.rsplit_once(name)?;
        let end = value.find([' ', ',']).unwrap_or(value.len());
        Some(&value[..end])
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.field(name)?.parse().ok()
    }
}

fn parse_line(
    line: &str,
    queued: &QueuedPackets<'_>,
    [near, far]: [&str; 2],
) -> Option<TraceEvent> {
    let line = TraceLine::read(line)?;
    let is_of = |interface| line.field("dev=") == Some(interface);
    let kind = match line.event {
        "netif_receive_skb" if is_of(near) => {
            let times = queued
                .get(line.field(PACKET)?)
                .map_or(&[][..], Vec::as_slice);
            let before = times.partition_point(|time| *time <= line.at_us);
            let since = before.checked_sub(1).map_or(line.at_us, |last| times[last]);
            EventKind::Received {
                length: line.number(" len=")?,
                queued_us: line.at_us - since,
            }
        }
        "netif_rx" if is_of(far) => EventKind::Sent(line.number(" len=")?),
        "sched_waking" => EventKind::Woken(line.number(" pid=")?),
        "sched_switch" => EventKind::SwitchTo(line.number(" next_pid=")?),
        "sys_enter" => {
            let number = line.fields.strip_prefix("NR ")?.split(' ').next()?;
            EventKind::Enter(number.parse().ok()?)
        }
        "sys_exit" => EventKind::Exit,
        "tracing_mark_write" => {
            let is_it = |(_, text): &(_, &str)| *text == line.fields.trim();
            EventKind::Mark(TRACED.iter().position(is_it)?)
        }
        _ => return None,
    };
    Some(TraceEvent {
        at_us: line.at_us,
        thread: line.thread,
        kind,
    })
}

const TRACEFS: &str = "/sys/kernel/tracing";
const NO_TRACEFS: &str = "tracefs is not mounted, or this process may not use it: as root, `mount \
                          -t tracefs tracefs /sys/kernel/tracing`";
/// The names of the instances.
const NAME: &str = "chronorb-lab";
const QUEUES: &str = "chronorb-lab-queues";
/// The event of a packet that is queued for the processor that receives it.
const QUEUED: &str = "net/netif_rx";
/// The address of a packet.
const PACKET: &str = "skbaddr=";
/// The filter of packets: those of calls and acknowledgements, and none of bulk data.
const NO_BULK: &str = "len < 400";
/// The room for events, in KiB.
const ROOM_KIB: &str = "32768";
const EVENTS: &[&str] = &[
    "net/netif_receive_skb",
    QUEUED,
    "sched/sched_waking",
    "sched/sched_switch",
    "raw_syscalls/sys_enter",
    "raw_syscalls/sys_exit",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_others_are_skipped() {
        let text = "\
# tracer: nop
     awake of-7   [001] ..s2.  10.000001: netif_receive_skb: dev=rio0 skbaddr=00a len=152
     awake of-7   [001] ..s2.  10.000001: netif_receive_skb: dev=lo skbaddr=000 len=152
     awake of-7   [001] d.s3.  10.000004: sched_waking: comm=a pid=1 pid=8 prio=25 target_cpu=001
     awake of-7   [001] d..2.  10.000006: sched_switch: prev_comm=awake of prev_pid=7 \
prev_prio=139 prev_state=R ==> next_comm=lane next_pid=8 next_prio=25
        lane-8    [001] .....  10.000007: sys_exit: NR 281 = 1
        lane-8    [001] .....  10.000009: sys_enter: NR 44 (c, 7f, 50, 4000, 0, 0)
        lane-8    [001] b..1.  10.000011: netif_rx: dev=far skbaddr=00 len=110
        lane-8    [001] .....  10.000011: sched_stat: whatever
";
        let queues = "\
        client-5    [000] b..1.   9.000000: netif_rx: dev=rio0 skbaddr=00a len=152
        client-5    [000] b..1.   9.999998: netif_rx: dev=far skbaddr=00a len=152
        client-5    [000] b..1.   9.999999: netif_rx: dev=rio0 skbaddr=00a len=152
        client-5    [000] b..1.  10.000002: netif_rx: dev=rio0 skbaddr=00a len=152
";
        let events = parse(text, queues, ["rio0", "far"]);
        let mut kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
        let EventKind::Received { queued_us, .. } = &mut kinds[0] else {
            panic!("{kinds:?}");
        };
        *queued_us = queued_us.round();
        assert_eq!(
            kinds,
            [
                EventKind::Received {
                    length: 152,
                    queued_us: 2.0,
                },
                EventKind::Woken(8),
                EventKind::SwitchTo(8),
                EventKind::Exit,
                EventKind::Enter(44),
                EventKind::Sent(110),
            ]
        );
        assert_eq!((events[0].thread, events[5].thread), (7, 8));
        assert!((events[5].at_us - events[0].at_us - 10.0).abs() < 0.01);
    }

    #[test]
    fn marks_take_no_time() {
        let text = "\
        lane-8    [001] .....  10.000007: sys_enter: NR 45 (c, 7f, 50, 4000, 0, 0)
        lane-8    [001] .....  10.000008: sys_exit: NR 45 = 80
        lane-8    [001] .....  10.000010: sys_enter: NR 1 (5, 7f, 5, 0, 0, 0)
        lane-8    [001] .....  10.000012: tracing_mark_write: write
        lane-8    [001] .....  10.000013: sys_exit: NR 1 = 5
        lane-8    [001] .....  10.000015: sys_enter: NR 44 (c, 7f, 50, 4000, 0, 0)
";
        let events = parse(text, "", ["rio0", "far"]);
        let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
        let expected = [
            EventKind::Enter(45),
            EventKind::Exit,
            EventKind::Mark(1),
            EventKind::Enter(44),
        ];
        assert_eq!(kinds, expected);
        let times = [1, 2, 3].map(|at| (events[at].at_us - events[0].at_us).round());
        assert_eq!(times, [1.0, 3.0, 5.0]);
    }

    #[test]
    fn a_processor_is_a_set_of_one() {
        assert_eq!([0, 1, 31].map(mask), ["1", "2", "80000000"]);
        assert_eq!(mask(33), "2,00000000");
    }
}
