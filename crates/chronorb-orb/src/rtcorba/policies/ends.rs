//! The policies about the end times of requests and replies, and the times of one call.

use std::time::{Duration, SystemTime};

use chronorb_giop::{
    CompletionStatus, EndTimes, SystemException, SystemExceptionKind, UtcTime, minor,
};
use chronorb_rt::Deadline;

/// The end times that policies set.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct EndPolicies {
    pub(super) request_end: Option<SystemTime>,
    pub(super) reply_end: Option<SystemTime>,
    pub(super) request_timeout: Option<Duration>,
}

impl EndPolicies {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These, and those of an outer level that are not here.
    pub(super) fn or(self, outer: &Self) -> Self {
        Self {
            request_end: self.request_end.or(outer.request_end),
            reply_end: self.reply_end.or(outer.reply_end),
            request_timeout: self.request_timeout.or(outer.request_timeout),
        }
    }

    /// Returns the end times of a call that began at `begun`.
    pub(crate) fn of_call(&self, begun: UtcTime) -> EndTimes {
        let absolute = self.request_end.map(UtcTime::from);
        let relative = self.request_timeout.map(|time_out| begun + time_out);
        EndTimes {
            request: absolute.into_iter().chain(relative).min(),
            reply: self.reply_end.map(UtcTime::from),
        }
    }

    /// Returns the deadline for connecting, at `now`, for a call with this deadline.
    ///
    /// # Errors
    /// `TIMEOUT` if an end has passed.
    pub(crate) fn bound(
        &self,
        deadline: Deadline,
        now: UtcTime,
    ) -> Result<Deadline, SystemException> {
        let ends = self.of_call(now);
        check_ends(ends, now).map_err(|(late, _)| late)?;
        let ends = ends.request.into_iter().chain(ends.reply);
        Ok(ends.fold(deadline, |all, end| {
            all.min(Deadline::after(end.since(now)))
        }))
    }
}

/// Checks a request with these end times that is served, or sent, at `now`.
///
/// # Errors
/// `TIMEOUT` (OMG minor 2 or 3), completed `NO`, with the time since then, if one has passed.
pub(crate) fn check_ends(ends: EndTimes, now: UtcTime) -> Result<(), (SystemException, Duration)> {
    let both = [
        (ends.request, minor::TIMEOUT_REQUEST_END),
        (ends.reply, minor::TIMEOUT_REPLY_END),
    ];
    for (end, minor) in both {
        if let Some(end) = end
            && now >= end
        {
            let (kind, completed) = (SystemExceptionKind::Timeout, CompletionStatus::No);
            let late = SystemException::new(kind, minor, completed);
            return Err((late, now.since(end)));
        }
    }
    Ok(())
}

/// Returns the present time of the system's clock.
pub(crate) fn utc_now() -> UtcTime {
    SystemTime::now().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> UtcTime {
        UtcTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn system(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn the_earlier_end_of_a_request_has_effect() {
        let policies = EndPolicies {
            request_end: Some(system(110)),
            reply_end: Some(system(120)),
            request_timeout: Some(5 * SECOND),
        };
        let ends = |begun| policies.of_call(begun);
        assert_eq!(ends(at(100)).request, Some(at(105)));
        assert_eq!(ends(at(108)).request, Some(at(110)));
        assert_eq!(ends(at(108)).reply, Some(at(120)));
        assert_eq!(EndPolicies::default().of_call(at(1)), EndTimes::default());
    }

    #[test]
    fn an_inner_level_has_precedence() {
        let inner = EndPolicies {
            request_end: Some(system(1)),
            ..EndPolicies::default()
        };
        let outer = EndPolicies {
            request_end: Some(system(2)),
            reply_end: Some(system(3)),
            request_timeout: Some(SECOND),
        };
        let both = inner.or(&outer);
        assert_eq!(both.request_end, Some(system(1)));
        assert_eq!(both.reply_end, Some(system(3)));
        assert_eq!(both.request_timeout, Some(SECOND));
        assert!(EndPolicies::default().is_empty() && !both.is_empty());
    }

    #[test]
    fn an_end_has_passed_from_that_time_on() {
        let ends = EndTimes {
            request: Some(at(10)),
            reply: Some(at(20)),
        };
        let minor_at = |now| check_ends(ends, now).map_err(|(late, by)| (late.minor, by));
        assert_eq!(minor_at(at(9)), Ok(()));
        let request_end = minor::TIMEOUT_REQUEST_END;
        assert_eq!(minor_at(at(10)), Err((request_end, Duration::ZERO)));
        assert_eq!(minor_at(at(12)), Err((request_end, 2 * SECOND)));
        let reply_only = EndTimes {
            request: None,
            ..ends
        };
        let late = check_ends(reply_only, at(21)).map_err(|(late, _)| late.minor);
        assert_eq!(late, Err(minor::TIMEOUT_REPLY_END));
        assert_eq!(check_ends(EndTimes::default(), at(21)), Ok(()));
    }

    #[test]
    fn a_connection_is_made_within_the_earliest_end() {
        let none = Deadline::at(chronorb_rt::Monotonic::from_nanos(u64::MAX));
        let policies = EndPolicies {
            reply_end: Some(system(10)),
            ..EndPolicies::default()
        };
        let minor = |late: SystemException| late.minor;
        let passed = policies.bound(none, at(10)).map_err(minor);
        assert_eq!(passed, Err(minor::TIMEOUT_REPLY_END));
        assert!(policies.bound(none, at(1)).is_ok_and(|until| until < none));
        assert_eq!(EndPolicies::default().bound(none, at(1)), Ok(none));
    }
}
