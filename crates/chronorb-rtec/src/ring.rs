//! Consumers of other processes of this host, which read one ring of shared memory.
//!
//! An [`EventRing`] is one consumer of a channel, and publishes its events in a ring. Readers join
//! it by the path of a socket, and each has a cursor of its own. A set of events is encoded once
//! and written once, however many readers there are. A reader that is too slow loses events, and is
//! told their number. The channel and other readers do not wait for it.

use std::fmt;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chronorb::data::{AnyBuf, Arena, CdrError};
use chronorb::poa::{ActivateError, ObjectError, ObjectId, Poa};
use chronorb::transport::shm::fan_out::{
    FanOutError, FanOutListener, FanOutOffer, FanOutOptions, Publisher, Reader, ReaderLimits,
    Reading,
};
use chronorb::{BodyForm, Call, EncodedBody, SystemException};
use chronorb_cdr::{CharSet, Decoder, Endian, TextForm, WideForm};
use chronorb_events::{EVENTS_LOST, Filter};
use chronorb_rt::{Deadline, PiMutex, SpawnError, Thread, ThreadBuilder};
use thiserror::Error;

use crate::event::{empty_data, lost_in_channel, wire_header};
use crate::idl::chronorb_events::QueueQOS;
use crate::idl::rtec_event_channel_admin::EventChannel;
use crate::idl::rtec_event_comm::{
    Event, EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
};
use crate::subscribe::{ConnectError, Subscription};
use crate::watch::{ChannelChange, ChannelCheck, ChannelWatch, WatchOptions, WatchRound};

/// A ring with the events of a subscription. Dropping it ends the subscription and the ring.
///
/// The channel may be of this process or of another one. It is fastest in this process, with the
/// thread that pushes an event also publishing it.
///
/// # Example
/// ```
/// use std::time::Duration;
///
/// use chronorb::prelude::*;
/// use chronorb_rtec::idl::rtec_event_channel_admin::EventChannel;
/// use chronorb_rtec::{EventRing, EventRingReader, EventServer, Filter, RingOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut args = vec!["p".into(), "-ORBListenEndpoints".into(), "iiop://127.0.0.1:0".into()];
/// # let path = std::env::temp_dir().join(format!("chronorb-ring-{}", std::process::id()));
/// let orb = Orb::init(&mut args)?;
/// let root = orb.root_poa()?;
/// let service = EventServer::new().serve_in(&root)?;
/// root.manager().activate()?;
/// let channel = EventChannel::unchecked_narrow(service.channel());
/// let filter = Filter::of_type(20);
/// let ring = EventRing::open(&root, &channel, &filter, &path, &RingOptions::default())?;
/// // In other processes.
/// let mut reader = EventRingReader::join(&path)?;
/// assert!(!reader.next_with(Duration::ZERO, |_| unreachable!("nothing was pushed"))?);
/// # drop(ring);
/// # orb.shutdown(true)?;
/// # Ok(())
/// # }
/// ```
pub struct EventRing {
    shared: Arc<RingState>,
    path: PathBuf,
    channel: EventChannel,
    subscription: Arc<Subscription>,
    watch: PiMutex<Option<ChannelWatch>>,
    poa: Poa,
    consumer: ObjectId,
    listener: Arc<FanOutListener>,
    /// Accepts readers.
    acceptor: Option<Thread<()>>,
}

/// The options of a ring.
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// The sets of events that the ring holds, and the octets of the longest one, encoded. A set
    /// that is longer is lost, and that is told.
    pub size: FanOutOptions,
    /// The most processes that read the ring.
    pub processes: usize,
    /// The queue of the ring in the channel. Without one it has that of its lane, if there are
    /// lanes.
    pub queue: Option<QueueQOS>,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self {
            size: FanOutOptions {
                slots: 1024,
                octets: 4096,
            },
            processes: 256,
            queue: None,
        }
    }
}

/// The counts of a ring.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RingStatus {
    /// The sets of events that were published.
    pub sets: u64,
    /// The events of sets that were too long.
    pub lost: u64,
    /// The processes that read.
    pub processes: u64,
    /// Whether the channel is lost, as far as [`watch`](EventRing::watch) has found.
    pub is_channel_lost: bool,
    /// The times that the ring has subscribed again.
    pub resubscriptions: u64,
}

