//! The lock operations that the papers counted.

use serde::Serialize;

/// The lock operations of an ORB for each request.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PublishedLocks {
    /// The ORB of that time.
    pub orb: &'static str,
    /// The lock operations of the client.
    pub client: u32,
    /// The lock operations of the server.
    pub server: u32,
}

/// User-level lock operations (`mutex_lock`, `mutex_unlock`) for each two-way request, on Solaris,
/// with one client of high priority and nine of low (RTAS 1998, Figure 13).
pub const PUBLISHED: [PublishedLocks; 4] = [
    PublishedLocks::of("MT-Orbix", 175, 599),
    PublishedLocks::of("miniCOOL", 94, 231),
    PublishedLocks::of("CORBAplus", 199, 216),
    PublishedLocks::of("TAO", 41, 100),
];

impl PublishedLocks {
    const fn of(orb: &'static str, client: u32, server: u32) -> Self {
        Self {
            orb,
            client,
            server,
        }
    }

    /// The lock operations of an ORB of the papers, in words.
    pub(super) fn words(orb: &str) -> String {
        let published = PUBLISHED.iter().find(|of| of.orb == orb);
        published.map_or_else(String::new, |of| {
            format!("client {}, server {}", of.client, of.server)
        })
    }
}

/// The source of [`PUBLISHED`].
pub(super) const SOURCE: &str = "D. C. Schmidt, S. Mungee, S. Flores-Gaitan, A. Gokhale: \
     Alleviating Priority Inversion and Non-determinism in Real-time CORBA ORB Core \
     Architectures, RTAS 1998, Figure 13 and the text before it";
