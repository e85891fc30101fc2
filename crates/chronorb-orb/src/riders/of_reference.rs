//! The service context that an application has given a reference.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use super::{Contexts, Departure, Rider};

pub(crate) struct OfReference;

impl Rider for OfReference {
    /// Never found in a request: the application chooses the identifier.
    const CONTEXT: u32 = u32::MAX;
    type Call = ();
    type Request = ();
    type Guard = ();

    fn depart<'a>((): &mut (), departure: &Departure<'a>, contexts: &mut Contexts<'a>) {
        if let Some(context) = departure.of_reference {
            contexts.add(context.id, context.data);
        }
    }
}
