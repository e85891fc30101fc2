//! `chronorb rio setup`: a test network on this machine, or an interface whose kernel keeps a plan,
//! while the command runs.

mod kernel;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use chronorb_net::{NAMES, NetlinkError};
use chronorb_rio::kernel::KernelError;
use chronorb_rio::plan::PlanError;
use chronorb_rt::Termination;
use chronorb_testnet::{Host, INTERFACE, Layout, Network, NetworkError, remove_abandoned};
use clap::Args;
use serde::Serialize;
use thiserror::Error;

use super::guardian::{Guardian, GuardianError};
use super::plan::Mapping;

#[derive(Args, Debug)]
pub(crate) struct SetupArguments {
    /// Build a test network of two hosts.
    #[arg(long, required_unless_present_any = ["down", "kernel"])]
    netns: bool,

    /// Have the kernel keep a plan, a file of TOML, on the interface that it names: each class has
    /// its share of the sent traffic, and threads with a priority receive packets.
    #[arg(long, value_name = "PLAN", conflicts_with_all = OF_NETWORK)]
    kernel: Option<PathBuf>,

    /// Give received traffic its shares too, by way of an interface of the kind ifb.
    #[arg(long, requires = "kernel", conflicts_with_all = OF_NETWORK)]
    ingress: bool,

    /// The mapping of the plan's CORBA priorities to native ones, as -ORBPriorityMapping of ORBs.
    #[arg(long, value_name = "MAPPING", default_value = "linear", requires = "kernel",
          conflicts_with_all = OF_NETWORK)]
    mapping: Mapping,

    /// The prefix of the names of its namespaces, NAME-a, NAME-b and NAME-switch; by default
    /// chronorb- and the number of this process.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The rate of the network per second, each way: a number with bit, kbit, Mbit or Gbit.
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "netns")]
    rate: Option<u64>,

    /// The delay of each frame in the switch, each way: a number with us, ms or s, up to 10 s.
    #[arg(long, value_name = "TIME", value_parser = delay, requires = "netns",
          conflicts_with = "offloads")]
    delay: Option<Duration>,

    /// The length of the longest packet in octets, without the Ethernet header.
    #[arg(long, value_name = "OCTETS", default_value_t = Layout::default().mtu, requires = "netns",
          value_parser = clap::value_parser!(u32).range(1280..=65_521))]
    mtu: u32,

    /// Leave the kernel's offloads on: checksums are never computed, and packets are merged.
    #[arg(long, requires = "netns")]
    offloads: bool,

    /// The number of receive queues of each host's interface: a flow uses one of them.
    #[arg(long, value_name = "NUMBER", default_value_t = Layout::default().queues,
          requires = "netns", value_parser = clap::value_parser!(u32).range(1..=4096))]
    queues: u32,

    /// The address of the first host, of IPv4 (in a network of 24 bits) or IPv6 (64 bits), or one
    /// of each; the second host gets the next.
    #[arg(long, value_name = "ADDRESS", requires = "netns")]
    address: Vec<IpAddr>,

    /// Remove the remains of processes that were killed together with their guardians, and with
    /// --name the network of that name.
    #[arg(long, conflicts_with_all = OF_BUILDING)]
    down: bool,

    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The setup has failed, or has ended.
