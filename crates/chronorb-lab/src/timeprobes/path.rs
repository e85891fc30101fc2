//! The path of a call through both processes, and its parts.

use std::collections::BTreeMap;

use chronorb_orb::Stage;
use serde::Serialize;

use super::order::{BACK, CALL, ELSEWHERE, INTO_KERNEL, RESULT, SERVANT, SERVED, Stamps, stage};

/// A part of the path of a call. Each begins where the one before ends, and together they are the
/// whole call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PathPart {
    /// The side on which it is.
    pub side: CallSide,
    /// The layer that takes the time.
    pub layer: Layer,
    /// The work that is done.
    pub name: &'static str,
}

/// The side of a part of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallSide {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Between them, from one to the other.
    Between,
}

/// The layer that takes the time of a part.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Stub, skeleton, object adapter and GIOP.
    #[serde(rename = "ORB")]
    Orb,
    /// The ORB's connection and the transport's own code, from a stage of the ORB to the kernel
    /// and back.
    Transport,
    /// The kernel: system calls, sockets, and waking the other side.
    #[serde(rename = "operating system")]
    OperatingSystem,
    /// The servant.
    Servant,
}

/// The path of a call: the time of each of the [`PARTS`], in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CallPath {
    pub(super) parts: [u64; PARTS.len()],
    /// The times that client and server spend in the system call that sends. They belong to the
    /// parts between the sides, and overlap with the receiver's wake-up: nothing tells which of
    /// them the call waits for.
    pub(super) sending: [u64; 2],
}

/// All parts, in the order of their times.
pub(super) const PARTS: [PathPart; 17] = {
    use CallSide::{Between, Client, Server};
    use Layer::{OperatingSystem, Orb, Servant, Transport};
    [
        PathPart::of(Client, Orb, "stub, to the ORB"),
        PathPart::of(Client, Orb, "find the connection"),
        PathPart::of(Client, Orb, "marshal the request"),
        PathPart::of(Client, Transport, "hand over to the kernel"),
        PathPart::of(Between, OperatingSystem, "request: send, wake, receive"),
        PathPart::of(Server, Transport, "take over, find the message's end"),
        PathPart::of(Server, Orb, "request header, object adapter"),
        PathPart::of(Server, Orb, "servant"),
        PathPart::of(Server, Orb, "skeleton: demarshal"),
        PathPart::of(Server, Servant, "servant's work"),
        PathPart::of(Server, Orb, "skeleton: marshal"),
        PathPart::of(Server, Orb, "conclude the reply"),
        PathPart::of(Server, Transport, "hand over to the kernel"),
        PathPart::of(Between, OperatingSystem, "reply: send, wake, receive"),
        PathPart::of(Client, Transport, "take over, find the message's end"),
        PathPart::of(Client, Orb, "reply header"),
        PathPart::of(Client, Orb, "stub: demarshal, return"),
    ]
};

/// Follows the calls of a client's only thread through the server. A call of which a stamp is
/// missing is left out.
pub(super) fn follow(client: &[Stamps], server: &[Stamps]) -> Vec<CallPath> {
    let mut calls: Vec<_> = client.iter().flat_map(|of| CLIENT.passages(of)).collect();
    let mut served: Vec<_> = server.iter().flat_map(|of| SERVER.passages(of)).collect();
    calls.sort_unstable_by_key(|call| call.points[0]);
    served.sort_unstable_by_key(|one| one.points[1]);
    let mut served = served.into_iter().peekable();
    let mut followed = Vec::new();
    for call in calls {
        // The server may have served calls that the client has not reported.
        while served
            .next_if(|one| one.points[1] < call.points[0])
            .is_some()
        {}
        if let Some(one) = served.next_if(|one| one.points[1] < call.points[8]) {
            followed.extend(CallPath::of(&call, &one));
        }
    }
    followed
}

