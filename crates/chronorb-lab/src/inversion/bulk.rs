//! Bulk data beside the calls: oneway messages for a lane that is less urgent than all others.

use chronorb::rtcorba::Priority;
use chronorb_rt::Monotonic;
use serde::{Deserialize, Serialize};

use super::client::CallSchedule;
use crate::bench::{real_time_options, start_orb};
use crate::error::LabError;
use crate::idl::peers::Clock;
use crate::process::{self, Parent, Ready};

/// Bulk data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkLoad {
    /// The computing steps of the servant for each block.
    pub(crate) steps: u32,
    /// Whether they are sent; otherwise there is only the lane for them.
    pub(crate) sends: bool,
}

/// The argument of the sender's process.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct BulkSender {
    /// The object that takes the blocks.
    pub(super) reference: String,
}

/// Runs the sender. It sends blocks without a pause as soon as it gets the schedule of the calls,
/// until no more of these are due, and reports the octets that it has sent meanwhile.
///
/// # Errors
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a message cannot be
/// sent.
pub(crate) fn bulk_main(order: &str) -> Result<(), LabError> {
    let order: BulkSender = process::order(order)?;
    let parent = Parent::or_exit();
    let orb = start_orb(&real_time_options(false))?;
    let finding = LabError::work("finding the object");
    let object = orb.string_to_object(&order.reference).map_err(&finding)?;
    let connected = object.validate_connection();
    connected.map_err(LabError::work("connecting to the server"))?;
    let sink = Clock::narrow(&object).map_err(&finding)?;
    let sink = sink.ok_or_else(|| LabError::work("finding the object")("it is no clock"))?;
    process::tell(&Ready {})?;
    let schedule: CallSchedule = parent.hear()?;
    let end = schedule.start_ns.saturating_add(schedule.length_ns);
    let block = vec![0x5a; BLOCK];
    let mut octets = 0;
    loop {
        let now = Monotonic::now().as_nanos();
        if now >= end {
            break;
        }
        let sent = sink.carry(0, &block);
        sent.map_err(LabError::work("sending bulk data"))?;
        if now >= schedule.start_ns {
            octets += BLOCK as u64;
        }
    }
    Ok(parent.conclude(&octets)?)
}

/// The part of a process that sends bulk data.
pub(crate) const BULK: &str = "inversion-bulk";
/// The priority of the lane for bulk data: that of ordinary threads.
pub(super) const LEAST: Priority = Priority::new(0).expect("not negative");
/// Octets of a block.
const BLOCK: usize = 8_000;
