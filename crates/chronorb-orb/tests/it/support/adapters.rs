//! Servants with results that a test chooses, and a server for them.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::{Decoder, Frame};
use chronorb_giop::{
    HEADER_LEN, IiopProfile, LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader,
    MessageType, Target, encode_locate_request, finish_message, start_message,
};
use chronorb_orb::codegen::v1::reply_error;
use chronorb_orb::poa::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, Poa, Policy, RequestProcessing,
    ServantRetention,
};
use chronorb_orb::{
    Call, Ior, Object, Orb, OrbConfig, ReplyWriter, Servant, Skeleton, SystemException,
    SystemExceptionKind, Version, minor,
};

use super::{Latch, PATIENCE, PROBE_ID, call, orb, orb_with};

pub(crate) const USER: Policy = Policy::IdAssignment(IdAssignment::User);
pub(crate) const PERSISTENT: Policy = Policy::Lifespan(Lifespan::Persistent);
pub(crate) const MULTIPLE: Policy = Policy::IdUniqueness(IdUniqueness::Multiple);
pub(crate) const IMPLICIT: Policy = Policy::ImplicitActivation(ImplicitActivation::Implicit);
pub(crate) const NON_RETAIN: Policy = Policy::ServantRetention(ServantRetention::NonRetain);
pub(crate) const DEFAULT: Policy = Policy::RequestProcessing(RequestProcessing::DefaultServant);
pub(crate) const MANAGER: Policy = Policy::RequestProcessing(RequestProcessing::ServantManager);

/// The result of a servant.
pub(crate) type ReplyText = Result<String, SystemException>;

/// A servant whose operations have no arguments and return a string.
struct Teller<F> {
    tell: F,
    identity: Option<usize>,
}

impl<F> Skeleton for Teller<F>
where
    F: Fn(&Call<'_>) -> ReplyText + Send + Sync + 'static,
{
    fn repository_id(&self) -> &'static str {
        PROBE_ID
    }

    fn is_a(&self, id: &str) -> bool {
        id == PROBE_ID
    }

    fn identity(&self) -> usize {
        self.identity
            .unwrap_or_else(|| std::ptr::from_ref(self).addr())
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        _: &[u8],
        _: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let told = (self.tell)(call)?;
        reply.normal()?.write_str(&told).map_err(reply_error)
    }
}

/// Returns a servant that returns the result of `tell`.
pub(crate) fn teller(tell: impl Fn(&Call<'_>) -> ReplyText + Send + Sync + 'static) -> Servant {
    Arc::new(Teller {
        tell,
        identity: None,
    })
}

/// Returns a servant that returns its name.
pub(crate) fn named(name: impl Into<String>) -> Servant {
    let name = name.into();
    teller(move |_| Ok(name.clone()))
}

/// Returns one of several skeletons of the same servant.
pub(crate) fn skeleton_of(identity: usize) -> Servant {
    Arc::new(Teller {
        tell: |_: &Call<'_>| Ok(String::new()),
        identity: Some(identity),
    })
}

/// Returns a servant that holds a token, which shows whether the servant still exists.
pub(crate) fn holding(token: &Arc<()>) -> Servant {
    let token = token.clone();
    teller(move |_| {
        let _ = &token;
        Ok(String::new())
    })
}

/// Returns a servant that returns the id of its object in hexadecimal.
pub(crate) fn id_teller() -> Servant {
    teller(|call| Ok(hex(call.object_id().as_bytes())))
}

/// Returns a servant that signals its call (state 1) and waits until it may continue (state 2).
pub(crate) fn waiter(latch: &Arc<Latch>) -> Servant {
    let latch = latch.clone();
    teller(move |_| {
        latch.arrive();
        latch.reach(2);
        Ok("done".to_owned())
    })
}

/// Returns a servant that waits only in operations named `wait`.
pub(crate) fn waiter_if_asked(latch: &Arc<Latch>) -> Servant {
    let latch = latch.clone();
    teller(move |call| {
        if call.operation() == b"wait" {
            latch.arrive();
            latch.reach(2);
        }
        Ok("done".to_owned())
    })
}

pub(crate) fn ask(object: &Object) -> ReplyText {
    ask_for(object, "tell")
}

pub(crate) fn ask_for(object: &Object, operation: &'static str) -> ReplyText {
    call(object, operation, &|_| Ok(()), |d| {
        Ok(d.read_str()?.to_owned())
    })
}

pub(crate) fn told(text: &str) -> ReplyText {
    Ok(text.to_owned())
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|o| format!("{o:02x}")).collect()
}

/// Returns a standard system exception of a request that reached no servant.
pub(crate) fn omg(kind: SystemExceptionKind, code: u32) -> SystemException {
    SystemException::no(kind, minor::OMG | code)
}

pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, SystemException>) -> SystemExceptionKind {
    result.expect_err("an exception").kind
}

/// A server whose root POA is active, and a client.
pub(crate) struct Site {
    pub(crate) server: Orb,
    pub(crate) client: Orb,
    pub(crate) root: Poa,
}

pub(crate) fn site() -> Site {
    site_with(|_| {})
}

