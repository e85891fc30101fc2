//! A trace of one processor by the kernel's event tracing (ftrace, tracefs).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::bench::TRACED;

/// A recording of the events of one processor, from [`begin`](Self::begin) to [`end`](Self::end).
///
/// It has its own instance in tracefs and changes no settings of other tracers. It replaces a
/// recording that a killed process has left behind.
#[derive(Debug)]
pub(super) struct EventTrace {
    instance: PathBuf,
}

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
    /// The kernel takes a packet of this length in.
    Received(u32),
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
        let instances = Path::new(TRACEFS).join("instances");
        if !instances.is_dir() {
            return Err(io::Error::other(NO_TRACEFS));
        }
        let instance = instances.join(NAME);
        let _left_behind = fs::remove_dir(&instance);
        fs::create_dir(&instance)?;
        let this = Self { instance };
        this.set("tracing_on", "0")?;
        this.set("trace_clock", "mono")?;
        this.set("buffer_size_kb", ROOM_KIB)?;
        this.set("tracing_cpumask", &mask(cpu))?;
        for event in EVENTS {
            this.set(&format!("events/{event}/enable"), "1")?;
        }
        this.set("tracing_on", "1")?;
        Ok(this)
    }

    /// Returns the file into which traced programs write their marks.
    pub(super) fn marker(&self) -> PathBuf {
        self.instance.join("trace_marker")
    }

    /// Ends the recording. Returns the events in their order. Packets are those that the first
    /// interface receives, and the second one, at the other end of its cable.
    pub(super) fn end(self, cable: [&str; 2]) -> io::Result<Vec<TraceEvent>> {
        self.set("tracing_on", "0")?;
        let text = fs::read_to_string(self.instance.join("trace"))?;
        Ok(parse(&text, cable))
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        let written = fs::write(self.instance.join(file), value);
        written.map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))
    }
}

impl Drop for EventTrace {
    fn drop(&mut self) {
        // An instance that cannot be removed records nothing any more, and the next run uses it.
        let _ = self.set("tracing_on", "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

/// Returns the set of this processor alone: 32 of them in each hexadecimal word, the highest first.
fn mask(cpu: usize) -> String {
    format!("{:x}{}", 1_u32 << (cpu % 32), ",00000000".repeat(cpu / 32))
}

/// Reads the events of a recording. Lines that describe something else are skipped.
fn parse(text: &str, cable: [&str; 2]) -> Vec<TraceEvent> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let events = lines.filter_map(|line| parse_line(line, cable)).collect();
    without_marking(events)
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

/// Reads a line: `COMMAND-THREAD [CPU] FLAGS SECONDS.MICROSECONDS: EVENT: FIELDS`. A command may
/// have spaces and hyphens.
fn parse_line(line: &str, [near, far]: [&str; 2]) -> Option<TraceEvent> {
    let (task, rest) = line.split_once(" [")?;
    let (_, thread) = task.rsplit_once('-')?;
    let (before, fields) = rest.split_once(": ")?;
    let (_, seconds) = before.rsplit_once(' ')?;
    let (event, fields) = fields.split_once(": ")?;
    let field = |name: &str| {
        let (_, value) = fields.rsplit_once(name)?;
        let end = value.find([' ', ',']).unwrap_or(value.len());
        Some(&value[..end])
    };
    let number = |name: &str| field(name)?.parse::<u32>().ok();
    let is_of = |interface| field("dev=") == Some(interface);
    let kind = match event {
        "netif_receive_skb" if is_of(near) => EventKind::Received(number(" len=")?),
        "netif_rx" if is_of(far) => EventKind::Sent(number(" len=")?),
        "sched_waking" => EventKind::Woken(number(" pid=")?),
        "sched_switch" => EventKind::SwitchTo(number(" next_pid=")?),
        "sys_enter" => {
            let number = fields.strip_prefix("NR ")?.split(' ').next()?;
            EventKind::Enter(number.parse().ok()?)
        }
        "sys_exit" => EventKind::Exit,
        "tracing_mark_write" => {
            let is_it = |(_, text): &(_, &str)| *text == fields.trim();
            EventKind::Mark(TRACED.iter().position(is_it)?)
        }
        _ => return None,
    };
    Some(TraceEvent {
        at_us: seconds.parse::<f64>().ok()? * 1e6,
        thread: thread.trim().parse().ok()?,
        kind,
    })
}

const TRACEFS: &str = "/sys/kernel/tracing";
const NO_TRACEFS: &str = "tracefs is not mounted, or this process may not use it: as root, `mount \
                          -t tracefs tracefs /sys/kernel/tracing`";
/// The name of the instance.
const NAME: &str = "chronorb-lab";
/// The room for events, in KiB.
const ROOM_KIB: &str = "32768";
const EVENTS: &[&str] = &[
    "net/netif_receive_skb",
    "net/netif_rx",
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
     awake of-7   [001] ..s2.  10.000001: netif_receive_skb: dev=rio0 skbaddr=000 len=152
     awake of-7   [001] ..s2.  10.000001: netif_receive_skb: dev=lo skbaddr=000 len=152
     awake of-7   [001] d.s3.  10.000004: sched_waking: comm=a pid=1 pid=8 prio=25 target_cpu=001
     awake of-7   [001] d..2.  10.000006: sched_switch: prev_comm=awake of prev_pid=7 \
prev_prio=139 prev_state=R ==> next_comm=lane next_pid=8 next_prio=25
        lane-8    [001] .....  10.000007: sys_exit: NR 281 = 1
        lane-8    [001] .....  10.000009: sys_enter: NR 44 (c, 7f, 50, 4000, 0, 0)
        lane-8    [001] b..1.  10.000011: netif_rx: dev=far skbaddr=00 len=110
        lane-8    [001] .....  10.000011: sched_stat: whatever
";
        let events = parse(text, ["rio0", "far"]);
        let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
        assert_eq!(
            kinds,
            [
                EventKind::Received(152),
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
        let events = parse(text, ["rio0", "far"]);
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
