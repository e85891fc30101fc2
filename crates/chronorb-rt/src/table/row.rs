//! A head and a row of items in one allocation, which readers find without a lock.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::mem;
use core::ptr::{self, NonNull};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

use crate::sync::primitives::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::primitives::const_but_for_loom;
use crate::table::epoch::{self, EpochGuard};
use crate::table::memory::Memory;

/// A type of which memory that was never written holds a value.
///
/// A large row takes no time to make, since the kernel gives out zeroed pages as they are used.
///
/// # Safety
/// All octets zero is a value of the type. (The model checker's types are not of that kind; it
/// gets values from `zeroed`.) Nothing is lost if values are not dropped.
pub(crate) unsafe trait Zeroable {
    #[cfg(loom)]
    fn zeroed() -> Self;

    /// Accesses the value exclusively, so that the model checker reports threads that still use it.
    #[cfg(loom)]
    fn end(&mut self);
}

// SAFETY: zero is a number. (The model checker's integer owns nothing.)
unsafe impl Zeroable for AtomicU64 {
    #[cfg(loom)]
    fn zeroed() -> Self {
        Self::new(0)
    }

    #[cfg(loom)]
    fn end(&mut self) {
        self.with_mut(|_| ());
    }
}

/// A slot for a row, or for none, that readers read at any time.
pub(crate) struct SharedRow<H, I: Zeroable> {
    start: AtomicPtr<Start<H, I>>,
    owns: PhantomData<Start<H, I>>,
}

impl<H, I: Zeroable> SharedRow<H, I> {
    const_but_for_loom! {
        /// Makes an empty slot.
        pub(crate) fn new() -> Self {
            Self {
                start: AtomicPtr::new(ptr::null_mut()),
                owns: PhantomData,
            }
        }
    }

    /// Returns the present row. Wait-free.
    pub(crate) fn read<'r>(&'r self, _: &'r EpochGuard) -> Option<Row<'r, H, I>> {
        let start = NonNull::new(self.start.load(Ordering::Acquire))?;
        Some(Row {
            start,
            read: PhantomData,
        })
    }

    /// Replaces the row. The memory of the previous one is freed when no thread can be reading
    /// there any more.
    pub(crate) fn replace(&self, row: Option<OwnedRow<H, I>>) {
        let new = row.map_or(ptr::null_mut(), |row| row.into_start().as_ptr());
        let old = self.start.swap(new, Ordering::AcqRel);
        if let Some(start) = NonNull::new(old) {
            drop_later(OwnedRow { start });
        }
    }
}

impl<H, I: Zeroable> Drop for SharedRow<H, I> {
    fn drop(&mut self) {
        // A reader borrows the place, so there is none.
        let start = self.start.load(Ordering::Relaxed);
        drop(NonNull::new(start).map(|start| OwnedRow { start }));
    }
}

/// A row that is being read.
pub(crate) struct Row<'r, H, I> {
    start: NonNull<Start<H, I>>,
    read: PhantomData<&'r Start<H, I>>,
}

impl<H, I> Clone for Row<'_, H, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H, I> Copy for Row<'_, H, I> {}

impl<'r, H, I> Row<'r, H, I> {
    pub(crate) fn head(self) -> &'r H {
        // SAFETY: the row is initialised, and is not freed while it is read or owned; heads are
        // never borrowed mutably.
        unsafe { &(*self.start.as_ptr()).head }
    }

    pub(crate) fn len(self) -> usize {
        // SAFETY: as above.
        unsafe { (*self.start.as_ptr()).len }
    }

    pub(crate) fn get(self, index: usize) -> Option<&'r I> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: as above; the allocation has `len` items behind its start.
        Some(unsafe { &*self.start.as_ptr().add(1).cast::<I>().add(index) })
    }
}

/// A row that no reader knows.
pub(crate) struct OwnedRow<H, I: Zeroable> {
    start: NonNull<Start<H, I>>,
}

impl<H, I: Zeroable> OwnedRow<H, I> {
    /// Allocates a row of `len` zero items.
    pub(crate) fn allocate(head: H, len: usize) -> Self {
        const { assert!(!mem::needs_drop::<H>()) };
        let layout = layout::<H, I>(len);
        // SAFETY: the layout has the size of the start at least, which holds a number.
        let memory = unsafe { alloc_zeroed(layout) }.cast::<Start<H, I>>();
        let Some(start) = NonNull::new(memory) else {
            handle_alloc_error(layout);
        };
        // SAFETY: the memory is fresh, aligned and large enough.
        unsafe {
            start.write(Start {
                head,
                len,
                items: [],
            });
        }
        #[cfg(loom)]
        for index in 0..len {
            // SAFETY: as above, for the items behind the start.
            unsafe { start.add(1).cast::<I>().add(index).write(I::zeroed()) };
        }
        Self { start }
    }

    pub(crate) fn row(&self) -> Row<'_, H, I> {
        Row {
            start: self.start,
            read: PhantomData,
        }
    }

    fn into_start(self) -> NonNull<Start<H, I>> {
        let start = self.start;
        mem::forget(self);
        start
    }

    /// # Safety
    /// The row is not used any more.
    unsafe fn memory(&self) -> Memory {
        Memory {
            start: self.start.cast(),
            layout: layout::<H, I>(self.row().len()),
            #[cfg(loom)]
            end: end::<H, I>,
        }
    }
}

impl<H, I: Zeroable> Drop for OwnedRow<H, I> {
    fn drop(&mut self) {
        // SAFETY: the owner drops the row.
        drop(unsafe { self.memory() });
    }
}

fn drop_later<H, I: Zeroable>(row: OwnedRow<H, I>) {
    // SAFETY: the row is forgotten. Freeing waits for its readers.
    let memory = unsafe { row.memory() };
    mem::forget(row);
    epoch::retire(memory);
}

#[cfg(loom)]
unsafe fn end<H, I: Zeroable>(start: NonNull<u8>) {
    let start = start.cast::<Start<H, I>>();
    // SAFETY: the caller's contract.
    unsafe {
        for index in 0..start.as_ref().len {
            start.add(1).cast::<I>().add(index).as_mut().end();
        }
    }
}

/// The start of a row; its items follow.
#[repr(C)]
struct Start<H, I> {
    head: H,
    len: usize,
    /// Aligns the start as the items are.
    items: [I; 0],
}

fn layout<H, I>(len: usize) -> Layout {
    Layout::array::<I>(len)
        .and_then(|items| Layout::new::<Start<H, I>>().extend(items))
        .expect("the items fit into the address space")
        .0
}
