//! The harness of the experiments: servers, clients, and the systems that are compared.
//!
//! Every server and client is a process of its own. `ServerSpec` and `ClientSpec` describe those
//! of the ORB, `server` and `client` run them; `with_callers` has the threads of a client call at
//! once. A `Fleet` is a server of one of several systems, with its clients. All clients make their
//! calls in `drive`, and check every reply. The systems are chronorb (`orb`), raw sockets, shared
//! memory and TLS that move as many octets as its messages have (`raw`, `epoll`, `tap`), and
//! omniORB, whose programs are compiled if it is installed (`omniorb`), and exchange the same
//! lines:
//!
//! | child | sends | receives |
//! |---|---|---|
//! | server | its references; in a fleet, reports of arrived messages | in a fleet, orders to report; the end of its input, on which it ends |
//! | client | `Ready` when it is connected; the calls of each run or batch | each run or batch; at last, nothing, on which it ends |
//! | idle clients | `Ready` when all are connected | the end of its input, on which it ends |

mod callers;
pub(crate) mod certificates;
mod client;
pub(crate) mod drive;
mod epoll;
mod fleet;
mod idle_clients;
mod omniorb;
mod oneway;
pub(crate) mod orb;
mod order;
mod place;
mod raw;
mod server;
mod tap;
mod turns;
pub(crate) mod work;

use crate::error::LabError;
use crate::process::{self, Parent};

pub(crate) use callers::with_callers;
pub(crate) use certificates::Certificates;
pub(crate) use client::{CLIENT, ClientSpec, MeasuredCalls, Pace, PacedRun, client_main};
pub(crate) use fleet::Fleet;
pub(crate) use idle_clients::{IDLE_CLIENTS, IdleClients, idle_clients_main};
pub use omniorb::{OmniOrb, Programs};
pub(crate) use orb::try_out;
#[cfg(test)]
pub(crate) use order::BatchTimes;
pub(crate) use order::{Arrivals, Medium, OrbSettings, RawServerMode};
pub use order::{Operation, Sizes, Waits};
pub use place::{CallScheduling, Placement};
pub(crate) use place::{Cpus, allow_connections, allow_files, check_permitted};
pub(crate) use server::{
    LOOPBACK, Model, OBJECT, ObjectReferences, ObjectSpec, PoolSpec, SERVER, ServantSpec,
    ServerSpec, TRACED, options, orb as start_orb, orb_arguments, priority, real_time_options,
    serve, server_main,
};
pub(crate) use tap::{TapResult, tap, tap_group, tap_with};
pub(crate) use turns::take_turns;

use order::{System, SystemClientOrder, SystemServerOrder};

/// Runs a server of a system.
///
/// # Errors
///
/// [`LabError::Process`] if the order cannot be decoded, otherwise the failure of the server.
pub(crate) fn system_server_main(order: &str) -> Result<(), LabError> {
    let order: SystemServerOrder = process::order(order)?;
    place::schedule_this_thread(order.scheduled)?;
    match order.system {
        System::Orb { settings, waits } => orb::serve(&settings, waits, order.scheduled),
        System::Raw {
            medium,
            how,
            exchange,
        } => match how {
            RawServerMode::Epoll { threads } => epoll::serve(exchange, threads),
            RawServerMode::Threads(waits) => raw::serve(&medium, exchange, waits),
        },
    }
}

/// Runs a client of a system.
///
/// # Errors
///
/// [`LabError::Process`] if the order cannot be decoded, otherwise the failure of a call.
pub(crate) fn system_client_main(order: &str) -> Result<(), LabError> {
    let order: SystemClientOrder = process::order(order)?;
    place::schedule_this_thread(order.scheduled)?;
    let parent = Parent::or_exit();
    let (address, waits) = (&order.address, order.system.waits());
    match &order.system {
        System::Orb { settings, .. } => {
            let orb = orb::client(waits, &settings.client)?;
            let connect = || orb::Calls::paced(&orb, address, order.operation, waits);
            drive::batches(&parent, order.threads, connect)
        }
        System::Raw {
            medium, exchange, ..
        } => {
            let connect = || raw::RawCalls::connect(medium, address, waits, *exchange);
            drive::batches(&parent, order.threads, connect)
        }
    }
}

/// The part of a process that is a server of a system.
pub(crate) const SYSTEM_SERVER: &str = "system-server";
/// The part of a process that is a client of a system.
pub(crate) const SYSTEM_CLIENT: &str = "system-client";
