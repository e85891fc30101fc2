//! Proofs that a peer by datagrams receives at the address that it sends from.
//!
//! Anybody can send a datagram in another's name, so a server that answers it at length is an
//! amplifier. A two-way request of a peer without a proof is therefore not served. It is forwarded
//! to the same object by another key, which is a proof: a code of the peer's address, and the key
//! that the request had. A request with such a key proves the address of its connection. The server
//! keeps nothing for a peer without a proof, and no answer to it is longer than three times what it
//! has sent.
//!
//! ```text
//! 0        4                                    12
//! | C7 52 01 04 | authentication code of the address | key of the object …
//! ```

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};

use chronorb_giop::{
    Component, Ior, RequestHeader, ResponseFlags, SystemException, TAG_DIOP, TaggedProfile, Target,
    Version,
};
use chronorb_transport::{Address, Connection};
use rustix::net;

use super::at::At;
use super::connection::ServerConnection;
use super::lane::Lane;
use crate::call::ReplyWriter;
use crate::core::Core;
use crate::poa::{ObjectKey, forwarded_policies};
use crate::protocol::{AddressForm, ProfileParts};

/// The key of the object, of a key that may be a proof; in that case the connection is proved.
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

/// Looks at the target of a request, which may be a proof, and names the object instead. Writes the
/// answer to one that has to be sent again with a proof, and returns whether it has.
///
/// What is not answered at length needs no proof.
#[cold]
pub(super) fn forwards(
    core: &Core,
    at: At<'_>,
    header: &mut RequestHeader<'_>,
    size: u32,
    reply: &mut ReplyWriter<'_>,
) -> Result<bool, SystemException> {
    let Some(key) = header.target.key() else {
        return Ok(false);
    };
    let key = key_of(core, at.connection, key);
    header.target = Target::Key(key);
    if at.connection.is_proved() || header.response != ResponseFlags::SyncWithTarget {
        return Ok(false);
    }
    let Some(proof) = reference(core, at, key, size as usize) else {
        return Ok(false);
    };
    reply.location_forward(&proof)?;
    reply.finish();
    Ok(true)
}

/// The key of the object, of a key that may be a proof; nothing is proved by that.
pub(super) fn without_proof(key: &[u8]) -> &[u8] {
    split(key).map_or(key, |(_, rest)| rest)
}

fn split(key: &[u8]) -> Option<(&[u8; 8], &[u8])> {
    key.strip_prefix(&PROOF)?.split_first_chunk()
}

/// The reference that lets the peer of a connection prove its address; `None` where it has none to
/// prove.
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
        // What calls by the reference depend on: how text goes, and at which priorities.
        let code_sets = Component::CodeSets(core.config.code_sets()).tagged().ok()?;
        parts.components.push(code_sets);
        let policies = ObjectKey::parse(key).and_then(|key| forwarded_policies(core, &key));
        parts.components.extend(policies);
    }
    let form = AddressForm::HOST_AND_PORT;
    let mut data = form.encode(parts.clone()).ok()?;
    if data.len() + AROUND_PROFILE > AMPLIFICATION * request {
        // The peer gets to the object at least.
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

/// Whether an answer to a request of so many octets may go to a peer without a proof.
pub(super) fn may_be_answered(request: usize, answer: usize) -> bool {
    answer <= AMPLIFICATION * request
}

/// The authentication code of an address, by the key of this ORB.
///
/// The hash of the standard library is SipHash by a random key of the process, which nobody learns:
/// a pseudorandom function of 64 bits, made to be keyed so. Its algorithm may change with the
/// compiler, which does not matter, since no code outlives the process. A guess is right once in
/// 2⁶⁴, and each takes a datagram.
fn code_of(core: &Core, ip: IpAddr) -> [u8; 8] {
    core.server.address_codes.hash_one(ip).to_be_bytes()
}

/// The address that the peer has to prove; that of no other protocol can be forged by a datagram.
fn address_of(connection: &dyn Connection) -> Option<IpAddr> {
    let peer = net::getpeername(connection).ok().flatten()?;
    let peer = SocketAddr::try_from(peer).ok()?;
    Some(peer.ip().to_canonical())
}

/// The address by which the peer of a connection reaches the lane, as references tell it.
#[allow(clippy::disallowed_methods, reason = "once for each peer")]
fn way_here(lane: &Lane, connection: &dyn Connection) -> Option<Address> {
    let local = net::getsockname(connection).ok()?;
    let local = SocketAddr::try_from(local).ok()?;
    let here = Address::host(local.ip().to_canonical().to_string(), local.port());
    let by_datagrams = || {
        let ways = lane.published().map(|published| &published.way);
        ways.filter(|way| way.protocol == TAG_DIOP)
    };
    let is_here = by_datagrams().any(|way| way.address == here);
    // A server may be published by another address than its own.
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

/// How many times as long as its request an answer without a proof may be.
const AMPLIFICATION: usize = 3;
/// Octets of a reply with a reference around the data of its profile: the headers of message and
/// reply with their contexts, the type, the number of profiles, and the tag and length of this one.
const AROUND_PROFILE: usize = 72;
const PROOF: [u8; 4] = [0xc7, b'R', 1, 4];
