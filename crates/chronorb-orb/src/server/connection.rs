//! A connection of a server, as its lane's threads share it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_cdr::{CharSet, Frame, TextForm};
use chronorb_giop::Version;
use chronorb_giop::fragments::{Limits, Reassembly};
use chronorb_rt::{Baton, BatonGuard, Monotonic, PiMutex, Released};
use chronorb_transport::{Connection, IoError};

/// A connection. Its input and its output are with one thread at a time, for which no thread
/// ever waits.
pub(super) struct ServerConnection {
    transport: Box<dyn Connection>,
    pub(super) input: Baton<Input>,
    output: Baton<Output>,
    /// Messages of threads that found the output taken.
    posted: PiMutex<Vec<u8>>,
    /// Whether anything is posted, to be asked without the lock.
    has_posted: AtomicBool,
    /// What may be posted at a time.
    max_posted: usize,
    /// Whether `output` holds anything, to be asked without claiming it.
    output_waits: AtomicBool,
    /// The peer has ended its side. Whoever is told so sets this before claiming the input, since
    /// an end that came with the last octets is told by no further event.
    hung_up: AtomicBool,
    /// Whether the client announced UTF-8 for `char` and `string`.
    utf8: AtomicBool,
}

/// The connection cannot be used any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Gone;

impl ServerConnection {
    pub(super) fn new(transport: Box<dyn Connection>, load: Arc<Load>) -> Self {
        Self {
            transport,
            input: Baton::new(Input::new(load.clone())),
            posted: PiMutex::new(Vec::new()),
            has_posted: AtomicBool::new(false),
            max_posted: 2 * load.max_message,
            output: Baton::new(Output {
                pending: Vec::new(),
                load,
            }),
            output_waits: AtomicBool::new(false),
            hung_up: AtomicBool::new(false),
            utf8: AtomicBool::new(false),
        }
    }

    pub(super) fn transport(&self) -> &dyn Connection {
        &*self.transport
    }

    /// Sends a message, or keeps what the transport does not take for [`flush`](Self::flush).
    ///
    /// Returns whether something is kept. Waits neither for the peer nor for another thread: a
    /// thread that is sending already takes this message along.
    pub(super) fn send(&self, message: &[u8]) -> Result<bool, Gone> {
        if let Some(output) = self.output.claim() {
            return self.send_by(output, message);
        }
        self.post(message)?;
        match self.output.claim() {
            Some(output) => self.send_by(output, &[]),
            None => Ok(false),
        }
    }

    /// Sends what was kept, as far as the transport takes it.
    pub(super) fn flush(&self) -> Result<(), Gone> {
        if !self.output_waits.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.output.claim() {
            Some(output) => self.send_by(output, &[]).map(drop),
            None => Ok(()),
        }
    }

    /// Sends as the one thread that does, until nobody has posted anything more.
    fn send_by(&self, mut output: BatonGuard<'_, Output>, message: &[u8]) -> Result<bool, Gone> {
        self.write(&mut output, message)?;
        loop {
            // A claim that failed while this one succeeded is not told again at the release.
            if self.has_posted.load(Ordering::Acquire) {
                let posted = self.take_posted();
                self.write(&mut output, &posted)?;
            }
            let waits = !output.pending.is_empty();
            output = match output.release() {
                Released::Done => return Ok(waits),
                Released::Again(output) => output,
            };
        }
    }

    /// Sends what waits and then a message, and keeps the rest.
    fn write(&self, output: &mut Output, message: &[u8]) -> Result<(), Gone> {
        if !output.pending.is_empty() {
            let sent = self.try_send(&output.pending)?;
            output.forget(sent);
        }
        let sent = if output.pending.is_empty() && !message.is_empty() {
            self.try_send(message)?
        } else {
            0
        };
        if sent < message.len() {
            output.keep(&message[sent..])?;
        }
        let waits = !output.pending.is_empty();
        if waits || self.output_waits.load(Ordering::Relaxed) {
            self.output_waits.store(waits, Ordering::Release);
        }
        Ok(())
    }

