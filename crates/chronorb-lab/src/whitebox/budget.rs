//! What a call may cost.

use thiserror::Error;

/// What calls of one kind may cost on each side. Nothing else: no heap allocation, no lock operation,
/// no page fault, and no system call of another kind.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// What the client may ask of the kernel.
    pub client: Allowed,
    /// What the server may; nothing within one process, where the client's thread does it all.
    pub server: Option<Allowed>,
}

/// What one side may ask of the kernel for each call.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// To send: exactly so many.
    pub sends: u64,
    /// To receive: exactly so many, or fewer where one may bring several calls.
    pub receives: u64,
    /// Whether one receive may bring several calls.
    pub batched: bool,
    /// To wait for something to receive: at most so many.
    pub waits: u64,
}

/// What a system call is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KernelUse {
    /// To send.
    Send,
    /// To receive; a receive that blocks is no wait.
    Receive,
    /// To wait until a connection has something.
    Wait,
    /// For anything else.
    Other,
}

impl Budget {
    /// A two-way call on a connection of its own, served by a Leader/Followers lane.
    pub const TWO_WAY: Self = Self {
        client: Allowed {
            sends: 1,
            receives: 1,
            batched: false,
            waits: 0,
        },
        server: Some(Allowed {
            sends: 1,
            receives: 1,
            batched: false,
            waits: 1,
        }),
    };

    /// The same call where the server's thread stays with the connection, and does not wait at the
    /// lane's set.
    pub const STAYING: Self = Self {
        server: Some(Allowed {
            sends: 1,
            receives: 1,
            batched: false,
            waits: 0,
        }),
        ..Self::TWO_WAY
    };

    /// A oneway call on the same way.
    pub const ONEWAY: Self = Self {
        client: Allowed {
            sends: 1,
            receives: 0,
            batched: false,
            waits: 0,
        },
        server: Some(Allowed {
            sends: 0,
            receives: 1,
            batched: true,
            waits: 1,
        }),
    };

    /// A call of an object of the same ORB.
    pub const COLLOCATED: Self = Self {
        client: Allowed {
            sends: 0,
            receives: 0,
            batched: false,
            waits: 0,
        },
        server: None,
    };
}

impl Allowed {
    /// Whether so many system calls for each use are within it, for so many calls.
    pub(super) fn permits(&self, calls: u64, used: impl Fn(KernelUse) -> u64) -> bool {
        let received = used(KernelUse::Receive);
        let receives = calls * self.receives;
        used(KernelUse::Send) == calls * self.sends
            && (received == receives || self.batched && received < receives)
            && used(KernelUse::Wait) <= calls * self.waits
            && used(KernelUse::Other) == 0
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let mut words = Vec::new();
        if self.sends > 0 {
            words.push(format!("{} send", self.sends));
        }
        if self.receives > 0 {
            let bound = if self.batched { "at most " } else { "" };
            words.push(format!("{bound}{} receive", self.receives));
        }
        if self.waits > 0 {
            words.push(format!("at most {} wait", self.waits));
        }
        match words.is_empty() {
            true => "no system call".to_owned(),
            false => format!("{} and no other system call", words.join(", ")),
        }
    }
}

impl KernelUse {
    /// What the system call of this name is for.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            "sendto" | "sendmsg" | "write" | "writev" => Self::Send,
            "recvfrom" | "recvmsg" | "read" | "readv" => Self::Receive,
            "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "poll" | "ppoll" => Self::Wait,
            _ => Self::Other,
        }
    }
}

/// Calls do more than they need.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("{missed} of the budgets' claims are missed: calls do more than they need")]
pub struct BrokenBudgets {
    /// How many claims of the budgets do not hold.
    pub missed: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(allowed: Allowed, names: &[(&str, u64)]) -> bool {
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
