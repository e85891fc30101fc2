//! The scheduling parameters of a request, as they travel beside its priority.

use chronorb_cdr::{CdrError, Endian};

/// The content of the context [`SCHEDULING`](crate::contexts::SCHEDULING): deadline, urgency, and
/// distributable thread of a request.
///
/// The size and the layout are fixed. A prepared request header therefore reserves the room, and
/// [`patch`](Self::patch) writes the times of each call into it.
///
/// ```
/// use chronorb_giop::SchedulingContext;
///
/// let context = SchedulingContext {
///     relative: Some(2_000_000),
///     criticality: 3,
///     ..SchedulingContext::default()
/// };
/// let mut data = context.encode();
/// assert_eq!(SchedulingContext::decode(&data), Ok(Some(context)));
///
/// let sent_later = SchedulingContext { relative: Some(-100), ..context };
/// SchedulingContext::patch(&mut data, Some(-100), None, 0);
/// assert_eq!(data, sent_later.encode());
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct SchedulingContext {
    /// The time from sending to the deadline, in nanoseconds; negative if it has passed.
    pub relative: Option<i64>,
    /// The deadline by synchronised clocks.
    pub absolute: Option<AbsoluteDeadline>,
    /// The processor time that the call still needs, in nanoseconds; 0 if it is not known.
    pub execution: u64,
    /// The criticality. The greater one is served first, and shed last, under MUF.
    pub criticality: i16,
    /// The importance, which decides between requests of equal urgency.
    pub importance: i16,
    /// The distributable thread: 64 bits that are unique for the ORB that began it, and 64 bits of
    /// a counter. All are zero outside of a distributable thread.
    pub guid: [u8; 16],
    /// The discipline of the sender's scheduler. A number that is not known is read as none.
    pub discipline: Option<SchedulingDiscipline>,
    /// The number of calls between the root of the thread and this one.
    pub hops: u16,
    /// Whether this oneway request begins a distributable thread of its own.
    pub begins_thread: bool,
    /// Whether the distributable thread is cancelled.
    pub cancelled: bool,
    /// Whether the times of this call are to be recorded.
    pub monitored: bool,
}

/// A deadline by clocks that show the same time on all machines, within bounds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct AbsoluteDeadline {
    /// The deadline in TAI: nanoseconds since 1970, as `CLOCK_TAI` counts them.
    pub tai: u64,
    /// The greatest error of the sender's clock, in nanoseconds.
    pub uncertainty: u32,
}

/// A scheduling discipline.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u16)]
pub enum SchedulingDiscipline {
    /// Fixed priorities.
    FixedPriority = 1,
    /// Earliest deadline first.
    Deadline = 2,
    /// Least laxity first.
    Laxity = 3,
    /// Maximum urgency first: the criticality, then the laxity.
    Urgency = 4,
}

/// The clock by which absolute deadlines are understood.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SynchronisedClock {
    /// The present time in TAI, in nanoseconds since 1970.
    pub now: u64,
    /// The greatest error of this clock, in nanoseconds.
    pub uncertainty: u32,
}

impl SchedulingContext {
    /// The octets of the content.
    pub const LEN: usize = 56;

