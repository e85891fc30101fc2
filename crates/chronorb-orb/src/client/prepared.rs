//! Requests up to their arguments, made once for each binding and operation.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::{MessageProtocol, Protocol};

use super::binding::NumberHasher;
use crate::call::Operation;

/// The headers of requests by one binding, which differ in nothing but their ids.
///
/// Memory for some is taken with the binding, so that after an explicit binding the first call of
/// an operation allocates nothing either.
pub(super) struct Prepared(RefCell<Headers>);

struct Headers {
    by_name: HashMap<Name, Header, BuildHasherDefault<NumberHasher>>,
    octets: Vec<u8>,
}

/// Where the name of an operation stands, its length, and what else makes another header: names are constants.
type Name = (usize, usize);

/// Where a header is among the octets, with the padding that a body needs.
struct Header {
    place: Range<usize>,
    /// Where the padding begins in it.
    end: usize,
    /// Where the request's id is in it.
    id_at: usize,
}

impl Prepared {
    #[allow(clippy::disallowed_methods, reason = "once for each binding")]
    pub(super) fn new() -> Self {
        Self(RefCell::new(Headers {
            by_name: HashMap::with_capacity_and_hasher(USUAL_OPERATIONS, <_>::default()),
            octets: Vec::with_capacity(USUAL_OPERATIONS * USUAL_HEADER),
        }))
    }

    /// Writes the header of a request of GIOP 1.2, or of GIOPlite where it can be, if it was kept, padded
    /// for a body. Returns where the padding begins.
    pub(super) fn write(
        &self,
        operation: &Operation,
        is_lite: bool,
        request_id: u32,
        frame: &mut Frame,
    ) -> Result<Option<usize>, CdrError> {
        let headers = self.0.borrow();
        let Some(header) = headers.by_name.get(&name_of(operation, is_lite)) else {
            return Ok(None);
        };
        frame.clear();
        frame.extend_from_slice(&headers.octets[header.place.clone()])?;
        let id = &mut frame.as_mut_slice()[header.id_at..header.id_at + 4];
        id.copy_from_slice(&request_id.to_ne_bytes());
        Ok(Some(header.end))
    }

    /// Keeps such a header, which is in this machine's byte order.
    #[cold]
    pub(super) fn keep(&self, operation: &Operation, is_lite: bool, header: &Frame, end: usize) {
        let message = Protocol::read_header(header.as_slice());
        let id_at = message
            .ok()
            .and_then(|message| message.protocol.request_id_at());
        let Some(id_at) = id_at else {
            return;
        };
        let mut headers = self.0.borrow_mut();
        let name = name_of(operation, is_lite);
        if headers.by_name.len() >= MAX_OPERATIONS || headers.by_name.contains_key(&name) {
            return;
        }
        let start = headers.octets.len();
        headers.octets.extend_from_slice(header.as_slice());
        let place = start..headers.octets.len();
        headers.by_name.insert(name, Header { place, end, id_at });
    }
}

fn name_of(operation: &Operation, is_lite: bool) -> Name {
    let name = operation.name;
    // One name can be that of a call with a reply and of one without.
    (
        name.as_ptr().addr(),
        name.len() * 4 + usize::from(is_lite) * 2 + usize::from(operation.oneway),
    )
}

/// Operations of one binding whose headers are kept.
const MAX_OPERATIONS: usize = 1024;
/// Operations of one binding for which memory is there from the start.
const USUAL_OPERATIONS: usize = 8;
const USUAL_HEADER: usize = 128;
