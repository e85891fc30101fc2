//! Identities and scheduling parameters of distributable threads.

use std::fmt;
use std::time::Duration;

use chronorb_giop::{SchedulingContext, SchedulingDiscipline};
use chronorb_rt::Monotonic;

use crate::rtcorba::Priority;

/// The identity of a distributable thread (`RTScheduling::Current::IdType`): 128 bits, which are
/// random for each thread. It is unique without a registry, and tells no other identity.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    pub(crate) fn new(first: u64, second: u64) -> Self {
        let number = (u128::from(first) << 64) | u128::from(second);
        Self(number.to_be_bytes())
    }

    /// The two words of the identity.
    pub(crate) fn halves(self) -> (u64, u64) {
        let number = u128::from_be_bytes(self.0);
        ((number >> 64) as u64, number as u64)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The parameter of a scheduling segment, for one discipline.
///
/// Deadlines are instants of this machine's monotonic clock. They travel as the time that is left,
/// so the clocks of two machines need not agree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SchedulingParameter {
    /// `FP_Scheduling`: threads run at fixed priorities.
    FixedPriority {
        /// The CORBA priority of the thread in the segment.
        base_priority: Priority,
    },
    /// `EDF_Scheduling`: the earliest deadline first, then the greatest importance.
    EarliestDeadline {
        /// The time by which the segment should end.
        deadline: Monotonic,
        /// The importance; a greater one decides between equal deadlines.
        importance: i16,
    },
    /// `LLF_Scheduling`: the least laxity first.
    LeastLaxity {
        /// The time by which the segment should end.
        deadline: Monotonic,
        /// The processor time that the segment needs, as estimated at its beginning.
        estimated_initial_execution_time: Duration,
        /// The importance; a greater one decides between equal laxities.
        importance: i16,
    },
    /// `MUF_Scheduling`: the greatest criticality first, then the least laxity.
    MaximumUrgency {
        /// The time by which the segment should end.
        deadline: Monotonic,
        /// The processor time that the segment needs, as estimated at its beginning.
        estimated_initial_execution_time: Duration,
        /// The criticality; a greater one is more urgent.
        criticality: i16,
    },
    /// `Max_Utility_Scheduling`: by accrued utility. No scheduler of this ORB supports it.
    MaximumUtility {
        /// The time by which the segment should end.
        deadline: Monotonic,
        /// The importance.
        importance: i16,
    },
}

impl SchedulingParameter {
    /// The deadline, if the discipline has one.
    #[must_use]
    pub fn deadline(&self) -> Option<Monotonic> {
        match self {
            Self::FixedPriority { .. } => None,
            Self::EarliestDeadline { deadline, .. }
            | Self::LeastLaxity { deadline, .. }
            | Self::MaximumUrgency { deadline, .. }
            | Self::MaximumUtility { deadline, .. } => Some(*deadline),
        }
    }

    /// Writes the parameter into a context, but for the deadline.
    pub(crate) fn write(&self, context: &mut SchedulingContext) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match *self {
            Self::FixedPriority { .. } => {
                context.discipline = Some(SchedulingDiscipline::FixedPriority);
            }
            Self::EarliestDeadline { importance, .. } => {
                context.discipline = Some(SchedulingDiscipline::Deadline);
                context.importance = importance;
            }
            Self::LeastLaxity {
                estimated_initial_execution_time: estimate,
                importance,
                ..
            } => {
                context.discipline = Some(SchedulingDiscipline::Laxity);
                context.execution = nanos(estimate);
                context.importance = importance;
            }
            Self::MaximumUrgency {
                estimated_initial_execution_time: estimate,
                criticality,
                ..
            } => {
                context.discipline = Some(SchedulingDiscipline::Urgency);
                context.execution = nanos(estimate);
                context.criticality = criticality;
            }
            Self::MaximumUtility { importance, .. } => context.importance = importance,
        }
    }

    /// Reads the parameter of a request with this priority and this deadline. A context that lacks
    /// what its discipline needs has none.
    pub(crate) fn read(
        context: &SchedulingContext,
        priority: Option<Priority>,
        deadline: Option<Monotonic>,
    ) -> Option<Self> {
        let importance = context.importance;
        let estimated_initial_execution_time = Duration::from_nanos(context.execution);
        Some(match context.discipline? {
            SchedulingDiscipline::FixedPriority => Self::FixedPriority {
                base_priority: priority?,
            },
            SchedulingDiscipline::Deadline => Self::EarliestDeadline {
                deadline: deadline?,
                importance,
            },
            SchedulingDiscipline::Laxity => Self::LeastLaxity {
                deadline: deadline?,
                estimated_initial_execution_time,
                importance,
            },
            SchedulingDiscipline::Urgency => Self::MaximumUrgency {
                deadline: deadline?,
                estimated_initial_execution_time,
                criticality: context.criticality,
            },
        })
    }
}
