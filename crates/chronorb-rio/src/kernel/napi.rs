//! The kernel threads that receive packets of an interface instead of soft interrupts.

use std::io;

use chronorb_net::{Undo, napi_threads_of, read_threaded, write_threaded};
use chronorb_rt::{Scheduling, scheduling_of_process, set_scheduling_of_process};

use super::KernelError;
use crate::driver::Link;
use crate::plan::{MAX_NATIVE, Policy, Reservation};

/// A kernel thread that receives packets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NapiThread {
    /// The name, `napi/INTERFACE-NUMBER`.
    pub name: String,
    /// The process id.
    pub process: u32,
    /// The present scheduling.
    pub scheduling: Scheduling,
}

/// Makes threads receive the interface's packets, with a priority above those of all classes. Does
/// nothing if the plan has no real-time class, or the driver of the interface has no such threads.
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
        // Another network namespace may have an interface with the same name.
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
