//! The oneway requests of one operation of an object, sent by any thread without waiting.

use std::cell::Cell;
use std::sync::Arc;

use chronorb_cdr::Frame;
use chronorb_giop::{SystemException, SystemExceptionKind, Version, minor, set_message_len};
use chronorb_rt::Deadline;
use chronorb_transport::{Connection, IoError};

use super::attempt::Attempt;
use super::binding::{self, BindingKey};
use super::connection::{ChannelKind, SharedOwner};
use super::explicit::bind_one;
use super::invocation::Invocation;
use super::request;
use crate::call::Operation;
use crate::core::Object;
use crate::encoded_body::BodyForm;
use crate::incident::{Incident, Incidents};
use crate::rtcorba::scheduling::CallConstraint;
use crate::rtcorba::{ClientPolicy, Priority, SetOverride, SyncScope};
use crate::scope::{self, Scope};

/// A private connection to an object, for the oneway requests of one operation. It is read by no
/// thread.
pub(crate) struct OnewayPath {
    owner: Arc<SharedOwner>,
    incidents: Arc<Incidents>,
    /// The most octets of a message.
    pub(crate) max_message: usize,
    /// The form that the text of bodies must have.
    pub(crate) form: BodyForm,
}

/// The header of the requests of a path, which differ in their ids and lengths only.
pub(crate) struct RequestHead {
    /// The header of a message, with the padding for a body.
    octets: Frame,
    /// The position of the padding.
    end: usize,
    /// The position of the request's id.
    id_at: usize,
}

impl OnewayPath {
    /// Connects to an object at a priority, and asks the server for the object, so that forwards
    /// are followed.
    ///
    /// # Errors
    /// Those of a call. `NO_IMPLEMENT` (OMG minor 3) if the requests have no form that encoded
    /// bodies fit: a group, a protocol of datagrams, GIOP 1.0 or 1.1.
    pub(crate) fn open(
        object: &Object,
        operation: &Operation,
        priority: Option<Priority>,
    ) -> Result<(Self, RequestHead), SystemException> {
        let core = object.core();
        core.check_running()?;
        // The header is the same for all requests, so it cannot say how much time is left.
        let _without = CallConstraint::none().carry();
        #[cfg(feature = "miop")]
        if object.group().is_some() {
            return Err(NO_FORM);
        }
        #[cfg(feature = "bidir")]
        if object.path().is_some() {
            return Err(NO_FORM);
        }
        let policies = [
            ClientPolicy::PrivateConnection,
            ClientPolicy::SyncScope(SyncScope::WithTransport),
        ];
        let target = object.with_policy_overrides(&policies, SetOverride::Add)?;
        let deadline = Deadline::after_nanos(target.time_out());
        let key = BindingKey::new(&target, priority, ChannelKind::Leader);
        let call = Invocation::new(key, deadline, Attempt::explicit());
        Scope::with(|scope| bind_one(&target, call, scope))?;
        let binding = binding::bind(key, &target, true, deadline, &Cell::new(false))?;
        let connection = &binding.connection;
        let mut octets = scope::frame();
        let operation = Operation::oneway(operation.name);
        let head = request::write_constant_header(&binding, &mut octets, &operation)?;
        let fits = connection.link().is_stream()
            && binding.version >= Version::V1_2
            && octets.len().is_multiple_of(8);
        let owner = connection.shared().filter(|_| fits).cloned();
        connection.keep();
        // From here on it belongs to no thread.
        binding::forget(key);
        binding::drop_connection(connection);
        let (Some(owner), Some((end, id_at))) = (owner, head) else {
            return Err(NO_FORM);
        };
        let path = Self {
            owner,
            incidents: core.incidents.clone(),
            max_message: core.config.max_message_size,
            form: BodyForm::of(connection.text),
        };
        Ok((path, RequestHead { octets, end, id_at }))
    }

    pub(crate) fn transport(&self) -> &dyn Connection {
        self.owner.shared.link.transport()
    }

    /// Sends as much of a request as fits, of which `sent` octets were sent before. Returns the
    /// number of octets that it has sent by now.
    ///
    /// # Errors
    /// [`IoError::WouldBlock`] where nothing fits; others where the connection has ended.
    pub(crate) fn try_send(&self, head: &[u8], body: &[u8], sent: usize) -> Result<usize, IoError> {
        if self.owner.shared.link.is_closed() {
            return Err(IoError::Closed);
        }
        let transport = self.transport();
        let now = match (head.get(sent..), body) {
            (Some(head @ [_, ..]), []) => transport.try_send(head)?,
            (Some(head @ [_, ..]), body) => transport.try_send_both(head, body)?,
            _ => transport.try_send(&body[sent - head.len()..])?,
        };
        Ok(sent + now)
    }

    pub(crate) fn next_request_id(&self) -> u32 {
        self.owner.shared.next_request_id()
    }

    /// Closes the connection.
    pub(crate) fn close(&self) {
        self.owner.shared.close();
    }

    /// Notes that requests were lost with the connection.
    pub(crate) fn note_lost(&self, number: u64) {
        let way = &self.owner.key.way;
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.incidents.note(Incident::LostOneways, way, number);
    }
}

impl RequestHead {
    /// Makes it the header of a request with an id and a body of a length.
    pub(crate) fn set(&mut self, id: u32, body: usize) {
        let total = u32::try_from(self.len(body) + body).unwrap_or(u32::MAX);
        set_message_len(&mut self.octets, total);
        let id_at = self.id_at;
        self.octets.as_mut_slice()[id_at..id_at + 4].copy_from_slice(&id.to_ne_bytes());
    }

    /// The octets for a body of a length.
    pub(crate) fn octets(&self, body: usize) -> &[u8] {
        &self.octets.as_slice()[..self.len(body)]
    }

    /// The length for a body of a length: without a body there is no padding.
    pub(crate) fn len(&self, body: usize) -> usize {
        if body == 0 {
            self.end
        } else {
            self.octets.len()
        }
    }
}

const NO_FORM: SystemException = SystemException::no(
    SystemExceptionKind::NoImplement,
    minor::PROFILES_NOT_IMPLEMENTED,
);