    /// Leaves a message for the thread that is sending.
    fn post(&self, message: &[u8]) -> Result<(), Gone> {
        let mut posted = self.posted.lock();
        if posted.len() + message.len() > self.max_posted {
            return Err(Gone);
        }
        posted.extend_from_slice(message);
        self.has_posted.store(true, Ordering::Release);
        Ok(())
    }

    fn take_posted(&self) -> Vec<u8> {
        let mut posted = self.posted.lock();
        self.has_posted.store(false, Ordering::Release);
        std::mem::take(&mut *posted)
    }

    /// Sends a last message if that is possible at once, and ends the connection.
    pub(super) fn say_goodbye(&self, message: &[u8]) {
        // A message in the middle of another one would be rubbish.
        if let Some(output) = self.output.claim()
            && output.pending.is_empty()
        {
            let _ = self.transport.try_send(message);
        }
        self.transport.shutdown();
    }

    /// Whether a message was begun longer ago than `limit`, and nobody is reading it now.
    pub(super) fn timeliness(&self, limit: Duration) -> Timeliness {
        let Some(input) = self.input.claim() else {
            return Timeliness::Fine;
        };
        let begun = input.begun;
        if begun.is_some_and(|begun| Monotonic::now() - begun > limit) {
            return Timeliness::Late;
        }
        match input.release() {
            Released::Done => Timeliness::Fine,
            Released::Again(_) => Timeliness::Disturbed,
        }
    }

    pub(super) fn set_hung_up(&self) {
        self.hung_up.store(true, Ordering::Release);
    }

    pub(super) fn is_hung_up(&self) -> bool {
        self.hung_up.load(Ordering::Acquire)
    }

    /// How text travels: what the client announced, else ISO 8859-1.
    pub(super) fn text(&self, version: Version) -> TextForm {
        let narrow = match self.utf8.load(Ordering::Relaxed) {
            true => CharSet::Utf8,
            false => CharSet::Latin1,
        };
        version.text(narrow)
    }

    pub(super) fn set_narrow(&self, narrow: CharSet) {
        self.utf8.store(narrow == CharSet::Utf8, Ordering::Relaxed);
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, Gone> {
        match self.transport.try_send(octets) {
            Ok(n) => Ok(n),
            Err(IoError::WouldBlock) => Ok(0),
            Err(_) => Err(Gone),
        }
    }
}

/// What a look at the age of a connection's input came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Timeliness {
    Fine,
    Late,
    /// It is fine, and a thread that wanted to read was turned away by the look.
    Disturbed,
}

/// What was received and is not a whole message yet, or not the first of several.
pub(super) struct Input {
    /// Its bound is the lane's, see [`account`](Self::account).
    pending: Frame,
    /// Where the next message begins in `pending`.
    start: usize,
    /// Octets may be waiting in the transport: the last read filled its room, or nobody has looked yet.
    pub(super) unread: bool,
    /// The peer has ended its side, so that every read must be followed by another to the end.
    pub(super) hung_up: bool,
    /// Since when an incomplete message waits for its rest.
    begun: Option<Monotonic>,
    pub(super) fragments: Reassembly,
    accounted: usize,
    load: Arc<Load>,
}

impl Input {
    fn new(load: Arc<Load>) -> Self {
        Self {
            pending: Frame::new(0, usize::MAX),
            start: 0,
            unread: true,
            hung_up: false,
            begun: None,
            fragments: Reassembly::new(Limits {
                messages: MAX_FRAGMENTED,
                bytes: load.max_message,
            }),
            accounted: 0,
            load,
        }
    }

    /// The octets that wait.
    pub(super) fn pending(&self) -> &[u8] {
        &self.pending.as_slice()[self.start..]
    }

    /// Room for at least `least` more octets behind those that wait.
    pub(super) fn room(&mut self, least: usize) -> Result<&mut [u8], Gone> {
        if self.start > 0 {
            let len = self.pending.len();
            self.pending.as_mut_slice().copy_within(self.start..len, 0);
            self.pending.truncate(len - self.start);
            self.start = 0;
        }
        self.pending.spare_mut(least).map_err(|_| Gone)
    }

    /// `n` octets of the room were filled.
    pub(super) fn received(&mut self, n: usize) {
        self.pending.commit(n);
    }

