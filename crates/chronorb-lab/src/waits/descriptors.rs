//! How many connections a process may have.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Sees to it that the process may have `connections` and what else it needs.
///
/// # Errors
/// Where the system permits fewer.
pub(super) fn allow(connections: u32) -> io::Result<()> {
    let needed = u64::from(connections) + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    let suffices = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if suffices(limit.current) {
        return Ok(());
    }
    if !suffices(limit.maximum) {
        return Err(io::Error::other(format!(
            "{needed} descriptors are needed: raise the limit (ulimit -Hn)"
        )));
    }
    let raised = Rlimit {
        current: Some(needed),
        ..limit
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}

/// What a process of the experiment has besides connections.
const OTHERS: u64 = 64;
