//! The one module with `unsafe` code: the arena, and views of numbers as
//! bytes and of bytes as numbers.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem;
use std::ptr::{self, NonNull};
use std::slice;

use crate::{Bounds, CdrError, Char, LongDouble, TypeCode, copied};

/// A bounded piece of memory that values are put into one after the other and
/// that is emptied as a whole.
///
/// The memory of decoded values that cannot be views of the frame. It is allocated when the arena
/// is made, and never grows: a full arena returns [`CdrError::ArenaFull`]. Values live until
/// [`reset`](Self::reset), which no reference can survive.
///
/// An arena belongs to one thread at a time.
pub struct Arena {
    start: NonNull<u64>,
    capacity: usize,
    used: Cell<usize>,
    work: Cell<usize>,
    bounds: Bounds,
    kept: RefCell<Vec<NonNull<dyn Send>>>,
}

// SAFETY: The arena owns its memory and the kept values, which are `Send`. A
// reference into either borrows the arena, so there is none when it moves.
unsafe impl Send for Arena {}

impl Arena {
    /// Makes an arena of `capacity` bytes, rounded up to a multiple of 8. All of its memory is
    /// resident.
    pub fn new(capacity: usize) -> Self {
        Self::with_resident(capacity, capacity)
    }

    /// Makes an arena of `capacity` bytes, of which the first `resident` bytes are resident at
    /// once. The rest becomes resident when values reach it, and stays so after a
    /// [`reset`](Self::reset).
    pub fn with_resident(capacity: usize, resident: usize) -> Self {
        let mut words = vec![0; capacity.div_ceil(8)].into_boxed_slice();
        // Zeros need no page. A value other than zero makes the memory be written, so that its page
        // faults happen here and not in a request.
        let written = resident.div_ceil(8).min(words.len());
        words[..written].fill(u64::MAX);
        let capacity = words.len() * 8;
        let start = NonNull::from(Box::leak(words)).cast();
        Self {
            start,
            capacity,
            used: Cell::new(0),
            work: Cell::new(0),
            bounds: Bounds::DEFAULT,
            kept: RefCell::new(Vec::new()),
        }
    }

    /// Sets the bounds of decoders that use this arena.
    #[inline]
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Returns the bounds of decoders.
    #[inline]
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Number of bytes that the arena can hold.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Number of bytes in use, alignment included.
    #[inline]
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Puts `value` into the arena.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    #[inline]
    pub fn alloc<T: Copy>(&self, value: T) -> Result<&T, CdrError> {
        let place = self.place::<T>(1)?;
        // SAFETY: `place` is aligned and valid for one `T`, and is not shared. The value stays
        // until `reset`, which `&self` outlives.
        unsafe {
            place.write(value);
            Ok(place.as_ref())
        }
    }

