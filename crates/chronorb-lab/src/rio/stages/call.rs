//! The path of a call through the server's processor, from the request's packet to the reply's.

use std::collections::BTreeMap;

use super::trace::{EventKind, TraceEvent};

/// The path of a call: times in µs, which are the whole together, and counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ServedCall {
    /// From the request's packet to the first wake-up: driver, classifier, and the kernel's TCP
    /// where that is used.
    pub(super) receive_us: f64,
    /// From the first wake-up until the thread runs, and all time in which no such thread ran.
    pub(super) wake_us: f64,
    /// In system calls but for the one that sends.
    pub(super) system_us: f64,
    /// In the process: the stack of RIO, the ORB and the servant.
    pub(super) user_us: f64,
    /// In the system call that sends, until the packet reaches the other end of the cable.
    pub(super) transmit_us: f64,
    /// The system calls that began until then, by their numbers.
    pub(super) system_calls: BTreeMap<u64, u32>,
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
        self.receive_us + self.wake_us + self.system_us + self.user_us + self.transmit_us
    }

    /// Reads a call from the events that begin with its request and end before the next one.
    /// Returns nothing if its reply is not among them.
    fn read(events: &[TraceEvent]) -> Option<Self> {
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
        let mut state = PathState::default();
        for (at, pair) in path.windows(2).enumerate() {
            let [event, next] = pair else { continue };
            state.take(event);
            let length = next.at_us - event.at_us;
            let part = if sends.is_some_and(|sends| at >= sends) {
                &mut call.transmit_us
            } else {
                state.part(&mut call)
            };
            *part += length;
        }
        for event in path {
            match event.kind {
                EventKind::Enter(number) => *call.system_calls.entry(number).or_default() += 1,
                EventKind::Woken(_) => call.wake_ups += 1,
                EventKind::SwitchTo(_) => call.switches += 1,
                _ => {}
            }
        }
        let count = |of: fn(&EventKind) -> bool| {
            let events = path.iter().chain(rest);
            events.filter(|event| of(&event.kind)).count() as u32
        };
        call.afterwards = CallTotals {
            system_calls: count(|kind| matches!(kind, EventKind::Enter(_))),
            wake_ups: count(|kind| matches!(kind, EventKind::Woken(_))),
            packets_in: count(|kind| matches!(kind, EventKind::Received(_))),
            packets_out: count(|kind| matches!(kind, EventKind::Sent(_))),
        };
        Some(call)
    }
}

/// The state of the processor on the path of a call.
#[derive(Debug, Default)]
struct PathState {
    /// The threads that were woken, and whether each is in a system call.
    woken: BTreeMap<u32, bool>,
    running: u32,
}

impl PathState {
    /// Notes an event.
    fn take(&mut self, event: &TraceEvent) {
        self.running = event.thread;
        match event.kind {
            // It waits in a system call.
            EventKind::Woken(thread) => {
                self.woken.entry(thread).or_insert(true);
            }
            EventKind::SwitchTo(thread) => self.running = thread,
            EventKind::Enter(_) | EventKind::Exit => {
                if let Some(is_in_call) = self.woken.get_mut(&event.thread) {
                    *is_in_call = matches!(event.kind, EventKind::Enter(_));
                }
            }
            EventKind::Received(_) | EventKind::Sent(_) => {}
        }
    }

    /// Returns the part of the path in which the processor is now.
    fn part<'c>(&self, call: &'c mut ServedCall) -> &'c mut f64 {
        match self.woken.get(&self.running) {
            None if self.woken.is_empty() => &mut call.receive_us,
            None => &mut call.wake_us,
            Some(true) => &mut call.system_us,
            Some(false) => &mut call.user_us,
        }
    }
}

/// Finds the calls in the events of the server's processor. The last request, after which the
/// recording may have ended, does not count.
pub(super) fn calls(events: &[TraceEvent]) -> Vec<ServedCall> {
    let is_request =
        |event: &TraceEvent| matches!(event.kind, EventKind::Received(LEAST_MESSAGE..));
    let requests = events.iter().enumerate();
    let requests = requests.filter(|(_, event)| is_request(event));
    let requests: Vec<_> = requests.map(|(at, _)| at).collect();
    let spans = requests.windows(2).map(|pair| &events[pair[0]..pair[1]]);
    spans.filter_map(ServedCall::read).collect()
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
    const OTHER: u32 = 7;

    fn event(at_us: f64, thread: u32, kind: EventKind) -> TraceEvent {
        TraceEvent {
            at_us,
            thread,
            kind,
        }
    }

    /// A call with one wake-up, a wait after it, and the beginning of the next.
    fn events() -> Vec<TraceEvent> {
        vec![
            event(100.0, OTHER, EventKind::Received(152)),
            event(104.0, OTHER, EventKind::Woken(LANE)),
            event(106.0, OTHER, EventKind::SwitchTo(LANE)),
            event(107.0, LANE, EventKind::Exit),
            event(110.0, LANE, EventKind::Enter(45)),
            event(112.0, LANE, EventKind::Exit),
            event(117.0, LANE, EventKind::Enter(44)),
            event(123.0, LANE, EventKind::Sent(110)),
            event(130.0, LANE, EventKind::Exit),
            event(131.0, LANE, EventKind::Enter(281)),
            event(140.0, LANE, EventKind::SwitchTo(OTHER)),
            event(200.0, OTHER, EventKind::Received(52)),
            event(300.0, OTHER, EventKind::Received(152)),
        ]
    }

    #[test]
    fn the_times_of_a_call_are_the_whole_together() {
        let calls = calls(&events());
        let [call] = &calls[..] else {
            panic!("{calls:?}");
        };
        assert_eq!(
            [
                call.receive_us,
                call.wake_us,
                call.system_us,
                call.user_us,
                call.transmit_us
            ],
            [4.0, 2.0, 3.0, 8.0, 6.0]
        );
        assert_eq!(call.whole_us(), 23.0);
        assert_eq!((call.wake_ups, call.switches), (1, 1));
        assert_eq!(call.system_calls, BTreeMap::from([(45, 1), (44, 1)]));
        let totals = CallTotals {
            system_calls: 3,
            wake_ups: 1,
            packets_in: 2,
            packets_out: 1,
        };
        assert_eq!(call.afterwards, totals);
    }

    #[test]
    fn a_request_without_a_reply_is_no_call() {
        let mut events = events();
        events.retain(|event| !matches!(event.kind, EventKind::Sent(_)));
        assert_eq!(calls(&events), []);
    }
}
