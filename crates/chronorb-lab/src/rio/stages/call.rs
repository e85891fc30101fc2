//! The path of a call through the server's processor, from the request's packet to the reply's.

use std::collections::BTreeMap;

use super::trace::{EventKind, TraceEvent};

/// A part of the path of a call.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum PathStage {
    /// The kernel's queue of received packets, until the kernel takes the request's out.
    Queue,
    /// From the request's packet to the first wake-up: driver, classifier, and the kernel's TCP
    /// where that is used.
    Receive,
    /// From the first wake-up until the thread runs, and all time in which no such thread ran.
    WakeUp,
    /// A woken thread that does not serve the request: the class's.
    ClassThread,
    /// The thread of the lane, until the ORB has the message: the reactor, the stack of RIO, and
    /// the reading.
    Input,
    /// The ORB and the servant.
    Orb,
    /// From the reply to the system call that sends: the stack of RIO.
    Output,
    /// The system call that sends, until the packet reaches the other end of the cable.
    Transmit,
}

impl PathStage {
    /// All of them, in their order.
    pub(super) const ALL: [Self; 8] = [
        Self::Queue,
        Self::Receive,
        Self::WakeUp,
        Self::ClassThread,
        Self::Input,
        Self::Orb,
        Self::Output,
        Self::Transmit,
    ];

    /// The name in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Receive => "receive",
            Self::WakeUp => "wake-up",
            Self::ClassThread => "class's thread",
            Self::Input => "input",
            Self::Orb => "ORB and servant",
            Self::Output => "output",
            Self::Transmit => "transmit",
        }
    }
}

/// The path of a call: times in µs, which are the whole together, and counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ServedCall {
    /// The time of each stage.
    pub(super) stages_us: [f64; PathStage::ALL.len()],
    /// The part of these in system calls, but for the one that sends.
    pub(super) system_us: f64,
    /// The system calls that began until then, by their stage and number.
    pub(super) system_calls: BTreeMap<(PathStage, u64), u32>,
    /// The wake-ups until then.
    pub(super) wake_ups: u32,
    /// The switches between threads until then.
    pub(super) switches: u32,
    /// The same counts until the next request, and the packets in both directions.
    pub(super) afterwards: CallTotals,
}

/// The counts of a call until the next one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct CallTotals {
    pub(super) system_calls: u32,
    pub(super) wake_ups: u32,
    pub(super) packets_in: u32,
    pub(super) packets_out: u32,
}

impl ServedCall {
    /// Returns the time from packet to packet.
    pub(super) fn whole_us(&self) -> f64 {
        self.stages_us.iter().sum()
    }

    /// Reads a call from the events that begin with its request and end before the next one.
    /// Returns nothing if its reply is not among them.
    fn read(events: &[TraceEvent], threads: WokenThreads) -> Option<Self> {
        let sent = events
            .iter()
            .position(|event| matches!(event.kind, EventKind::Sent(LEAST_MESSAGE..)))?;
        let (path, rest) = events.split_at(sent + 1);
        let sender = path[sent].thread;
        // The system call that sends is the last one of its thread.
        let sends = path
            .iter()
            .rposition(|event| event.thread == sender && is_enter(event));
        let mut call = Self::default();
        if let EventKind::Received { queued_us, .. } = path[0].kind {
            call.stages_us[PathStage::Queue as usize] = queued_us;
        }
        let mut state = PathState::of(sender, threads);
        for (at, event) in path.iter().enumerate() {
            state.take(event);
            let is_sending = sends.is_some_and(|sends| at >= sends);
            let stage = if is_sending {
                PathStage::Transmit
            } else {
                state.stage()
            };
            match event.kind {
                EventKind::Enter(number) => {
                    *call.system_calls.entry((stage, number)).or_default() += 1;
                }
                EventKind::Woken(_) => call.wake_ups += 1,
                EventKind::SwitchTo(_) => call.switches += 1,
                _ => {}
            }
            let Some(next) = path.get(at + 1) else { break };
            let length = next.at_us - event.at_us;
            call.stages_us[stage as usize] += length;
            if state.is_in_call() && !is_sending {
                call.system_us += length;
            }
        }
        let count = |of: fn(&EventKind) -> bool| {
            let events = path.iter().chain(rest);
            events.filter(|event| of(&event.kind)).count() as u32
        };
        call.afterwards = CallTotals {
            system_calls: count(|kind| matches!(kind, EventKind::Enter(_))),
            wake_ups: count(|kind| matches!(kind, EventKind::Woken(_))),
            packets_in: count(|kind| matches!(kind, EventKind::Received { .. })),
            packets_out: count(|kind| matches!(kind, EventKind::Sent(_))),
        };
        Some(call)
    }
}

/// The threads whose wake-ups are of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WokenThreads {
    /// All threads: those of the class and of the lane.
    All,
    /// The thread that sends the reply. Others have work of their own.
    Sender,
}

/// The state of the processor on the path of a call.
#[derive(Debug)]
struct PathState {
    /// The thread that sends the reply.
    sender: u32,
    threads: WokenThreads,
    /// The threads that were woken, and whether each is in a system call.
    woken: BTreeMap<u32, bool>,
    running: u32,
    /// The number of traced stages that the sender has begun.
    marks: usize,
}

impl PathState {
    fn of(sender: u32, threads: WokenThreads) -> Self {
        Self {
            sender,
            threads,
            woken: BTreeMap::new(),
            running: 0,
            marks: 0,
        }
    }

