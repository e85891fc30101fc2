//! Sessions of further clients, admitted while the programs of a schedule run.

use std::fmt;

use chronorb_sched::{
    AdmissionControl, AdmissionError, LateStep, Response, SessionId, Shortfall, StepOwner, Time,
    Transaction,
};
use thiserror::Error;

use crate::assign::Assignment;
use crate::error::ScheduleError;
use crate::schedule::Schedule;
use crate::units::readable_time;

/// A call that a session makes again and again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionCall {
    /// The name of the operation in the schedule.
    pub operation: String,
    /// The least time between two calls.
    pub period: Time,
    /// The deadline of a call, from its arrival.
    pub deadline: Time,
}

/// The sessions that are admitted to a schedule, beside its own transactions.
///
/// An admission is incremental: only the responses that a session can delay are computed again.
/// Sessions are for one process, which has to ask the same value for each of them.
///
/// # Example
/// ```
/// use chronorb_schedule::{Schedule, SessionCall, Sessions};
///
/// let text = r#"
///     [[operation]]
///     name = "Map::draw"
///     wcet = "3 ms"
///     period = "20 ms"
/// "#;
/// let schedule = Schedule::parse("map.toml", text, &mut |_| Err("none".into()))?;
/// let mut sessions = Sessions::new(schedule)?;
/// let draws = |period_ms: u64| SessionCall {
///     operation: "Map::draw".to_owned(),
///     period: period_ms * 1_000_000,
///     deadline: 20_000_000,
/// };
/// let first = sessions.open(&[draws(20)])?;
/// let refused = sessions.open(&[draws(2)]).unwrap_err().to_string();
/// assert!(refused.starts_with("Map::draw"), "{refused}");
/// assert!(sessions.close(first));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sessions {
    schedule: Schedule,
    assignment: Assignment,
    control: AdmissionControl,
    /// The calls of each session.
    open: Vec<(SessionId, Vec<SessionCall>)>,
}

/// A session that is not opened, or not changed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SessionError {
    /// The schedule has no such operation.
    #[error("the schedule has no operation {0}")]
    UnknownOperation(String),
    /// Deadlines would be missed.
    #[error(transparent)]
    Refused(Box<SessionRefusal>),
    /// The schedule cannot be assigned.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The session cannot be analysed, or does not exist.
    #[error(transparent)]
    Admission(AdmissionError),
}

/// The deadlines that a session would make late, and what would fit.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SessionRefusal {
    /// The calls that would be late, the one with the greatest excess first.
    pub late: Vec<LateCall>,
    /// The greatest factor of all execution times of the session with which it would be admitted,
    /// in millionths; zero if there is none.
    pub costs: u64,
    /// The least factor of all periods of the session with which it would be admitted, in
    /// millionths; `None` if a hundredfold period is too short.
    pub periods: Option<u64>,
}

/// An operation that a session would make late.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LateCall {
    /// The name of the transaction or of the called operation.
    pub name: String,
    /// The session that calls.
    pub owner: StepOwner,
    /// The response with the session.
    pub response: Response,
    /// The deadline.
    pub deadline: Time,
}

impl Sessions {
    /// Returns the admission of sessions to a schedule, which is assigned for that.
    ///
    /// # Errors
    /// [`SessionError`] if the schedule cannot be assigned, or misses deadlines by itself.
    pub fn new(schedule: Schedule) -> Result<Self, SessionError> {
        let assignment = schedule.assign()?;
        let sets = &assignment.task_sets;
        let control =
            AdmissionControl::new(sets.analysed_resources(), sets.analysed_transactions());
        let control = match control {
            Ok(control) => control,
            Err(AdmissionError::Late(shortfall)) => {
                return Err(refused(&assignment, &[], &[], &shortfall));
            }
            Err(error) => return Err(SessionError::Admission(error)),
        };
        Ok(Self {
            schedule,
            assignment,
            control,
            open: Vec::new(),
        })
    }

    /// Opens a session that makes these calls, if all deadlines are met with it: its own, those of
    /// the schedule, and those of all open sessions. Otherwise everything stays as it was.
    ///
    /// # Errors
    /// [`SessionError::Refused`] with the calls that would be late, and what would fit;
    /// [`SessionError::UnknownOperation`].
    pub fn open(&mut self, calls: &[SessionCall]) -> Result<SessionId, SessionError> {
        let transactions = self.transactions(calls)?;
        match self.control.admit(&transactions) {
            Ok(id) => {
                self.open.push((id, calls.to_vec()));
                Ok(id)
            }
            Err(error) => Err(self.told(error, calls)),
        }
    }

