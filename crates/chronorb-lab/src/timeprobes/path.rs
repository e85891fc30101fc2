//! The way of a call through both processes, and its parts.

use chronorb_orb::Stage;
use serde::{Serialize, Serializer};

use super::order::{CALL, Mark, RESULT, SERVANT, SERVED, Stamps, Told};

/// A part of the way of a call. Each begins where the one before ends, and together they are the whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Part {
    /// Where.
    pub side: Side,
    /// Who takes the time.
    pub layer: Layer,
    /// What is done.
    pub name: &'static str,
}

/// Where a part of a call takes place.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// At the client.
    Client,
    /// At the server.
    Server,
    /// Between them, beginning at one and ending at the other.
    Between,
}

/// Who takes the time of a part.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Layer {
    /// Stub, skeleton, object adapter, GIOP.
    Orb,
    /// The ORB's connection and the transport's own code, from a stage of the ORB to the kernel and back.
    Transport,
    /// The kernel: system calls, sockets, waking the other side.
    OperatingSystem,
    /// The servant.
    Servant,
}

/// A call that was followed: how long each of the [`PARTS`] took, in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Way {
    pub(super) parts: [u64; PARTS.len()],
    /// Of what lies between the sides, what the sender spends in its own system call; it is done at the same time as
    /// the other side's waking, so that nobody can tell what of it the call waits for.
    pub(super) sending: [u64; 2],
}

/// All parts, in the order of their times.
pub(super) const PARTS: [Part; 17] = [
    Part::orb(Side::Client, "stub, to the ORB"),
    Part::orb(Side::Client, "find the connection"),
    Part::orb(Side::Client, "marshal the request"),
    Part::transport(Side::Client, "hand over to the kernel"),
    Part::kernel("request: send, wake, receive"),
    Part::transport(Side::Server, "take over, find the message's end"),
    Part::orb(Side::Server, "request header, object adapter"),
    Part::orb(Side::Server, "servant"),
    Part::orb(Side::Server, "skeleton: demarshal"),
    Part {
        side: Side::Server,
        layer: Layer::Servant,
        name: "servant's work",
    },
    Part::orb(Side::Server, "skeleton: marshal"),
    Part::orb(Side::Server, "conclude the reply"),
    Part::transport(Side::Server, "hand over to the kernel"),
    Part::kernel("reply: send, wake, receive"),
    Part::transport(Side::Client, "take over, find the message's end"),
    Part::orb(Side::Client, "reply header"),
    Part::orb(Side::Client, "stub: demarshal, return"),
];

/// Follows the calls of a client's only thread through the server; those of which a stamp is missing are left out.
pub(super) fn follow(client: &Told, server: &Told) -> Vec<Way> {
    let mut calls: Vec<Called> = client.threads.iter().flat_map(called).collect();
    let mut served: Vec<Served> = server.threads.iter().flat_map(serves).collect();
    calls.sort_unstable_by_key(|call| call.points[0]);
    served.sort_unstable_by_key(|one| one.points[1]);
    let mut served = served.into_iter().peekable();
    let mut followed = Vec::new();
    for call in calls {
        // The ring of the server may hold more than the client told of.
        while served
            .next_if(|one| one.points[1] < call.points[0])
            .is_some()
        {}
        if let Some(one) = served.next_if(|one| one.points[1] < call.points[8]) {
            followed.extend(Way::of(&call, &one));
        }
    }
    followed
}

/// The times of a call at the client.
struct Called {
    /// Call, bind, marshal, send, into the kernel; out of it, understand, return, result.
    points: [u64; 9],
    /// In the system call that sends.
    sending: u64,
}

/// The times of a request at the server.
struct Served {
    /// Out of the kernel, dispatch, find, upcall, servant, served, conclude, write, into the kernel.
    points: [u64; 9],
    sending: u64,
}

impl Way {
    /// `None` where the times are in no order: something came between.
    fn of(call: &Called, served: &Served) -> Option<Self> {
        let (before, after) = call.points.split_at(5);
        let times = before.iter().chain(&served.points).chain(after);
        let times: Vec<u64> = times.copied().collect();
        let mut parts = [0; PARTS.len()];
        for (part, pair) in parts.iter_mut().zip(times.windows(2)) {
            *part = pair[1].checked_sub(pair[0])?;
        }
        Some(Self {
            parts,
            sending: [call.sending, served.sending],
        })
    }

    /// The whole call.
    pub(super) fn whole(&self) -> u64 {
        self.parts.iter().sum()
    }

    /// What a layer took.
    pub(super) fn of_layer(&self, layer: Layer) -> u64 {
        let parts = self.parts.iter().zip(PARTS);
        parts
            .filter(|(_, part)| part.layer == layer)
            .map(|(time, _)| time)
            .sum()
    }
}

/// Where a thread is within a request, by its last stage, and when it was where.
#[derive(Default)]
struct Course {
    at: Option<Stage>,
    /// By the number of the stage.
    stages: [Option<u64>; Stage::ALL.len()],
    own: [Option<u64>; 4],
    /// The last time out of the kernel before what comes next, the first into it and out of it since the request, or reply, was
    /// about to be sent.
    back: Option<u64>,
    into: Option<u64>,
    sent: Option<u64>,
}

impl Course {
    fn stage(&self, stage: Stage) -> Option<u64> {
        self.stages[stage as usize]
    }

    /// Where it went into the kernel to send, or else had handed over without one.
    fn handed_over(&self, otherwise: Stage) -> Option<(u64, u64)> {
        match (self.into, self.sent) {
            (Some(into), Some(sent)) => Some((into, sent.saturating_sub(into))),
            _ => Some((self.stage(otherwise)?, 0)),
        }
    }

