//! The contract of every transport. A transport joins by one line at the end of this file.
//!
//! The statements are functions in the modules, one list for each kind of carriage; each becomes a
//! test of each transport. What only one transport has to promise is in a file of its own.

#[macro_use]
mod statements;
pub(crate) mod any;
pub(crate) mod backlog;
#[allow(dead_code, reason = "features may leave out all that carry messages")]
pub(crate) mod messages;
pub(crate) mod process;
#[allow(dead_code, reason = "features may leave out all that carry messages")]
pub(crate) mod processes;
pub(crate) mod streams;
pub(crate) mod subject;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod two_way;
pub(crate) mod waits;

use chronorb_transport::Transport;
#[cfg(feature = "multicast")]
use chronorb_transport::multicast::{Multicast, MulticastOptions};
use subject::Subject;

/// A transport that carries a stream.
macro_rules! stream {
    ($name:ident, $subject:expr) => {
        mod $name {
            use super::*;

            statements_of_any!($subject);
            statements_of_two_ways!($subject);
            statements_of_streams!($subject);
            statements! {
                $subject;
                backlog:
                    a_full_backlog_holds_nobody_longer_than_its_deadline;
                processes:
                    a_killed_peer_is_the_end_of_the_stream
                    without_descriptors_a_connection_stays_outside;
            }
        }
    };
}

/// A transport that carries messages, both ways.
#[allow(unused_macros, reason = "features may leave out all of them")]
macro_rules! messages {
    ($name:ident, $subject:expr) => {
        mod $name {
            use super::*;

            statements_of_any!($subject);
            statements_of_two_ways!($subject);
            statements_of_messages!($subject);
            statements! {
                $subject;
                processes:
                    without_descriptors_a_connection_stays_outside;
            }
        }
    };
}

/// A transport that carries messages from the connecting side to the accepting side, and none back.
#[allow(unused_macros, reason = "features may leave out all of them")]
macro_rules! one_way_messages {
    ($name:ident, $subject:expr) => {
        mod $name {
            use super::*;

            statements_of_any!($subject);
            statements_of_messages!($subject);
        }
    };
}

#[allow(unused_macros, reason = "features may leave out all of them")]
macro_rules! statements_of_messages {
    ($subject:expr) => {
        statements! {
            $subject;
            messages:
                messages_of_any_length_arrive_whole
                several_messages_can_be_sent_at_once
                the_longest_message_arrives_and_a_longer_one_is_refused
                the_rest_of_a_message_follows
                what_is_no_message_never_arrives;
            processes:
                a_killed_peer_holds_up_no_other;
        }
    };
}

/// A transport, and an endpoint for it that is a new one each time.
fn subject(transport: impl Transport + 'static, endpoint: &str) -> Subject {
    Subject::new(Box::new(transport), endpoint)
}

stream!(
    tcp,
    subject(chronorb_transport::tcp::Tcp, "iiop://127.0.0.1:0")
        .refuses("iiop://127.0.0.1:0/portspan=0", "portspan")
        .refuses("iiop://127.0.0.1:0/portspan=many", "portspan")
        .refuses("iiop:///a/path|hostname_in_ior=a", "host")
);
stream!(
    tcp_on_every_interface,
    subject(chronorb_transport::tcp::Tcp, "iiop://")
);
#[cfg(feature = "tls")]
stream!(
    tls_1_3,
    subject(tls::of_version("1.3"), "ssliop://127.0.0.1:0")
        .refuses("ssliop://127.0.0.1:0/portspan=0", "portspan")
        .refuses("ssliop:///a/path|hostname_in_ior=a", "host")
);
#[cfg(feature = "tls")]
stream!(
    tls_1_2,
    subject(tls::of_version("1.2"), "ssliop://127.0.0.1:0")
);
#[cfg(feature = "uds")]
stream!(
    unix,
    subject(chronorb_transport::uds::Unix, "uiop://")
        .refuses("uiop://|mode=888", "mode")
        .refuses("uiop://|mode=0", "mode")
        .refuses("uiop://|mode=1777", "mode")
        .refuses("uiop://@name|mode=0600", "mode")
        .refuses("uiop://@", "empty")
);
#[cfg(feature = "shm")]
stream!(
    shared_memory,
    subject(chronorb_transport::shm::SharedMemory, "shmiop://")
        .refuses("shmiop://|ring=5000", "ring")
        .refuses("shmiop://|ring=1024", "ring")
        .refuses("shmiop://|ring=33554432&mode=0600", "ring")
        .refuses("shmiop://|mode=888", "mode")
        .refuses("shmiop://@", "empty")
);
#[cfg(feature = "shm")]
stream!(
    shared_memory_with_small_rings,
    subject(
        chronorb_transport::shm::SharedMemory,
        "shmiop://|ring=16384"
    )
);
#[cfg(feature = "uds")]
stream!(
    unix_without_files,
    subject(chronorb_transport::uds::Unix, &abstract_name()).and_at(&abstract_name())
);

