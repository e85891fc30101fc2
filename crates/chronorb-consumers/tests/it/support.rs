//! A service that sends numbers to consumers, and no more.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use chronorb::config::{ConnectionStrategy, OrbConfig};
use chronorb::outbox::{OutboxLimits, OutboxThread};
use chronorb::prelude::{Call, Object, Orb, SystemException};
use chronorb::quota::{Origin, QuotaLimits};
use chronorb::{BodyForm, EncodedBody, Operation, Skeleton};
use chronorb_channel::{Channel, Clock, Consumer, Lane, Overflow, SystemClock};
use chronorb_consumers::{
    Checks, ConsumerQuotas, ConsumerService, ConsumerSettings, ConsumerState, Consumers, EndCause,
    Face, OutboxSource, PeerPolicy, RemoteConsumer, Trail, start_links,
};
use chronorb_events::{Event, Filter};
use chronorb_rt::{Deadline, PiMutex, Thread};

/// A limit for what happens at once unless something is broken.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// The body of an event: octets.
pub(crate) type Octets = Arc<[u8]>;

/// A consumer with the oneway operation `take`, whose argument is a sequence of numbers, followed
/// by the octets of the events.
pub(crate) struct TakeFace;

const TAKE: Operation = Operation::oneway("take");

impl Face for TakeFace {
    type Body = Octets;

    const PUSH: Operation = TAKE;
    const CHANNEL: &'static str = "IDL:Test/Channel:1.0";

    fn encode(set: &[Event<Octets>], form: BodyForm) -> Result<EncodedBody, SystemException> {
        let mut body = EncodedBody::in_form(form);
        body.renew(&|e| {
            set.iter().try_for_each(|event| {
                e.write_i32(event.header.event_type)?;
                e.write_seq(&event.body[..])
            })
        })?;
        Ok(body)
    }

    fn loss(number: u64) -> Event<Octets> {
        let number = i32::try_from(number).expect("a few");
        Event::new(0, LOST + number, Octets::default())
    }

    fn octets(body: &Octets) -> usize {
        body.len()
    }

    fn trail(_: &Octets) -> &Trail {
        static NONE: Trail = Trail::new();
        &NONE
    }

    fn push(&self, to: &Object, set: &[Event<Octets>]) -> Result<(), SystemException> {
        to.invoke_oneway(&TAKE, &|e| {
            set.iter().try_for_each(|event| {
                e.write_i32(event.header.event_type)?;
                e.write_seq(&event.body[..])
            })
        })
    }

    fn target(&self) -> Option<Object> {
        None
    }
}

/// The type of an event that tells no loss; with a number added, one that tells so many.
pub(crate) const LOST: i32 = 1_000_000;

struct Handle(Arc<RemoteConsumer<TakeFace>>);

impl Consumer<Octets> for Handle {
    fn push(&self, set: &[Event<Octets>]) {
        self.0.push(set);
    }

    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    fn lost(&self, number: u64) {
        self.0.tell_lost(number);
    }

    fn disconnected(&self) {
        self.0.overflowed();
    }
}

/// A service without an interface of its own.
pub(crate) struct Service {
    consumers: Consumers<Self>,
    evicted: PiMutex<Vec<(u64, EndCause)>>,
}

impl ConsumerService for Service {
    type Face = TakeFace;
    type Proxy = ();
    type Connection = ();

    fn consumers(&self) -> &Consumers<Self> {
        &self.consumers
    }

    fn evict_consumer(&self, number: u64, cause: EndCause) {
        let record = self.consumers.remove(number).expect("it is told once");
        if let Some(connection) = record.into_connection() {
            self.consumers.disconnect(connection, true);
        }
        self.evicted.lock().push((number, cause));
    }
}

/// A service with a channel, in an ORB of its own.
pub(crate) struct Fixture {
    pub(crate) orb: Orb,
    service: Arc<Service>,
    channel: Channel<Octets>,
    outboxes: Option<OutboxThread>,
    links: Option<Thread<()>>,
}

/// The treatment of peers by tests that wait for none of them.
pub(crate) const PATIENT: PeerPolicy = PeerPolicy {
    push_timeout: LONG,
    failures: 2,
    check_period: None,
    check_timeout: LONG,
};

impl Fixture {
    /// A service whose consumers are pushed to by the threads of suppliers.
    pub(crate) fn new(peers: PeerPolicy, consumer_octets: u64) -> Self {
        Self::of(peers, consumer_octets, false)
    }

    /// A service whose consumers have outboxes.
    pub(crate) fn with_outboxes(peers: PeerPolicy) -> Self {
        Self::of(peers, 1 << 30, true)
    }