#[derive(Debug, Error)]
pub(crate) enum SetupError {
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error("{}: {error}", file.display())]
    Plan { file: PathBuf, error: PlanError },
    #[error("{}: the plan cannot be kept: {refusal}", file.display())]
    Refused { file: PathBuf, refusal: String },
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error("the interface of a host: {0}")]
    Interface(#[from] NetlinkError),
    #[error("--address: the hosts would be {first} and {}, and {wrong} {problem}", next(*first))]
    Address {
        first: IpAddr,
        wrong: IpAddr,
        problem: &'static str,
    },
    #[error(transparent)]
    Guardian(#[from] GuardianError),
    #[error("signals cannot be caught: {0}")]
    Signals(io::Error),
    #[error("nothing can be written: {0}")]
    Output(io::Error),
}

/// Sets up, waits, and undoes.
pub(super) fn run(arguments: &SetupArguments) -> Result<(), SetupError> {
    match &arguments.kernel {
        Some(plan) => kernel::run(plan, arguments),
        None if arguments.down => down(arguments),
        None => up(arguments),
    }
}

fn up(arguments: &SetupArguments) -> Result<(), SetupError> {
    let layout = layout(arguments)?;
    // Signals are caught before there is anything that they could leave behind.
    let termination = Termination::install().map_err(SetupError::Signals)?;
    let mut guardian = Guardian::start().map_err(GuardianError::Process)?;
    let mut tell = |change: &_| guardian.tell(change);
    let built = Network::build_named(&layout, arguments.name.as_deref(), &mut tell);
    let waited = built.map_err(SetupError::from).and_then(|network| {
        show(&network, &layout, arguments.json)?;
        Ok(guardian.wait(termination)?)
    });
    let ended = guardian.end();
    waited?;
    Ok(ended?)
}

fn down(arguments: &SetupArguments) -> Result<(), SetupError> {
    let removed = remove_abandoned(arguments.name.as_deref())?;
    match (arguments.json, &removed[..]) {
        (true, _) => print(&serde_json::json!({ "removed": removed }).to_string()),
        (false, []) => print("nothing was left behind"),
        (false, _) => print(&format!("removed: {}", removed.join(", "))),
    }
}

fn layout(arguments: &SetupArguments) -> Result<Layout, SetupError> {
    let mut layout = Layout {
        mtu: arguments.mtu,
        rate: arguments.rate,
        delay: arguments.delay.unwrap_or_default(),
        offloads: arguments.offloads,
        queues: arguments.queues,
        ..Layout::default()
    };
    for first in &arguments.address {
        for host in [*first, next(*first)] {
            if let Some(problem) = problem(host) {
                return Err(SetupError::Address {
                    first: *first,
                    wrong: host,
                    problem,
                });
            }
        }
        match (*first, next(*first)) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (layout.a.v4, layout.b.v4) = (a, b),
            (IpAddr::V6(a), IpAddr::V6(b)) => (layout.a.v6, layout.b.v6) = (a, b),
            _ => unreachable!("the next address is of the same family"),
        }
    }
    Ok(layout)
}

/// Returns the address of the second host.
fn next(first: IpAddr) -> IpAddr {
    match first {
        IpAddr::V4(v4) => Ipv4Addr::from(u32::from(v4).wrapping_add(1)).into(),
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6).wrapping_add(1)).into(),
    }
}

/// Returns the reason why a host of the network cannot have an address.
fn problem(address: IpAddr) -> Option<&'static str> {
    match address {
        _ if address.is_unspecified() => Some("stands for any address"),
        _ if address.is_loopback() => Some("is an address of the loopback"),
        _ if address.is_multicast() => Some("is the address of a group"),
        IpAddr::V4(v4) => match v4.octets() {
            [0, ..] => Some("stands for a host of this network"),
            [240..=255, ..] => Some("is reserved"),
            [.., 255] => Some("is the broadcast address of its network of 24 bits"),
            [.., 0] => Some("is the address of its network of 24 bits"),
            _ => None,
        },
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Some("stands for an address of IPv4"),
        IpAddr::V6(v6) if u128::from(v6) << 64 == 0 => {
            Some("is the address of the routers of its network of 64 bits")
        }
        IpAddr::V6(_) => None,
    }
}

/// The network that was built, for programs.
#[derive(Serialize)]
struct ShownNetwork<'a> {
    hosts: Vec<ShownHost>,
    switch: String,
    rate_bit_per_s: Option<u64>,
    delay_us: u64,
    mtu: u32,
    receive_queues: u32,
    directory: &'a str,
}

#[derive(Serialize)]
struct ShownHost {
    namespace: String,
    interface: String,
    hardware: String,
    addresses: [IpAddr; 2],
}

fn show(network: &Network, layout: &Layout, json: bool) -> Result<(), SetupError> {
    let name = network.name().unwrap_or_default();
    let mut hosts = Vec::new();
    for (host, letter) in Host::BOTH.into_iter().zip(["a", "b"]) {
        let host = network.host(host);
        let addresses = host.addresses();
        hosts.push(ShownHost {
            namespace: format!("{name}-{letter}"),
            interface: INTERFACE.to_owned(),
            hardware: host
                .link()?
                .hardware
                .unwrap_or_default()
                .map(|octet| format!("{octet:02x}"))
                .join(":"),
            addresses: [addresses.v4.into(), addresses.v6.into()],
        });
    }
    let shown = ShownNetwork {
        hosts,
        switch: format!("{name}-switch"),
        rate_bit_per_s: layout.rate,
        delay_us: layout.delay.as_micros() as u64,
        mtu: layout.mtu,
        receive_queues: layout.queues,
        directory: NAMES,
    };
    if json {
        print(&serde_json::to_string(&shown).map_err(|e| SetupError::Output(e.into()))?)
    } else {
        print(&shown.to_text())
    }
}

