//! The synchronisation primitives of the modules that the model checker runs: those of the
//! standard library and of this crate, or loom's under `cfg(loom)`.

#[cfg(loom)]
pub(crate) use loom::{cell::UnsafeCell, sync::atomic, thread_local};
#[cfg(not(loom))]
pub(crate) use {crate::sync::pi_mutex::PiMutex as Mutex, core::sync::atomic, std::thread_local};

/// `core::cell::UnsafeCell` with the interface of loom's.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// loom's mutex with the interface of [`PiMutex`](crate::PiMutex).
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("a panic ends the model")
    }
}

/// A function that is `const`, but for the model checker, whose primitives are made at run time.
macro_rules! const_but_for_loom {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident() -> $result:ty $body:block) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $visibility const fn $name() -> $result $body

        #[cfg(loom)]
        $(#[$meta])*
        $visibility fn $name() -> $result $body
    };
}

pub(crate) use const_but_for_loom;
