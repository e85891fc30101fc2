//! The plan of the experiment, and its transports.

use std::path::Path;

use chronorb::prelude::*;
use chronorb_orb::OrbConfig;
use serde::Serialize;

use crate::bench::{Cpus, Placement};
use crate::error::LabError;
use crate::protocols::Protocol;

/// The amount of calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TimeProbesPlan {
    /// The calls that are followed by each transport, in each place.
    pub calls: u32,
    /// The unmeasured calls before them.
    pub warm_up: u32,
    /// The schemes of the transports; empty for all that the program has and that need no
    /// configuration.
    pub only: Vec<&'static str>,
}

/// A transport that cannot be measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissingTransport {
    /// The scheme.
    pub transport: &'static str,
    /// The reason.
    pub why: String,
}

/// The schemes of the transports that can be measured, as far as a program has them. MIOP has no
/// two-way calls to follow.
pub const TRANSPORTS: [&str; 5] = ["shmiop", "uiop", "iiop", TLS, "diop"];
/// The scheme of the transport that needs certificates.
pub(super) const TLS: &str = "ssliop";

/// Returns the scheme of a transport that can be measured.
///
/// # Errors
/// Names the transports that can be.
pub fn transport_named(scheme: &str) -> Result<&'static str, String> {
    let known = TRANSPORTS.into_iter().find(|known| *known == scheme);
    known.ok_or_else(|| {
        let all = TRANSPORTS.join(", ");
        match scheme {
            "miop" => format!("a group sends no replies; the transports that do are {all}"),
            _ => format!("those that there can be are {all}"),
        }
    })
}

impl TimeProbesPlan {
    /// The least plan, for tests of the experiment itself.
    #[must_use]
    pub const fn tiny() -> Self {
        Self::of(100, 50)
    }

    pub(super) const fn of(calls: u32, warm_up: u32) -> Self {
        Self {
            calls,
            warm_up,
            only: Vec::new(),
        }
    }

    /// Whether a transport is asked for, by its name or because none is named.
    pub(super) fn includes(&self, scheme: &'static str) -> bool {
        self.only.is_empty() || self.only.contains(&scheme)
    }

    /// Returns the transports that can be measured, and those that cannot. One that was asked for
    /// by its name must be measured.
    pub(super) fn transports(
        &self,
        certificates: Result<&Path, &str>,
    ) -> Result<(Vec<&'static str>, Vec<MissingTransport>), LabError> {
        let (mut present, mut missing) = (Vec::new(), Vec::new());
        for transport in TRANSPORTS
            .into_iter()
            .filter(|scheme| self.includes(scheme))
        {
            let orb = match certificates {
                Err(why) if transport == TLS => Err(why.to_owned()),
                _ => orb(transport, certificates.ok(), |_| {}).map_err(|why| why.to_string()),
            };
            match orb {
                Ok(_) => present.push(transport),
                Err(why) if self.only.is_empty() => {
                    missing.push(MissingTransport { transport, why });
                }
                Err(why) => {
                    let doing = format!("the transport {transport} cannot be had");
                    return Err(LabError::work(doing)(why));
                }
            }
        }
        Ok((present, missing))
    }

    /// Returns each transport in all places that this machine has.
    pub(super) fn cases(
        &self,
        transports: &[&'static str],
    ) -> Result<Vec<(&'static str, Placement)>, LabError> {
        let cpus = Cpus::of_this_process()?;
        let places = [Placement::SameCpu, Placement::AcrossCpus];
        let places = cpus.possible(places, |place| *place).into_iter();
        let cases = places.flat_map(|place| transports.iter().map(move |scheme| (*scheme, place)));
        Ok(cases.collect())
    }
}

/// Makes an ORB that has one transport alone. All options that matter are fixed, so that the
/// environment has no influence.
pub(super) fn orb(
    scheme: &str,
    certificates: Option<&Path>,
    configure: impl FnOnce(&mut OrbConfig),
) -> Result<Orb, Box<dyn std::error::Error + Send + Sync>> {
    let protocol: Protocol = scheme.parse()?;
    let settings = protocol.settings(certificates.unwrap_or_else(|| Path::new("")), false);
    let own = [
        "-ORBProtocols",
        scheme,
        "-ORBListenEndpoints",
        &settings.endpoints,
    ];
    let options = OPTIONS.split(' ').chain(own).map(str::to_owned);
    let mut arguments: Vec<_> = options
        .chain(settings.server)
        .chain(settings.client)
        .collect();
    let mut config = OrbConfig::read(&mut arguments)?;
    configure(&mut config);
    Ok(Orb::with_config(config)?)
}

const OPTIONS: &str = "timeprobes -ORBThreadpoolStrategy leader-followers \
     -ORBClientConnection exclusive -ORBClientWait block -ORBServerWait block";

#[cfg(test)]
mod tests {
    use super::super::TimeProbes;
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn what_every_program_has_takes_part_and_nonsense_is_named() {
        let (all, missing) = TimeProbes::short()
            .transports(Err("no openssl"))
            .expect("they can be made");
        assert!(all.contains(&"iiop"));
        let missing = missing.iter().find(|one| one.transport == "ssliop");
        assert_eq!(missing.expect("it is told").why, "no openssl");
        let only = TimeProbesPlan {
            only: vec!["ssliop"],
            ..TimeProbes::short()
        };
        let error = only.transports(Err("no openssl"));
        let error = error.expect_err("it was asked for").to_string();
        assert!(error.ends_with("no openssl"), "{error}");
        assert_eq!(transport_named("uiop"), Ok("uiop"));
        assert!(transport_named("atm").is_err_and(|all| all.contains("iiop")));
        assert!(transport_named("miop").is_err_and(|why| why.contains("no replies")));
    }
}
