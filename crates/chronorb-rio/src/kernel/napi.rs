//! The threads by which the kernel takes in what comes by an interface, in place of soft
//! interrupts.

use std::io;

use chronorb_net::{Undo, napi_threads_of, read_threaded, write_threaded};
use chronorb_rt::{Scheduling, scheduling_of_process, set_scheduling_of_process};

use super::KernelError;
use crate::driver::Link;
use crate::plan::{MAX_NATIVE, Policy, Reservation};

/// A thread of the kernel that takes in packets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NapiThread {
    /// Its name, `napi/INTERFACE-NUMBER`.
    pub name: String,
    /// Its number.
    pub process: u32,
    /// How it is scheduled now.
    pub scheduling: Scheduling,
}

/// Has threads take in what comes by the interface, before those of all classes. Where the plan has
/// no real-time class, or the driver of the interface has no such threads, there are none.
pub(super) fn prioritize(
    link: &Link,
    classes: &[Reservation],
    tell: &mut dyn FnMut(Undo) -> Result<(), KernelError>,
) -> Result<Vec<NapiThread>, KernelError> {
    let is_fixed = |class: &&Reservation| matches!(class.policy, Policy::Fifo | Policy::RoundRobin);
    let urgent = classes
        .iter()
        .filter(is_fixed)
        .map(|class| class.priority)
        .max();
    let Some(urgent) = urgent else {
        return Ok(Vec::new());
    };
    let scheduling = Scheduling::fifo((urgent + 1).min(MAX_NATIVE));
    let before = napi_threads_of(&link.name).map_err(KernelError::Threads)?;
    let was = read_threaded(&link.name, link.index).map_err(KernelError::Threads)?;
    if was == 0 {
        tell(Undo::Threaded {
            index: link.index,
            was,
            interface: link.name.clone(),
        })?;
        match write_threaded(&link.name, link.index, 1) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(Vec::new()),
            written => written.map_err(KernelError::Threads)?,
        }
    }
    let mut threads = Vec::new();
    for (process, name) in napi_threads_of(&link.name).map_err(KernelError::Threads)? {
        let is_new = !before.iter().any(|(its, _)| *its == process);
        // In another network namespace there may be an interface of the same name.
        if was == 0 && !is_new {
            continue;
        }
        if !is_new {
            let its = scheduling_of_process(process).map_err(KernelError::Threads)?;
            tell(Undo::Scheduling {
                process,
                scheduling: its,
            })?;
        }
        set_scheduling_of_process(process, scheduling)
            .map_err(|error| KernelError::Threads(io::Error::other(error)))?;
        threads.push(NapiThread {
            name,
            process,
            scheduling,
        });
    }
    Ok(threads)
}
