//! The options of an endpoint.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use chronorb_rt::Scheduling;
use chronorb_transport::{Endpoint, EndpointError, Setup};

use super::riop::RiopSettings;
use super::{kernel, planned, zone};
use crate::driver::{self, xdp};
use crate::engine::{ClassConfig, ClassOutput, ClassProcessing, Urgency};
use crate::plan::{MAX_NATIVE, Reservation};

/// The parsed configuration of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct EndpointSpec {
    /// The host without its zone.
    pub(super) host: String,
    pub(super) port: u16,
    /// The interface in the host's zone, if there is one.
    pub(super) zone: Option<String>,
    pub(super) interface: Option<String>,
    pub(super) driver: driver::DriverOptions,
    /// The name of the shared class, if there is one.
    pub(super) class: Option<String>,
    pub(super) config: ClassConfig,
    /// The reservation of the endpoint's class in the plan, if it has one.
    pub(super) planned: Option<Reservation>,
    /// Whether the endpoint changes nothing of the reservation in the plan.
    pub(super) is_as_planned: bool,
    pub(super) hostname: Option<String>,
}

impl EndpointSpec {
    /// Parses the options of an endpoint.
    ///
    /// # Errors
    /// [`EndpointError`] describes the invalid option.
    pub(super) fn of(
        endpoint: &Endpoint,
        setup: &Setup,
        settings: &RiopSettings,
    ) -> Result<Self, EndpointError> {
        endpoint.check_options(KNOWN)?;
        let Some((host, port)) = endpoint.address.as_host() else {
            return Err(endpoint.error("it needs a host and a port, and no path"));
        };
        let (host, zone) = zone::split(host).map_err(|error| endpoint.error(error.to_string()))?;
        let text = |name| endpoint.option(name).map(str::to_owned);
        let interface = text("interface").or_else(|| settings.interface.clone());
        if host.is_empty() && interface.is_none() {
            return Err(endpoint.error("it needs an address, or an interface"));
        }
        let class = endpoint.option("class");
        let planned = planned::of_endpoint(&settings.plan, class, port, setup.urgency);
        let driver = driver(endpoint, settings.driver)?;
        if driver.driver == driver::DriverChoice::Kernel {
            kernel::check(endpoint, planned)?;
        }
        let base = planned.map(ClassConfig::from);
        Ok(Self {
            host: host.to_owned(),
            port,
            interface: match host {
                "" => interface,
                _ => text("interface"),
            },
            zone: zone.map(str::to_owned),
            driver,
            class: text("class").or_else(|| planned.map(|class| class.name.clone())),
            config: config(endpoint, setup, port, base)?,
            is_as_planned: planned.is_some()
                && !OF_PROMISES
                    .iter()
                    .any(|name| endpoint.option(name).is_some()),
            planned: planned.cloned(),
            hostname: text("hostname_in_ior"),
        })
    }
}

fn driver(
    endpoint: &Endpoint,
    mut options: driver::DriverOptions,
) -> Result<driver::DriverOptions, EndpointError> {
    if let Some(name) = endpoint.option("driver") {
        let choice = name.parse();
        options.driver =
            choice.map_err(|error: driver::UnknownChoice| endpoint.error(error.to_string()))?;
    }
    options.xdp.mode = one_of(
        endpoint,
        "mode",
        &[
            ("auto", xdp::XdpMode::Auto),
            ("native", xdp::XdpMode::Native),
            ("generic", xdp::XdpMode::Generic),
        ],
    )?
    .unwrap_or(options.xdp.mode);
    Ok(options)
}