    /// Returns the content in the byte order of this machine.
    ///
    /// ```text
    /// 0            1         2       4             6            8
    /// | byte order | version | flags | criticality | importance | GUID
    /// 24         32         40          48            52     54           56
    /// | relative | absolute | execution | uncertainty | hops | discipline |
    /// ```
    #[inline]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let absolute = self.absolute.unwrap_or_default();
        let discipline = self.discipline.map_or(0, |discipline| discipline as u16);
        let mut data = [0; Self::LEN];
        data[0] = Endian::NATIVE.is_little() as u8;
        data[1] = VERSION;
        let bits = (u16::from(self.begins_thread) * flags::BEGINS_THREAD)
            | (u16::from(self.cancelled) * flags::CANCELLED)
            | (u16::from(self.monitored) * flags::MONITORED);
        data[2..4].copy_from_slice(&bits.to_ne_bytes());
        data[4..6].copy_from_slice(&self.criticality.to_ne_bytes());
        data[6..8].copy_from_slice(&self.importance.to_ne_bytes());
        data[8..24].copy_from_slice(&self.guid);
        data[48..52].copy_from_slice(&absolute.uncertainty.to_ne_bytes());
        data[52..54].copy_from_slice(&self.hops.to_ne_bytes());
        data[54..56].copy_from_slice(&discipline.to_ne_bytes());
        let tai = self.absolute.map(|absolute| absolute.tai);
        Self::patch(&mut data, self.relative, tai, self.execution);
        data
    }

    /// Replaces the times in a content that [`encode`](Self::encode) made: the time to the deadline
    /// (ns), the deadline in TAI (ns since 1970), and the processor time that is still needed (ns).
    #[inline]
    pub fn patch(
        data: &mut [u8; Self::LEN],
        relative: Option<i64>,
        tai: Option<u64>,
        execution: u64,
    ) {
        let mut bits = u16::from_ne_bytes([data[2], data[3]]);
        bits &= !(flags::RELATIVE | flags::ABSOLUTE);
        bits |= if relative.is_some() {
            flags::RELATIVE
        } else {
            0
        };
        bits |= if tai.is_some() { flags::ABSOLUTE } else { 0 };
        data[2..4].copy_from_slice(&bits.to_ne_bytes());
        data[24..32].copy_from_slice(&relative.unwrap_or(0).to_ne_bytes());
        data[32..40].copy_from_slice(&tai.unwrap_or(0).to_ne_bytes());
        data[40..48].copy_from_slice(&execution.to_ne_bytes());
    }

    /// Whether it belongs to a distributable thread.
    pub const fn has_thread(&self) -> bool {
        u128::from_ne_bytes(self.guid) != 0
    }

    /// Reads the content, in either byte order. It is `None` if the content has another version,
    /// which has no effect. Flags that are not known have none either.
    ///
    /// # Errors
    /// [`CdrError::EndOfData`] for a content that is too short, [`CdrError::LengthOverflow`] for
    /// one that is too long.
    #[inline]
    pub fn decode(data: &[u8]) -> Result<Option<Self>, CdrError> {
        let [order, version, ..] = data else {
            return Err(CdrError::EndOfData);
        };
        if *version != VERSION {
            return Ok(None);
        }
        let content: &[u8; Self::LEN] = match data.try_into() {
            Ok(content) => content,
            Err(_) if data.len() > Self::LEN => return Err(CdrError::LengthOverflow),
            Err(_) => return Err(CdrError::EndOfData),
        };
        Ok(Some(if Endian::from_flag(*order != 0) == Endian::NATIVE {
            Self::read(content)
        } else {
            Self::read(&in_other_order(content))
        }))
    }

    /// Reads the content in the byte order of this machine.
    #[inline]
    fn read(data: &[u8; Self::LEN]) -> Self {
        let bits = u16::from_ne_bytes(field(data, 2));
        let has = |flag| bits & flag != 0;
        let relative = i64::from_ne_bytes(field(data, 24));
        let absolute = AbsoluteDeadline {
            tai: u64::from_ne_bytes(field(data, 32)),
            uncertainty: u32::from_ne_bytes(field(data, 48)),
        };
        let discipline = u16::from_ne_bytes(field(data, 54));
        Self {
            relative: has(flags::RELATIVE).then_some(relative),
            absolute: has(flags::ABSOLUTE).then_some(absolute),
            execution: u64::from_ne_bytes(field(data, 40)),
            criticality: i16::from_ne_bytes(field(data, 4)),
            importance: i16::from_ne_bytes(field(data, 6)),
            guid: field(data, 8),
            discipline: SchedulingDiscipline::from_number(discipline),
            hops: u16::from_ne_bytes(field(data, 52)),
            begins_thread: has(flags::BEGINS_THREAD),
            cancelled: has(flags::CANCELLED),
            monitored: has(flags::MONITORED),
        }
    }

    /// Returns the time to the deadline, in nanoseconds, or `None` without a deadline.
    ///
    /// The result is never less than the time that is left. The delay of the network makes a
    /// relative deadline late. An absolute deadline is late by at most twice the uncertainties of
    /// both clocks, and is not used without a clock. Of two deadlines the earlier one counts.
    #[inline]
    pub fn remaining(&self, clock: Option<SynchronisedClock>) -> Option<i64> {
        let absolute = clock.zip(self.absolute).map(|(clock, deadline)| {
            let unsure = i128::from(clock.uncertainty) + i128::from(deadline.uncertainty);
            let left = i128::from(deadline.tai) - i128::from(clock.now) + unsure;
            left.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        });
        match (self.relative, absolute) {
            (Some(relative), Some(absolute)) => Some(relative.min(absolute)),
            (relative, absolute) => relative.or(absolute),
        }
    }
}

impl SchedulingDiscipline {
    /// Converts from the number in a context.
    const fn from_number(number: u16) -> Option<Self> {
        Some(match number {
            1 => Self::FixedPriority,
            2 => Self::Deadline,
            3 => Self::Laxity,
            4 => Self::Urgency,
            _ => return None,
        })
    }
}

/// The octets of a field of the content.
#[inline]
fn field<const N: usize>(data: &[u8; SchedulingContext::LEN], at: usize) -> [u8; N] {
    let mut octets = [0; N];
    octets.copy_from_slice(&data[at..at + N]);
    octets
}

/// Returns a content with its numbers in the other byte order.
#[cold]
fn in_other_order(data: &[u8; SchedulingContext::LEN]) -> [u8; SchedulingContext::LEN] {
    let mut swapped = *data;
    for (at, len) in NUMBERS {
        swapped[at..at + len].reverse();
    }
    swapped
}

/// The positions of the numbers of the content, and their octets.
const NUMBERS: [(usize, usize); 9] = [
    (2, 2),
    (4, 2),
    (6, 2),
    (24, 8),
    (32, 8),
    (40, 8),
    (48, 4),
    (52, 2),
    (54, 2),
];

/// The version of the content.
const VERSION: u8 = 1;

mod flags {
    pub(super) const RELATIVE: u16 = 1;
    pub(super) const ABSOLUTE: u16 = 1 << 1;
    pub(super) const BEGINS_THREAD: u16 = 1 << 2;
    pub(super) const CANCELLED: u16 = 1 << 3;
    pub(super) const MONITORED: u16 = 1 << 4;
}
