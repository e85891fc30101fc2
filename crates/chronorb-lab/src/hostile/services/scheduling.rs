//! Attacks on a scheduling service.

use std::io;

use super::super::messages::{self, MessageOctets};
use super::assailant::Assailant;

/// A chain of operations, each of which calls the next and has as many rates as it may, with
/// periods of its own.
pub(super) fn operation_chains(a: &mut Assailant<'_>) -> io::Result<()> {
    let operations = a.count(250);
    register(a, operations, RATES)?;
    a.call(a.root, "compute_scheduling", levels)?;
    Ok(())
}

/// The set of all operations, again and again.
pub(super) fn operation_sets(a: &mut Assailant<'_>) -> io::Result<()> {
    let operations = a.count(1_000);
    register(a, operations, 1)?;
    for _ in 0..a.size(100) {
        a.call(a.root, "get_rt_info_set", |_| {})?;
    }
    Ok(())
}

/// The schedule of the same operations, computed again and again without waiting.
pub(super) fn recomputing(a: &mut Assailant<'_>) -> io::Result<()> {
    let operations = a.size(100);
    let first = register(a, operations, RATES)?;
    let request = messages::request(a.root, "compute_scheduling", levels);
    let count = a.count(100);
    for number in 0..count {
        // Each one follows a change, so that none has the schedule of the one before.
        set(a, first, u32::try_from(number).unwrap_or(0) + 1)?;
        a.send(&request)?;
        a.hear()?;
    }
    Ok(())
}

/// Registers a chain of operations. Returns the handle of the first.
fn register(a: &mut Assailant<'_>, count: usize, rates: u32) -> io::Result<u32> {
    let mut first = None;
    let mut last: Option<u32> = None;
    let mut period = 0;
    for number in 0..count {
        let created = a.call(a.root, "create", |m| m.string(&format!("attack {number}")))?;
        let handle = created.number()?;
        for _ in 0..rates {
            period += 1;
            set(a, handle, period)?;
        }
        if let Some(last) = last {
            a.call(a.root, "add_dependency", |m| {
                m.u32(last);
                m.u32(handle);
                // One call, of two ways.
                m.u32(1);
                m.u32(1);
            })?;
        }
        first = first.or(Some(handle));
        last = Some(handle);
    }
    Ok(first.unwrap_or_default())
}

/// Adds a rate to an operation: a ten-thousandth of its period, in units of ms.
fn set(a: &mut Assailant<'_>, handle: u32, period: u32) -> io::Result<()> {
    let period = period.saturating_mul(10_000);
    a.call(a.root, "set", |m| {
        m.u32(handle);
        // A low criticality.
        m.u32(1);
        for _ in 0..3 {
            m.number(1_u64.to_le_bytes());
        }
        m.u32(period);
        // A low importance, no quantum, no threads, an operation.
        m.u32(1);
        m.number(0_u64.to_le_bytes());
        m.u32(0);
        m.u32(0);
    })?;
    Ok(())
}

/// The least and the greatest priority of a schedule.
fn levels(m: &mut MessageOctets) {
    m.u32(1);
    m.u32(99);
}

/// The rates of an operation that a service takes by default.
const RATES: u32 = 8;
