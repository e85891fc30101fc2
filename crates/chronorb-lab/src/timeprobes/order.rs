//! The messages between parent and children.

use std::path::PathBuf;

use chronorb_orb::Stage;
use chronorb_probe::{Activity, Point, ThreadStamps};
use serde::{Deserialize, Serialize};

/// The argument of a child: its part.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum ProbePart {
    Server(Endpoint),
    Client(Endpoint, ClientCalls),
    /// The part that measures the cost of points.
    Cost,
}

/// The transport of a server or a client, and its stamps.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Endpoint {
    pub(super) scheme: String,
    /// The directory of the certificates, if there is one.
    pub(super) certificates: Option<PathBuf>,
    /// The number of stamps that each thread keeps; without one, all points are off.
    pub(super) stamps: Option<usize>,
}

/// The calls of a client.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientCalls {
    pub(super) reference: String,
    pub(super) warm_up: u32,
    pub(super) calls: u32,
}

/// The order to a server to report its stamps.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct StampsOrder {}

/// The client's message after its calls.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientReport {
    /// The time of each call, in nanoseconds.
    pub(super) times_ns: Vec<u64>,
    pub(super) stamps: Vec<Stamps>,
}

/// The stamps of a thread: the number of each mark, and its time in nanoseconds of the monotonic
/// clock.
pub(super) type Stamps = Vec<(u8, u64)>;

/// Returns the stamps of all threads of this process since `begin_ns`.
pub(super) fn stamps_since(begin_ns: u64) -> Vec<Stamps> {
    let number = |point| match point {
        Point::Number(number) => number,
        Point::TurnedTo(Activity::InputOutput) => INTO_KERNEL,
        Point::TurnedTo(Activity::Other) => BACK,
        Point::TurnedTo(_) => ELSEWHERE,
    };
    let of_thread = |thread: &ThreadStamps| {
        let stamps = thread.stamps.iter();
        let stamps = stamps.map(|stamp| (number(stamp.point), stamp.at.as_nanos()));
        stamps.filter(|(_, at)| *at >= begin_ns).collect()
    };
    chronorb_probe::stamps().iter().map(of_thread).collect()
}

/// Returns the mark of a stage of the ORB.
pub(super) const fn stage(stage: Stage) -> u8 {
    stage as u8
}

/// The client is about to call the stub.
pub(super) const CALL: u8 = 100;
/// The client has its result.
pub(super) const RESULT: u8 = 101;
/// The servant begins.
pub(super) const SERVANT: u8 = 102;
/// The servant ends.
pub(super) const SERVED: u8 = 103;
/// The thread is about to ask the kernel for input or output.
pub(super) const INTO_KERNEL: u8 = 200;
/// The thread is back in the ORB, from the kernel or from elsewhere.
pub(super) const BACK: u8 = 201;
/// The thread is about to do anything else.
pub(super) const ELSEWHERE: u8 = 202;