    /// Adds octets that were received elsewhere.
    pub(super) fn keep(&mut self, octets: &[u8]) -> Result<(), Gone> {
        self.pending.extend_from_slice(octets).map_err(|_| Gone)
    }

    /// Moves the first `len` octets that wait into `frame`.
    pub(super) fn take(&mut self, len: usize, frame: &mut Frame) -> Result<(), Gone> {
        frame.clear();
        if self.start == 0 && len == self.pending.len() && len > SWAP_FROM {
            std::mem::swap(frame, &mut self.pending);
            return Ok(());
        }
        frame
            .extend_from_slice(&self.pending()[..len])
            .map_err(|_| Gone)?;
        self.start += len;
        if self.start == self.pending.len() {
            self.pending.clear();
            self.start = 0;
        }
        Ok(())
    }

    /// Brings the lane's books up to date, before the input is let go.
    pub(super) fn settle(&mut self) -> Result<(), Gone> {
        let waiting = !self.pending().is_empty() || self.fragments.octets() > 0;
        match (waiting, self.begun) {
            (true, None) => {
                self.begun = Some(Monotonic::now());
                self.load.incomplete.fetch_add(1, Ordering::Relaxed);
            }
            (false, Some(_)) => {
                self.begun = None;
                self.load.incomplete.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
        if !waiting {
            self.pending.shrink_to(0);
        }
        self.account()
    }

    /// Tells the lane how much is kept here; more than the lane may keep ends the connection.
    pub(super) fn account(&mut self) -> Result<(), Gone> {
        let octets = self.pending.capacity() + self.fragments.octets();
        self.load.account(&mut self.accounted, octets)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if self.begun.is_some() {
            self.load.incomplete.fetch_sub(1, Ordering::Relaxed);
        }
        // Giving back cannot go over the bound.
        let _ = self.load.account(&mut self.accounted, 0);
    }
}

/// Messages of one connection that may be in fragments at a time.
const MAX_FRAGMENTED: usize = 16;
/// Above this a whole message changes hands by exchanging frames, not by copying.
const SWAP_FROM: usize = 64 << 10;

/// Replies that the peer has not taken yet.
struct Output {
    pending: Vec<u8>,
    load: Arc<Load>,
}

impl Output {
    fn keep(&mut self, octets: &[u8]) -> Result<(), Gone> {
        let mut accounted = self.pending.len();
        self.load
            .account(&mut accounted, self.pending.len() + octets.len())?;
        self.pending.extend_from_slice(octets);
        Ok(())
    }

    fn forget(&mut self, sent: usize) {
        let mut accounted = self.pending.len();
        self.pending.drain(..sent);
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
        // Giving back cannot go over the bound.
        let _ = self.load.account(&mut accounted, self.pending.len());
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let waiting = self.pending.len();
        self.forget(waiting);
    }
}

/// What the connections of a lane keep for slow peers, together.
pub(super) struct Load {
    octets: AtomicUsize,
    max_octets: usize,
    /// The greatest message of one connection.
    max_message: usize,
    incomplete: AtomicUsize,
}

impl Load {
    pub(super) fn new(max_octets: usize, max_message: usize) -> Self {
        Self {
            octets: AtomicUsize::new(0),
            max_octets,
            max_message,
            incomplete: AtomicUsize::new(0),
        }
    }

    /// Connections whose input waits for the rest of a message.
    pub(super) fn incomplete(&self) -> usize {
        self.incomplete.load(Ordering::Relaxed)
    }

    /// Changes what one connection keeps; more than the lane may keep ends the connection.
    fn account(&self, accounted: &mut usize, octets: usize) -> Result<(), Gone> {
        if octets > *accounted {
            let more = octets - *accounted;
            let before = self.octets.fetch_add(more, Ordering::Relaxed);
            if before + more > self.max_octets {
                self.octets.fetch_sub(more, Ordering::Relaxed);
                return Err(Gone);
            }
            *accounted = octets;
        } else {
            self.octets
                .fetch_sub(*accounted - octets, Ordering::Relaxed);
            *accounted = octets;
        }
        Ok(())
    }
}
