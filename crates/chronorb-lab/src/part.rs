//! The hidden command by which this program is a part of an experiment.

use crate::error::LabError;
use crate::process::ProcessError;
use crate::{
    bench, endurance, events, failover, hostile, inversion, os, rio, scheduling, timeprobes, waits,
    whitebox,
};

/// The hidden command of a child process; its arguments are a part and an order.
///
/// A program that runs experiments passes the arguments of this command to [`child_main`].
pub const CHILD_COMMAND: &str = "lab-child";

/// Runs a part of an experiment, which exchanges lines of JSON with the parent over standard input
/// and output.
///
/// # Errors
///
/// [`LabError::Process`] if there is no such part or the order cannot be read, otherwise the
/// failure of the part.
pub fn child_main(part: &str, order: &str) -> Result<(), LabError> {
    let known = PARTS.iter().find(|(name, _)| *name == part);
    let (_, main) = known.ok_or_else(|| ProcessError::UnknownPart {
        part: part.to_owned(),
    })?;
    main(order)
}

type Main = fn(&str) -> Result<(), LabError>;

/// All parts.
const PARTS: &[(&str, Main)] = &[
    (bench::SERVER, bench::server_main),
    (bench::CLIENT, bench::client_main),
    (bench::SYSTEM_SERVER, bench::system_server_main),
    (bench::SYSTEM_CLIENT, bench::system_client_main),
    (bench::IDLE_CLIENTS, bench::idle_clients_main),
    (endurance::PART, endurance::part_main),
    (events::CHANNEL, events::channel_main),
    (events::LOAD, events::load_main),
    (events::PEERS, events::peers_main),
    (events::PUSHES, events::pushes_main),
    (events::RING, events::ring_main),
    (failover::PART, failover::part_main),
    (hostile::PART, hostile::part_main),
    (inversion::BULK, inversion::bulk_main),
    (inversion::CLIENT, inversion::client_main),
    (os::PART, os::part_main),
    (rio::PART, rio::part_main),
    (scheduling::CLIENT, scheduling::client_main),
    (scheduling::LOOK_UPS, scheduling::look_ups_main),
    (scheduling::QUEUES, scheduling::queues_main),
    (scheduling::OVERRUN_SERVER, scheduling::overrun_server_main),
    (scheduling::RELAY, scheduling::relay_main),
    (scheduling::SCHEDULE_NODE, scheduling::schedule_node_main),
    (timeprobes::PART, timeprobes::part_main),
    (waits::SERVER, waits::server_main),
    (whitebox::PART, whitebox::part_main),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_makes_no_sense_is_refused_by_every_part() {
        for (part, _) in PARTS {
            for order in ["no order", "{}", "[]", "{\"Server\":{}}"] {
                let error = child_main(part, order).expect_err("it is no order");
                assert!(matches!(error, LabError::Process(_)), "{part}: {error}");
            }
        }
        let error = child_main("nothing", "{}").expect_err("it is no part");
        assert!(error.to_string().contains("\"nothing\""), "{error}");
    }

    #[test]
    fn every_part_has_a_name_of_its_own() {
        for (at, (part, _)) in PARTS.iter().enumerate() {
            assert!(PARTS[..at].iter().all(|(other, _)| other != part));
        }
    }
}