/// The marks of a side that make the path of a call.
struct SideMarks {
    /// The marks in the order of their times.
    path: [u8; 9],
    /// The stage in which the message is sent.
    sending: u8,
    /// The mark that stands for [`HANDED_OVER`] where no system call sends.
    or_handed_over: u8,
    /// The stage before which the message was [`RECEIVED`].
    receiving: u8,
    /// The mark that stands for [`RECEIVED`] where no system call receives.
    or_received: u8,
    /// The mark at which this side ends a call.
    last: u8,
}

const CLIENT: SideMarks = SideMarks {
    path: [
        CALL,
        stage(Stage::Bind),
        stage(Stage::Marshal),
        stage(Stage::Send),
        HANDED_OVER,
        RECEIVED,
        stage(Stage::Understand),
        stage(Stage::Return),
        RESULT,
    ],
    sending: stage(Stage::Send),
    or_handed_over: stage(Stage::Await),
    receiving: stage(Stage::Understand),
    or_received: stage(Stage::Understand),
    last: RESULT,
};

const SERVER: SideMarks = SideMarks {
    path: [
        RECEIVED,
        stage(Stage::Dispatch),
        stage(Stage::Find),
        stage(Stage::Upcall),
        SERVANT,
        SERVED,
        stage(Stage::Conclude),
        stage(Stage::Write),
        HANDED_OVER,
    ],
    sending: stage(Stage::Write),
    or_handed_over: stage(Stage::Rest),
    receiving: stage(Stage::Dispatch),
    or_received: stage(Stage::Read),
    last: stage(Stage::Rest),
};

/// The passage of a call through one side.
struct Passage {
    /// The times of [`SideMarks::path`].
    points: [u64; 9],
    /// The time in the system call that sends.
    sending: u64,
}

impl SideMarks {
    /// Returns the calls that the stamps of a thread show.
    fn passages(&self, stamps: &Stamps) -> Vec<Passage> {
        let mut all = Vec::new();
        let mut stage = None;
        let mut times = MarkTimes::new();
        for &(mark, at) in stamps {
            let sends = stage == Some(self.sending);
            match mark {
                INTO_KERNEL if sends => {
                    times.entry(HANDED_OVER).or_insert(at);
                }
                BACK if sends && times.contains_key(&HANDED_OVER) => {
                    times.entry(SENT).or_insert(at);
                }
                INTO_KERNEL | ELSEWHERE => {}
                _ => {
                    if mark == CALL {
                        (stage, times) = (None, MarkTimes::new());
                    }
                    times.insert(mark, at);
                    if usize::from(mark) < Stage::ALL.len() {
                        stage = Some(mark);
                    }
                }
            }
            if mark == self.receiving {
                let received = times.get(&BACK).or_else(|| times.get(&self.or_received));
                let received = received.copied();
                times.extend(received.map(|at| (RECEIVED, at)));
            }
            if mark == self.last {
                all.extend(self.passage(&mut times));
                (stage, times) = (None, MarkTimes::new());
            }
        }
        all
    }

    fn passage(&self, times: &mut MarkTimes) -> Option<Passage> {
        let (into, sending) = match (times.get(&HANDED_OVER), times.get(&SENT)) {
            (Some(into), Some(sent)) => (*into, sent.saturating_sub(*into)),
            _ => (*times.get(&self.or_handed_over)?, 0),
        };
        times.insert(HANDED_OVER, into);
        let mut points = [0; 9];
        for (point, mark) in points.iter_mut().zip(&self.path) {
            *point = *times.get(mark)?;
        }
        Some(Passage { points, sending })
    }
}

/// The last time of each mark in a call.
type MarkTimes = BTreeMap<u8, u64>;

/// The thread goes into the kernel to send, for the first time in the stage.
const HANDED_OVER: u8 = 210;
/// The thread comes out of the kernel after that.
const SENT: u8 = 211;
/// The thread came out of the kernel for the last time before it has the message.
const RECEIVED: u8 = 212;

impl CallPath {
    /// Joins both sides. Returns nothing if the times are in no order.
    fn of(call: &Passage, served: &Passage) -> Option<Self> {
        let (before, after) = call.points.split_at(5);
        let times = [before, &served.points, after].concat();
        let mut parts = [0; PARTS.len()];
        for (part, pair) in parts.iter_mut().zip(times.windows(2)) {
            *part = pair[1].checked_sub(pair[0])?;
        }
        Some(Self {
            parts,
            sending: [call.sending, served.sending],
        })
    }

