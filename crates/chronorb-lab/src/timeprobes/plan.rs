//! What is run, and how often.

use chronorb::prelude::*;
use chronorb_orb::OrbConfig;
use serde::Serialize;

use super::error::TimeProbesError;
use crate::contest::{Cpus, Placement};

/// What is run, and how often.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// The calls that are followed by each transport, in each place.
    pub calls: u32,
    /// Those that go before them.
    pub warm_up: u32,
    /// The schemes of the transports; empty for all that the program has and that need no configuration.
    pub only: Vec<&'static str>,
}

/// A transport, and where a server of it listens that this machine alone can reach.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transport {
    /// As endpoints begin.
    pub scheme: &'static str,
    /// Any free one.
    pub(super) endpoint: &'static str,
}

/// The transports that can take part, as far as a program has them.
pub const TRANSPORTS: [Transport; 4] = [
    Transport {
        scheme: "shmiop",
        endpoint: "shmiop://",
    },
    Transport {
        scheme: "uiop",
        endpoint: "uiop://",
    },
    Transport {
        scheme: "iiop",
        endpoint: "iiop://127.0.0.1:0",
    },
    Transport {
        scheme: "diop",
        endpoint: "diop://127.0.0.1:0",
    },
];

/// The scheme of a transport that can take part.
///
/// # Errors
/// Names those that there are.
pub fn transport_named(scheme: &str) -> Result<&'static str, String> {
    let mut schemes = TRANSPORTS.iter().map(|transport| transport.scheme);
    schemes.find(|known| *known == scheme).ok_or_else(|| {
        let all = TRANSPORTS.map(|transport| transport.scheme).join(", ");
        format!("those that there can be are {all}")
    })
}

impl Plan {
    /// All of it, in some seconds.
    #[must_use]
    pub const fn full() -> Self {
        Self {
            calls: 10_000,
            warm_up: 1_000,
            only: Vec::new(),
        }
    }

    /// The same with fewer calls.
    #[must_use]
    pub const fn short() -> Self {
        Self {
            calls: 1_000,
            warm_up: 300,
            only: Vec::new(),
        }
    }

    /// The transports that take part.
    pub(super) fn transports(&self) -> Result<Vec<Transport>, TimeProbesError> {
        let mut present = Vec::new();
        for transport in TRANSPORTS {
            let is_wanted = self.only.contains(&transport.scheme);
            if !self.only.is_empty() && !is_wanted {
                continue;
            }
            match transport.orb(|_| {}) {
                Ok(_) => present.push(transport),
                Err(why) if is_wanted => {
                    return Err(TimeProbesError::Transport {
                        scheme: transport.scheme,
                        why: why.to_string(),
                    });
                }
                // The program is built without it.
                Err(_) => {}
            }
        }
        Ok(present)
    }

    /// What is run, each transport in all places that this machine has.
    pub(super) fn cases(
        &self,
        transports: &[Transport],
    ) -> Result<Vec<(Transport, Placement)>, TimeProbesError> {
        let several = Cpus::of_this_process()?.are_several();
        let places = [Placement::SameCpu, Placement::AcrossCpus];
        let places = places
            .into_iter()
            .filter(|place| several || *place == Placement::SameCpu);
        Ok(places
            .flat_map(|place| transports.iter().map(move |transport| (*transport, place)))
            .collect())
    }
}

impl Transport {
    /// An ORB that has this transport alone. What the experiment is about is fixed, whatever the environment says.
    pub(super) fn orb(
        self,
        configure: impl FnOnce(&mut OrbConfig),
    ) -> Result<Orb, Box<dyn std::error::Error + Send + Sync>> {
        let mut arguments = [
            "timeprobes",
            "-ORBProtocols",
            self.scheme,
            "-ORBListenEndpoints",
            self.endpoint,
            "-ORBThreadpoolStrategy",
            "leader-followers",
            "-ORBClientConnection",
            "exclusive",
            "-ORBClientWait",
            "block",
            "-ORBServerWait",
            "block",
        ]
        .map(str::to_owned)
        .to_vec();
        let mut config = OrbConfig::read(&mut arguments)?;
        configure(&mut config);
        Ok(Orb::with_config(config)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_program_has_takes_part_and_nonsense_is_named() {
        let all = Plan::short().transports().expect("they can be made");
        assert!(all.iter().any(|transport| transport.scheme == "iiop"));
        assert_eq!(transport_named("uiop"), Ok("uiop"));
        assert!(transport_named("atm").is_err_and(|all| all.contains("iiop")));
    }
}