    /// Puts a value into the arena that nothing has to be done for when it goes.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    pub(crate) fn alloc_plain<T>(&self, value: T) -> Result<&T, CdrError> {
        const { assert!(!mem::needs_drop::<T>()) };
        let place = self.place::<T>(1)?;
        // SAFETY: `place` is aligned and valid for one `T`, and is not shared. The value stays
        // until `reset`, which `&self` outlives.
        unsafe {
            place.write(value);
            Ok(place.as_ref())
        }
    }

    /// Puts a copy of `items` into the arena.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    #[inline]
    pub fn copy_slice<T: Copy>(&self, items: &[T]) -> Result<&[T], CdrError> {
        let place = self.place::<T>(items.len())?;
        copied::count(size_of_val(items));
        // SAFETY: `place` is aligned and valid for that many `T`, and is not shared, so the regions
        // do not overlap. The values stay until `reset`.
        unsafe {
            ptr::copy_nonoverlapping(items.as_ptr(), place.as_ptr(), items.len());
            Ok(slice::from_raw_parts(place.as_ptr(), items.len()))
        }
    }

    /// Puts a copy of `octets` into the arena, at an address that is `offset` modulo 8.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn copy_octets(&self, octets: &[u8], offset: usize) -> Result<&mut [u8], CdrError> {
        let gap = offset % 8;
        let n = octets.len().checked_add(gap).ok_or(CdrError::ArenaFull)?;
        let place = self.place::<u64>(n.div_ceil(8))?.cast::<u8>();
        copied::count(octets.len());
        // SAFETY: `place` is valid for `n` octets, and is not shared, so the regions do not overlap
        // and the slice is the only reference. The octets stay until `reset`.
        unsafe {
            let place = place.add(gap);
            ptr::copy_nonoverlapping(octets.as_ptr(), place.as_ptr(), octets.len());
            Ok(slice::from_raw_parts_mut(place.as_ptr(), octets.len()))
        }
    }

    /// Puts a copy of `text` into the arena.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    #[inline]
    pub fn copy_str(&self, text: &str) -> Result<&str, CdrError> {
        let bytes = self.copy_slice(text.as_bytes())?;
        // SAFETY: These are the bytes of a `str`.
        Ok(unsafe { str::from_utf8_unchecked(bytes) })
    }

    /// Puts `n` values into the arena, each made by `make` from its index.
    ///
    /// `make` may itself use the arena. The room for the values is taken
    /// before the first is made, and stays taken if `make` fails.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`], and whatever `make` returns.
    #[inline]
    pub fn fill<T: Copy>(
        &self,
        n: usize,
        mut make: impl FnMut(usize) -> Result<T, CdrError>,
    ) -> Result<&[T], CdrError> {
        let place = self.place::<T>(n)?;
        for index in 0..n {
            let value = make(index)?;
            // SAFETY: `place` is aligned and valid for `n` values of `T`, and the allocations of
            // `make` were made after it.
            unsafe { place.add(index).write(value) };
        }
        // SAFETY: All `n` values are written. They stay until `reset`.
        Ok(unsafe { slice::from_raw_parts(place.as_ptr(), n) })
    }

    /// Puts `first` into the arena, followed by the items of `rest`, `n` values at most.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    #[inline]
    pub(crate) fn copy_behind<T: Copy>(
        &self,
        first: T,
        n: usize,
        rest: impl Iterator<Item = T>,
    ) -> Result<&[T], CdrError> {
        let place = self.place::<T>(n.checked_add(1).ok_or(CdrError::ArenaFull)?)?;
        // SAFETY: `place` is aligned and valid for `n + 1` values of `T`.
        unsafe { place.write(first) };
        let mut written = 1;
        for value in rest.take(n) {
            // SAFETY: `written` is at most `n`.
            unsafe { place.add(written).write(value) };
            written += 1;
        }
        // SAFETY: That many values are written. They stay until `reset`.
        Ok(unsafe { slice::from_raw_parts(place.as_ptr(), written) })
    }

    /// Takes over a value that has an owner's duties, and drops it at
    /// [`reset`](Self::reset). This allocates.
    pub fn keep<T: Send + 'static>(&self, value: T) -> &T {
        let value = NonNull::from(Box::leak(Box::new(value)));
        self.kept.borrow_mut().push(value);
        // SAFETY: The value was just leaked, and only `reset` and `drop`,
        // which need the arena to themselves, free it.
        unsafe { value.as_ref() }
    }

    /// Returns the steps of work that decoders with this arena have charged since it was made or
    /// [`reset`](Self::reset); see [`Decoder::charge`](crate::Decoder::charge).
    #[inline]
    pub fn work(&self) -> usize {
        self.work.get()
    }

    /// Adds steps to the work, and returns the sum.
    #[inline]
    pub(crate) fn add_work(&self, steps: usize) -> usize {
        let work = self.work.get().saturating_add(steps);
        self.work.set(work);
        work
    }

    /// Empties the arena.
    #[inline]
    pub fn reset(&mut self) {
        self.used.set(0);
        self.work.set(0);
        while let Some(value) = self.kept.get_mut().pop() {
            // SAFETY: The pointer came from a box, is dropped only here, and
            // `&mut self` shows that no reference to the value is left.
            drop(unsafe { Box::from_raw(value.as_ptr()) });
        }
    }

    /// Takes room for `n` values of `T`. No room is taken for values of no size.
    #[inline]
    fn place<T>(&self, n: usize) -> Result<NonNull<T>, CdrError> {
        let size = size_of::<T>().checked_mul(n).ok_or(CdrError::ArenaFull)?;
        if size == 0 {
            return Ok(NonNull::dangling());
        }
        Ok(self.room(size, align_of::<T>())?.cast())
    }

    /// Takes `size` bytes; the same code for all types.
    #[inline]
    fn room(&self, size: usize, align: usize) -> Result<NonNull<u64>, CdrError> {
        let address = self.start.addr().get().wrapping_add(self.used.get());
        let padding = address.wrapping_neg() & (align - 1);
        let free = self.capacity - self.used.get();
        if free < padding || free - padding < size {
            return Err(CdrError::ArenaFull);
        }
        let offset = self.used.get() + padding;
        self.used.set(offset + size);
        // SAFETY: `offset + size` is at most `capacity`, the size of the allocation.
        Ok(unsafe { self.start.byte_add(offset) })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.reset();
        let words = ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.capacity / 8);
        // SAFETY: This is the box that `new` leaked, of the same length.
        drop(unsafe { Box::from_raw(words) });
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("capacity", &self.capacity)
            .field("used", &self.used.get())
            .finish_non_exhaustive()
    }
}

