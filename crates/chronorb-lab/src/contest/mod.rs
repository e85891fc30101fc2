//! What `latency`, `protocols`, `throughput` and `peer` share: the same calls, on several systems, in turn.
//!
//! Every system has a server and clients in processes of their own. All clients make their calls in
//! `drive`, whatever they call, and check every answer. The systems are chronorb (`orb`), raw sockets, shared memory
//! and TLS that move as many octets as its messages have (`raw`, `epoll`, `tap`), and omniORB,
//! whose programs are compiled where it is installed (`omniorb`) and speak the same lines:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | where its objects are, and which messages have come | to report that (`oneway`); the end of its input: end |
//! | client | that it is connected, then what each batch took | for each batch, how many calls; at last, to end |
//! | crowd | that all its connections are there | the end of its input: end |

pub(crate) mod certificates;
mod company;
mod crowd;
pub(crate) mod drive;
mod epoll;
mod omniorb;
mod oneway;
pub(crate) mod orb;
mod order;
mod place;
mod raw;
mod tap;

use crate::error::LabError;
use crate::process::{self, Parent};

pub(crate) use certificates::Certificates;
pub(crate) use company::{Company, OrbSettings};
pub(crate) use crowd::Crowd;
pub use omniorb::{OmniOrb, Programs};
pub(crate) use orb::try_out;
pub(crate) use order::{Arrivals, Medium, RawServing};
pub use order::{Operation, Sizes, Waits};
pub(crate) use place::{Cpus, allow_files, check_permitted};
pub use place::{Placement, Scheduled};
pub(crate) use tap::{Tapped, tap, tap_group, tap_with};

use order::{ClientKind, ClientOrder, ServerKind, ServerOrder};

/// The hidden command for a server; its argument goes to [`server_main`].
pub const SERVER_COMMAND: &str = "contest-server";
/// The hidden command for a client; its argument goes to [`client_main`].
pub const CLIENT_COMMAND: &str = "contest-client";
/// The hidden command for many idle connections; its argument goes to [`crowd_main`].
pub const CROWD_COMMAND: &str = "contest-crowd";

/// Serves until the parent closes standard input.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, otherwise what the server met.
pub fn server_main(order: &str) -> Result<(), LabError> {
    let order: ServerOrder = process::order(order)?;
    place::schedule_this_thread(order.scheduled)?;
    match order.kind {
        ServerKind::Orb(serving) => orb::serve(&serving, order.scheduled),
        ServerKind::Raw {
            medium,
            how,
            exchange,
        } => match how {
            RawServing::Epoll { threads } => epoll::serve(exchange, threads),
            RawServing::Threads(waits) => raw::serve(&medium, exchange, waits),
        },
    }
}

/// Calls a server as the parent says, batch by batch. The process ends at once when standard input
/// ends before that.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, otherwise what a call met.
pub fn client_main(order: &str) -> Result<(), LabError> {
    let order: ClientOrder = process::order(order)?;
    place::schedule_this_thread(order.scheduled)?;
    let parent = Parent::listen(|| std::process::exit(ABANDONED));
    match &order.kind {
        ClientKind::Orb(calling) => {
            let orb = orb::client(calling.waits, &calling.options)?;
            let connect = || orb::Calls::connect(&orb, calling);
            drive::batches(&parent, order.threads, connect)
        }
        ClientKind::Raw(calling) => {
            drive::batches(&parent, order.threads, || raw::Calls::connect(calling))
        }
    }
}

/// Opens connections, uses each once, and keeps them until the parent closes standard input.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, otherwise what kept it from connecting.
pub fn crowd_main(order: &str) -> Result<(), LabError> {
    crowd::main(process::order(order)?)
}

/// The exit status of a client whose parent is gone.
const ABANDONED: i32 = 3;
