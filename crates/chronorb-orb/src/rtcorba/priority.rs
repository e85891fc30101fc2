//! CORBA priorities and their mapping to native ones.

use std::fmt;
use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind};

/// A CORBA priority, 0 to 32767; more is more urgent (RT-CORBA 1.2, “CORBA
/// Priority”).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(
    feature = "monitor-client",
    derive(serde::Deserialize, serde::Serialize)
)]
#[cfg_attr(feature = "monitor-client", serde(try_from = "i16", into = "i16"))]
pub struct Priority(i16);

impl Priority {
    /// The least urgent priority.
    pub const MIN: Self = Self(0);
    /// The most urgent priority.
    pub const MAX: Self = Self(i16::MAX);

    /// The priority with this value; `None` where it is negative.
    pub const fn new(value: i16) -> Option<Self> {
        if value < 0 { None } else { Some(Self(value)) }
    }

    /// Returns the value, 0 to 32767.
    pub const fn value(self) -> i16 {
        self.0
    }
}

/// The priority with this value, as `RTCORBA::Priority` is a `short`.
///
/// # Errors
/// `BAD_PARAM` where it is negative.
impl TryFrom<i16> for Priority {
    type Error = SystemException;

    fn try_from(value: i16) -> Result<Self, SystemException> {
        Self::new(value).ok_or(SystemException::no(SystemExceptionKind::BadParam, 0))
    }
}

impl From<Priority> for i16 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A priority of the operating system's real-time classes, 1 to 99; 0 is its ordinary scheduling.
pub type NativePriority = u8;

/// A mapping of CORBA priorities to native ones and back (RT-CORBA 1.2, “CORBA Priority
/// Mappings”).
///
/// An application that needs another mapping sets its own in the configuration of an ORB, which
/// uses it from the start:
///
/// ```
/// use std::sync::Arc;
///
/// use chronorb_orb::rtcorba::{MappingKind, NativePriority, Priority, PriorityMapping};
/// use chronorb_orb::{Orb, OrbConfig};
///
/// /// The plant's three urgencies, and nothing else.
/// #[derive(Debug)]
/// struct Plant;
///
/// impl PriorityMapping for Plant {
///     fn to_native(&self, priority: Priority) -> Option<NativePriority> {
///         match priority.value() {
///             0 => Some(0),
///             1 => Some(30),
///             2 => Some(60),
///             _ => None,
///         }
///     }
///
///     fn to_corba(&self, native: NativePriority) -> Option<Priority> {
///         (0..3).filter_map(Priority::new).find(|p| self.to_native(*p) == Some(native))
///     }
/// }
///
/// let mut config = OrbConfig::read(&mut Vec::new())?;
/// config.priority_mapping = MappingKind::Custom(Arc::new(Plant));
/// let orb = Orb::with_config(config)?;
/// # orb.shutdown(true)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Many threads call the mapping concurrently, for every request whose priority differs from that
/// of its thread. So it must not block, and should not allocate. A native priority outside of the
/// system's range counts as `None`. If it panics, the caller gets `INTERNAL`.
pub trait PriorityMapping: fmt::Debug + Send + Sync {
    /// The native priority of a CORBA priority; `None` where it has none (`DATA_CONVERSION`).
    fn to_native(&self, priority: Priority) -> Option<NativePriority>;

    /// The CORBA priority of a native one; `None` where it has none.
    fn to_corba(&self, native: NativePriority) -> Option<Priority>;
}

/// The mapping of an ORB.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MappingKind {
    /// [`LinearMapping`]: `-ORBPriorityMapping linear`.
    Linear,
    /// [`DirectMapping`]: `-ORBPriorityMapping direct`.
    Direct,
    /// [`ContinuousMapping`]: `-ORBPriorityMapping continuous`.
    Continuous,
    /// A mapping of the application, set in [`OrbConfig`](crate::OrbConfig).
    Custom(Arc<dyn PriorityMapping>),
}

impl MappingKind {
    pub(crate) fn mapping(&self) -> Arc<dyn PriorityMapping> {
        match self {
            Self::Linear => Arc::new(LinearMapping),
            Self::Direct => Arc::new(DirectMapping),
            Self::Continuous => Arc::new(ContinuousMapping),
            Self::Custom(mapping) => mapping.clone(),
        }
    }
}

/// Spreads 1…32767 evenly over the native real-time range. The default.
///
/// Priority 0 is the system's ordinary scheduling, for work that may use the remaining processor
/// time, and that the kernel's real-time throttling does not count.
#[derive(Clone, Copy, Debug)]
pub struct LinearMapping;

