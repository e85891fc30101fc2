//! The fail-over of calls to other addresses of a reference.

use std::time::Duration;

/// The rules by which a call goes on at another address of its reference
/// ([`ClientPolicy::Failover`](super::ClientPolicy::Failover)).
///
/// The addresses are those of all profiles and alternate addresses, in the order in which they are
/// tried when a connection is made. An address that a connection cannot be made to, or that answers
/// no heartbeat, is *suspected* by the whole ORB for a time: all calls with such a policy prefer
/// the other addresses. A server that answers is never suspected, even with `TRANSIENT`.
///
/// The policy has no effect with [`RebindMode::NoReconnect`](super::RebindMode::NoReconnect), and
/// on objects that are called within the process.
///
/// ```
/// use std::time::Duration;
/// use chronorb_orb::rtcorba::{ClientPolicy, FailoverPolicy, FailoverSemantics, Heartbeat};
///
/// let policy = ClientPolicy::Failover(FailoverPolicy {
///     semantics: FailoverSemantics::AtLeastOnce,
///     standbys: 1,
///     heartbeat: Some(Heartbeat {
///         interval: Duration::from_millis(20),
///         time_out: Duration::from_millis(20),
///     }),
///     ..FailoverPolicy::default()
/// });
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FailoverPolicy {
    /// The calls that are repeated.
    pub semantics: FailoverSemantics,
    /// The longest duration of the attempt to connect to one address. With
    /// [`AtLeastOnce`](FailoverSemantics::AtLeastOnce) also that of the wait for the reply of one
    /// server, in synchronous calls. `None`: the time that is left, divided by the number of
    /// addresses that are left.
    pub attempt_timeout: Option<Duration>,
    /// The time for which an address is suspected.
    pub suspicion: Duration,
    /// The limit of repeated requests, so that they do not multiply an overload.
    pub retries: RetryBudget,
    /// The number of further addresses to which
    /// [`validate_connection`](crate::Object::validate_connection) connects in advance. These
    /// connections are not closed for being idle, or to make room.
    pub standbys: u32,
    /// The heartbeats of the addresses that there are connections to; none by default.
    pub heartbeat: Option<Heartbeat>,
}

/// The calls that are repeated at other addresses (`ClientFailoverSemanticsPolicyValue` of
/// Lightweight Fault Tolerance 1.0).
///
/// The conditions are `COMM_FAILURE`, `TRANSIENT`, `NO_RESPONSE` and `OBJ_ADAPTER`, of the
/// connection or of the server. The call ends with the last exception if no address is left, its
/// time is over or the [budget](RetryBudget) is used up. If one of the attempts may have been
/// executed, that exception is completed `MAYBE`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FailoverSemantics {
    /// No others than without a policy: all addresses are tried while a connection is made, and a
    /// request that the server did not begin is sent again.
    #[default]
    OrbDefault,
    /// Calls that no server has begun (completed `NO`).
    BestEffort,
    /// Also calls that a server may have executed (completed `MAYBE`), so they may be executed
    /// several times. A reply that does not arrive within the attempt's time counts as such.
    AtLeastOnce,
    /// As [`AtLeastOnce`](Self::AtLeastOnce), if the servers suppress duplicates. No server of this
    /// ORB does, so this value is refused: `INV_POLICY` (chronorb's minor 3).
    AtMostOnce,
}

/// The limit of repeated requests of an ORB: a token bucket, which all its calls share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RetryBudget {
    /// The number of repeated requests in each second. 0 forbids all.
    pub per_second: u32,
    /// The number that may be repeated at once, after a pause.
    pub burst: u32,
}

/// The heartbeats of an address: locate requests on a connection of their own, by one thread of the
/// ORB (named `heartbeat`) for all addresses.
///
/// A server that does not answer is detected within `interval` + `time_out` + an eighth of it, by
/// which a wait may end later. Several silent servers, or other times for other addresses, can add
/// the longest `time_out`. All connections with such a policy to that address are closed then, so
/// that waiting calls end with `COMM_FAILURE`. The address is a lane's own, and a lane answers only
/// if one of its threads is free: `time_out` must be longer than the longest time for which all of
/// them serve requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Heartbeat {
    /// The time between two heartbeats.
    pub interval: Duration,
    /// The longest time until the answer.
    pub time_out: Duration,
}

impl Default for FailoverPolicy {
    fn default() -> Self {
        Self {
            semantics: FailoverSemantics::OrbDefault,
            attempt_timeout: None,
            suspicion: Duration::from_secs(5),
            retries: RetryBudget::default(),
            standbys: 0,
            heartbeat: None,
        }
    }
}

impl Default for RetryBudget {
    /// 100 in each second, and 1,000 at once.
    fn default() -> Self {
        Self {
            per_second: 100,
            burst: 1000,
        }
    }
}

impl FailoverPolicy {
    /// Whether this ORB can follow it.
    pub(super) fn is_usable(&self) -> bool {
        let beats =
            |heartbeat: &Heartbeat| !heartbeat.interval.is_zero() && !heartbeat.time_out.is_zero();
        self.semantics != FailoverSemantics::AtMostOnce
            && self.heartbeat.as_ref().is_none_or(beats)
            && self.attempt_timeout.is_none_or(|time| !time.is_zero())
    }
}
