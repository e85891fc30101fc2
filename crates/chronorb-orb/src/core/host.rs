//! The ORB to which decoded object references belong, and the bound on the memory that the
//! references of one message may take.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::any::Any;
use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::{Arc, Weak};

use chronorb_cdr::{CdrError, Decoder};

use super::Core;

/// The ORB of a decoder's object references, with the budget of one message at a time.
///
/// A reference takes several times as much memory as octets on the wire, so the bound on the size
/// of a message does not bound this memory. The references of one message may take
/// [`max_message_size`](crate::OrbConfig::max_message_size) bytes together.
#[derive(Debug)]
pub(crate) struct Host {
    core: HostCore,
    /// The bytes that the references of the present message take.
    taken: Cell<usize>,
    /// The number of the connection of the present message, if its client claims listen points.
    #[cfg(feature = "bidir")]
    claimant: Cell<Option<NonZeroU64>>,
}

#[derive(Debug)]
enum HostCore {
    Owned(Arc<Core>),
    Borrowed(Weak<Core>),
}

impl Host {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self::of(HostCore::Owned(core))
    }

    /// Makes a host that does not keep its ORB alive. Without the ORB no reference can be made.
    #[cold]
    #[inline(never)]
    pub(crate) fn borrowed(core: &Arc<Core>) -> Self {
        Self::of(HostCore::Borrowed(Arc::downgrade(core)))
    }

    fn of(core: HostCore) -> Self {
        Self {
            core,
            taken: Cell::new(0),
            #[cfg(feature = "bidir")]
            claimant: Cell::new(None),
        }
    }

    /// Whether it is the host of this ORB.
    #[inline]
    pub(crate) fn is_of(&self, core: &Arc<Core>) -> bool {
        let own = match &self.core {
            HostCore::Owned(own) => Arc::as_ptr(own),
            HostCore::Borrowed(own) => own.as_ptr(),
        };
        std::ptr::eq(own, Arc::as_ptr(core))
    }

    /// Returns the host for a new message, with its whole budget.
    #[inline]
    pub(crate) fn begin(&self) -> &dyn Any {
        self.taken.set(0);
        self
    }

    /// As [`begin`](Self::begin), for a request on a connection with this number if its client
    /// claims listen points.
    #[cfg_attr(not(feature = "bidir"), expect(unused_variables))]
    #[inline]
    pub(crate) fn begin_from(&self, claimant: Option<NonZeroU64>) -> &dyn Any {
        #[cfg(feature = "bidir")]
        self.claimant.set(claimant);
        self.begin()
    }

    /// Sets the number of the connection of the present message.
    #[cfg(feature = "bidir")]
    pub(crate) fn set_claimant(&self, claimant: Option<NonZeroU64>) {
        self.claimant.set(claimant);
    }

    fn claimant(&self) -> Option<NonZeroU64> {
        #[cfg(feature = "bidir")]
        return self.claimant.get();
        #[cfg(not(feature = "bidir"))]
        None
    }

    /// Returns the ORB of a decoder's references, and the number of the connection if its client
    /// claims listen points, after taking `octets` for the next reference from
    /// the budget of its message. Within the process there is no budget.
    ///
    /// # Errors
    /// [`CdrError::TooManyReferences`] where the budget is spent; [`CdrError::BadReference`] where
    /// the decoder belongs to no ORB, or to one that has ended.
    pub(crate) fn admit(
        d: &Decoder<'_>,
        octets: usize,
    ) -> Result<(Arc<Core>, Option<NonZeroU64>), CdrError> {
        let host = d.host().ok_or(CdrError::BadReference)?;
        let Some(this) = host.downcast_ref::<Self>() else {
            let core = host.downcast_ref::<Arc<Core>>();
            return Ok((core.cloned().ok_or(CdrError::BadReference)?, None));
        };
        let core = match &this.core {
            HostCore::Owned(core) => core.clone(),
            HostCore::Borrowed(core) => core.upgrade().ok_or(CdrError::BadReference)?,
        };
        let taken = this.taken.get().saturating_add(octets);
        if taken > core.config.max_message_size {
            return Err(CdrError::TooManyReferences);
        }
        this.taken.set(taken);
        Ok((core, this.claimant()))
    }
}