#[cfg(feature = "multicast")]
one_way_messages!(multicast, {
    let options = "interface=lo&ttl=0&max=100000";
    let options = MulticastOptions::parse(options).expect("right options");
    subject(Multicast::new(options), &group())
        .and_at(&group())
        .refuses("miop://10.0.0.1:5000", "224.0.0.0/4")
        .refuses("miop://239.255.77.2", "port")
        .refuses("miop://localhost:5000", "group")
        .refuses("miop://239.255.77.2:5000/ttl=many", "ttl")
        .refuses("miop://239.255.77.2:5000/portspan=2", "portspan")
});

/// A group that no other process uses.
#[cfg(feature = "multicast")]
fn group() -> String {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    format!("miop://239.78.{high}.{low}:{}", 20_000 + number)
}

#[cfg(feature = "udp")]
messages!(
    udp,
    subject(chronorb_transport::udp::Udp, "diop://127.0.0.1:0")
        .refuses("diop://:0/max=511", "max")
        .refuses("diop://:0/max=65528", "max")
        .refuses("diop://:0/portspan=0", "portspan")
        .refuses("diop:///a/path|max=1000", "host")
);
#[cfg(feature = "udp")]
messages!(
    udp_on_every_interface,
    subject(chronorb_transport::udp::Udp, "diop://")
);

#[cfg(feature = "faults")]
stream!(
    tcp_that_is_wrapped,
    subject(
        disturbed(chronorb_transport::tcp::Tcp, "seed=7"),
        "iiop://127.0.0.1:0"
    )
);
#[cfg(all(feature = "faults", feature = "udp"))]
messages!(
    udp_that_is_wrapped,
    subject(
        disturbed(chronorb_transport::udp::Udp, "seed=7"),
        "diop://127.0.0.1:0"
    )
);
#[cfg(feature = "trace")]
stream!(
    tcp_that_is_traced,
    subject(traced(chronorb_transport::tcp::Tcp), "iiop://127.0.0.1:0")
);
#[cfg(all(feature = "trace", feature = "uds"))]
stream!(
    unix_that_is_traced,
    subject(traced(chronorb_transport::uds::Unix), "uiop://")
);
#[cfg(all(feature = "trace", feature = "udp"))]
messages!(
    udp_that_is_traced,
    subject(traced(chronorb_transport::udp::Udp), "diop://127.0.0.1:0")
);

/// A transport to which these faults happen.
#[cfg(feature = "faults")]
fn disturbed(transport: impl Transport + 'static, faults: &str) -> impl Transport {
    use chronorb_transport::faults::{FaultPlans, Faulty};
    let plans = FaultPlans::parse(faults).expect("a plan");
    let plan = plans.of(transport.scheme()).expect("it is for all");
    Faulty::new(Box::new(transport) as Box<dyn Transport>, plan.clone())
}

/// A transport with a trace that is not read.
#[cfg(feature = "trace")]
fn traced(transport: impl Transport + 'static) -> impl Transport {
    use chronorb_transport::trace::{RecordingTransport, TraceFile, TraceLimits};
    let limits = TraceLimits {
        file: u64::MAX,
        ..TraceLimits::default()
    };
    let file = TraceFile::create("/dev/null", limits).expect("it takes anything");
    RecordingTransport::new(Box::new(transport) as Box<dyn Transport>, file)
}

/// A unique endpoint.
#[cfg(feature = "uds")]
fn abstract_name() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("uiop://@chronorb-{}-{number}", std::process::id())
}
