//! The places for asynchronous calls that are under way: as many as there may be.

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::PiMutex;

use super::slot::Slot;
use crate::core::Core;

/// The slots of an ORB, made with its first asynchronous call.
pub(super) struct Slots {
    /// In boxes, so that lending one moves a pointer.
    #[allow(clippy::vec_box)]
    free: PiMutex<Vec<Box<Slot>>>,
    /// Held while an attendant is made.
    pub(super) making: PiMutex<()>,
}

impl Slots {
    fn new(number: usize) -> Self {
        let free = (0..number).map(|_| Box::default()).collect();
        Self {
            free: PiMutex::new(free),
            making: PiMutex::default(),
        }
    }

    pub(super) fn of(core: &Core) -> &Self {
        let slots = core
            .slots
            .get_or_init(|| Box::new(Self::new(core.config.max_pending)));
        slots.downcast_ref().expect("nothing else is put there")
    }

    /// A slot that is free.
    ///
    /// # Errors
    /// `TRANSIENT` where there is none: it may be tried again when a call has come to its end.
    pub(super) fn take(&self) -> Result<Box<Slot>, SystemException> {
        self.free.lock().pop().ok_or(TOO_MANY_PENDING)
    }

    /// Takes back a slot, whose call has come to its end.
    pub(super) fn put_back(&self, slot: Box<Slot>) {
        self.free.lock().push(slot);
    }
}

const TOO_MANY_PENDING: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::TOO_MANY_PENDING);
