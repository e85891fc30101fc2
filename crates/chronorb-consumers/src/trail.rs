//! The channels that an event has passed.

use std::sync::Arc;

use chronorb::{Call, SystemException, SystemExceptionKind};
use chronorb_giop::contexts::EVENT_CHANNELS;

/// The identifiers of the channels that an event passed before this one, in their order. Most
/// events come from their supplier, and have an empty one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Trail(Option<Arc<[u64]>>);

impl Trail {
    /// The trail of an event of a supplier.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Returns the trail of the events of a push.
    ///
    /// # Errors
    /// `BAD_PARAM` if the context is malformed, or names more than 64 channels.
    pub fn from_call(call: &Call<'_>) -> Result<Self, SystemException> {
        match call.service_context(EVENT_CHANNELS) {
            Some(data) => Self::decode(data).ok_or(MALFORMED),
            None => Ok(Self::new()),
        }
    }

    /// Decodes the encapsulation of a `sequence<unsigned long long>`.
    fn decode(data: &[u8]) -> Option<Self> {
        let (start, ids) = data.split_first_chunk::<8>()?;
        let is_little = start[0] & 1 == 1;
        let count = start[4..].try_into().ok()?;
        let count = if is_little {
            u32::from_le_bytes(count)
        } else {
            u32::from_be_bytes(count)
        };
        let (ids, rest) = ids.as_chunks::<8>();
        if !rest.is_empty() || ids.len() != count as usize || ids.len() > MOST {
            return None;
        }
        let id = |id: &[u8; 8]| {
            if is_little {
                u64::from_le_bytes(*id)
            } else {
                u64::from_be_bytes(*id)
            }
        };
        Some(Self(
            (!ids.is_empty()).then(|| ids.iter().map(id).collect()),
        ))
    }

    /// Encodes the trail of what the channel `own` sends on.
    pub(crate) fn encode_with(&self, own: u64) -> Vec<u8> {
        let passed = self.0.as_deref().unwrap_or_default();
        let count = passed.len() as u32 + 1;
        let mut data = Vec::with_capacity(8 * (passed.len() + 2));
        data.extend([0; 4]);
        data.extend(count.to_be_bytes());
        for id in passed.iter().chain([&own]) {
            data.extend(id.to_be_bytes());
        }
        data
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the event passed this channel before, or too many others.
    pub fn ends_at(&self, channel: u64) -> bool {
        let passed = self.0.as_deref().unwrap_or_default();
        passed.len() >= MOST || passed.contains(&channel)
    }

    /// Returns the trail of a set of events with this trail and that one.
    pub(crate) fn joined(&self, other: &Self) -> Self {
        let (Some(these), Some(others)) = (&self.0, &other.0) else {
            return if self.is_empty() {
                other.clone()
            } else {
                self.clone()
            };
        };
        if others.iter().all(|id| these.contains(id)) {
            return self.clone();
        }
        let more = others.iter().filter(|id| !these.contains(id));
        Self(Some(these.iter().chain(more).copied().collect()))
    }
}

/// The most channels in a row.
const MOST: usize = 64;
const MALFORMED: SystemException = SystemException::no(SystemExceptionKind::BadParam, 0);

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(ids: &[u64]) -> Trail {
        Trail((!ids.is_empty()).then(|| ids.into()))
    }

    #[test]
    fn a_channel_adds_itself_to_the_trail() {
        let data = Trail::default().encode_with(7);
        assert_eq!(data.len(), 16);
        let first = Trail::decode(&data).unwrap();
        assert_eq!(first, trail(&[7]));
        let second = Trail::decode(&first.encode_with(u64::MAX)).unwrap();
        assert_eq!(second, trail(&[7, u64::MAX]));
        assert!(second.ends_at(7) && !second.ends_at(8));
    }

    #[test]
    fn both_orders_of_octets_are_read() {
        let little = [1, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Trail::decode(&little), Some(trail(&[5])));
    }

    #[test]
    fn a_malformed_or_excessive_trail_is_refused() {
        let whole = trail(&[1, 2]).encode_with(3);
        for len in 0..whole.len() {
            assert_eq!(Trail::decode(&whole[..len]), None, "{len} octets");
        }
        let long = trail(&[1; MOST]).encode_with(3);
        assert_eq!(Trail::decode(&long), None);
        assert!(trail(&[1; MOST]).ends_at(2), "it cannot be sent on");
    }

    #[test]
    fn a_set_has_the_channels_of_all_its_events() {
        let joined = trail(&[1, 2]).joined(&trail(&[2, 3]));
        assert_eq!(joined, trail(&[1, 2, 3]));
        assert_eq!(trail(&[]).joined(&trail(&[4])), trail(&[4]));
        assert_eq!(trail(&[4]).joined(&trail(&[])), trail(&[4]));
    }
}