impl PriorityMapping for LinearMapping {
    fn to_native(&self, priority: Priority) -> Option<NativePriority> {
        let Some(above) = priority.0.checked_sub(1).filter(|above| *above >= 0) else {
            return Some(ORDINARY);
        };
        let step = i32::from(above) * STEPS / i32::from(i16::MAX);
        u8::try_from(i32::from(LEAST_URGENT) + step).ok()
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        match native {
            ORDINARY => Some(Priority::MIN),
            LEAST_URGENT..=MOST_URGENT => {
                // The least priority of the step, rounded up, so that the way back leads here.
                let step = i32::from(native - LEAST_URGENT);
                let above = (step * i32::from(i16::MAX) + STEPS - 1) / STEPS;
                i16::try_from(above + 1).ok().and_then(Priority::new)
            }
            _ => None,
        }
    }
}

/// Takes the CORBA priority as the native one; 0…98 only, 0 for ordinary scheduling.
#[derive(Clone, Copy, Debug)]
pub struct DirectMapping;

impl PriorityMapping for DirectMapping {
    fn to_native(&self, priority: Priority) -> Option<NativePriority> {
        u8::try_from(priority.0)
            .ok()
            .filter(|native| *native <= MOST_URGENT)
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        (native <= MOST_URGENT).then_some(Priority(i16::from(native)))
    }
}

/// Takes the CORBA priorities from 0 on for the native ones from the least urgent on, one by one:
/// 0…97 are 1…98, and others have none. No priority is ordinary scheduling.
#[derive(Clone, Copy, Debug)]
pub struct ContinuousMapping;

impl PriorityMapping for ContinuousMapping {
    fn to_native(&self, priority: Priority) -> Option<NativePriority> {
        let above = u8::try_from(priority.0).ok()?;
        let native = LEAST_URGENT.checked_add(above)?;
        (native <= MOST_URGENT).then_some(native)
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        let above = native.checked_sub(LEAST_URGENT)?;
        (native <= MOST_URGENT).then_some(Priority(i16::from(above)))
    }
}

const ORDINARY: NativePriority = 0;
const LEAST_URGENT: NativePriority = 1;
/// 99 belongs to the kernel's own threads, which an ORB must not hold up.
const MOST_URGENT: NativePriority = 98;
/// Real-time priorities that the linear mapping uses.
const STEPS: i32 = MOST_URGENT as i32 - LEAST_URGENT as i32 + 1;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_linear_mapping_uses_the_whole_native_range() {
        assert_eq!(LinearMapping.to_native(Priority::MIN), Some(0));
        assert_eq!(LinearMapping.to_native(Priority(1)), Some(1));
        assert_eq!(LinearMapping.to_native(Priority::MAX), Some(98));
        assert_eq!(LinearMapping.to_corba(99), None);
    }

    #[test]
    fn every_native_priority_survives_the_way_there_and_back() {
        for native in ORDINARY..=MOST_URGENT {
            for mapping in [&LinearMapping as &dyn PriorityMapping, &DirectMapping] {
                let corba = mapping.to_corba(native).expect("in range");
                assert_eq!(mapping.to_native(corba), Some(native), "{mapping:?}");
            }
        }
    }

    #[test]
    fn the_direct_mapping_refuses_what_is_not_native() {
        assert_eq!(DirectMapping.to_native(Priority(99)), None);
    }

    #[test]
    fn the_continuous_mapping_counts_from_the_least_urgent_on() {
        for (corba, native) in [(0, Some(1)), (1, Some(2)), (97, Some(98)), (98, None)] {
            assert_eq!(ContinuousMapping.to_native(Priority(corba)), native);
        }
        assert_eq!(ContinuousMapping.to_native(Priority::MAX), None);
        for (native, corba) in [(0, None), (1, Some(0)), (98, Some(97)), (99, None)] {
            assert_eq!(ContinuousMapping.to_corba(native), corba.map(Priority));
        }
    }

    #[test]
    fn a_negative_value_is_no_priority() {
        let refused = Priority::try_from(-1).expect_err("it is negative");
        assert_eq!(refused.kind, SystemExceptionKind::BadParam);
        assert_eq!(Priority::try_from(7), Ok(Priority(7)));
    }

    proptest! {
        #[test]
        fn mappings_keep_the_order(a in 0..=i16::MAX, b in 0..=i16::MAX) {
            let (low, high) = (Priority(a.min(b)), Priority(a.max(b)));
            prop_assert!(LinearMapping.to_native(low) <= LinearMapping.to_native(high));
        }
    }
}