/// A type code together with the arena that it lives in.
pub(crate) struct OwnTypeCode {
    /// The type code, which borrows from `_arena`. It is lent out for no longer than `self` lives.
    type_code: TypeCode<'static>,
    /// The memory of the type code; it is never accessed again.
    _arena: Arena,
}

// SAFETY: The type code is shared data without interior mutability, and nothing can be done with
// the arena but to drop it.
unsafe impl Sync for OwnTypeCode {}

impl OwnTypeCode {
    /// A copy of `type_code`.
    pub(crate) fn copy(type_code: &TypeCode<'_>) -> Self {
        let mut capacity = 512;
        loop {
            let arena = Arena::new(capacity);
            let copy = match type_code.copy_in(&arena) {
                Ok(copy) => copy,
                Err(CdrError::ArenaFull) => {
                    capacity *= 2;
                    continue;
                }
                Err(_) => unreachable!("a copy needs nothing but room"),
            };
            // SAFETY: By its type all of it is in the arena or is static. The arena's memory
            // does not move with it, is not reset, and is freed after the last use of the copy.
            let type_code = unsafe { mem::transmute::<TypeCode<'_>, TypeCode<'static>>(copy) };
            return Self {
                type_code,
                _arena: arena,
            };
        }
    }

    /// The type code, for as long as this lives.
    pub(crate) fn get<'s>(&'s self) -> &'s TypeCode<'s> {
        &self.type_code
    }
}

/// The octets as text if all of them are ASCII and none is zero, as those of most texts.
#[inline]
pub(crate) fn plain_str(octets: &[u8]) -> Option<&str> {
    // SAFETY: ASCII is UTF-8.
    is_plain(octets).then(|| unsafe { str::from_utf8_unchecked(octets) })
}

/// Whether all octets are ASCII and none is zero.
#[inline]
pub(crate) fn is_plain(octets: &[u8]) -> bool {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // The difference has the highest bit of an octet set where one is zero.
    let bits = |word: u64| word | word.wrapping_sub(LOW);
    let (words, rest) = octets.as_chunks::<8>();
    let mut all = words
        .iter()
        .fold(0, |all, word| all | bits(u64::from_ne_bytes(*word)));
    if let Some(last) = octets.last_chunk::<8>() {
        // The last word overlaps the one before it.
        all |= bits(u64::from_ne_bytes(*last));
    } else if let (Some(first), Some(last)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        let word = |half: &[u8; 4]| u64::from(u32::from_ne_bytes(*half));
        all |= bits(word(first) << 32 | word(last));
    } else {
        return rest.iter().all(|octet| (1..0x80).contains(octet));
    }
    all & HIGH == 0
}

