//! Memory that was removed from tables.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::alloc::{Layout, dealloc};

/// Memory that is freed on drop, without dropping its content.
pub(super) struct Memory {
    pub(super) start: NonNull<u8>,
    pub(super) layout: Layout,
    #[cfg(loom)]
    pub(super) end: unsafe fn(NonNull<u8>),
}

// SAFETY: the content is not used any more, and memory may be freed by any thread.
unsafe impl Send for Memory {}

#[cfg(not(loom))]
impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with the layout, and is owned.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Reports the end to the model checker instead. The memory stays readable for the threads that it
/// finds there.
#[cfg(loom)]
impl Drop for Memory {
    fn drop(&mut self) {
        let _ = (self.layout, dealloc);
        // SAFETY: the memory is a row of these types, and is owned.
        unsafe { (self.end)(self.start) };
    }
}
