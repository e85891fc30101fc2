//! What the papers counted.

use serde::Serialize;

/// The lock operations for each request that were counted in an ORB.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Published {
    /// The ORB, as it was then.
    pub orb: &'static str,
    /// At the client.
    pub client: u32,
    /// At the server.
    pub server: u32,
}

/// User-level lock operations (`mutex_lock`, `mutex_unlock`) for each two-way request, on Solaris, with
/// one client of high priority and nine of low (RTAS 1998, Figure 13).
pub const PUBLISHED: [Published; 4] = [
    Published {
        orb: "MT-Orbix",
        client: 175,
        server: 599,
    },
    Published {
        orb: "miniCOOL",
        client: 94,
        server: 231,
    },
    Published {
        orb: "CORBAplus",
        client: 199,
        server: 216,
    },
    Published {
        orb: "TAO",
        client: 41,
        server: 100,
    },
];

/// Where [`PUBLISHED`] stands.
pub(super) const SOURCE: &str = "D. C. Schmidt, S. Mungee, S. Flores-Gaitan, A. Gokhale: Alleviating Priority Inversion and \
     Non-determinism in Real-time CORBA ORB Core Architectures, RTAS 1998, Figure 13 and the text before it";
