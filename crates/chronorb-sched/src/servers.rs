//! Servers: budgets for work that has no period (Lehoczky, Sha and Strosnider 1987; Sprunt and
//! others 1989).

use crate::task::{Task, Time};

/// The rule by which a server's budget is replenished.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerKind {
    /// Unused budget is lost at once, and the next comes with the next period.
    Polling,
    /// Unused budget is kept until the end of the period.
    Deferrable,
    /// Budget comes back a period after its use began.
    Sporadic,
}

/// A server: a budget of execution time in each period, at a fixed priority.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Server {
    /// The rule of replenishment.
    pub kind: ServerKind,
    /// The execution time of each period.
    pub budget: Time,
    /// The period of the replenishment.
    pub period: Time,
}

impl Server {
    /// Returns the task by which the server counts in an analysis.
    ///
    /// Polling and sporadic servers count as a periodic task. A deferrable one can use the budgets
    /// of two periods back to back, so it has a jitter of a period without its budget.
    ///
    /// # Example
    /// ```
    /// use chronorb_sched::{Server, ServerKind};
    ///
    /// let server = Server { kind: ServerKind::Deferrable, budget: 2, period: 10 };
    /// assert_eq!(server.task(7).jitter, 8);
    /// ```
    pub const fn task(&self, priority: u32) -> Task {
        let task = Task::new(self.budget, self.period).with_priority(priority);
        match self.kind {
            ServerKind::Polling | ServerKind::Sporadic => task,
            // The jitter delays the server's own work no further than its deadline.
            ServerKind::Deferrable => {
                let jitter = self.period.saturating_sub(self.budget);
                task.with_jitter(jitter)
            }
        }
    }
}
