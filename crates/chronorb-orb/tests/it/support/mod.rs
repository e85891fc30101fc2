//! A handwritten servant, and independent ORBs.

pub(crate) mod adapters;
pub(crate) mod asynchronous;
pub(crate) mod descriptors;
#[cfg(feature = "miop")]
pub(crate) mod group;
pub(crate) mod laned;
pub(crate) mod pools;
pub(crate) mod raw_server;
pub(crate) mod relay;
pub(crate) mod strategies;

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_cdr::{Decoder, Encoder};
use chronorb_orb::codegen::v1::{bad_operation, reply_error, unknown_user_exception};
use chronorb_orb::poa::CreatePoaError;
use chronorb_orb::{
    Call, CdrError, CompletionStatus, Object, Operation, Orb, OrbConfig, Reply, ReplyWriter, Scope,
    Skeleton, SystemException, SystemExceptionKind,
};
use chronorb_rt::{Deadline, Gate};

/// A servant that returns its observations.
#[derive(Default)]
pub(crate) struct Probe {
    pub(crate) notes: AtomicU32,
    pub(crate) gate: Arc<Latch>,
}

/// A latch by which a test controls when a servant continues.
pub(crate) struct Latch(Gate);

impl Default for Latch {
    fn default() -> Self {
        Self(Gate::new(0))
    }
}

impl Latch {
    /// Waits until the state is at least `state`; a test that gets stuck fails here.
    pub(crate) fn reach(&self, state: u32) {
        let deadline = Deadline::after(PATIENCE);
        loop {
            let now = self.0.get();
            if now >= state {
                return;
            }
            assert!(!deadline.has_passed(), "state {state} was not reached");
            self.0.wait_while(now, deadline);
        }
    }

    pub(crate) fn set(&self, state: u32) {
        self.0.set(state);
    }

    /// Signals an arrival, unless the test has continued already.
    pub(crate) fn arrive(&self) {
        let _ = self.0.compare_set(0, 1);
    }
}

pub(crate) const PROBE_ID: &str = "IDL:Test/Probe:1.0";
pub(crate) const BASE_ID: &str = "IDL:Test/Base:1.0";
pub(crate) const REFUSED_ID: &str = "IDL:Test/Refused:1.0";
/// The time for what happens unless something is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A skeleton as the compiler would generate it; shared, so that tests have access to the servant.
pub(crate) struct ProbeSkeleton(pub(crate) Arc<Probe>);

impl Skeleton for ProbeSkeleton {
    fn repository_id(&self) -> &'static str {
        PROBE_ID
    }

    fn is_a(&self, id: &str) -> bool {
        id == PROBE_ID || id == BASE_ID
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            b"add" => {
                let (a, b) = (d.read_i32()?, d.read_i32()?);
                reply
                    .normal()?
                    .write_i32(a.wrapping_add(b))
                    .map_err(reply_error)
            }
            b"echo" => {
                let text = d.read_str()?;
                reply.normal()?.write_str(text).map_err(reply_error)
            }
            b"letter" => {
                let letter = d.read_char()?;
                reply.normal()?.write_char(letter).map_err(reply_error)
            }
            b"octets" => {
                let octets = d.read_octet_seq()?;
                reply.normal()?.write_octet_seq(octets).map_err(reply_error)
            }
            b"big" => reply
                .normal()?
                .write_octet_seq(&[7; 60_000])
                .map_err(reply_error),
            b"refuse" => {
                let why = d.read_str()?;
                let e = reply.user_exception(REFUSED_ID)?;
                e.write_str(why).map_err(reply_error)
            }
            b"fail" => Err(SystemException::maybe(
                SystemExceptionKind::NoPermission,
                42,
            )),
            b"panic" => panic!("the servant was asked to"),
            b"priority" => {
                let corba = call.priority().map_or(-1, |p| p.value());
                let native = chronorb_rt::current().map_or(-1, |s| i32::from(s.priority));
                let e = reply.normal()?;
                e.write_i16(corba)
                    .and_then(|()| e.write_i32(native))
                    .map_err(reply_error)
            }
            b"relay" => {
                let target = Object::decode_reference(d)?;
                let target = target.ok_or(SystemException::no(SystemExceptionKind::BadParam, 0))?;
                let (corba, native) = priority(&target)?;
                let e = reply.normal()?;
                e.write_i16(corba)
                    .and_then(|()| e.write_i32(native))
                    .map_err(reply_error)
            }
            b"raise" => {
                // A change of the servant's priority, which must end with the upcall.
                let priority = chronorb_orb::rtcorba::Priority::new(d.read_i16()?);
                let priority = priority.ok_or_else(bad_operation)?;
                call.orb().rt_current().set_priority(priority)?;
                reply.normal()?;
                Ok(())
            }
            b"note" => {
                self.0.notes.fetch_add(1, Ordering::Relaxed);
                self.0.gate.set(1);
                Ok(())
            }
            b"wait" => {
                self.0.gate.set(1);
                self.0.gate.reach(2);
                reply.normal()?;
                Ok(())
            }
            b"id" => {
                let e = reply.normal()?;
                e.write_octet_seq(call.object_id().as_bytes())
                    .map_err(reply_error)
            }
            _ => Err(bad_operation()),
        }
    }
}

