//! Who takes in packets on a host of a test network.

use std::io;

use chronorb_rio::network::{Host, Network, Reception};
use chronorb_rt::Scheduling;

use crate::contest::Cpus;

/// Has what comes to the server's host taken in on the server's CPU, before all that computes there, as a network card would
/// interrupt it. To be called when the server listens. What the kernel's network has first is taken in there anyway.
pub(crate) fn take_in<'a>(
    network: &'a Network,
    cpus: &Cpus,
    real_time: bool,
) -> io::Result<Option<Reception<'a>>> {
    let scheduling = match real_time {
        true => Scheduling::fifo(INTERRUPT),
        false => Scheduling::OTHER,
    };
    let taken = cpus
        .of_server()
        .map(|cpu| network.host(Host::B).take_in(cpu, scheduling));
    taken.transpose()
}

/// Above all threads of experiments.
const INTERRUPT: u8 = 95;