    /// Goes on to a mark; `sending` are the stages in which something is sent.
    fn go_on(&mut self, mark: Mark, at: u64, sending: Stage) {
        let sends = self.at == Some(sending);
        match mark {
            Mark::At(stage) => {
                self.at = Some(stage);
                self.stages[stage as usize] = Some(at);
            }
            Mark::Own(number) => {
                if let Some(own) = self.own.get_mut(usize::from(number.wrapping_sub(CALL))) {
                    *own = Some(at);
                }
            }
            Mark::IntoKernel if sends => {
                self.into.get_or_insert(at);
            }
            Mark::Back if sends && self.into.is_some() => {
                self.sent.get_or_insert(at);
            }
            Mark::Back => self.back = Some(at),
            Mark::IntoKernel | Mark::Elsewhere => {}
        }
    }
}

/// The calls of a client's thread.
fn called(stamps: &Stamps) -> Vec<Called> {
    let mut all = Vec::new();
    let mut course = Course::default();
    let mut understood_after = None;
    for (mark, at) in stamps.iter() {
        match mark {
            Mark::Own(CALL) => {
                course = Course::default();
                understood_after = None;
            }
            // What follows in the kernel is of no call.
            Mark::At(Stage::Understand) => understood_after = course.back.or(Some(at)),
            _ => {}
        }
        course.go_on(mark, at, Stage::Send);
        if mark == Mark::Own(RESULT) {
            let call = || {
                let (into, sending) = course.handed_over(Stage::Await)?;
                let points = [
                    course.own[0]?,
                    course.stage(Stage::Bind)?,
                    course.stage(Stage::Marshal)?,
                    course.stage(Stage::Send)?,
                    into,
                    understood_after?,
                    course.stage(Stage::Understand)?,
                    course.stage(Stage::Return)?,
                    at,
                ];
                Some(Called { points, sending })
            };
            all.extend(call());
        }
    }
    all
}

/// The requests of a server's thread.
fn serves(stamps: &Stamps) -> Vec<Served> {
    let mut all = Vec::new();
    let mut course = Course::default();
    let mut taken_over = None;
    for (mark, at) in stamps.iter() {
        if mark == Mark::At(Stage::Dispatch) {
            taken_over = course.back.or_else(|| course.stage(Stage::Read));
        }
        course.go_on(mark, at, Stage::Write);
        if mark == Mark::At(Stage::Rest) {
            let one = || {
                let (into, sending) = course.handed_over(Stage::Rest)?;
                let points = [
                    taken_over?,
                    course.stage(Stage::Dispatch)?,
                    course.stage(Stage::Find)?,
                    course.stage(Stage::Upcall)?,
                    course.own[usize::from(SERVANT - CALL)]?,
                    course.own[usize::from(SERVED - CALL)]?,
                    course.stage(Stage::Conclude)?,
                    course.stage(Stage::Write)?,
                    into,
                ];
                Some(Served { points, sending })
            };
            all.extend(one());
            course = Course::default();
        }
    }
    all
}

impl Part {
    const fn orb(side: Side, name: &'static str) -> Self {
        let layer = Layer::Orb;
        Self { side, layer, name }
    }

    const fn transport(side: Side, name: &'static str) -> Self {
        let layer = Layer::Transport;
        Self { side, layer, name }
    }

    const fn kernel(name: &'static str) -> Self {
        Self {
            side: Side::Between,
            layer: Layer::OperatingSystem,
            name,
        }
    }
}

impl Side {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Between => "between",
        }
    }
}

impl Layer {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Orb,
        Self::Transport,
        Self::OperatingSystem,
        Self::Servant,
    ];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Orb => "ORB",
            Self::Transport => "transport",
            Self::OperatingSystem => "operating system",
            Self::Servant => "servant",
        }
    }
}

impl Serialize for Layer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::order::{BACK, INTO_KERNEL};
    use super::*;

    /// Stamps of a call each, ten nanoseconds apart, from these times on.
    fn stamps(marks: &[u8], times: &[u64]) -> Told {
        let of_call = |begin: &u64| {
            let marks = marks.iter().zip((*begin..).step_by(10));
            marks.map(|(mark, at)| (*mark, at)).collect::<Vec<_>>()
        };
        Told {
            threads: vec![Stamps {
                marks: times.iter().flat_map(of_call).collect(),
            }],
        }
    }

    const fn stage(stage: Stage) -> u8 {
        stage as u8
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
        for (mark, at) in client.threads[0].iter().collect::<Vec<_>>().iter().zip(0..) {
            let late = matches!(
                mark.0,
                Mark::At(Stage::Understand | Stage::Return) | Mark::Own(RESULT)
            );
            if late || at % 12 == 8 {
                client.threads[0].marks[at].1 += 500;
            }
        }
        let server = stamps(&OF_SERVER, &[500, 1_050, 3_050, 9_000]);
        let followed = follow(&client, &server);
        assert_eq!(followed.len(), 2, "{followed:?}");
        let way = followed[0];
        // Into the kernel at 1040, out of it at 1080; in again at 1160, out at 1580.
        assert_eq!(way.parts[..5], [10, 10, 10, 10, 40]);
        assert_eq!(way.parts[5..13], [10; 8]);
        assert_eq!(way.parts[13..], [420, 10, 10, 10]);
        assert_eq!(way.sending, [10, 10]);
        assert_eq!(way.whole(), 610);
        let layers: u64 = Layer::ALL.map(|layer| way.of_layer(layer)).iter().sum();
        assert_eq!(layers, way.whole());
    }

    #[test]
    fn a_call_of_which_a_stamp_is_missing_is_left_out() {
        let client = stamps(&OF_CLIENT[..11], &[1_000]);
        let server = stamps(&OF_SERVER, &[1_000]);
        assert_eq!(follow(&client, &server), []);
    }
}
