//! Requirements of drivers. A driver is added by one line at the end of this file.
//!
//! The requirements are functions in the modules, one list for all drivers and one for those that
//! share an interface with the kernel. Each becomes a test of each driver. Requirements of packet
//! sockets alone have their own module.

pub(crate) mod any;
pub(crate) mod kernel;
pub(crate) mod packets;
pub(crate) mod subject;

use crate::driver::packet::Packet;
use crate::driver::xdp::{self, Xdp, XdpMode};
use crate::driver::{Driver, DriverError};
use chronorb_testnet::{Layout, Network};
use subject::{Open, Subject};

/// Makes one test of each requirement.
macro_rules! statements {
    ($subject:expr; $($statement:ident)+) => {
        $(
            #[test]
            fn $statement() {
                if let Some(subject) = $subject {
                    crate::tests::drivers::any::$statement(&subject);
                }
            }
        )+
    };
}

/// Makes the tests of a driver.
macro_rules! driver {
    ($name:ident, $subject:expr) => {
        mod $name {
            use super::*;

            statements! {
                $subject;
                frames_of_a_class_come_by_its_path_and_no_others
                a_frame_comes_as_it_was_sent
                frames_of_a_class_keep_their_order
                a_full_queue_drops_what_comes_last_and_counts_it
                what_is_transmitted_arrives_whole_whatever_its_length
                the_shortest_frame_arrives_both_ways
                several_frames_go_with_one_flush
                a_frame_that_is_too_long_is_refused
                a_full_transmit_queue_refuses_and_counts
                the_descriptor_is_readable_while_frames_are_there
                frames_that_wait_are_counted
                dropping_a_receiver_gives_its_packets_back
                what_a_receiver_leaves_is_forgotten
                unknown_packets_go_where_they_are_told
                rules_come_and_go_while_it_is_open
                the_oldest_rule_that_matches_wins
                rules_may_name_addresses_code_points_and_priorities
                a_vlan_tag_stays_in_its_frame_both_ways
                fragments_and_other_protocols_are_the_kernels
                packets_to_other_hosts_are_no_class_s
                frames_to_other_interfaces_and_to_many_are_no_class_s
                what_is_refused_changes_nothing
                all_classes_can_be_open_at_once
                no_frame_allocates
            }
        }
    };
}

fn xdp(interface: &str, mode: XdpMode) -> Result<Box<dyn Driver>, DriverError> {
    let options = xdp::XdpOptions {
        mode,
        ..xdp::XdpOptions::default()
    };
    Ok(Box::new(Xdp::open(interface, options)?))
}

fn xdp_native(interface: &str) -> Result<Box<dyn Driver>, DriverError> {
    xdp(interface, XdpMode::Native)
}

fn xdp_generic(interface: &str) -> Result<Box<dyn Driver>, DriverError> {
    xdp(interface, XdpMode::Generic)
}

fn packet(interface: &str) -> Result<Box<dyn Driver>, DriverError> {
    Ok(Box::new(Packet::open(interface)?))
}

/// The body of the other process of a test.
#[test]
fn the_process_that_is_killed() {
    kernel::open_until_killed(&OF_NETWORKS);
}

/// Checks a requirement of each driver that shares its interface with the kernel.
fn of_networks(statement: fn(&Subject, &str)) {
    for (name, open) in OF_NETWORKS {
        if let Some(subject) = Subject::of_network(open, &Layout::default()) {
            println!("by {name}");
            statement(&subject, name);
        }
    }
}

#[test]
fn connections_of_the_kernel_go_on() {
    of_networks(|subject, _| kernel::connections_of_the_kernel_go_on(subject));
}

#[test]
fn datagrams_in_fragments_reach_the_kernel() {
    of_networks(|subject, _| kernel::datagrams_in_fragments_reach_the_kernel(subject));
}

#[test]
fn a_killed_process_leaves_nothing() {
    of_networks(kernel::a_killed_process_leaves_nothing);
}

/// A network with frames longer than a page.
fn of_9000_octets() -> Layout {
    Layout {
        mtu: 9000,
        ..Layout::default()
    }
}

/// A network with flows spread over receive queues.
fn of_4_queues() -> Layout {
    Layout {
        queues: 4,
        ..Layout::default()
    }
}

#[test]
fn a_killed_process_leaves_no_tap_interface_and_no_guard() {
    if let Some(network) = Network::build_for_test(&Layout::default()) {
        kernel::a_killed_process_leaves_no_tap_interface_and_no_guard(&network);
    }
}

driver!(wire, Subject::of_wire());
driver!(faulty_wire, Subject::of_faulty_wire());
driver!(tap, Subject::of_tap());
driver!(
    packet_sockets,
    Subject::of_network(packet, &Layout::default())
);

driver!(
    packet_sockets_of_9000_octets,
    Subject::of_network(packet, &of_9000_octets())
);
driver!(
    af_xdp_native,
    Subject::of_network(xdp_native, &Layout::default())
);
driver!(
    af_xdp_generic,
    Subject::of_network(xdp_generic, &Layout::default())
);
driver!(
    af_xdp_native_of_9000_octets,
    Subject::of_network(xdp_native, &of_9000_octets())
);
driver!(
    af_xdp_generic_of_9000_octets,
    Subject::of_network(xdp_generic, &of_9000_octets())
);
driver!(
    packet_sockets_of_4_queues,
    Subject::of_network(packet, &of_4_queues())
);
driver!(
    af_xdp_native_of_4_queues,
    Subject::of_network(xdp_native, &of_4_queues())
);
driver!(
    af_xdp_generic_of_4_queues,
    Subject::of_network(xdp_generic, &of_4_queues())
);

/// The drivers that share their interface with the kernel.
const OF_NETWORKS: [(&str, Open); 3] = [
    ("packet", packet),
    ("xdp in the driver", xdp_native),
    ("xdp in the stack", xdp_generic),
];
