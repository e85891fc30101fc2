//! The end times of requests and replies, as they travel among the invocation policies.

use std::time::{Duration, SystemTime};

use chronorb_cdr::{CdrError, Endian};

use crate::encapsulation::Reader;
use crate::policies::{POLICY_REPLY_END_TIME, POLICY_REQUEST_END_TIME};

/// A point in time of the Time Service (`TimeBase::TimeT`): units of 100 ns since 15 October 1582,
/// UTC.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UtcTime(u64);

impl UtcTime {
    /// The start of Unix time.
    pub const UNIX_EPOCH: Self = Self(0x01B2_1DD2_1381_4000);

    /// The point that lies this number of units after the start of the calendar.
    pub const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// Returns the units since the start of the calendar.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// The point that lies a duration earlier, at least the start of the calendar.
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(units(duration)))
    }

    /// The time from `earlier` to this point; zero if `earlier` is the later one.
    pub const fn since(self, earlier: Self) -> Duration {
        let units = self.0.saturating_sub(earlier.0);
        let (seconds, rest) = (units / UNITS, units % UNITS);
        Duration::new(seconds, rest as u32 * UNIT)
    }
}

/// Later by a duration, at most at the end of the range.
impl std::ops::Add<Duration> for UtcTime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(units(duration)))
    }
}

/// Times outside of the range become its nearest end.
impl From<SystemTime> for UtcTime {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self::UNIX_EPOCH + after,
            Err(before) => Self::UNIX_EPOCH.before(before.duration()),
        }
    }
}

fn units(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / u128::from(UNIT)).unwrap_or(u64::MAX)
}

/// The end times among the invocation policies of a request
/// ([`INVOCATION_POLICIES`](crate::contexts::INVOCATION_POLICIES)).
///
/// ```
/// use chronorb_giop::{EndTimes, UtcTime};
///
/// let ends = EndTimes {
///     request: Some(UtcTime::from_units(7)),
///     reply: None,
/// };
/// let mut room = [0; EndTimes::LARGEST];
/// let data = ends.encode(&mut room);
/// assert_eq!(EndTimes::decode(data), Ok(ends));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EndTimes {
    /// The time after which the request must not be served.
    pub request: Option<UtcTime>,
    /// The time after which the reply is of no use.
    pub reply: Option<UtcTime>,
}

impl EndTimes {
    /// The most octets of their encapsulation.
    pub const LARGEST: usize = HEAD + 2 * ENTRY;

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.request.is_none() && self.reply.is_none()
    }

    /// Writes the content of the context, in the byte order of this machine: CORBA 3.3 part 1,
    /// clause 17.3.
    ///
    /// ```text
    /// 0            1     4        8      12       16           17    24     32
    /// | byte order | pad | number | type | length | byte order | pad | time | inaccuracy, zone | …
    /// ```
    pub fn encode(self, room: &mut [u8; Self::LARGEST]) -> &[u8] {
        let entries = [
            (POLICY_REQUEST_END_TIME, self.request),
            (POLICY_REPLY_END_TIME, self.reply),
        ];
        let order = Endian::NATIVE.is_little() as u8;
        let mut count = 0_usize;
        for (policy_type, time) in entries {
            let Some(UtcTime(time)) = time else {
                continue;
            };
            let entry = &mut room[HEAD + count * ENTRY..][..ENTRY];
            entry.fill(0);
            entry[..4].copy_from_slice(&policy_type.to_ne_bytes());
            entry[4..8].copy_from_slice(&VALUE.to_ne_bytes());
            entry[8] = order;
            entry[16..24].copy_from_slice(&time.to_ne_bytes());
            count += 1;
        }
        room[..4].copy_from_slice(&[order, 0, 0, 0]);
        room[4..HEAD].copy_from_slice(&(count as u32).to_ne_bytes());
        &room[..HEAD + count * ENTRY]
    }

    /// Reads the content of the context. Policies of other types are skipped. The earliest of
    /// several times has effect.
    ///
    /// # Errors
    /// Malformed content.
    pub fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut ends = Self::default();
        let mut policies = Reader::new(data)?;
        for _ in 0..policies.read_len()? {
            let policy_type = policies.read_u32()?;
            let value = policies.read_octet_seq()?;
            let place = match policy_type {
                POLICY_REQUEST_END_TIME => &mut ends.request,
                POLICY_REPLY_END_TIME => &mut ends.reply,
                _ => continue,
            };
            let time = UtcTime(Reader::new(value)?.read_u64()?);
            *place = Some(place.map_or(time, |before| before.min(time)));
        }
        Ok(ends)
    }
}

/// Nanoseconds of a unit.
const UNIT: u32 = 100;
/// Units of a second.
const UNITS: u64 = 10_000_000;
/// Octets before the first policy.
const HEAD: usize = 8;
/// Octets of a policy.
const ENTRY: usize = 8 + VALUE as usize;
/// Octets of the value of a policy: an encapsulated `TimeBase::UtcT`.
const VALUE: u32 = 24;