/// A failure of a ring of events.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RingError {
    /// The ring.
    #[error(transparent)]
    Ring(#[from] FanOutError),
    /// The socket by which readers join.
    #[error("the socket of the ring fails: {0}")]
    Socket(#[from] io::Error),
    /// The channel.
    #[error("the channel refuses the ring: {0}")]
    Channel(#[from] SystemException),
    /// The channel connects no consumer, or has no queues.
    #[error("the channel refuses the ring: {0}")]
    Refused(String),
    /// The consumer of the ring cannot be activated.
    #[error("the consumer of the ring cannot be activated")]
    Activate(#[from] ActivateError),
    /// The consumer of the ring has no reference.
    #[error("the consumer of the ring has no reference")]
    Reference(#[from] ObjectError),
    /// There is no thread.
    #[error("the ring has no thread")]
    Thread(#[from] SpawnError),
    /// The publisher wrote something else than events.
    #[error("the ring has something else than events: {0}")]
    Encoding(#[from] CdrError),
}

/// The part of a ring that its consumer and its acceptor share.
struct RingState {
    output: PiMutex<RingOutput>,
    sets: AtomicU64,
    lost: AtomicU64,
    processes: AtomicU64,
    is_channel_lost: AtomicBool,
    resubscriptions: AtomicU64,
    is_over: AtomicBool,
}

struct RingOutput {
    publisher: Publisher,
    /// The octets of the longest set.
    most: usize,
    /// The memory in which sets are encoded.
    body: EncodedBody,
}

impl EventRing {
    /// Subscribes to a channel, and offers its events at the path of a socket, whose access rights
    /// are those of the ring. Its mode is 0600, so processes of the same user may join; a program
    /// that permits others changes the mode.
    ///
    /// The consumer is activated in `poa`. A socket that a process which ended has left at the path
    /// is replaced. The file is removed with the ring, unless another one has its path by then.
    ///
    /// # Errors
    /// [`RingError`]: the channel refuses the subscription, or there are no resources.
    pub fn open(
        poa: &Poa,
        channel: &EventChannel,
        filter: &Filter,
        path: &Path,
        options: &RingOptions,
    ) -> Result<Self, RingError> {
        let publisher = Publisher::create(options.size)?;
        let offer = publisher.offer();
        let shared = Arc::new(RingState {
            output: PiMutex::new(RingOutput {
                publisher,
                most: options.size.octets as usize,
                body: EncodedBody::in_form(BodyForm::default()),
            }),
            sets: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            processes: AtomicU64::new(0),
            is_channel_lost: AtomicBool::new(false),
            resubscriptions: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let listener = Arc::new(FanOutListener::bind(path)?);
        let skeleton = PushConsumerSkeleton::from_arc(shared.clone());
        let id = poa.activate_object(skeleton)?;
        let object = poa.id_to_reference(&id)?;
        let mut this = Self {
            shared,
            path: path.to_owned(),
            channel: channel.clone(),
            subscription: Arc::new(Subscription {
                consumer: PushConsumer::unchecked_narrow(&object),
                filter: filter.clone(),
                queue: options.queue,
                rt_info: 0,
                fan_out: None,
                state: PiMutex::default(),
            }),
            watch: PiMutex::default(),
            poa: poa.clone(),
            consumer: id,
            listener: listener.clone(),
            acceptor: None,
        };
        let accepting = Acceptor {
            listener,
            offer,
            shared: this.shared.clone(),
            most: options.processes,
            sockets: Vec::new(),
        };
        let thread = ThreadBuilder::new("events.ring").spawn(move || accepting.run())?;
        this.acceptor = Some(thread);
        this.subscription.make(channel, None)?;
        Ok(this)
    }

    /// Has a thread ask the channel regularly whether it still has the ring, which subscribes again
    /// unless the options say otherwise. Readers stay, and [`status`](Self::status) shows what was
    /// found. Ends with the ring; replaces the thread of a call before.
    ///
    /// # Errors
    /// There is no thread.
    pub fn watch(&self, options: WatchOptions) -> Result<(), SpawnError> {
        let (shared, channel) = (self.shared.clone(), self.channel.clone());
        let subscription = self.subscription.clone();
        let mut check = ChannelCheck::default();
        let watch = ChannelWatch::start(options.period, move || {
            let mut round = WatchRound::new(&options, &channel);
            let is_lost = round.check(&subscription, &mut check, |change| {
                if matches!(change, ChannelChange::Subscribed) {
                    shared.resubscriptions.fetch_add(1, Ordering::Relaxed);
                }
            });
            shared.is_channel_lost.store(is_lost, Ordering::Relaxed);
        })?;
        *self.watch.lock() = Some(watch);
        Ok(())
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn status(&self) -> RingStatus {
        RingStatus {
            sets: self.shared.sets.load(Ordering::Relaxed),
            lost: self.shared.lost.load(Ordering::Relaxed),
            processes: self.shared.processes.load(Ordering::Relaxed),
            is_channel_lost: self.shared.is_channel_lost.load(Ordering::Relaxed),
            resubscriptions: self.shared.resubscriptions.load(Ordering::Relaxed),
        }
    }
}

impl From<ConnectError> for RingError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Channel(exception) => Self::Channel(exception),
            ConnectError::Refused(reason) => Self::Refused(reason),
            ConnectError::Activate(error) => Self::Activate(error),
            ConnectError::Reference(error) => Self::Reference(error),
        }
    }
}

impl Drop for EventRing {
    fn drop(&mut self) {
        // The channel may have ended, and the POA.
        let _ = self.subscription.end();
        let _ = self.poa.deactivate_object(&self.consumer);
        self.shared.is_over.store(true, Ordering::Release);
        self.listener.shut_down();
        if let Some(acceptor) = self.acceptor.take() {
            // It cannot panic.
            let _ = acceptor.join();
        }
    }
}

impl fmt::Debug for EventRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRing")
            .field("path", &self.path)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl PushConsumerOwnedServant for RingState {
    fn push(&self, _: &Call<'_>, data: EventSet<'_>) -> Result<(), SystemException> {
        let RingOutput {
            publisher,
            most,
            body,
        } = &mut *self.output.lock();
        body.renew(&|e| e.write_seq(data))?;
        let lost = if body.len() <= *most {
            0
        } else {
            data.len() as u64
        };
        if lost > 0 {
            let number = AnyBuf::new(&lost).unwrap_or_default();
            let mut data = empty_data();
            data.any_value = number.as_view();
            let header = wire_header(0, EVENTS_LOST);
            body.renew(&|e| e.write_seq(&[Event { header, data }]))?;
        }
        // Without room for a loss, in the shortest slots, readers are told nothing.
        let _ = publisher.publish(&[body.as_slice()]);
        self.sets.fetch_add(u64::from(lost == 0), Ordering::Relaxed);
        self.lost.fetch_add(lost, Ordering::Relaxed);
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The thread that gives the ring to readers.
struct Acceptor {
    listener: Arc<FanOutListener>,
    offer: FanOutOffer,
    shared: Arc<RingState>,
    most: usize,
    /// The sockets of present readers, which show them that the publisher lives.
    sockets: Vec<UnixStream>,
}

impl Acceptor {
    fn run(mut self) {
        loop {
            let accepted = self.listener.accept();
            if self.shared.is_over.load(Ordering::Acquire) {
                return;
            }
            match accepted {
                Ok(socket) => self.offer_to(socket.into()),
                // Too many files are open. A reader that waits is served once there are fewer.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn offer_to(&mut self, socket: UnixStream) {
        self.sockets.retain(is_open);
        // The socket of a reader that is refused ends, which it sees.
        if self.sockets.len() < self.most
            && socket.set_nonblocking(true).is_ok()
            && self.offer.send(&socket).is_ok()
        {
            self.sockets.push(socket);
        }
        let processes = self.sockets.len() as u64;
        self.shared.processes.store(processes, Ordering::Relaxed);
    }
}

/// Whether the reader behind a socket lives. It has nothing to say.
fn is_open(mut socket: &UnixStream) -> bool {
    let read = socket.read(&mut [0]);
    read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// A reader of a ring of events. A clone has a cursor of its own, at the same place.
pub struct EventRingReader {
    reader: Reader,
    room: Vec<u8>,
    arena: Arena,
}

/// A delivery of a ring.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RingDelivery<'r> {
    /// A set of events, in order of their arrival.
    Set(EventSet<'r>),
    /// This number of events was lost before the ring: in the queue of the channel, or in sets that
    /// are longer than a slot.
    LostEvents(u64),
    /// This number of sets was lost, because this reader is too slow.
    LostSets(u64),
}

impl EventRingReader {
    /// Joins a ring by the path of its socket, within the [default limits](ReaderLimits::default).
    /// The first event is the next one that is published.
    ///
    /// # Errors
    /// Those of [`join_within`](Self::join_within).
    pub fn join(path: &Path) -> Result<Self, RingError> {
        Self::join_within(path, &ReaderLimits::default())
    }

    /// Joins a ring as [`join`](Self::join) does, with the greatest size and the time that this
    /// reader permits.
    ///
    /// # Errors
    /// [`RingError::Socket`] if there is no ring; [`RingError::Ring`] if it has too many readers,
    /// is larger than permitted, or was not sent in time, or if the socket offers none.
    pub fn join_within(path: &Path, limits: &ReaderLimits) -> Result<Self, RingError> {
        match Reader::join(path, limits) {
            Ok(reader) => Ok(Self::of(reader)),
            Err(FanOutError::Socket(error)) => Err(RingError::Socket(error)),
            Err(error) => Err(error.into()),
        }
    }

    fn of(reader: Reader) -> Self {
        Self {
            reader,
            room: Vec::new(),
            arena: Arena::new(ARENA),
        }
    }

    /// Gives the next delivery to `consume`, after a wait for it of at most `limit`. Returns
    /// whether there was one. With [`Duration::ZERO`] it only polls, and costs the publisher
    /// nothing.
    ///
    /// # Errors
    /// [`FanOutError::Ended`] after the last event, or if the publisher has ended;
    /// [`RingError::Encoding`] if there is something else than events.
    pub fn next_with(
        &mut self,
        limit: Duration,
        consume: impl FnOnce(RingDelivery<'_>),
    ) -> Result<bool, RingError> {
        let Self {
            reader,
            room,
            arena,
        } = self;
        let mut next = copied(reader, room)?;
        if next.is_none() && !limit.is_zero() {
            reader.wait(Deadline::after(limit))?;
            next = copied(reader, room)?;
        }
        match next {
            None => return Ok(false),
            Some(RingItem::Lost(number)) => consume(RingDelivery::LostSets(number)),
            Some(RingItem::Set) => {
                arena.reset();
                let decoder = Decoder::new(room, 0, Endian::NATIVE, arena);
                let set = decoder.with_text(TEXT).read_seq::<Event<'_>>()?;
                consume(match lost_in_channel(set) {
                    Some(number) => RingDelivery::LostEvents(number),
                    None => RingDelivery::Set(set),
                });
            }
        }
        Ok(true)
    }
}

impl Clone for EventRingReader {
    fn clone(&self) -> Self {
        Self::of(self.reader.clone())
    }
}

impl fmt::Debug for EventRingReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRingReader").finish_non_exhaustive()
    }
}

/// The next item of a ring, whose octets were copied.
enum RingItem {
    Set,
    Lost(u64),
}

fn copied(reader: &mut Reader, room: &mut Vec<u8>) -> Result<Option<RingItem>, FanOutError> {
    Ok(reader.poll()?.map(|reading| match reading {
        Reading::Message(octets) => {
            room.clear();
            room.extend_from_slice(octets);
            RingItem::Set
        }
        Reading::Lost(number) => RingItem::Lost(number),
    }))
}

/// The form of text in a ring: that of [`BodyForm::default`].
const TEXT: TextForm = TextForm {
    narrow: CharSet::Utf8,
    wide: WideForm::Utf16,
};
/// The memory for the values of a set that cannot be views of it.
const ARENA: usize = 64 << 10;
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_ring_is_that_of_its_publisher() {
        let text = "ü";
        let mut body = EncodedBody::in_form(BodyForm::default());
        body.renew(&|e| e.write_str(text)).unwrap();
        let (mut octets, arena) = (body.as_slice().to_vec(), Arena::new(64));
        let decoder = Decoder::new(&mut octets, 0, Endian::NATIVE, &arena);
        assert_eq!(decoder.with_text(TEXT).read_str().unwrap(), text);
    }
}
