//! Arrivals at an operation that several callers invoke.

use crate::error::AnalysisError;
use crate::task::{Time, hyperperiod};

/// The calls that one caller makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Caller {
    /// The caller's period.
    pub period: Time,
    /// The calls of each period.
    pub calls: u64,
}

/// The rule by which calls of several callers become arrivals.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Merge {
    /// Each call arrives, as that of an event which any of several suppliers push.
    Disjunction,
    /// A call of each caller makes one arrival, as one by all of several suppliers.
    Conjunction,
}

/// The arrivals at an operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrivals {
    /// The time after which the arrivals repeat themselves.
    pub frame: Time,
    /// The arrivals in a frame.
    pub count: u64,
    /// The period that decides the rate-monotonic priority: the shortest one of a disjunction, the
    /// longest one of a conjunction.
    pub period: Time,
}

/// Merges the calls of all callers of an operation. Without callers nothing arrives.
///
/// # Errors
/// [`AnalysisError`] for a period of zero (with the caller's index), and for values above 64 bits.
///
/// # Example
/// ```
/// use chronorb_sched::{Caller, Merge, merge_arrivals};
///
/// let callers = [50, 100, 200].map(|period| Caller { period, calls: 1 });
/// assert_eq!(merge_arrivals(&callers, Merge::Disjunction)?.count, 7);
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn merge_arrivals(callers: &[Caller], merge: Merge) -> Result<Arrivals, AnalysisError> {
    if let Some(task) = callers.iter().position(|caller| caller.period == 0) {
        return Err(AnalysisError::ZeroPeriod { task });
    }
    let periods = || callers.iter().map(|caller| caller.period);
    let frame = hyperperiod(periods())?;
    let each = || {
        let arrivals = |caller: &Caller| (frame / caller.period).checked_mul(caller.calls);
        callers.iter().map(arrivals)
    };
    let (count, period) = match merge {
        Merge::Disjunction => {
            let mut each = each();
            let count = each.try_fold(0_u64, |sum, arrivals| sum.checked_add(arrivals?));
            (count, periods().min())
        }
        Merge::Conjunction => {
            let all: Option<Vec<_>> = each().collect();
            let count = all.map(|all| all.into_iter().min().unwrap_or(0));
            (count, periods().max())
        }
    };
    Ok(Arrivals {
        frame,
        count: count.ok_or(AnalysisError::TooLarge)?,
        period: period.unwrap_or(frame),
    })
}