/// Returns an ORB for this test alone, on the loopback.
pub(crate) fn orb_with(configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    let mut args: Vec<String> = [
        "-ORBListenEndpoints",
        "iiop://127.0.0.1:0",
        "-ORBThreads",
        "2",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut config = OrbConfig::read(&mut args).expect("the options are correct");
    config.request_timeout = PATIENCE;
    configure(&mut config);
    Orb::with_config(config).expect("an ORB can be made")
}

pub(crate) fn orb() -> Orb {
    orb_with(|_| {})
}

/// An ORB that serves a probe, and the probe from the point of view of another ORB's client.
pub(crate) struct ServedProbe {
    pub(crate) server: Orb,
    pub(crate) client: Orb,
    pub(crate) probe: Arc<Probe>,
    pub(crate) object: Object,
}

pub(crate) fn served() -> ServedProbe {
    served_by(orb())
}

pub(crate) fn served_by(server: Orb) -> ServedProbe {
    let probe = Arc::new(Probe::default());
    let root = server.root_poa().expect("the endpoint opens");
    let object = root
        .serve(ProbeSkeleton(probe.clone()))
        .expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = orb();
    let text = server.object_to_string(&object);
    let object = client.string_to_object(&text).expect("the reference reads");
    ServedProbe {
        server,
        client,
        probe,
        object,
    }
}

impl Drop for ServedProbe {
    fn drop(&mut self) {
        self.probe.gate.set(u32::MAX);
        let _ = self.client.shutdown(false);
        let _ = self.server.shutdown(true);
    }
}

type Write<'f> = &'f dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>;

/// Calls an operation and reads its result with `read`.
pub(crate) fn call<R>(
    object: &Object,
    name: &'static str,
    write: Write<'_>,
    read: impl FnOnce(&mut Decoder<'_>) -> Result<R, CdrError>,
) -> Result<R, SystemException> {
    Scope::with(
        |scope| match object.invoke(scope, &Operation::twoway(name), write)? {
            Reply::Normal(mut d) => {
                let result = read(&mut d).map_err(reply_error)?;
                assert!(d.is_empty(), "octets are left after the result of {name}");
                Ok(result)
            }
            Reply::UserException(..) => Err(unknown_user_exception()),
        },
    )
}

pub(crate) fn add(object: &Object, a: i32, b: i32) -> Result<i32, SystemException> {
    call(
        object,
        "add",
        &|e| e.write_i32(a).and_then(|()| e.write_i32(b)),
        |d| d.read_i32(),
    )
}

pub(crate) fn echo(object: &Object, text: &str) -> Result<String, SystemException> {
    call(object, "echo", &|e| e.write_str(text), |d| {
        Ok(d.read_str()?.to_owned())
    })
}

/// Returns the index of the policy because of which no POA was created.
pub(crate) fn invalid_policy<T>(made: Result<T, CreatePoaError>) -> Option<u16> {
    match made {
        Err(CreatePoaError::InvalidPolicy { index, .. }) => Some(index),
        _ => None,
    }
}

pub(crate) fn nothing(object: &Object, name: &'static str) -> Result<(), SystemException> {
    call(object, name, &|_| Ok(()), |_| Ok(()))
}

/// Returns the CORBA priority and the native priority of a served request.
pub(crate) fn priority(object: &Object) -> Result<(i16, i32), SystemException> {
    call(object, "priority", &|_| Ok(()), |d| {
        Ok((d.read_i16()?, d.read_i32()?))
    })
}

/// Returns the same values of another object, which the servant of this one calls.
pub(crate) fn relayed(object: &Object, target: &Object) -> Result<(i16, i32), SystemException> {
    call(
        object,
        "relay",
        &|e| Object::encode_reference(Some(target), e),
        |d| Ok((d.read_i16()?, d.read_i32()?)),
    )
}

/// Calls with a timeout that is longer each time, until the request was sent in time: on a busy
/// machine a short one may pass before that, which the exception shows.
pub(crate) fn with_short_timeout<T>(
    object: &Object,
    mut call: impl FnMut(&Object) -> Result<T, SystemException>,
) -> Result<T, SystemException> {
    with_longer_times(Duration::from_millis(50), |time| {
        let result = call(&object.with_timeout(time));
        let is_unsent = result.as_ref().is_err_and(|exception| {
            (exception.kind, exception.completed)
                == (SystemExceptionKind::Timeout, CompletionStatus::No)
        });
        (!is_unsent).then_some(result)
    })
}

/// Tries with twice the time each time, until there is a result. On a busy machine a short time may
/// pass before the test has done its part.
pub(crate) fn with_longer_times<R>(
    first: Duration,
    mut attempt: impl FnMut(Duration) -> Option<R>,
) -> R {
    let mut time = first;
    loop {
        if let Some(result) = attempt(time) {
            return result;
        }
        assert!(time < PATIENCE, "{time:?} are not enough");
        time *= 2;
    }
}

pub(crate) fn kind_and_completion(
    result: Result<impl std::fmt::Debug, SystemException>,
) -> (SystemExceptionKind, CompletionStatus) {
    let exception = result.expect_err("an exception");
    (exception.kind, exception.completed)
}

/// Returns the name of a test, by which this program runs it alone (`--exact`) when it starts
/// itself.
pub(crate) fn name_of<T>(_test: T) -> &'static str {
    let path = std::any::type_name::<T>();
    path.split_once("::").expect("it is in a module").1
}

/// Returns whether this process may use real-time scheduling.
pub(crate) fn has_real_time() -> bool {
    chronorb_rt::Rights::probe().max_fifo.is_some()
}

/// Returns a listener whose backlog of one connection is full, so that connection attempts get no
/// answer, and that connection.
pub(crate) fn full_listener() -> (TcpListener, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    rustix::net::listen(&listener, 0).expect("it listens already");
    let address = listener.local_addr().expect("it is bound");
    let filler = TcpStream::connect(address).expect("there is room");
    (listener, filler)
}