pub(crate) fn site_with(configure: impl FnOnce(&mut OrbConfig)) -> Site {
    let server = orb_with(|config| {
        config.threads = 4.into();
        configure(config);
    });
    let root = server.root_poa().expect("the endpoint opens");
    root.manager().activate().expect("it was not deactivated");
    Site {
        server,
        client: orb(),
        root,
    }
}

impl Site {
    /// Returns a child of the root with the same manager.
    pub(crate) fn poa(&self, name: &str, policies: &[Policy]) -> Poa {
        let manager = self.root.manager();
        let poa = self.root.create_poa(name, Some(manager), policies);
        poa.expect("the name is free and the policies agree")
    }

    /// Returns an object of the server from the client's point of view.
    pub(crate) fn remote(&self, object: &Object) -> Object {
        let text = self.server.object_to_string(object);
        self.client
            .string_to_object(&text)
            .expect("the reference reads")
    }

    /// Returns a reference to an object that need not be active, from the client's point of view.
    pub(crate) fn remote_to(&self, poa: &Poa, id: &str) -> Object {
        let object = poa.create_reference_with_id(&id.into(), PROBE_ID);
        self.remote(&object.expect("ids are the test's"))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.client.shutdown(false);
        // A failed test may have left a servant waiting.
        let _ = self.server.shutdown(!std::thread::panicking());
    }
}

pub(crate) fn profile_of(object: &Object) -> IiopProfile {
    IiopProfile::decode(&object.ior().profiles[0].data).expect("it is our own")
}

pub(crate) fn key_of(object: &Object) -> Vec<u8> {
    profile_of(object).object_key
}

/// Returns the reference with another profile.
pub(crate) fn with_profile(
    orb: &Orb,
    object: &Object,
    change: impl FnOnce(&mut IiopProfile),
) -> Object {
    let mut ior: Ior = object.ior().clone();
    let mut profile = profile_of(object);
    change(&mut profile);
    ior.profiles[0].data = profile.encode().expect("it fits");
    orb.ior_to_object(ior).expect("it is not nil")
}

/// Returns the reference with another object key.
pub(crate) fn with_key(orb: &Orb, object: &Object, key: &[u8]) -> Object {
    with_profile(orb, object, |profile| profile.object_key = key.to_vec())
}

/// A connection for locate requests.
pub(crate) struct Locator(BufReader<TcpStream>);

impl Locator {
    /// Connects to the server of an object.
    pub(crate) fn of(object: &Object) -> Self {
        let profile = profile_of(object);
        let stream = TcpStream::connect((profile.host.as_str(), profile.port));
        let stream = stream.expect("it listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("it is not zero");
        Self(BufReader::new(stream))
    }

    /// Sends locate requests for these keys at once, and returns the answers in order.
    pub(crate) fn locate<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Vec<LocateStatus> {
        let mut octets = Vec::new();
        for (request_id, key) in (0..).zip(keys) {
            let mut frame = Frame::new(64, 1 << 20);
            let mut e = start_message(&mut frame, Version::V1_2, MessageType::LocateRequest)
                .expect("it fits");
            let header = LocateRequestHeader {
                request_id,
                target: Target::Key(key.as_ref()),
            };
            encode_locate_request(&mut e, Version::V1_2, &header).expect("it fits");
            finish_message(&mut frame);
            octets.extend_from_slice(frame.as_slice());
        }
        let stream = self.0.get_mut();
        stream.write_all(&octets).expect("the server is there");
        // Threads of the server answer them in any order.
        let mut answers: Vec<_> = keys.iter().map(|_| self.receive()).collect();
        answers.sort_unstable_by_key(|answer| answer.request_id);
        answers.into_iter().map(|answer| answer.status).collect()
    }

    fn receive(&mut self) -> LocateReplyHeader {
        let mut octets = vec![0; HEADER_LEN];
        self.0.read_exact(&mut octets).expect("there is an answer");
        let message = MessageHeader::parse(&octets).expect("the server speaks GIOP");
        octets.resize(message.message_len(), 0);
        self.0
            .read_exact(&mut octets[HEADER_LEN..])
            .expect("all of it");
        let mut frame = Frame::new(octets.len(), octets.len());
        frame
            .extend_from_slice(&octets)
            .expect("it is as long as that");
        let arena = chronorb_cdr::Arena::new(0);
        let mut d = frame.decoder(HEADER_LEN, message.endian, &arena);
        LocateReplyHeader::decode(&mut d, message.version()).expect("a locate reply")
    }
}

/// Returns the server's answer to a locate request for an object.
pub(crate) fn locate(object: &Object) -> LocateStatus {
    Locator::of(object).locate(&[key_of(object)])[0]
}

/// Waits for a condition, and leaves the processor to others, including less urgent threads.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = chronorb_rt::Deadline::after(PATIENCE);
    while !is_so() {
        assert!(!deadline.has_passed(), "{what}");
        pause();
    }
}

/// Leaves the processor to others between two looks at a condition.
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}

/// A log of events in order.
#[derive(Default)]
pub(crate) struct Log(chronorb_rt::PiMutex<Vec<String>>);

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().push(what.into());
    }

    /// Returns the events since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// The time for other threads if there is only one processor.
const PAUSE: Duration = Duration::from_micros(100);
