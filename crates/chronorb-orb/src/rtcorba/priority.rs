//! CORBA priorities and their mapping to native ones.

use std::fmt;

/// A CORBA priority, 0 to 32767; more is more urgent (RT-CORBA 1.2, 5.4).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
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

    /// Its value, 0 to 32767.
    pub const fn value(self) -> i16 {
        self.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A priority of the operating system's real-time classes, 1 to 99; 0 is its ordinary scheduling.
pub type NativePriority = u8;

/// How CORBA priorities become native ones and back (RT-CORBA 1.2, 5.4.2).
pub trait PriorityMapping: fmt::Debug + Send + Sync {
    /// The native priority of a CORBA priority; `None` where it has none (`DATA_CONVERSION`).
    fn to_native(&self, priority: Priority) -> Option<NativePriority>;

    /// The CORBA priority of a native one; `None` where it has none.
    fn to_corba(&self, native: NativePriority) -> Option<Priority>;
}

/// The mappings that a configuration can name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MappingKind {
    /// [`LinearMapping`].
    Linear,
    /// [`DirectMapping`].
    Direct,
}

impl MappingKind {
    pub(crate) fn mapping(self) -> Box<dyn PriorityMapping> {
        match self {
            Self::Linear => Box::new(LinearMapping),
            Self::Direct => Box::new(DirectMapping),
        }
    }
}

/// Spreads 1…32767 evenly over the native real-time range. The default.
///
/// Priority 0 is the system's ordinary scheduling: work that may take what is left of the
/// processors, and that the kernel's real-time throttling does not count.
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

    proptest! {
        #[test]
        fn mappings_keep_the_order(a in 0..=i16::MAX, b in 0..=i16::MAX) {
            let (low, high) = (Priority(a.min(b)), Priority(a.max(b)));
            prop_assert!(LinearMapping.to_native(low) <= LinearMapping.to_native(high));
        }
    }
}
