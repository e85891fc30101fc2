//! What is run, and how often.

use std::path::Path;

use chronorb::prelude::*;
use chronorb_orb::OrbConfig;
use serde::Serialize;

use crate::bench::certificates::{AUTHORITY, CERTIFICATE, KEY};
use crate::bench::{Cpus, Placement};
use crate::error::LabError;

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

/// A transport that takes no part, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missing {
    /// Its scheme.
    pub transport: &'static str,
    /// Why.
    pub why: String,
}

/// The transports that can take part, as far as a program has them. MIOP is none of them: nobody answers what goes to a group,
/// so that there is no two-way call to follow.
pub const TRANSPORTS: [Transport; 5] = [
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
        scheme: "ssliop",
        endpoint: "ssliop://127.0.0.1:0",
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
        match scheme {
            "miop" => format!("nobody answers what goes to a group; those that answer are {all}"),
            _ => format!("those that there can be are {all}"),
        }
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

    /// As little as shows that it works; its figures mean nothing.
    #[must_use]
    pub const fn tiny() -> Self {
        Self {
            calls: 100,
            warm_up: 50,
            only: Vec::new(),
        }
    }

    /// The transports that take part, and those that cannot, though nobody has asked for others.
    pub(super) fn transports(
        &self,
        certificates: Result<&Path, &str>,
    ) -> Result<(Vec<Transport>, Vec<Missing>), LabError> {
        let (mut present, mut missing) = (Vec::new(), Vec::new());
        for transport in TRANSPORTS {
            let is_wanted = self.only.contains(&transport.scheme);
            if !self.only.is_empty() && !is_wanted {
                continue;
            }
            let started = match (transport.needs_certificates(), certificates) {
                (true, Err(why)) => Err(why.into()),
                (_, certificates) => transport.orb(certificates.ok(), |_| {}),
            };
            let scheme = transport.scheme;
            match started.map_err(|why| why.to_string()) {
                Ok(_) => present.push(transport),
                Err(why) if is_wanted => {
                    let doing = format!("the transport {scheme} cannot be had");
                    return Err(LabError::work(doing)(why));
                }
                Err(why) => missing.push(Missing {
                    transport: scheme,
                    why,
                }),
            }
        }
        Ok((present, missing))
    }

    /// What is run, each transport in all places that this machine has.
    pub(super) fn cases(
        &self,
        transports: &[Transport],
    ) -> Result<Vec<(Transport, Placement)>, LabError> {
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

/// The transport of an order.
pub(super) fn transport(scheme: &str) -> Result<Transport, LabError> {
    let mut all = TRANSPORTS.into_iter();
    all.find(|transport| transport.scheme == scheme)
        .ok_or_else(|| LabError::work("finding the transport")(scheme.to_owned()))
}

impl Transport {
    pub(super) fn needs_certificates(self) -> bool {
        self.scheme == "ssliop"
    }

    /// An ORB that has this transport alone. What the experiment is about is fixed, whatever the environment says.
    pub(super) fn orb(
        self,
        certificates: Option<&Path>,
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
        if let Some(directory) = certificates.filter(|_| self.needs_certificates()) {
            for (option, file) in [
                ("-ORBSSLCertificate", CERTIFICATE),
                ("-ORBSSLPrivateKey", KEY),
                ("-ORBSSLCertificateAuthority", AUTHORITY),
            ] {
                let file = directory.join(file).display().to_string();
                arguments.extend([option.to_owned(), file]);
            }
        }
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
        let (all, missing) = Plan::short()
            .transports(Err("no openssl"))
            .expect("they can be made");
        assert!(all.iter().any(|transport| transport.scheme == "iiop"));
        let missing = missing.iter().find(|one| one.transport == "ssliop");
        assert_eq!(missing.expect("it is told").why, "no openssl");
        let only = Plan {
            only: vec!["ssliop"],
            ..Plan::short()
        };
        let error = only.transports(Err("no openssl"));
        let error = error.expect_err("it was asked for").to_string();
        assert!(error.ends_with("no openssl"), "{error}");
        assert_eq!(transport_named("uiop"), Ok("uiop"));
        assert!(transport_named("atm").is_err_and(|all| all.contains("iiop")));
        assert!(transport_named("miop").is_err_and(|why| why.contains("nobody answers")));
    }
}
