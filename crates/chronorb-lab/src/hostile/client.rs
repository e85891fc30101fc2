//! The legitimate client, and new clients that come while it calls.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use chronorb_rt::{Monotonic, sleep_until};

use super::messages::{self, HEADER};
use super::order::{AttackCalls, Attempts, PhaseRun, Target};
use super::plan::HostilePlan;
use super::victim::orb;
use crate::error::LabError;
use crate::idl::hostile::Victim;
use crate::process::{self, Parent, Ready};
use crate::schedule::Window;
use crate::stats::Record;

/// Calls as the parent says, phase by phase. The process ends at once when standard input ends
/// before that.
pub(super) fn call(target: &Target, plan: &HostilePlan) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    let orb = orb()?;
    let victim = orb
        .string_to_object(&target.reference)
        .and_then(|object| Victim::narrow(&object.with_timeout(plan.timeout)))
        .map_err(LabError::work("finding the object"))?
        .ok_or_else(|| LabError::work("finding the object")("it is of another type"))?;
    let request = messages::store(&target.key, plan.newcomer_octets as usize);
    let warm_up = (0..WARM_UP_CALLS).try_for_each(|value| victim.ping(value).map(drop));
    warm_up.map_err(LabError::work("calling the server"))?;
    process::tell(&Ready {})?;
    while let Some(run) = parent.hear::<Option<PhaseRun>>()? {
        let window = run.window();
        process::tell(&thread::scope(|scope| {
            let come = || newcomer(target.address, &request, plan.timeout).is_ok();
            let newcomers = scope.spawn(move || repeat(window, plan.newcomer_period, come));
            AttackCalls {
                calls: repeat(window, plan.period, || victim.ping(VALUE) == Ok(VALUE)),
                newcomers: newcomers.join().expect("new clients do not panic"),
            }
        }))?;
    }
    Ok(())
}

/// Calls at multiples of a period, except for those at which a call is still under way. Latencies
/// count from when a call was due.
fn repeat(window: Window, period: Duration, mut call: impl FnMut() -> bool) -> Attempts {
    let (mut answered, mut failed) = (Record::new(), 0);
    let mut due = window.start;
    while due.since(window.start) < window.length {
        sleep_until(due);
        let succeeds = call();
        let end = Monotonic::now();
        if succeeds {
            answered.add(due.since(window.start), end.since(due));
        } else {
            failed += 1;
        }
        while due < end {
            due = due + period;
        }
    }
    Attempts { answered, failed }
}

/// Connects, sends a request, and waits until all of its reply is there.
fn newcomer(address: SocketAddr, request: &[u8], timeout: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_write_timeout(Some(timeout))?;
    stream.set_read_timeout(Some(timeout))?;
    stream.write_all(request)?;
    read_reply(&mut stream)
}

/// Reads a reply without an exception.
pub(super) fn read_reply(stream: &mut impl Read) -> io::Result<()> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header)?;
    let size = header[8..].try_into().unwrap_or_default();
    let size = match header[6] & 1 {
        1 => u32::from_le_bytes(size),
        _ => u32::from_be_bytes(size),
    };
    let mut body = vec![0; size.min(LONGEST_REPLY) as usize];
    stream.read_exact(&mut body)?;
    // The identifier of the request, and the status of the reply.
    let is_normal = header[7] == REPLY && body.get(4..8) == Some(&[0; 4]);
    if is_normal {
        Ok(())
    } else {
        Err(io::Error::other("it is not a reply without an exception"))
    }
}

const REPLY: u8 = 1;
const LONGEST_REPLY: u32 = 64 * 1024;
const VALUE: i32 = 42;
/// Enough to have the code and stack in memory on both sides.
const WARM_UP_CALLS: i32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reply_without_an_exception_counts() {
        let reply = |message_type, status: u32| {
            let mut octets = vec![b'G', b'I', b'O', b'P', 1, 2, 1, message_type];
            octets.extend([12_u32, 7, status, 0].map(u32::to_le_bytes).as_flattened());
            read_reply(&mut &octets[..]).is_ok()
        };
        assert!(reply(1, 0));
        assert!(!reply(1, 2), "a system exception");
        assert!(!reply(6, 0), "an error");
        assert!(read_reply(&mut &b"GIOP"[..]).is_err());
    }

    #[test]
    fn calls_that_fail_are_counted_apart() {
        let window = Window {
            start: Monotonic::now(),
            length: Duration::from_millis(4),
        };
        let mut calls = 0;
        let Attempts { answered, failed } = repeat(window, Duration::from_millis(1), || {
            calls += 1;
            calls % 2 == 0
        });
        assert_eq!(answered.calls() + failed, calls);
        assert_eq!(failed, calls.div_ceil(2));
    }
}