    /// Notes an event.
    fn take(&mut self, event: &TraceEvent) {
        self.running = event.thread;
        match event.kind {
            // It waits in a system call.
            EventKind::Woken(thread)
                if thread == self.sender || self.threads == WokenThreads::All =>
            {
                self.woken.entry(thread).or_insert(true);
            }
            EventKind::SwitchTo(thread) => self.running = thread,
            EventKind::Enter(_) | EventKind::Exit => {
                if let Some(is_in_call) = self.woken.get_mut(&event.thread) {
                    *is_in_call = matches!(event.kind, EventKind::Enter(_));
                }
            }
            EventKind::Mark(number) if event.thread == self.sender => self.marks = number + 1,
            EventKind::Woken(_)
            | EventKind::Mark(_)
            | EventKind::Received { .. }
            | EventKind::Sent(_) => {}
        }
    }

    /// Returns the stage of the path in which the processor is now.
    fn stage(&self) -> PathStage {
        if self.woken.is_empty() {
            PathStage::Receive
        } else if !self.woken.contains_key(&self.running) {
            PathStage::WakeUp
        } else if self.running != self.sender {
            PathStage::ClassThread
        } else {
            match self.marks {
                0 => PathStage::Input,
                1 => PathStage::Orb,
                _ => PathStage::Output,
            }
        }
    }

    /// Returns whether the running thread, which was woken, is in a system call.
    fn is_in_call(&self) -> bool {
        self.woken.get(&self.running) == Some(&true)
    }
}

/// Finds the calls in the events of the server's processor. The last request, after which the
/// recording may have ended, does not count.
pub(super) fn calls(events: &[TraceEvent], threads: WokenThreads) -> Vec<ServedCall> {
    let is_request = |event: &TraceEvent| match event.kind {
        EventKind::Received { length, .. } => length >= LEAST_MESSAGE,
        _ => false,
    };
    let requests = events.iter().enumerate();
    let requests = requests.filter(|(_, event)| is_request(event));
    let requests: Vec<_> = requests.map(|(at, _)| at).collect();
    let spans = requests.windows(2).map(|pair| &events[pair[0]..pair[1]]);
    let calls = spans.filter_map(|events| ServedCall::read(events, threads));
    calls.collect()
}

fn is_enter(event: &TraceEvent) -> bool {
    matches!(event.kind, EventKind::Enter(_))
}

/// The least length of a packet with a message; one that only acknowledges is shorter.
const LEAST_MESSAGE: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: u32 = 8;
    const CLASS: u32 = 9;
    const OTHER: u32 = 7;

    fn received(length: u32) -> EventKind {
        EventKind::Received {
            length,
            queued_us: 3.0,
        }
    }

    fn event(at_us: f64, thread: u32, kind: EventKind) -> TraceEvent {
        TraceEvent {
            at_us,
            thread,
            kind,
        }
    }

    /// A call with a wake-up of the class's thread and one of the lane's, a wait after it, and the
    /// beginning of the next.
    fn events() -> Vec<TraceEvent> {
        vec![
            event(100.0, OTHER, received(152)),
            event(104.0, OTHER, EventKind::Woken(CLASS)),
            event(106.0, OTHER, EventKind::SwitchTo(CLASS)),
            event(107.0, CLASS, EventKind::Exit),
            event(110.0, CLASS, EventKind::Woken(LANE)),
            event(113.0, CLASS, EventKind::SwitchTo(LANE)),
            event(114.0, LANE, EventKind::Exit),
            event(116.0, LANE, EventKind::Enter(45)),
            event(118.0, LANE, EventKind::Exit),
            event(121.0, LANE, EventKind::Mark(0)),
            event(128.0, LANE, EventKind::Mark(1)),
            event(132.0, LANE, EventKind::Enter(44)),
            event(138.0, LANE, EventKind::Sent(110)),
            event(145.0, LANE, EventKind::Exit),
            event(146.0, LANE, EventKind::Enter(281)),
            event(150.0, LANE, EventKind::SwitchTo(OTHER)),
            event(200.0, OTHER, received(52)),
            event(300.0, OTHER, received(152)),
        ]
    }

    #[test]
    fn the_times_of_a_call_are_the_whole_together() {
        let calls = calls(&events(), WokenThreads::All);
        let [call] = &calls[..] else {
            panic!("{calls:?}");
        };
        assert_eq!(call.stages_us, [3.0, 4.0, 2.0, 7.0, 8.0, 7.0, 4.0, 6.0]);
        assert_eq!(call.whole_us(), 41.0);
        assert_eq!(call.system_us, 1.0 + 1.0 + 2.0);
        assert_eq!((call.wake_ups, call.switches), (2, 2));
        let system_calls = [(PathStage::Input, 45), (PathStage::Transmit, 44)];
        assert_eq!(call.system_calls, system_calls.map(|at| (at, 1)).into());
        let totals = CallTotals {
            system_calls: 3,
            wake_ups: 2,
            packets_in: 2,
            packets_out: 1,
        };
        assert_eq!(call.afterwards, totals);
    }

    #[test]
    fn threads_with_work_of_their_own_are_none_of_the_call() {
        let calls = calls(&events(), WokenThreads::Sender);
        assert_eq!(
            calls[0].stages_us,
            [3.0, 10.0, 3.0, 0.0, 8.0, 7.0, 4.0, 6.0]
        );
    }

    #[test]
    fn a_request_without_a_reply_is_no_call() {
        let mut events = events();
        events.retain(|event| !matches!(event.kind, EventKind::Sent(_)));
        assert_eq!(calls(&events, WokenThreads::All), []);
    }
}
