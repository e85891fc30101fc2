//! Letting requests in, and the end of a POA.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::Deadline;

use super::adapter::{ALIVE, DESTROYED, DESTROYING, GUARDED, INITIALISING};
use super::{Poa, WaitError, is_in_upcall, key};
use crate::failure::{ADAPTER_DESTROYED, DISCARDED};

impl Poa {
    /// Ends the POA, its children and their objects. Requests in progress are finished, and no
    /// others come in: they are answered with `TRANSIENT` (OMG minor 4) until the end is complete,
    /// and with `OBJECT_NOT_EXIST` after it. With `etherealize_objects` servants are given back to
    /// the [`ServantActivator`](super::ServantActivator), if there is one; else they are dropped.
    /// With `wait_for_completion` all this has happened when this returns, but for servants that
    /// the main thread has to give back: it does so when it next looks.
    ///
    /// # Errors
    /// [`WaitError`] if a servant of the same ORB waits. Nothing was done then.
    pub fn destroy(
        &self,
        etherealize_objects: bool,
        wait_for_completion: bool,
    ) -> Result<(), WaitError> {
        if wait_for_completion && is_in_upcall(self.core()) {
            let kind = SystemExceptionKind::BadInvOrder;
            return Err(SystemException::no(kind, minor::WOULD_DEADLOCK).into());
        }
        self.begin_destruction(etherealize_objects);
        while wait_for_completion && self.inner.state.get() == DESTROYING {
            let patience = Deadline::after(self.core().config.hold_timeout);
            self.inner.state.wait_while(DESTROYING, patience);
        }
        Ok(())
    }

    /// Whether a request may go on at once, whatever its key is like: neither manager nor POA make
    /// it wait, and keys are not authenticated.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.manager().is_active() && self.inner.state.get() == ALIVE
    }

    /// Whether a reply may be sent before its request leaves the POA: the next request of the
    /// client has no turn to wait for, and no servant manager gets the servant back.
    #[inline]
    pub(crate) fn ends_after_reply(&self) -> bool {
        !self.is_serial() && !self.policies().uses_servant_manager()
    }

    /// Whether a request may go on at once, after its key and its authorizer were asked.
    pub(crate) fn is_guarded(&self) -> bool {
        self.manager().is_active() && self.inner.state.get() == GUARDED
    }

    /// Whether the keys of this POA are authenticated, and this one is not.
    pub(crate) fn is_forged(&self, key: &[u8]) -> bool {
        self.policies().authenticates_keys()
            && !key::is_authentic(key, &self.core().poas.key_codes, self.is_persistent())
    }

    /// Admits the requests that waited for the adapter activator.
    pub(super) fn end_initialisation(&self) {
        // Under the lock that setting an authorizer takes.
        let _writing = self.inner.writing.lock();
        let open = self.open_state();
        let _ = self.inner.state.compare_set(INITIALISING, open);
    }

    /// Whether its manager holds requests.
    pub(crate) fn is_held(&self) -> bool {
        self.manager().is_holding()
    }

    /// Waits until a request may go on. The caller is not counted as being in the POA meanwhile.
    #[cold]
    pub(crate) fn wait_until_open(&self, hold: Duration) -> Result<(), SystemException> {
        let deadline = Deadline::after(hold);
        self.manager().admit(hold)?;
        match self.inner.state.wait_while(INITIALISING, deadline) {
            // The activator of an adapter may call its objects.
            ALIVE | GUARDED => Ok(()),
            INITIALISING => Err(DISCARDED),
            _ => Err(ADAPTER_DESTROYED),
        }
    }

    pub(super) fn is_destroyed(&self) -> bool {
        self.inner.state.get() == DESTROYED
    }

    /// Whether requests are in it.
    pub(super) fn is_busy(&self) -> bool {
        self.core().poas.users(self.place()) > 0
    }

    /// Ends it and its children, as far as no request is in them.
    pub(super) fn begin_destruction(&self, etherealize_objects: bool) {
        let state = &self.inner.state;
        let mut before = state.get();
        loop {
            if before >= DESTROYING {
                return;
            }
            match state.compare_set(before, DESTROYING) {
                Ok(()) => break,
                Err(now) => before = now,
            }
        }
        if !etherealize_objects {
            self.inner.etherealizes.store(false, Ordering::Release);
        }
        for child in self.children() {
            child.begin_destruction(etherealize_objects);
        }
        self.core().poas.remove(self.place());
    }

    /// The last request has left it, or a child has ended. The last of all ends it.
    pub(super) fn release_hold(&self) {
        if self.inner.holds.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.complete_destruction();
        }
    }

    fn complete_destruction(&self) {
        // The waiters for the end must be woken, even if the application's code panics.
        let _ = catch_unwind(AssertUnwindSafe(|| self.deactivate_all()));
        #[cfg(feature = "miop")]
        self.leave_all_groups();
        self.forget_application();
        self.manager().remove(self.place());
        drop(self.inner.pool_use.lock().take());
        // The name is free when nothing of this POA is left that a successor could meet.
        if let Some(parent) = self.parent() {
            {
                let mut children = parent.inner.children.lock();
                if children.get(self.name()) == Some(self) {
                    children.remove(self.name());
                }
            }
            self.inner.state.set(DESTROYED);
            parent.release_hold();
        } else {
            self.inner.state.set(DESTROYED);
        }
    }
}
