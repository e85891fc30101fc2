//! The clients that call the server with two lanes.

use super::log::CallLog;
use super::order::{ClientOrder, FailureKind};
use super::plan::EnduranceLoad;
use super::server::{HIGH, LOW, orb};
use super::{events, names};
use crate::bench::priority;
use crate::bench::work::set_priority;
use crate::error::LabError;
use crate::idl::endurance::Echo;
use crate::process::{self, Parent, Ready};

/// Calls until the parent says that it is over. The process ends at once when standard input ends
/// before that.
pub(super) fn run(order: &ClientOrder) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    let orb = orb(|config| {
        config.request_timeout = order.plan.timeout;
        if order.load == EnduranceLoad::Events {
            chronorb_rtec::keep_order(config);
        }
    })?;
    let object = orb.string_to_object(&order.reference);
    let object = object.map_err(LabError::work("finding the server"))?;
    process::tell(&Ready {})?;
    let mut log = CallLog::new(parent, order.plan.timeout);
    match order.load {
        EnduranceLoad::UrgentCalls | EnduranceLoad::Calls => {
            let of = match order.load {
                EnduranceLoad::Calls => LOW,
                _ => HIGH,
            };
            set_priority(&orb, priority(of))?;
            call(&Echo::unchecked_narrow(&object), &mut log)
        }
        EnduranceLoad::Asynchronous => {
            call_asynchronously(&Echo::unchecked_narrow(&object), &mut log)
        }
        EnduranceLoad::Names => names::run(order, &orb, &object, &mut log),
        EnduranceLoad::Events => events::run(order, &orb, &object, &mut log),
    }
}

fn call(echo: &Echo, log: &mut CallLog) -> Result<(), LabError> {
    let mut number = 0_u32;
    while !log.is_over() {
        number = number.wrapping_add(1);
        let answer = log.call("repeat", || echo.repeat(number));
        check(log, number, answer);
        log.report(&[])?;
    }
    log.conclude(&[])
}

/// Has several calls under way, and takes their results in turns from the first and from the last.
fn call_asynchronously(echo: &Echo, log: &mut CallLog) -> Result<(), LabError> {
    let mut number = 0_u32;
    while !log.is_over() {
        let mut pending = Vec::new();
        for _ in 0..AT_A_TIME {
            number = number.wrapping_add(1);
            let begun = log.call("begin_repeat", || echo.begin_repeat(number));
            pending.extend(begun.map(|reply| (number, reply)));
        }
        if (number / AT_A_TIME).is_multiple_of(2) {
            pending.reverse();
        }
        for (number, reply) in pending {
            let answer = log.call("the reply of repeat", || reply.wait());
            check(log, number, answer);
        }
        log.report(&[])?;
    }
    log.conclude(&[])
}

fn check(log: &mut CallLog, number: u32, answer: Option<u32>) {
    if let Some(answer) = answer.filter(|answer| *answer != number) {
        log.fail(
            FailureKind::Wrong,
            format!("{number} came back as {answer}"),
        );
    }
}

/// The calls that are under way at the same time.
const AT_A_TIME: u32 = 8;