/// Returns the configuration of the endpoint's class. Missing options are taken from the `planned`
/// class, if there is one.
fn config(
    endpoint: &Endpoint,
    setup: &Setup,
    port: u16,
    planned: Option<ClassConfig>,
) -> Result<ClassConfig, EndpointError> {
    let is_said = |names: &[&str]| names.iter().any(|name| endpoint.option(name).is_some());
    let is_planned = planned.is_some();
    let default = planned.unwrap_or_else(|| ClassConfig {
        name: format!("port-{port}"),
        ..ClassConfig::default()
    });
    let (processing, expected) =
        if is_planned && !is_said(&["processing", "period", "budget", "cap"]) {
            (default.processing, default.expected)
        } else {
            processing(endpoint)?
        };
    let cost = time(endpoint, "cost", LEAST_COST..=LONGEST)?.or(default.cost);
    let backlog = number(endpoint, "backlog", 1..=1 << 16)?;
    Ok(ClassConfig {
        name: match endpoint.option("class") {
            Some(name) => name.to_owned(),
            None => default.name.clone(),
        },
        processing,
        urgency: if is_planned && !is_said(&["policy", "priority"]) {
            default.urgency
        } else {
            urgency(endpoint, setup, processing, cost)?
        },
        cost,
        expected,
        cpu: number(endpoint, "cpu", 0..=1023)?.or(default.cpu),
        queue: number(endpoint, "queue", 1..=1 << 16)?.unwrap_or(default.queue),
        connections: number(endpoint, "connections", 1..=1 << 16)?.unwrap_or(default.connections),
        buffer: number(endpoint, "buffer", 2048..=16 << 20)?.unwrap_or(default.buffer),
        backlog: backlog.unwrap_or(default.backlog),
        dscp: setup.options.dscp.or(default.dscp),
        vlan_priority: number(endpoint, "vlan_priority", 0..=7)?.or(default.vlan_priority),
        output: one_of(
            endpoint,
            "output",
            &[
                ("direct", ClassOutput::Sender),
                ("scheduled", ClassOutput::Scheduled),
            ],
        )?
        .unwrap_or(default.output),
        keep_alive: match setup.options.peer_timeout {
            Some(time) => Some(time),
            None => setup.options.keep_alive.then_some(KEEP_ALIVE),
        },
        ..default
    })
}

/// Parses the processing mode, and the expected packets of a mode without a bound.
fn processing(
    endpoint: &Endpoint,
) -> Result<(ClassProcessing, Option<(usize, Duration)>), EndpointError> {
    let budget = number(endpoint, "budget", 1..=1 << 16)?;
    let cap = number(endpoint, "cap", 1..=1 << 16)?;
    let period = time(endpoint, "period", SHORTEST..=LONGEST)?;
    let kind = match (endpoint.option("processing"), budget) {
        (Some(kind), _) => kind,
        (None, Some(_)) => "periodic",
        (None, None) => "demand",
    };
    let superfluous = |names: &[&str]| {
        let given = names.iter().find(|name| endpoint.option(name).is_some());
        match given {
            Some(name) => Err(endpoint.error(format!(
                "the option {name} says nothing where processing={kind}"
            ))),
            None => Ok(()),
        }
    };
    match kind {
        "arrival" => {
            superfluous(&["cap"])?;
            let missing = "packets that are expected have a budget and a period, for example 10ms";
            match (period, budget) {
                (Some(period), Some(budget)) => {
                    Ok((ClassProcessing::OnArrival, Some((budget, period))))
                }
                (None, None) => Ok((ClassProcessing::OnArrival, None)),
                _ => Err(endpoint.error(missing)),
            }
        }
        "demand" => {
            superfluous(&["budget"])?;
            if cap.is_none() {
                superfluous(&["period"])?;
            }
            let cap = cap.map(|cap| (cap, period.unwrap_or(PERIOD)));
            Ok((ClassProcessing::OnDemand { cap }, None))
        }
        "periodic" => {
            superfluous(&["cap"])?;
            let missing =
                "processing=periodic needs a budget, in packets, and a period, for example 10ms";
            match (period, budget) {
                (Some(period), Some(budget)) => {
                    Ok((ClassProcessing::Periodic { period, budget }, None))
                }
                _ => Err(endpoint.error(missing)),
            }
        }
        other => Err(endpoint.error(format!(
            "processing is {other:?}; it can be arrival, demand or periodic"
        ))),
    }
}

