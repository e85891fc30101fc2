//! The steps by which a test network is built.

use std::fs;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use chronorb_net::{
    Discipline, Handle, Netlink, NetlinkError, NetworkNamespace, Offloads, VethEnd, set_queues,
};
use chronorb_rt::Deadline;

use super::delay::DelayThread;
use super::names::Names;
use super::{Addresses, Host, INTERFACE, Layout, Network, NetworkError, TestHost};

/// Builds a network of namespaces without names.
pub(super) fn build(layout: &Layout) -> Result<Network, NetworkError> {
    if !layout.delay.is_zero() && layout.offloads {
        return Err(NetworkError::DelayWithOffloads);
    }
    let [a, b, switch] = [create()?, create()?, create()?];
    let host = |namespace, addresses| TestHost {
        namespace,
        addresses,
    };
    let mut network = Network {
        a: host(a, layout.a),
        b: host(b, layout.b),
        switch,
        name: None,
        names: Names::default(),
        delaying: None,
    };
    if let Some([a, b]) = layout.cpus {
        receive_on(&network.a.namespace, a)?;
        receive_on(&network.switch, a)?;
        receive_on(&network.b.namespace, b)?;
    }
    let mut ports = within(&network.switch, Netlink::open)??;
    for host in Host::BOTH {
        cable(&network, host, layout, &mut ports)?;
    }
    if layout.delay.is_zero() {
        bridge(&mut ports)?
    } else {
        network.delaying = Some(delaying(&network, &mut ports, layout.delay)?)
    }
    for host in Host::BOTH {
        await_running(&mut ports, host.port())?;
        let mut there = within(&network.host(host).namespace, Netlink::open)??;
        await_running(&mut there, INTERFACE)?;
    }
    Ok(network)
}

fn create() -> Result<NetworkNamespace, NetworkError> {
    let created = NetworkNamespace::create();
    created.map_err(|error| NetworkError::io("make a network namespace", error))
}

/// Does something in a namespace.
fn within<T>(namespace: &NetworkNamespace, f: impl FnOnce() -> T) -> Result<T, NetworkError> {
    let entered = namespace.enter(f);
    entered.map_err(|error| NetworkError::io("enter a network namespace", error))
}

/// Makes the future interfaces of a namespace receive on one CPU (receive packet steering).
fn receive_on(namespace: &NetworkNamespace, cpu: usize) -> Result<(), NetworkError> {
    let written = within(namespace, || fs::write(STEERING, mask(cpu)))?;
    written.map_err(|error| NetworkError::io("choose the CPU that receives", error))
}

/// The set of this CPU alone, as the kernel reads it: 32 of them in each hexadecimal word, the
/// highest first.
fn mask(cpu: usize) -> String {
    format!("{:x}{}", 1_u32 << (cpu % 32), ",00000000".repeat(cpu / 32))
}

/// Lays the cable from a host to its port.
fn cable(
    network: &Network,
    host: Host,
    layout: &Layout,
    ports: &mut Netlink,
) -> Result<(), NetworkError> {
    let TestHost {
        namespace,
        addresses,
    } = network.host(host);
    let near = VethEnd {
        name: host.port(),
        namespace: None,
        queues: layout.queues,
    };
    let far = VethEnd {
        name: INTERFACE,
        namespace: Some(namespace.as_fd()),
        queues: layout.queues,
    };
    ports.create_veth(near, far)?;
    if layout.queues > 1 {
        // Otherwise packets that arrived by several queues would leave by the same ones, whatever
        // their hash.
        let at_port = within(&network.switch, || {
            set_queues(host.port(), 1, layout.queues)
        })?;
        let at_host = within(namespace, || set_queues(INTERFACE, layout.queues, 1))?;
        (at_port.and(at_host))
            .map_err(|error| NetworkError::io("set the queues of a veth", error))?;
    }
    let port = ports.link(host.port())?.index;
    ports.set_mtu(port, layout.mtu)?;
    ports.set_no_own_address(port)?;
    if let Some(rate) = layout.rate {
        ports.set_discipline(port, Handle::ROOT, LIMIT, &limit(rate, layout.mtu))?;
    }
    if !layout.offloads {
        turn_offloads_off(&network.switch, host.port())?;
        turn_offloads_off(namespace, INTERFACE)?;
    }
    ports.set_up(port, true)?;
    furnish(within(namespace, Netlink::open)??, layout.mtu, *addresses)?;
    Ok(())
}