impl ShownNetwork<'_> {
    fn to_text(&self) -> String {
        let mut text = String::new();
        for ShownHost {
            namespace,
            interface,
            hardware,
            addresses: [v4, v6],
        } in &self.hosts
        {
            text += &format!("{namespace}: {interface} ({hardware}), {v4}, {v6}\n");
        }
        let rate = self.rate_bit_per_s;
        let rate = rate.map_or_else(|| "no limit".to_owned(), |rate| format!("{rate} bit/s"));
        let queues = match self.receive_queues {
            1 => String::new(),
            several => format!(", {several} receive queues"),
        };
        text += &format!(
            "{}: {rate}, delay {} µs, MTU {}{queues}\n\n",
            self.switch, self.delay_us, self.mtu
        );
        let [a, b] = &self.hosts[..] else { return text };
        text += &format!(
            "  ip netns exec {} PROGRAM\n  ip netns exec {} ping {}\n\nCtrl-C removes it all.",
            b.namespace, a.namespace, b.addresses[0]
        );
        text
    }
}

/// Prints a line, at once.
fn print(text: &str) -> Result<(), SetupError> {
    let mut output = io::stdout().lock();
    let written = writeln!(output, "{text}").and_then(|()| output.flush());
    written.map_err(SetupError::Output)
}

/// Parses a rate in bits per second.
fn rate(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];
    match quantity(text, &UNITS) {
        // The kernel cannot keep up with 100 Gbit/s.
        Some(rate) if (8.0..=1e12).contains(&rate) => Ok(rate as u64),
        _ => Err("a rate is a number with bit, kbit, Mbit or Gbit: \"100 Mbit\"".to_owned()),
    }
}

fn delay(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 3] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    match quantity(text, &UNITS) {
        Some(seconds) if (0.0..=10.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a time is a number with us, ms or s, up to 10 s: \"1 ms\"".to_owned()),
    }
}

/// Parses a number with the first of these units that it ends with.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let lower = text.trim().to_ascii_lowercase();
    units.iter().find_map(|(unit, factor)| {
        let number: f64 = lower.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * factor)
    })
}

/// The options of a network that is built.
const OF_BUILDING: [&str; 7] = [
    "netns", "rate", "delay", "mtu", "offloads", "queues", "address",
];
/// All options of networks.
const OF_NETWORK: [&str; 9] = [
    "netns", "rate", "delay", "mtu", "offloads", "queues", "address", "name", "down",
];

pub(super) const EXAMPLES: &str = "\
Examples:
  chronorb rio setup --netns
  chronorb rio setup --netns --name lab --rate '100 Mbit' --delay 1ms --mtu 9000
  chronorb rio setup --netns --json | jq -r '.hosts[].namespace'
  chronorb rio setup --kernel plan.toml
  chronorb rio setup --down

It needs CAP_SYS_ADMIN and CAP_NET_ADMIN, which root has.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_addresses_of_hosts() {
        let hosts = |address: &str| {
            let first = address.parse().expect("an address");
            [first, next(first)].into_iter().find_map(problem)
        };
        for address in ["10.0.0.1", "192.168.7.253", "fd00::1", "fe80::7"] {
            assert_eq!(hosts(address), None, "{address}");
        }
        for (address, why) in [
            ("0.0.0.0", "any address"),
            ("127.0.0.1", "loopback"),
            ("10.0.0.255", "broadcast"),
            ("10.0.0.254", "broadcast"),
            ("10.0.0.0", "address of its network"),
            ("224.0.0.1", "group"),
            ("255.255.255.255", "reserved"),
            ("0.0.0.7", "this network"),
            ("::", "any address"),
            ("::1", "loopback"),
            ("ff02::1", "group"),
            ("::ffff:10.0.0.1", "IPv4"),
            ("fd00::", "routers"),
            ("fd00::ffff:ffff:ffff:ffff", "routers"),
        ] {
            let problem = hosts(address).expect(address);
            assert!(problem.contains(why), "{address}: {problem}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(delay("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(delay("250 us"), Ok(Duration::from_micros(250)));
        assert_eq!(delay("0.5 s"), Ok(Duration::from_millis(500)));
        for text in ["", "1", "-1 ms", "11 s", "inf s", "NaN ms", "1 min"] {
            assert!(delay(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_have_units() {
        assert_eq!(rate("100 Mbit"), Ok(100_000_000));
        assert_eq!(rate("1.5gbit"), Ok(1_500_000_000));
        assert_eq!(rate("9600bit"), Ok(9600));
        for text in [
            "",
            "100",
            "100 M",
            "-1 Mbit",
            "0 bit",
            "NaN Mbit",
            "1e99 Gbit",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
