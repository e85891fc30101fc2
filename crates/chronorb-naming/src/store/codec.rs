//! Changes as octets: the body of a record. Numbers are little-endian, octets follow their length.

use std::sync::Arc;

use crate::change::{Binding, BindingKind, Change, Lease, Target};

const CREATE: u8 = 1;
const DESTROY: u8 = 2;
const BIND: u8 = 3;
const UNBIND: u8 = 4;

/// Flag of a binding that names are resolved through.
const IS_CONTEXT: u8 = 1;
/// Flag of a target that is a context of this server.
const IS_LOCAL: u8 = 2;
/// Flag of a binding with a lease.
const IS_LEASED: u8 = 4;

/// Appends a change to a body.
pub(super) fn write(change: &Change, body: &mut Vec<u8>) {
    match change {
        Change::CreateContext { context } => write_head(CREATE, *context, body),
        Change::DestroyContext { context } => write_head(DESTROY, *context, body),
        Change::Unbind { context, id, kind } => {
            write_head(UNBIND, *context, body);
            write_octets(id, body);
            write_octets(kind, body);
        }
        Change::Bind {
            context,
            id,
            kind,
            binding,
        } => {
            write_head(BIND, *context, body);
            write_octets(id, body);
            write_octets(kind, body);
            write_binding(binding, body);
        }
    }
}

fn write_head(tag: u8, context: u64, body: &mut Vec<u8>) {
    body.push(tag);
    body.extend(context.to_le_bytes());
}

/// Writes octets. A body has fewer than 2^32, so a length that does not fit makes it too long.
fn write_octets(octets: &[u8], body: &mut Vec<u8>) {
    let length = u32::try_from(octets.len()).unwrap_or(u32::MAX);
    body.extend(length.to_le_bytes());
    body.extend_from_slice(octets);
}

fn write_binding(binding: &Binding, body: &mut Vec<u8>) {
    let mut flags = 0;
    if binding.kind == BindingKind::Context {
        flags |= IS_CONTEXT;
    }
    if matches!(binding.target, Target::Context(_)) {
        flags |= IS_LOCAL;
    }
    if binding.lease.is_some() {
        flags |= IS_LEASED;
    }
    body.push(flags);
    match &binding.target {
        Target::Context(context) => body.extend(context.to_le_bytes()),
        Target::Reference(octets) => write_octets(octets, body),
    }
    if let Some(lease) = binding.lease {
        body.extend(lease.id.to_le_bytes());
        body.extend(lease.time_to_live.to_le_bytes());
    }
}

/// Reads the change at the beginning of a body and moves the body behind it; `None` if it is
/// malformed.
pub(super) fn read(body: &mut &[u8]) -> Option<Change> {
    let [tag] = take(body)?;
    let context = u64::from_le_bytes(take(body)?);
    Some(match tag {
        CREATE => Change::CreateContext { context },
        DESTROY => Change::DestroyContext { context },
        UNBIND => Change::Unbind {
            context,
            id: read_octets(body)?.to_vec(),
            kind: read_octets(body)?.to_vec(),
        },
        BIND => Change::Bind {
            context,
            id: read_octets(body)?.to_vec(),
            kind: read_octets(body)?.to_vec(),
            binding: read_binding(body)?,
        },
        _ => return None,
    })
}

fn read_binding(body: &mut &[u8]) -> Option<Binding> {
    let [flags] = take(body)?;
    if flags & !(IS_CONTEXT | IS_LOCAL | IS_LEASED) != 0 {
        return None;
    }
    let kind = if flags & IS_CONTEXT == 0 {
        BindingKind::Object
    } else {
        BindingKind::Context
    };
    let target = if flags & IS_LOCAL == 0 {
        Target::Reference(Arc::from(read_octets(body)?))
    } else {
        Target::Context(u64::from_le_bytes(take(body)?))
    };
    let lease = if flags & IS_LEASED == 0 {
        None
    } else {
        Some(Lease {
            id: u64::from_le_bytes(take(body)?),
            time_to_live: u32::from_le_bytes(take(body)?),
        })
    };
    Some(Binding {
        kind,
        target,
        lease,
    })
}

fn read_octets<'b>(body: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = u32::from_le_bytes(take(body)?) as usize;
    let (octets, rest) = body.split_at_checked(length)?;
    *body = rest;
    Some(octets)
}

fn take<const N: usize>(body: &mut &[u8]) -> Option<[u8; N]> {
    let (octets, rest) = body.split_first_chunk()?;
    *body = rest;
    Some(*octets)
}
