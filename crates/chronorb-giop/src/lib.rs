//! GIOP, the protocol between ORBs, as octets in and values out: there is no
//! socket, clock or thread here.
//!
//! * Messages: [`MessageHeader`], [`RequestHeader`], [`ReplyHeader`],
//!   [`LocateRequestHeader`], [`LocateReplyHeader`], in GIOP 1.0, 1.1 and 1.2
//!   and in both byte orders, and in [`GiopLite`].
//! * The common interface of these [message protocols](MessageProtocol).
//! * Messages in a stream of octets: [`framing`]; messages in parts:
//!   [`fragments`]; the messages of one connection, within bounds: [`connection`].
//! * Object references: [`Ior`], [`IiopProfile`], [`Component`], and their
//!   forms as text: [`url`]. References to groups: [`UipmcProfile`].
//! * [`SystemException`] and its [`minor`] codes.
//! * [`codesets`]: the code set of text. [`contexts`]: the data of a request besides its
//!   parameters.
//!
//! The source of all this is CORBA 3.3 part 2, clauses 7 and 9.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod codesets;
pub mod connection;
pub mod contexts;
pub mod fragments;
pub mod framing;
pub mod minor;
pub mod name_text;
pub mod url;

mod component;
mod encapsulation;
mod end_times;
mod exception;
mod group;
mod header;
mod ior;
mod lite;
mod local;
mod locate;
mod policies;
mod profile;
mod protocol;
mod reply;
mod request;
mod scheduling;
mod ssl;
mod target;

pub use component::{
    Component, ComponentError, TAG_ALTERNATE_IIOP_ADDRESS, TAG_CODE_SETS, TAG_ORB_TYPE,
    TAG_POLICIES, TAG_SSL_SEC_TRANS, TAG_TAO_ENDPOINTS, TaggedComponent, TaoEndpoint,
    TaoPathEndpoint,
};
pub use contexts::ServiceContext;
pub use end_times::{EndTimes, UtcTime};
pub use exception::{CompletionStatus, SystemException, SystemExceptionKind};
pub use group::{
    GroupId, TAG_GROUP, TAG_GROUP_IIOP, TAG_UIPMC, TargetGroup, UipmcProfile, parse_group_url,
};
pub use header::{
    HEADER_LEN, HeaderError, MessageHeader, MessageType, Version, finish_message, set_message_len,
    start_message, start_message_in, write_header,
};
pub use ior::{Ior, IorError, TaggedProfile};
pub use lite::GiopLite;
pub use local::{OmniOrbUnixAddress, Place, TAG_OMNIORB_UNIX_TRANS, TAG_PLACE};
pub use locate::{
    LocateReplyHeader, LocateRequestHeader, LocateStatus, encode_locate_reply,
    encode_locate_request,
};
pub use policies::{
    POLICY_BIDIRECTIONAL, POLICY_BUFFERING_CONSTRAINT, POLICY_CLIENT_PROTOCOL,
    POLICY_CONNECTION_TIMEOUT, POLICY_FAILOVER, POLICY_PRIORITY_BANDED_CONNECTION,
    POLICY_PRIORITY_MODEL, POLICY_PRIVATE_CONNECTION, POLICY_REBIND,
    POLICY_RELATIVE_REQUEST_TIMEOUT, POLICY_RELATIVE_ROUNDTRIP_TIMEOUT, POLICY_REPLY_END_TIME,
    POLICY_REQUEST_END_TIME, POLICY_SERVER_PROTOCOL, POLICY_SYNC_SCOPE, Policies, PolicyValue,
    PriorityBandValue, PriorityModelValue, ProtocolValue, TcpPropertiesValue,
};
pub use profile::{
    IiopProfile, PathProfile, TAG_DIOP, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, TAG_SHMIOP,
    TAG_UIOP, decode_components,
};
pub use protocol::{MessageProtocol, Protocol};
pub use reply::{ReplyHeader, ReplyStatus, encode_reply, reply_id, start_reply, start_usual_reply};
pub use request::{
    HeaderPlaces, RequestHeader, ResponseFlags, decode_cancel_request, encode_cancel_request,
    encode_request,
};
pub use scheduling::{
    AbsoluteDeadline, SchedulingContext, SchedulingDiscipline, SynchronisedClock,
};
pub use ssl::{AssociationOptions, SslSecTrans, TAG_SSLIOP_LANES};
pub use target::{AddressingDisposition, TaggedProfileView, Target};