    /// Returns the time of the whole call.
    pub(super) fn whole(&self) -> u64 {
        self.parts.iter().sum()
    }

    /// Returns the time of a layer.
    pub(super) fn of_layer(&self, layer: Layer) -> u64 {
        let parts = self.parts.iter().zip(PARTS);
        let parts = parts.filter(|(_, part)| part.layer == layer);
        parts.map(|(time, _)| time).sum()
    }
}

impl PathPart {
    const fn of(side: CallSide, layer: Layer, name: &'static str) -> Self {
        Self { side, layer, name }
    }
}

impl Layer {
    /// All layers.
    pub const ALL: [Self; 4] = [
        Self::Orb,
        Self::Transport,
        Self::OperatingSystem,
        Self::Servant,
    ];

    /// The name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Orb => "ORB",
            Self::Transport => "transport",
            Self::OperatingSystem => "operating system",
            Self::Servant => "servant",
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Stamps of a call each, ten nanoseconds apart, from these times on.
    fn stamps(marks: &[u8], times: &[u64]) -> Vec<Stamps> {
        let of_call = |begin: &u64| {
            let marks = marks.iter().zip((*begin..).step_by(10));
            marks.map(|(mark, at)| (*mark, at)).collect::<Vec<_>>()
        };
        vec![times.iter().flat_map(of_call).collect()]
    }

    const OF_CLIENT: [u8; 12] = [
        CALL,
        stage(Stage::Bind),
        stage(Stage::Marshal),
        stage(Stage::Send),
        INTO_KERNEL,
        BACK,
        stage(Stage::Await),
        INTO_KERNEL,
        BACK,
        stage(Stage::Understand),
        stage(Stage::Return),
        RESULT,
    ];
    /// With a wait on a set before the read.
    const OF_SERVER: [u8; 15] = [
        INTO_KERNEL,
        BACK,
        stage(Stage::Read),
        BACK,
        stage(Stage::Dispatch),
        stage(Stage::Find),
        stage(Stage::Upcall),
        SERVANT,
        SERVED,
        stage(Stage::Conclude),
        stage(Stage::Write),
        INTO_KERNEL,
        BACK,
        stage(Stage::Rest),
        INTO_KERNEL,
    ];

    #[test]
    fn parts_follow_each_other_and_are_the_whole() {
        // The client is stretched, so that the server fits into it.
        let mut client = stamps(&OF_CLIENT, &[1_000, 3_000]);
        let late = [stage(Stage::Understand), stage(Stage::Return), RESULT];
        for (number, (mark, at)) in client[0].iter_mut().enumerate() {
            if late.contains(mark) || number % OF_CLIENT.len() == 8 {
                *at += 500;
            }
        }
        let server = stamps(&OF_SERVER, &[500, 1_050, 3_050, 9_000]);
        let followed = follow(&client, &server);
        assert_eq!(followed.len(), 2, "{followed:?}");
        let path = followed[0];
        // Into the kernel at 1040, out of it at 1080; in again at 1160, out at 1580.
        assert_eq!(path.parts[..5], [10, 10, 10, 10, 40]);
        assert_eq!(path.parts[5..13], [10; 8]);
        assert_eq!(path.parts[13..], [420, 10, 10, 10]);
        assert_eq!(path.sending, [10, 10]);
        assert_eq!(path.whole(), 610);
        let layers: u64 = Layer::ALL.map(|layer| path.of_layer(layer)).iter().sum();
        assert_eq!(layers, path.whole());
    }

    #[test]
    fn a_call_of_which_a_stamp_is_missing_is_left_out() {
        let client = stamps(&OF_CLIENT[..11], &[1_000]);
        let server = stamps(&OF_SERVER, &[1_000]);
        assert_eq!(follow(&client, &server), []);
    }
}
