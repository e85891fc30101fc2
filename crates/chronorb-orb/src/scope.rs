//! The memory for calls and for the values of their replies.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::RefCell;
use std::sync::Arc;

use chronorb_cdr::{Arena, CdrError, CharSet, Decoder, Encoder, Endian, Frame, TextForm};
use chronorb_giop::{SystemException, Version};

use crate::call::Reply;
use crate::core::{Core, Host};
use crate::room::{KEPT_CAPACITY, arena_of, own_scheduling};

/// The frames and the arena of one call at a time, for reuse.
///
/// Results of `…_in` methods borrow from it; the next call clears it. Methods without `_in`
/// use a scope that belongs to the thread.
///
/// ```
/// use chronorb_orb::Scope;
///
/// let mut scope = Scope::new(64 * 1024);
/// // let quote = quoter.get_quote_in(&mut scope, "ACME", &[0.25, 1.0])?;
/// # let _ = &mut scope;
/// ```
#[derive(Debug)]
pub struct Scope {
    pub(crate) request: Frame,
    pub(crate) reply: Frame,
    arena: Arena,
    /// The ORB of the last call, to which references in its results belong. A thread that is not
    /// calling keeps no ORB alive, so the thread's own scope only borrows it.
    host: Option<Host>,
    /// Belongs to a thread; the ORB's settings determine its size.
    of_thread: bool,
}

thread_local! {
    /// The scopes that are not in use; boxed, so that lending one moves only a pointer.
    #[allow(clippy::vec_box)]
    static SCOPES: RefCell<Vec<Box<Scope>>> = const { RefCell::new(Vec::new()) };
}

/// A reply whose body has not been decoded yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReplyBody {
    /// Set for a user exception, which replaces the result.
    pub(crate) exception: bool,
    /// The position of the body in the reply frame.
    pub(crate) body: usize,
    pub(crate) endian: Endian,
    pub(crate) text: TextForm,
}

impl Scope {
    /// Makes a scope whose arena holds `capacity` octets of demarshalled values. Values that can
    /// stay in the frame (strings, sequences of primitives) take no memory in it.
    pub fn new(capacity: usize) -> Self {
        Self {
            request: frame(),
            reply: frame(),
            arena: Arena::new(capacity),
            host: None,
            of_thread: false,
        }
    }

    /// Lends the calling thread's own scope, whose arena has the ORB's `arena_size`. A nested call
    /// gets another scope, which is kept as well.
    pub fn with<R>(f: impl FnOnce(&mut Self) -> R) -> R {
        // Generated code has a copy of this function for each operation, so it has only the call.
        let mut scope = Self::lend();
        let result = f(&mut scope);
        Self::take_back(scope);
        result
    }

    /// Takes a scope that is not in use from the thread, or makes one.
    #[inline]
    fn lend() -> Box<Self> {
        // A thread that is ending has none left.
        let spare = SCOPES.try_with(|scopes| scopes.borrow_mut().pop());
        spare.ok().flatten().unwrap_or_else(Self::of_thread)
    }

    /// Keeps a scope for the next call of the thread, unless it has enough.
    #[inline(always)]
    fn take_back(mut scope: Box<Self>) {
        scope.arena.reset();
        // A thread that is ending keeps none.
        let _ = SCOPES.try_with(|scopes| {
            let mut scopes = scopes.borrow_mut();
            if scopes.len() < KEPT_SCOPES {
                scopes.push(scope);
            }
        });
    }

    #[cold]
    #[allow(clippy::disallowed_methods, reason = "once for each thread")]
    fn of_thread() -> Box<Self> {
        Box::new(Self {
            of_thread: true,
            ..Self::new(0)
        })
    }

    /// Marshals values only for the exceptions that this may raise, so that a call that is not
    /// marshalled has the same ones.
    #[doc(hidden)]
    pub fn check(write: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>) -> Result<(), CdrError> {
        Self::with(|scope| {
            scope.request.clear();
            let request = &mut scope.request;
            let mut e = Encoder::new(request, Endian::NATIVE).with_text(text_within());
            write(&mut e)
        })
    }

    /// The arena of the values of replies.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Clears the scope for a new call.
    pub(crate) fn begin(&mut self, core: &Core) {
        self.arena.reset();
        if self.of_thread && self.arena.capacity() < core.config.arena_size {
            self.arena = arena_of(&core.config, own_scheduling());
        }
        self.arena.set_bounds(core.config.bounds);
        for frame in [&mut self.request, &mut self.reply] {
            clear(frame);
        }
    }

    /// The reply's frame, and the arena for the values that are decoded from it.
    pub(crate) fn reply_parts(&mut self) -> (&mut Frame, &Arena) {
        (&mut self.reply, &self.arena)
    }

    /// Both frames and the arena.
    pub(crate) fn parts(&mut self) -> (&mut Frame, &mut Frame, &Arena) {
        (&mut self.request, &mut self.reply, &self.arena)
    }

    pub(crate) fn reset_arena(&mut self) {
        self.arena.reset();
    }

    /// Returns the reply with a decoder for its body.
    pub(crate) fn open<'s>(
        &'s mut self,
        core: &Arc<Core>,
        answer: ReplyBody,
    ) -> Result<Reply<'s>, SystemException> {
        if !self.host.as_ref().is_some_and(|last| last.is_of(core)) {
            self.host = Some(if self.of_thread {
                Host::borrowed(core)
            } else {
                Host::new(core.clone())
            });
        }
        let host = self.host.as_ref().map(Host::begin);
        let arena = &self.arena;
        let body = self.reply.decoder(answer.body, answer.endian, arena);
        let body = body.with_text(answer.text).with_host(host);
        if answer.exception {
            user_exception(body)
        } else {
            Ok(Reply::Normal(body))
        }
    }
}

/// Reads the identifier of an exception. `open` must not take the address of the body, so that the
/// body is built in place.
#[cold]
fn user_exception(mut body: Decoder<'_>) -> Result<Reply<'_>, SystemException> {
    let id = body.read_str().map_err(crate::call::reply_error)?;
    Ok(Reply::UserException(id, body))
}

/// Returns a frame for use in scopes.
pub(crate) fn frame() -> Frame {
    Frame::new(FRAME_CAPACITY, FRAME_LIMIT)
}

/// Returns such a frame without memory, for slots of which most may never be used.
pub(crate) fn empty_frame() -> Frame {
    Frame::new(0, FRAME_LIMIT)
}

/// Clears such a frame for another message.
pub(crate) fn clear(frame: &mut Frame) {
    frame.relax(KEPT_CAPACITY);
    frame.clear();
}

/// Clears such a frame, and frees most of its memory at once if it has much.
pub(crate) fn release(frame: &mut Frame) {
    frame.clear();
    if frame.capacity() > KEPT_CAPACITY {
        frame.shrink_to(FRAME_CAPACITY);
    }
}

/// The form of text in calls within the process.
pub(crate) fn text_within() -> TextForm {
    Version::V1_2.text(CharSet::Utf8)
}

/// The number of nested calls whose scopes a thread keeps.
const KEPT_SCOPES: usize = 4;
const FRAME_CAPACITY: usize = 8 << 10;
/// A bound above all configurations; an ORB's own limit is checked for each message.
const FRAME_LIMIT: usize = 1 << 30;