    fn of(peers: PeerPolicy, consumer_octets: u64, has_outboxes: bool) -> Self {
        let orb = orb();
        let all = |total| QuotaLimits {
            total,
            per_origin: total,
        };
        let quotas = ConsumerQuotas {
            consumers: orb.quota("consumers", all(3)),
            octets: orb.quota("octets", all(1 << 30)),
            consumer_octets,
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let service = Arc::new(Service {
            consumers: Consumers::new(peers, quotas, clock),
            evicted: PiMutex::default(),
        });
        let channel = Channel::builder().lane(Lane::new("test")).start();
        let outboxes = has_outboxes.then(|| OutboxThread::start(&orb, None).expect("a thread"));
        Self {
            links: Some(start_links(service.clone()).expect("a thread")),
            channel: channel.expect("a channel"),
            orb,
            service,
            outboxes,
        }
    }

    /// Connects a new consumer with this number.
    pub(crate) fn connect(&self, number: u64, reference: &Object) {
        let consumers = &self.service.consumers;
        let added = consumers.add(number, Origin::User(1), (), || Ok(()));
        added.expect("there is room");
        self.reconnect(number, reference);
    }

    /// Connects a consumer in place of the present one.
    pub(crate) fn reconnect(&self, number: u64, reference: &Object) {
        let consumers = &self.service.consumers;
        let outboxes = self.outboxes.clone().map(|thread| OutboxSource {
            thread,
            limits: OutboxLimits::default(),
        });
        let has_outboxes = outboxes.is_some();
        let settings = ConsumerSettings {
            outboxes,
            has_queue: false,
            tells_losses: true,
            return_path: None,
        };
        let service = Arc::downgrade(&self.service);
        let consumer = consumers.consumer(service, number, reference, TakeFace, settings);
        let consumer = consumer.expect("a reference");
        let handle = Handle(consumer.clone());
        let filter = Filter::Everything;
        let connected = consumers.with(number, |record| {
            let octets = record.octets().clone();
            let subscribe = |handle| {
                let subscription = self.channel.subscribe(Filter::Everything).allowance(octets);
                if has_outboxes {
                    let queue = subscription.queue(64, Overflow::DropOldest);
                    queue.call_on(0, handle)
                } else {
                    subscription.call_inline(0, handle)
                }
            };
            let connected =
                consumers.connect(record, (consumer, handle), &filter, subscribe, |_| ());
            connected.expect("it subscribes");
            Ok::<_, SystemException>(())
        });
        connected.expect("its proxy is there");
    }

    /// The registry.
    pub(crate) fn registry(&self) -> &Consumers<Service> {
        &self.service.consumers
    }

    /// A consumer of GIOP 1.2 at a listener.
    pub(crate) fn at(&self, listener: &TcpListener) -> Object {
        let port = listener.local_addr().expect("an address").port();
        let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/Consumer");
        self.orb.string_to_object(&url).expect("a reference")
    }

    /// Pushes an event with a number and octets.
    pub(crate) fn push(&self, number: i32, octets: &[u8]) {
        self.channel.push(&Event::new(1, number, octets.into()));
    }

    /// The state of a connected consumer.
    pub(crate) fn state(&self, number: u64) -> Option<ConsumerState> {
        let state = self.service.consumers.with(number, |record| {
            Ok::<_, SystemException>(record.connection().map(|it| it.state()))
        });
        state.ok().flatten()
    }

    /// Waits until the consumer is in a state.
    pub(crate) fn wait_until(&self, number: u64, is_so: impl Fn(&ConsumerState) -> bool) {
        let deadline = Deadline::after(LONG);
        while !self.state(number).is_some_and(|state| is_so(&state)) {
            assert!(!deadline.has_passed(), "{:?}", self.state(number));
            thread::yield_now();
        }
    }

    /// Waits until a consumer was evicted. Returns them all. `again` is called meanwhile.
    pub(crate) fn evictions(&self, mut again: impl FnMut()) -> Vec<(u64, EndCause)> {
        let deadline = Deadline::after(LONG);
        while self.service.evicted.lock().is_empty() {
            assert!(!deadline.has_passed(), "no consumer is evicted");
            again();
            thread::yield_now();
        }
        self.service.evicted.lock().clone()
    }

    /// Checks the consumers once, and waits for their answers for at most `limit`.
    pub(crate) fn check(&self, checks: &mut Checks, limit: Duration) {
        checks.run(&self.service, limit, |_, _| ());
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.service.consumers.stop();
        let links = self.links.take().expect("it runs");
        links.join().expect("it ends");
        let rest = self.service.consumers.close().expect("once");
        for record in rest.into_values() {
            if let Some(connection) = record.into_connection() {
                self.service.consumers.disconnect(connection, true);
            }
        }
        self.channel.close();
        self.orb.shutdown(true).expect("it runs");
    }
}

/// An ORB whose threads share connections, so that the calls of an object keep their order.
pub(crate) fn orb() -> Orb {
    let endpoint = ["p", "-ORBListenEndpoints", "iiop://127.0.0.1:0"];
    let mut config = OrbConfig::read(&mut endpoint.map(str::to_owned).to_vec()).expect("settings");
    config.client_connection = ConnectionStrategy::Leader;
    Orb::with_config(config).expect("an ORB")
}

/// An object without operations.
pub(crate) struct Nothing;

impl Skeleton for Nothing {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Consumer:1.0"
    }

    fn is_a(&self, id: &str) -> bool {
        id == self.repository_id()
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        _: &[u8],
        _: &mut chronorb_cdr::Decoder<'a>,
        _: &mut chronorb::ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        Ok(())
    }
}
