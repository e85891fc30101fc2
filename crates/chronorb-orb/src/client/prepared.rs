//! Requests up to their arguments, made once for each binding and operation.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::HEADER_LEN;

use super::binding::NumberHasher;
use crate::call::Operation;

/// The headers of requests by one binding, which differ in nothing but their ids.
#[derive(Default)]
pub(super) struct Prepared {
    requests: RefCell<HashMap<Name, Header, BuildHasherDefault<NumberHasher>>>,
}

struct Header {
    /// With the padding that a body needs.
    octets: Box<[u8]>,
    /// Where that begins.
    end: usize,
}

/// Where the name of an operation stands, and its length: names are constants.
type Name = (usize, usize);

impl Prepared {
    /// Writes the header of a request of GIOP 1.2, if it was kept, padded for a body. Returns where
    /// the padding begins.
    pub(super) fn write(
        &self,
        operation: &Operation,
        request_id: u32,
        frame: &mut Frame,
    ) -> Result<Option<usize>, CdrError> {
        let requests = self.requests.borrow();
        let Some(header) = requests.get(&name_of(operation)) else {
            return Ok(None);
        };
        frame.clear();
        frame.extend_from_slice(&header.octets)?;
        let id = &mut frame.as_mut_slice()[REQUEST_ID_AT..REQUEST_ID_AT + 4];
        id.copy_from_slice(&request_id.to_ne_bytes());
        Ok(Some(header.end))
    }

    /// Keeps such a header, which is in this machine's byte order.
    #[cold]
    #[allow(clippy::disallowed_methods, reason = "once for each operation")]
    pub(super) fn keep(&self, operation: &Operation, header: &Frame, end: usize) {
        let mut requests = self.requests.borrow_mut();
        if requests.len() < MAX_OPERATIONS {
            let octets = header.as_slice().into();
            requests.insert(name_of(operation), Header { octets, end });
        }
    }
}

fn name_of(operation: &Operation) -> Name {
    let name = operation.name;
    // One name can be that of a call with a reply and of one without.
    (
        name.as_ptr().addr(),
        name.len() * 2 + usize::from(operation.oneway),
    )
}

/// In GIOP 1.2 a request begins with its id.
const REQUEST_ID_AT: usize = HEADER_LEN;
/// Operations of one binding whose headers are kept.
const MAX_OPERATIONS: usize = 1024;
