//! Proofs that a peer by datagrams receives at the address that it sends from.
//!
//! A datagram can carry a forged source address, so a server that sends a long answer to it is an
//! amplifier. A two-way request of a peer without a proof is therefore not served. It is forwarded
//! to the same object under another key, which is the proof: an authentication code of the peer's
//! address, followed by the original key. A request with such a key proves the address of its
//! connection. The server keeps no state for a peer without a proof, and no answer to such a peer
//! is longer than three times its request.
//!
//! ```text
//! 0        4                                    12
//! | C7 52 01 04 | authentication code of the address | key of the object …
//! ```

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};

use chronorb_giop::{
    Component, Ior, RequestHeader, ResponseFlags, TAG_DIOP, TaggedProfile, Target, Version,
};
use chronorb_transport::{Address, Connection};
use rustix::net;

use super::at::At;
use super::connection::ServerConnection;
use super::lane::ServerLane;
use crate::core::Core;
use crate::poa::{ObjectKey, forwarded_policies};
use crate::protocol::{AddressForm, ProfileParts};

/// Returns the object key without a proof; a valid proof marks the connection as proved.
pub(super) fn key_of<'k>(core: &Core, connection: &ServerConnection, key: &'k [u8]) -> &'k [u8] {
    let Some((code, rest)) = split(key) else {
        return key;
    };
    if !connection.is_proved()
        && address_of(connection.transport()).is_some_and(|ip| code_of(core, ip) == *code)
    {
        connection.set_proved();
    }
    rest
}

/// Replaces a target key that carries a proof by the plain object key. Returns the reference to
/// which a request is forwarded that needs a proof and has none.
///
/// A request without a reply, or with a short one only, needs no proof.
#[cold]
pub(super) fn forward(
    core: &Core,
    at: At<'_>,
    header: &mut RequestHeader<'_>,
    size: u32,
) -> Option<Ior> {
    let key = key_of(core, at.connection, header.target.key()?);
    header.target = Target::Key(key);
    if at.connection.is_proved() || header.response != ResponseFlags::SyncWithTarget {
        return None;
    }
    reference(core, at, key, size as usize)
}

/// Returns the object key without a proof, and does not check the proof.
pub(super) fn without_proof(key: &[u8]) -> &[u8] {
    split(key).map_or(key, |(_, rest)| rest)
}

fn split(key: &[u8]) -> Option<(&[u8; 8], &[u8])> {
    key.strip_prefix(&PROOF)?.split_first_chunk()
}

/// The reference by which the peer of a connection can prove its address; `None` where the address
/// needs no proof.
#[cold]
pub(super) fn reference(core: &Core, at: At<'_>, key: &[u8], request: usize) -> Option<Ior> {
    let connection = at.connection;
    let Some(ip) = address_of(connection.transport()) else {
        connection.set_proved();
        return None;
    };
    let mut parts = ProfileParts {
        version: core.config.max_giop_version,
        address: way_here(at.lane, connection.transport())?,
        object_key: [&PROOF[..], &code_of(core, ip), key].concat(),
        components: Vec::new(),
    };
    if parts.version > Version::V1_0 {
        // Calls by the reference depend on these: the code sets and the priority model.
        let code_sets = Component::CodeSets(core.config.code_sets()).tagged().ok()?;
        parts.components.push(code_sets);
        let policies = ObjectKey::parse(key).and_then(|key| forwarded_policies(core, &key));
        parts.components.extend(policies);
    }
    let form = AddressForm::HOST_AND_PORT;
    let mut data = form.encode(parts.clone()).ok()?;
    if data.len() + AROUND_PROFILE > AMPLIFICATION * request {
        // A shorter reference still leads the peer to the object.
        parts.components.clear();
        data = form.encode(parts).ok()?;
    }
    Some(Ior {
        type_id: String::new(),
        profiles: Vec::from([TaggedProfile {
            tag: TAG_DIOP,
            data,
        }]),
    })
}

/// Whether an answer of this size, in octets, may go to a peer without a proof.
pub(super) fn may_be_answered(request: usize, answer: usize) -> bool {
    answer <= AMPLIFICATION * request
}

/// The authentication code of an address, by the key of this ORB.
///
/// The hash of the standard library is SipHash under a random key that never leaves the process:
/// a keyed pseudorandom function of 64 bits. Its algorithm may change with the compiler, which does
/// not matter because no code outlives the process. A guess succeeds with probability 2⁻⁶⁴, and
/// each guess costs a datagram.
fn code_of(core: &Core, ip: IpAddr) -> [u8; 8] {
    core.server().address_codes.hash_one(ip).to_be_bytes()
}

/// The address that the peer has to prove. Other protocols than DIOP do not allow a forged one.
fn address_of(connection: &dyn Connection) -> Option<IpAddr> {
    let peer = net::getpeername(connection).ok().flatten()?;
    let peer = SocketAddr::try_from(peer).ok()?;
    Some(peer.ip().to_canonical())
}

/// The address under which the peer of a connection reaches the lane, for use in references.
#[allow(clippy::disallowed_methods, reason = "once for each peer")]
fn way_here(lane: &ServerLane, connection: &dyn Connection) -> Option<Address> {
    let local = net::getsockname(connection).ok()?;
    let local = SocketAddr::try_from(local).ok()?;
    let here = Address::host(local.ip().to_canonical().to_string(), local.port());
    let by_datagrams = || {
        let ways = lane.published().map(|published| &published.way);
        ways.filter(|way| way.protocol == TAG_DIOP)
    };
    let is_here = by_datagrams().any(|way| way.address == here);
    // The server may be published under another address than its own.
    let mut others = by_datagrams().filter(|way| {
        way.address
            .as_host()
            .is_some_and(|(_, port)| port == local.port())
    });
    match others.next() {
        Some(other) if !is_here => Some(other.address.clone()),
        _ => Some(here),
    }
}

/// The greatest ratio of an answer without a proof to its request.
const AMPLIFICATION: usize = 3;
/// Octets of a reply with a reference around the data of its profile: the headers of message and
/// reply with their contexts, the type, the number of profiles, and the tag and length of this one.
const AROUND_PROFILE: usize = 72;
const PROOF: [u8; 4] = [0xc7, b'R', 1, 4];