/// Configures a host's own interfaces.
fn furnish(mut netlink: Netlink, mtu: u32, addresses: Addresses) -> Result<(), NetlinkError> {
    let loopback = netlink.link("lo")?.index;
    netlink.set_up(loopback, true)?;
    let index = netlink.link(INTERFACE)?.index;
    netlink.set_mtu(index, mtu)?;
    for (address, prefix) in addresses.with_prefixes() {
        netlink.add_address(index, address, prefix)?;
    }
    netlink.set_up(index, true)
}

/// Waits until an interface carries packets. Packets sent before are lost silently.
fn await_running(netlink: &mut Netlink, name: &'static str) -> Result<(), NetworkError> {
    let deadline = Deadline::after(CARRIER);
    while !netlink.link(name)?.is_running {
        if deadline.has_passed() {
            return Err(NetworkError::NoCarrier(name));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Lets the kernel forward from port to port.
fn bridge(ports: &mut Netlink) -> Result<(), NetlinkError> {
    ports.create_link(BRIDGE, "bridge")?;
    let bridge = ports.link(BRIDGE)?.index;
    ports.set_no_own_address(bridge)?;
    for host in Host::BOTH {
        let port = ports.link(host.port())?.index;
        ports.set_master(port, bridge)?;
    }
    ports.set_up(bridge, true)
}

/// Lets a thread forward from port to port, some time later.
fn delaying(
    network: &Network,
    ports: &mut Netlink,
    delay: Duration,
) -> Result<DelayThread, NetworkError> {
    let [a, b] = Host::BOTH.map(|host| ports.link(host.port()));
    let (a, b) = (a?.index, b?.index);
    let started = within(&network.switch, || DelayThread::start([a, b], delay))?;
    started.map_err(|error| NetworkError::io("forward from port to port", error))
}

fn turn_offloads_off(namespace: &NetworkNamespace, interface: &str) -> Result<(), NetworkError> {
    let turned = within(namespace, || Offloads::turn_off(interface))?;
    turned.map_err(|error| NetworkError::io("turn the offloads of a veth off", error))
}

/// A rate in bits per second, held over any time in which a few packets pass.
fn limit(rate: u64, mtu: u32) -> Discipline {
    let rate = (rate / 8).max(1);
    let packet = u64::from(mtu) + ETHERNET;
    let octets = |time_us: u64| u128::from(rate) * u128::from(time_us) / 1_000_000;
    let at_least = |octets: u128, packets: u64| {
        u32::try_from(octets.max(u128::from(packet * packets))).unwrap_or(u32::MAX)
    };
    Discipline::Rate {
        rate,
        burst: at_least(octets(BURST_US), 2),
        limit: at_least(octets(QUEUE_US), 64),
    }
}

/// The kernel looks after carriers once in a second, at least.
const CARRIER: Duration = Duration::from_secs(10);
pub(super) const BRIDGE: &str = "switch";
const LIMIT: Handle = Handle::new(1, 0);
/// Octets of an Ethernet header with a VLAN tag.
const ETHERNET: u64 = 18;
/// The greatest burst, as a duration at the rate.
const BURST_US: u64 = 1_000;
/// The size of the queue, as a duration at the rate.
const QUEUE_US: u64 = 50_000;
/// The CPUs on which interfaces receive that a namespace gets from now on.
const STEERING: &str = "/proc/sys/net/core/rps_default_mask";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_a_set_of_one() {
        assert_eq!([0, 1, 31].map(mask), ["1", "2", "80000000"]);
        assert_eq!(mask(33), "2,00000000");
    }
}