fn urgency(
    endpoint: &Endpoint,
    setup: &Setup,
    processing: ClassProcessing,
    cost: Option<Duration>,
) -> Result<Urgency, EndpointError> {
    let priority: Option<u8> = number(endpoint, "priority", 1..=MAX_NATIVE)?;
    let fixed = |make: fn(u8) -> Scheduling| match priority {
        Some(priority) => Ok(Urgency::Native(make(priority))),
        None => Err(endpoint.error("policy=fifo and policy=rr need a priority, 1 to 98")),
    };
    match endpoint.option("policy") {
        Some("fifo") => fixed(Scheduling::fifo),
        Some("rr") => fixed(Scheduling::rr),
        None if priority.is_some() => fixed(Scheduling::fifo),
        Some(_) if priority.is_some() => {
            Err(endpoint.error("a priority is one of policy=fifo or policy=rr"))
        }
        Some("other") => Ok(Urgency::Native(Scheduling::OTHER)),
        Some("deadline") => match processing {
            ClassProcessing::Periodic { period, budget } => {
                let budget = u32::try_from(budget).unwrap_or(u32::MAX);
                Ok(Urgency::deadline(period, budget, cost))
            }
            _ => Err(endpoint.error("policy=deadline needs processing=periodic")),
        },
        Some(other) => Err(endpoint.error(format!(
            "the policy is {other:?}; it can be fifo, rr, deadline or other"
        ))),
        None => Ok(Urgency::Native(setup.urgency.unwrap_or(Scheduling::OTHER))),
    }
}

fn time(
    endpoint: &Endpoint,
    name: &str,
    possible: RangeInclusive<Duration>,
) -> Result<Option<Duration>, EndpointError> {
    let Some(text) = endpoint.option(name) else {
        return Ok(None);
    };
    let parsed = [("us", 1), ("ms", 1000), ("s", 1_000_000)]
        .into_iter()
        .find_map(|(unit, micros)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number.checked_mul(micros).map(Duration::from_micros)
        });
    match parsed.filter(|time| possible.contains(time)) {
        Some(time) => Ok(Some(time)),
        None => Err(endpoint.error(format!(
            "the {name} is {text:?}; it can be {}us to 10s, in us, ms or s",
            possible.start().as_micros()
        ))),
    }
}

/// Parses the numeric value of an option, if it is given.
fn number<N>(
    endpoint: &Endpoint,
    name: &str,
    possible: RangeInclusive<N>,
) -> Result<Option<N>, EndpointError>
where
    N: FromStr + PartialOrd + Display,
{
    let Some(text) = endpoint.option(name) else {
        return Ok(None);
    };
    match text.parse().ok().filter(|number| possible.contains(number)) {
        Some(number) => Ok(Some(number)),
        None => Err(endpoint.error(format!(
            "the option {name} is {text:?}; it can be a number from {} to {}",
            possible.start(),
            possible.end()
        ))),
    }
}

/// Returns the meaning of an option's word, if the option is given.
fn one_of<T: Copy>(
    endpoint: &Endpoint,
    name: &str,
    words: &[(&str, T)],
) -> Result<Option<T>, EndpointError> {
    let Some(text) = endpoint.option(name) else {
        return Ok(None);
    };
    match words.iter().find(|(word, _)| *word == text) {
        Some((_, meant)) => Ok(Some(*meant)),
        None => {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            Err(endpoint.error(format!(
                "the option {name} is {text:?}; it can be {}",
                words.join(" or ")
            )))
        }
    }
}

const KNOWN: &[&str] = &[
    "interface",
    "driver",
    "mode",
    "class",
    "processing",
    "period",
    "budget",
    "cap",
    "cost",
    "policy",
    "priority",
    "cpu",
    "queue",
    "connections",
    "buffer",
    "backlog",
    "output",
    "vlan_priority",
    "hostname_in_ior",
];
/// Options that change a reservation of the plan, so that it needs a new admission check.
const OF_PROMISES: &[&str] = &[
    "processing",
    "period",
    "budget",
    "cap",
    "cost",
    "policy",
    "priority",
    "cpu",
    "queue",
    "connections",
    "buffer",
    "output",
];
/// The period of a cap without one.
const PERIOD: Duration = Duration::from_millis(10);
const LEAST_COST: Duration = Duration::from_micros(1);
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_secs(10);
/// The time after which the connection to a silent peer is broken, if keep-alive is requested.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