/// A type for which every bit pattern is a value, and that has no padding.
///
/// # Safety
/// Both must be true.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($t:ty)*) => {$(
        // SAFETY: All bit patterns of numbers are values, and they have no padding.
        unsafe impl Plain for $t {}
    )*};
}

plain! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

// SAFETY: A transparent wrapper of an octet.
unsafe impl Plain for Char {}

// SAFETY: A transparent wrapper of octets.
unsafe impl Plain for LongDouble {}

/// The bytes of `items`.
#[inline]
pub(crate) fn bytes_of<T: Plain>(items: &[T]) -> &[u8] {
    // SAFETY: `T` has no padding, so all its bytes are initialised.
    unsafe { slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// The bytes of `items`, to be changed.
#[inline]
pub(crate) fn bytes_of_mut<T: Plain>(items: &mut [T]) -> &mut [u8] {
    // SAFETY: `T` has no padding, and whatever is written is a value of it.
    unsafe { slice::from_raw_parts_mut(items.as_mut_ptr().cast(), size_of_val(items)) }
}

/// `bytes` as values of `T`; `None` if they are not aligned for it, or are
/// not a whole number of them.
#[inline]
pub(crate) fn cast<T: Plain>(bytes: &[u8]) -> Option<&[T]> {
    let start = bytes.as_ptr().cast::<T>();
    if !start.is_aligned() || !bytes.len().is_multiple_of(size_of::<T>()) {
        return None;
    }
    let n = bytes.len() / size_of::<T>();
    // SAFETY: The memory is aligned, of the right size, and every bit pattern is a `T`.
    Some(unsafe { slice::from_raw_parts(start, n) })
}

/// Reverses the octets of each word where it lies; of many by whole vectors, if the processor can
/// shuffle them.
#[inline]
pub(crate) fn reverse_words<const W: usize>(words: &mut [[u8; W]]) {
    #[cfg(target_arch = "x86_64")]
    if words.len() * W >= VECTORS_FROM && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: The processor has AVX2.
        return unsafe { reverse_words_by_vectors(words) };
    }
    reverse_each(words);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn reverse_words_by_vectors<const W: usize>(words: &mut [[u8; W]]) {
    reverse_each(words);
}

/// By value, so that the compiler makes one instruction for a word, or for several.
#[inline(always)]
fn reverse_each<const W: usize>(words: &mut [[u8; W]]) {
    for place in words {
        let mut word = *place;
        word.reverse();
        *place = word;
    }
}

/// The number of octets from which the processor's vector features are detected.
#[cfg(target_arch = "x86_64")]
const VECTORS_FROM: usize = 64;

/// `bytes` as booleans: each that is not zero is made TRUE where it lies.
#[inline]
pub(crate) fn normalize_bools(bytes: &mut [u8]) -> &[bool] {
    for byte in &mut *bytes {
        *byte = u8::from(*byte != 0);
    }
    // SAFETY: `bool` has the size of an octet, and all of them are 0 or 1 now.
    unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// The octets of `items`: 0 and 1.
#[inline]
pub(crate) fn bytes_of_bools(items: &[bool]) -> &[u8] {
    // SAFETY: `bool` has the size of an octet and no padding.
    unsafe { slice::from_raw_parts(items.as_ptr().cast(), items.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_alignment_stand_side_by_side() {
        let arena = Arena::new(256);
        let octet = arena.alloc(1u8).unwrap();
        let double = arena.alloc(2.0f64).unwrap();
        let wide = arena.alloc(3u128).unwrap();
        let text = arena.copy_str("four").unwrap();
        let slice = arena.copy_slice(&[5u16, 6]).unwrap();
        let nothing: &[u64] = arena.copy_slice(&[]).unwrap();
        let empty = arena.alloc(()).unwrap();
        assert_eq!((*octet, *double, *wide, text), (1, 2.0, 3, "four"));
        assert_eq!((slice, nothing, *empty), (&[5, 6][..], &[][..], ()));
    }

    #[test]
    fn a_closure_that_fills_may_use_the_arena_itself() {
        let arena = Arena::new(1024);
        let rows = arena
            .fill(3, |row| arena.fill(row, |column| Ok(row * 10 + column)))
            .unwrap();
        assert_eq!(rows, [&[][..], &[10], &[20, 21]]);
    }

    #[test]
    fn a_closure_that_fails_leaves_no_values() {
        let arena = Arena::new(64);
        let result = arena.fill(4, |index| match index {
            2 => Err(CdrError::EndOfData),
            _ => Ok(index as u64),
        });
        assert_eq!(result, Err(CdrError::EndOfData));
        assert_eq!(arena.fill(4, |_| Ok(7u64)), Ok(&[7; 4][..]));
    }

    #[test]
    fn a_full_arena_refuses_and_a_reset_one_begins_anew() {
        let mut arena = Arena::new(16);
        assert!(arena.copy_slice(&[1u8; 16]).is_ok());
        assert_eq!(arena.alloc(1u8), Err(CdrError::ArenaFull));
        assert_eq!(arena.used(), arena.capacity());
        arena.reset();
        assert_eq!(
            arena.fill(usize::MAX, |_| Ok(1u64)),
            Err(CdrError::ArenaFull)
        );
        assert_eq!(arena.fill(3, |_| Ok(1u64)), Err(CdrError::ArenaFull));
        assert!(arena.fill(2, |_| Ok(1u64)).is_ok());
    }

    #[test]
    fn an_arena_of_no_size_holds_values_of_no_size() {
        let arena = Arena::new(0);
        assert_eq!(arena.copy_slice::<u64>(&[]), Ok(&[][..]));
        assert_eq!(arena.alloc(0u8), Err(CdrError::ArenaFull));
        assert_eq!(arena.keep(String::from("kept")), "kept");
    }

    #[test]
    fn kept_values_stay_where_they_are_until_the_arena_goes() {
        let arena = Arena::new(0);
        let kept: Vec<&String> = (0..20).map(|n| arena.keep(n.to_string())).collect();
        assert_eq!(kept[0], "0");
        assert_eq!(kept[19], "19");
        let arena = std::thread::spawn(move || arena).join();
        drop(arena);
    }

    #[test]
    fn bytes_are_numbers_only_where_they_are_aligned() {
        let mut words = [0u64; 2];
        let bytes = bytes_of_mut(&mut words);
        bytes[8] = 1;
        assert_eq!(cast::<u64>(&bytes[..16]).unwrap().len(), 2);
        assert!(cast::<u64>(&bytes[..15]).is_none());
        assert!(cast::<u32>(&bytes[1..9]).is_none());
        assert_eq!(u64::from_le(words[1]), 1);
    }

    #[test]
    fn few_words_and_many_are_reversed() {
        fn check<const W: usize>() {
            for n in [0, 1, 3, 7, 8, 31, 32, 33, 1000] {
                let words: Vec<[u8; W]> = (0..n)
                    .map(|index| std::array::from_fn(|octet| (index * W + octet) as u8))
                    .collect();
                let mut reversed = words.clone();
                reverse_words(&mut reversed);
                for (word, mut back) in words.into_iter().zip(reversed) {
                    back.reverse();
                    assert_eq!(word, back);
                }
            }
        }
        check::<2>();
        check::<4>();
        check::<8>();
        check::<16>();
    }

    #[test]
    fn octets_that_are_not_zero_are_true() {
        let mut bytes = [0, 1, 2, 0xff];
        assert_eq!(normalize_bools(&mut bytes), [false, true, true, true]);
        assert_eq!(bytes_of_bools(&[true, false]), [1, 0]);
    }
}