    /// Replaces the calls of a session, if the new ones fit in place of those before. Otherwise
    /// everything stays as it was.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn change(
        &mut self,
        session: SessionId,
        calls: &[SessionCall],
    ) -> Result<(), SessionError> {
        let transactions = self.transactions(calls)?;
        if let Err(error) = self.control.change(session, &transactions) {
            return Err(self.told(error, calls));
        }
        // The control has put it behind all others.
        self.open.retain(|(id, _)| *id != session);
        self.open.push((session, calls.to_vec()));
        Ok(())
    }

    /// Closes a session, whose time is free for others from now on. Returns whether it was open.
    pub fn close(&mut self, session: SessionId) -> bool {
        self.open.retain(|(id, _)| *id != session);
        self.control.release(session)
    }

    /// Returns the worst response of each call of a session, from its arrival.
    pub fn responses(&self, session: SessionId) -> Option<Vec<Response>> {
        let responses = self.control.responses(session)?;
        let ends = responses.into_iter().map(|steps| steps.last().copied());
        ends.collect()
    }

    fn transactions(&self, calls: &[SessionCall]) -> Result<Vec<Transaction>, SessionError> {
        let each = calls.iter().map(|call| {
            let operation = self.schedule.operation(&call.operation);
            let unknown = || SessionError::UnknownOperation(call.operation.clone());
            let times = (call.period, call.deadline);
            let operation = operation.ok_or_else(unknown)?;
            Ok(self
                .schedule
                .further_calls(&self.assignment, operation, times)?)
        });
        each.collect()
    }

    fn told(&self, error: AdmissionError, candidate: &[SessionCall]) -> SessionError {
        match error {
            AdmissionError::Late(shortfall) => {
                refused(&self.assignment, &self.open, candidate, &shortfall)
            }
            error => SessionError::Admission(error),
        }
    }
}

fn refused(
    assignment: &Assignment,
    open: &[(SessionId, Vec<SessionCall>)],
    candidate: &[SessionCall],
    shortfall: &Shortfall,
) -> SessionError {
    let called = |calls: &[SessionCall], late: &LateStep| {
        let call = calls.get(late.transaction);
        call.map_or_else(String::new, |call| call.operation.clone())
    };
    let late = shortfall.late.iter().map(|late| {
        let name = match late.owner {
            StepOwner::Running => {
                let transactions = &assignment.task_sets.transactions;
                transactions[late.transaction].name.clone()
            }
            StepOwner::Session(id) => {
                let session = open.iter().find(|(open, _)| *open == id);
                session.map_or_else(String::new, |(_, calls)| called(calls, late))
            }
            StepOwner::Candidate => called(candidate, late),
        };
        LateCall {
            name,
            owner: late.owner,
            response: late.response,
            deadline: late.deadline,
        }
    });
    SessionError::Refused(Box::new(SessionRefusal {
        late: late.collect(),
        costs: shortfall.costs,
        periods: shortfall.periods,
    }))
}

impl std::error::Error for SessionRefusal {}

impl fmt::Display for SessionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, late) in self.late.iter().enumerate() {
            let owner = match late.owner {
                StepOwner::Running => "",
                StepOwner::Session(_) => " of an open session",
                StepOwner::Candidate => " of the session",
            };
            let separator = if number == 0 { "" } else { "; " };
            let deadline = readable_time(late.deadline);
            write!(f, "{separator}{}{owner} ", late.name)?;
            match late.response.time() {
                Some(time) => write!(f, "would end after {}", readable_time(time))?,
                None => f.write_str("would fall behind without end")?,
            }
            write!(f, ", and its deadline is {deadline}")?;
        }
        let factor = |f: &mut fmt::Formatter<'_>, millionths: u64| {
            let thousandths = millionths / 1_000;
            write!(f, "{}.{:03}", thousandths / 1_000, thousandths % 1_000)
        };
        if self.costs > 0 {
            f.write_str("; the session would fit with execution times multiplied by ")?;
            factor(f, self.costs)?;
        }
        if let Some(periods) = self.periods {
            f.write_str("; the session would fit with periods multiplied by ")?;
            // A shorter period than told would not fit.
            factor(f, periods.saturating_add(999))?;
        }
        Ok(())
    }
}
