//! The budgets of calls.

use thiserror::Error;

/// The budget of one kind of calls: no heap allocation, lock operation or page fault, and the
/// system calls that each side may make.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The system calls of the client.
    pub client: KernelBudget,
    /// The system calls of the server; nothing within one process, where the client's thread does
    /// all the work.
    pub server: Option<KernelBudget>,
}

/// The system calls that one side may make for each call.
#[derive(Clone, Copy, Debug)]
pub struct KernelBudget {
    /// The exact number of sends.
    pub sends: u64,
    /// The exact number of receives, or the greatest where one may bring several calls.
    pub receives: u64,
    /// Whether one receive may bring several calls.
    pub batched: bool,
    /// The greatest number of waits for something to receive.
    pub waits: u64,
}

/// The use of a system call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KernelUse {
    /// A send.
    Send,
    /// A receive; one that blocks is no wait.
    Receive,
    /// A wait until a connection has something.
    Wait,
    /// Anything else.
    Other,
}

impl Budget {
    /// A two-way call on a connection of its own, served by a Leader/Followers lane.
    pub const TWO_WAY: Self = Self {
        client: KernelBudget::of(1, 1, 0),
        server: Some(KernelBudget::of(1, 1, 1)),
    };

    /// The same call where the server's thread stays with the connection, and does not wait at the
    /// lane's set.
    pub const STAYING: Self = Self {
        server: Some(KernelBudget::of(1, 1, 0)),
        ..Self::TWO_WAY
    };

    /// A oneway call on a connection of its own, served by a Leader/Followers lane.
    pub const ONEWAY: Self = Self {
        client: KernelBudget::of(1, 0, 0),
        server: Some(KernelBudget {
            batched: true,
            ..KernelBudget::of(0, 1, 1)
        }),
    };

    /// A call of an object of the same ORB.
    pub const COLLOCATED: Self = Self {
        client: KernelBudget::of(0, 0, 0),
        server: None,
    };
}

impl KernelBudget {
    const fn of(sends: u64, receives: u64, waits: u64) -> Self {
        Self {
            sends,
            receives,
            batched: false,
            waits,
        }
    }

    /// Whether the system calls of so many calls, by their use, keep the budget.
    pub(super) fn permits(&self, calls: u64, used: impl Fn(KernelUse) -> u64) -> bool {
        let received = used(KernelUse::Receive);
        let receives = calls * self.receives;
        used(KernelUse::Send) == calls * self.sends
            && (received == receives || self.batched && received < receives)
            && used(KernelUse::Wait) <= calls * self.waits
            && used(KernelUse::Other) == 0
    }

    /// Renders the budget in words.
    pub(super) fn words(&self) -> String {
        let receive = if self.batched {
            "at most 1 receive"
        } else {
            "1 receive"
        };
        let words = [
            (self.sends, "1 send"),
            (self.receives, receive),
            (self.waits, "at most 1 wait"),
        ];
        let words = words.iter().filter(|(most, _)| *most > 0);
        let words: Vec<_> = words.map(|(_, words)| *words).collect();
        if words.is_empty() {
            "no system call".to_owned()
        } else {
            format!("{} and no other system call", words.join(", "))
        }
    }
}

impl KernelUse {
    /// Returns the use of the system call of this name.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "sendto" | "sendmsg" | "write" | "writev" => Self::Send,
            "recvfrom" | "recvmsg" | "read" | "readv" => Self::Receive,
            "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "poll" | "ppoll" => Self::Wait,
            _ => Self::Other,
        }
    }
}

/// The error of calls that exceed their budgets.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("{missed} of the budgets' claims are missed: calls do more than they need")]
pub struct BrokenBudgets {
    /// The number of the budgets' claims that are missed.
    pub missed: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(allowed: KernelBudget, names: &[(&str, u64)]) -> bool {
        allowed.permits(10, |kind| {
            let of_kind = names.iter().filter(|(name, _)| KernelUse::of(name) == kind);
            of_kind.map(|(_, calls)| calls).sum()
        })
    }

    #[test]
    fn a_client_sends_and_receives_once_and_does_nothing_else() {
        let client = Budget::TWO_WAY.client;
        assert!(permits(client, &[("sendto", 10), ("recvfrom", 10)]));
        assert!(!permits(client, &[("sendto", 10), ("recvfrom", 11)]));
        assert!(!permits(client, &[("sendto", 9), ("recvfrom", 10)]));
        let others = ["futex", "poll", "syscall_999"];
        for other in others {
            let names = [("sendto", 10), ("recvfrom", 10), (other, 1)];
            assert!(!permits(client, &names), "{other}");
        }
    }

    #[test]
    fn a_server_may_wait_once() {
        let server = Budget::TWO_WAY.server.unwrap();
        for waits in [0, 10] {
            let names = [("recvfrom", 10), ("sendto", 10), ("epoll_pwait2", waits)];
            assert!(permits(server, &names), "{waits}");
        }
        let names = [("recvfrom", 10), ("sendto", 10), ("epoll_wait", 11)];
        assert!(!permits(server, &names));
    }

    #[test]
    fn one_receive_may_bring_several_oneways_and_nothing_is_sent_back() {
        let server = Budget::ONEWAY.server.unwrap();
        assert!(permits(server, &[("recvfrom", 3), ("epoll_wait", 2)]));
        assert!(!permits(server, &[("recvfrom", 11), ("epoll_wait", 2)]));
        assert!(!permits(server, &[("recvfrom", 10), ("sendto", 1)]));
    }
}
