//! Bindings by connections on which both sides send requests.

use std::rc::Rc;

use chronorb_cdr::TextForm;
use chronorb_giop::Version;

use super::BINDINGS;
use crate::client::connection::{ChannelKind, ClientConnection, ConnectionKey, call_back};
use crate::object::Object;
use crate::profile::Profile;
use crate::rtcorba::policies::Effective;

/// Makes the connection of a key bidirectional if the policies ask for that. If the address is a
/// listen point of a client, returns the connection by which the client is called back.
#[cold]
pub(super) fn bidirectional(
    target: &Object,
    key: &mut ConnectionKey,
    profile: &Profile,
    effective: &Effective,
    text: (TextForm, Option<[u8; 12]>),
) -> Option<Rc<ClientConnection>> {
    let core = target.core();
    let config = &core.config.bidirectional;
    let protocol = core.protocols.of_way(&key.way);
    let is_tcp = protocol.is_some_and(|protocol| matches!(protocol.scheme(), "iiop" | "ssliop"));
    if !is_tcp || profile.version < Version::V1_2 {
        return None;
    }
    let is_present = BINDINGS.with_borrow(|all| {
        let present = all.connections.get(key);
        present.is_some_and(|connection| !connection.is_closed())
    });
    let claimant = target.claimant();
    // A client's address never replaces a connection that this ORB has made. A claim replaces none,
    // because it counts for references that arrived on its connection.
    if config.accepts() && key.owner.is_none() && (!is_present || claimant.is_some()) {
        let mut by_client = key.clone();
        by_client.kind = ChannelKind::Bidirectional;
        if let Ok(Some(connection)) = call_back(core, &by_client, text, claimant) {
            return Some(Rc::new(connection));
        }
    }
    if config.offers() && effective.is_bidirectional && core.bidirectional.pool().is_some() {
        key.kind = ChannelKind::Bidirectional;
    }
    None
}
