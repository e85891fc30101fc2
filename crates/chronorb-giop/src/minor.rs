//! Minor codes, which tell the cause of a system exception.
//!
//! The upper 20 bits name the organization that defined the code (a *vendor minor codeset id*), the
//! lower 12 are its number. The codes of [`OMG`] are those of CORBA 3.3 part 1, annex A; those of
//! [`CHRONORB`] are specific to this ORB.

use crate::SystemExceptionKind;

/// The codes that the standard defines.
pub const OMG: u32 = 0x4f4d_0000;

/// The codes that this ORB defines.
pub const CHRONORB: u32 = 0x4352_0000;

/// Returns the description of `minor` in an exception of that kind; `None` for unknown codes and
/// codes of other ORBs.
pub fn meaning(kind: SystemExceptionKind, minor: u32) -> Option<&'static str> {
    MEANINGS
        .iter()
        .find(|known| known.0 == kind && known.1 == minor)
        .map(|known| known.2)
}

/// Returns all codes that this ORB knows, each with its exception and its meaning.
pub fn all() -> impl Iterator<Item = (SystemExceptionKind, u32, &'static str)> {
    MEANINGS.iter().copied()
}

macro_rules! minors {
    ($($kind:ident: $name:ident = $set:ident | $code:literal, $meaning:literal;)*) => {
        $(
            #[doc = concat!("`", stringify!($kind), "`: ", $meaning, ".")]
            pub const $name: u32 = $set | $code;
        )*

        const MEANINGS: &[(SystemExceptionKind, u32, &str)] = &[
            $((SystemExceptionKind::$kind, $name, $meaning),)*
        ];
    };
}

minors! {
    Unknown: UNLISTED_USER_EXCEPTION = OMG | 1,
        "a user exception that the operation does not declare";
    Unknown: NONSTANDARD_SYSTEM_EXCEPTION = OMG | 2,
        "a system exception that the standard does not have";
    BadParam: BAD_SCHEME = OMG | 7, "the scheme of the URL is not known";
    BadParam: BAD_ADDRESS = OMG | 8, "an address in the URL is wrong";
    BadParam: BAD_SCHEME_SPECIFIC = OMG | 9,
        "the part of the URL that belongs to its scheme is wrong";
    BadParam: STRING_TO_OBJECT = OMG | 10, "the string is not an object reference";
    BadParam: INVALID_OBJECT_ID = OMG | 14, "the object id is not one of this object adapter";
    BadParam: WIDE_CODE_SET_UNKNOWN = OMG | 23, "no code set for wide characters in the reference";
    BadParam: CONTEXT_ID_OUT_OF_RANGE = OMG | 24, "the id of a service context is out of range";
    BadParam: ENUM_OUT_OF_RANGE = OMG | 25, "an enumerator is out of range";
    BadParam: NIL_INITIAL_REFERENCE = OMG | 27, "an initial reference cannot be nil";
    BadParam: DUPLICATE_POLICY = OMG | 30, "two policies of one type";
    ImpLimit: PROFILES_UNUSABLE = OMG | 1, "no profile of the reference can be used";
    InvObjref: WIDE_CHAR_WITHOUT_CODE_SET = OMG | 1,
        "a wide character was sent and the reference names no code set for it";
    InvObjref: WIDE_CODE_SET_NOT_NAMED = OMG | 2,
        "the reference needs wide characters and names no code set for them";
    ObjectNotExist: VALUE_NOT_ACTIVATED = OMG | 1,
        "a value was passed as a reference without being activated";
    ObjectNotExist: NO_SUCH_ADAPTER = OMG | 2, "the object adapter cannot be found or made";
    ObjectNotExist: ADAPTER_INACTIVE = OMG | 4, "the object adapter is inactive";
    ObjectNotExist: ALREADY_REPLIED = OMG | 5,
        "the reply to the asynchronous call was taken already";
    Marshal: NO_VALUE_FACTORY = OMG | 1, "no factory for a value type";
    Marshal: LOCAL_OBJECT_SENT = OMG | 4, "a local object cannot be sent";
    Marshal: WIDE_CHAR_SENT_OVER_1_0 = OMG | 5, "wide characters cannot be sent in GIOP 1.0";
    Marshal: WIDE_CHAR_RECEIVED_OVER_1_0 = OMG | 6,
        "wide characters cannot be received in GIOP 1.0";
    Marshal: CODE_SETS_CHANGED = OMG | 9,
        "the code sets differ from those of the connection's first request";
    Initialize: PRIORITY_RANGE_TOO_SMALL = OMG | 1, "the range of priorities is too small";
    NoImplement: PROFILES_NOT_IMPLEMENTED = OMG | 3, "no profile of the reference can be used";
    NoImplement: DYNAMIC_CALL_OF_LOCAL_OBJECT = OMG | 4, "a local object has no dynamic invocation";
    NoImplement: NOT_FOR_LOCAL_OBJECTS = OMG | 8, "a local object does not have this operation";
    BadOperation: OPERATION_UNKNOWN = OMG | 2, "the object has no such operation";
    BadOperation: GROUPS_DO_NOT_ANSWER = CHRONORB | 1,
        "a group of objects has no answer to give: only oneway operations can be called";
    NoResources: INTERCEPTOR_INFORMATION = OMG | 1,
        "the interceptor's call has no such information";
    NoResources: NO_CONNECTION_FOR_PRIORITY = OMG | 2,
        "there is no connection for the priority of the request";
    BadInvOrder: WOULD_DEADLOCK = OMG | 3, "the call would wait for itself";
    BadInvOrder: ORB_SHUT_DOWN = OMG | 4, "the ORB has been shut down";
    BadInvOrder: SERVANT_MANAGER_ALREADY_SET = OMG | 6, "the servant manager is set already";
    BadInvOrder: INTERCEPTOR_CALL_NOT_NOW = OMG | 14, "the interceptor cannot call this now";
    BadInvOrder: SERVICE_CONTEXT_EXISTS = OMG | 15, "the service context exists already";
    BadInvOrder: POLICY_FACTORY_EXISTS = OMG | 16, "the policy factory exists already";
    BadInvOrder: ADAPTER_BEING_DESTROYED = OMG | 17, "the object adapter is being destroyed";
    BadInvOrder: PRIORITY_ALREADY_SET = OMG | 18, "the priority of the object cannot be set again";
    Transient: REQUEST_DISCARDED = OMG | 1, "the request was discarded";
    Transient: NO_USABLE_PROFILE = OMG | 2, "no profile of the reference can be reached";
    Transient: REQUEST_CANCELED = OMG | 3, "the request was canceled";
    Transient: ADAPTER_DESTROYED = OMG | 4, "the object adapter is destroyed";
    ObjAdapter: ADAPTER_ACTIVATOR_FAILED = OMG | 1, "the adapter activator failed";
    ObjAdapter: WRONG_SERVANT_TYPE = OMG | 2,
        "the servant manager returned a servant of the wrong type";
    ObjAdapter: NO_DEFAULT_SERVANT = OMG | 3, "there is no default servant";
    ObjAdapter: NO_SERVANT_MANAGER = OMG | 4, "there is no servant manager";
    ObjAdapter: SERVANT_VIOLATES_POLICY = OMG | 5,
        "the servant of the servant manager is another object already";
    ObjAdapter: NULL_SERVANT = OMG | 7, "the servant manager returned no servant";
    DataConversion: CHAR_NOT_MAPPED = OMG | 1, "a character does not exist in the other code set";
    DataConversion: PRIORITY_MAPPING_FAILED = OMG | 2, "the priority cannot be mapped";
    InvPolicy: POLICIES_CONFLICT = OMG | 1, "the policies of client and server do not agree";
    InvPolicy: POLICY_TYPE_INVALID = OMG | 2, "the type of the policy is wrong";
    InvPolicy: NO_POLICY_FACTORY = OMG | 3, "there is no factory for the policy";
    Timeout: TIMEOUT_POLLER = OMG | 1, "the reply did not come while it was polled for";
    Timeout: TIMEOUT_REQUEST_END = OMG | 2, "the request came after its end time";
    Timeout: TIMEOUT_REPLY_END = OMG | 3, "the reply came after its end time";
    CodesetIncompatible: NO_COMMON_CODE_SET = OMG | 1,
        "client and server have no code set in common";
    CodesetIncompatible: CODE_SET_NOT_SUPPORTED = OMG | 2,
        "the code sets of the request are not supported";

    Marshal: END_OF_DATA = CHRONORB | 1, "the message ends within a value";
    Marshal: LENGTH_OVERFLOW = CHRONORB | 2, "a length is greater than the message";
    Marshal: BOUND_EXCEEDED = CHRONORB | 3, "a string or sequence is longer than its bound";
    Marshal: UNTERMINATED_STRING = CHRONORB | 4, "a string does not end in NUL";
    Marshal: EMBEDDED_NUL = CHRONORB | 5, "a string has a NUL within it";
    Marshal: INVALID_UTF8 = CHRONORB | 6, "a string is not valid UTF-8";
    Marshal: INVALID_WIDE_CHAR = CHRONORB | 7, "a wide character or string is not valid UTF-16";
    Marshal: INVALID_ENUM = CHRONORB | 8, "an enumerator is out of range";
    Marshal: INVALID_DISCRIMINATOR = CHRONORB | 9, "a discriminator has no meaning for its type";
    Marshal: TOO_DEEP = CHRONORB | 10, "values are nested too deeply";
    Marshal: BAD_REFERENCE = CHRONORB | 11, "an object reference cannot be read or written";
    Marshal: OTHER_MARSHAL_FAILURE = CHRONORB | 12, "a value cannot be marshalled";
    NoMemory: ARENA_FULL = CHRONORB | 1, "the arena for decoded values is full";
    NoMemory: OUT_OF_MEMORY = CHRONORB | 2, "there is no memory for the message";
    Marshal: MALFORMED_MESSAGE = CHRONORB | 13,
        "the message is malformed, or not the one that was expected";
    Marshal: WRONG_VALUE_TYPE = CHRONORB | 20, "a value is of another type than is expected";
    Marshal: INVALID_VALUE = CHRONORB | 21, "a value of a value type is malformed";
    Marshal: CYCLIC_VALUE = CHRONORB | 22, "a value is within itself";
    Marshal: TOO_MANY_VALUES = CHRONORB | 23, "there are too many values in a message";
    ImpLimit: POA_PATH_TOO_LONG = CHRONORB | 2,
        "the names of the object adapters are too long together, or too many";
    ImpLimit: TOO_MANY_POAS = CHRONORB | 3, "there are too many object adapters";
    ImpLimit: TOO_MANY_OBJECTS = CHRONORB | 4, "the object adapter has too many objects";
    ImpLimit: TOO_MANY_ADDRESSES = CHRONORB | 5,
        "the object reference has more addresses than a call may try";
    ImpLimit: TOO_MANY_REFERENCES = CHRONORB | 6,
        "the object references of one message need more memory than they may";
    ImpLimit: TOO_MANY_REPLY_OCTETS = CHRONORB | 7,
        "replies that were not fetched need more memory than those of a connection may";
    ImpLimit: TOO_MUCH_WORK = CHRONORB | 8, "the message takes more work than its size allows";
    ImpLimit: TOO_MANY_DISTRIBUTABLE_THREADS = CHRONORB | 9,
        "a thread has too many distributable threads within each other";
    CommFailure: CONNECTION_LOST = CHRONORB | 1, "the connection was lost";
    Transient: FORWARD_LOOP = CHRONORB | 1, "the request was forwarded too many times";
    Transient: TOO_MANY_PENDING = CHRONORB | 2,
        "as many asynchronous calls are under way as may be";
    Transient: REQUEST_SKIPPED = CHRONORB | 3,
        "the request was skipped, because its operation exceeded its budget before";
    ObjectNotExist: NO_SUCH_OBJECT = CHRONORB | 1, "the object adapter has no such object";
    ObjectNotExist: MUTEX_DESTROYED = CHRONORB | 2, "the mutex was destroyed";
    BadInvOrder: MUTEX_NOT_OWNED = CHRONORB | 1, "the mutex is not locked by this thread";
    BadInvOrder: MUTEX_OWNER_ENDED = CHRONORB | 2, "the thread that locked the mutex has ended";
    BadInvOrder: MUTEX_IN_USE = CHRONORB | 3, "the mutex is locked";
    ObjAdapter: POA_MANAGER_INACTIVE = CHRONORB | 1,
        "the manager of the object adapter is inactive";
    IntfRepos: NO_INTERFACE_REPOSITORY = CHRONORB | 1, "there is no interface repository";
    Unknown: SERVANT_PANICKED = CHRONORB | 1, "the servant panicked";
    BadInvOrder: NO_SCHEDULING_SEGMENT = CHRONORB | 5,
        "the calling thread is in no scheduling segment";
    BadInvOrder: PROCESS_FORKED = CHRONORB | 6,
        "the process was forked from one that the ORB belongs to";
    BadInvOrder: THREADPOOL_IN_USE = CHRONORB | 4,
        "object adapters are still served by the thread pool";
    InvPolicy: NO_ENDPOINT_TO_TELL = CHRONORB | 1,
        "the server listens by none of the protocols that references to the object may tell of";
    InvPolicy: POLICY_UNREADABLE = CHRONORB | 2, "a policy in the reference cannot be read";
    InvPolicy: FAILOVER_UNSUPPORTED = CHRONORB | 3,
        "the fail-over policy is AT_MOST_ONCE, or one of its times is zero";
    Internal: MAPPING_PANICKED = CHRONORB | 1,
        "the priority mapping or transform of the application panicked";
    NoPermission: NATIVE_PRIORITY_REFUSED = CHRONORB | 1,
        "the operating system refuses the priority to this thread";
    NoPermission: NO_PROTECTION = CHRONORB | 2,
        "the reference or this ORB allows protected connections only, and there is none: the two \
        sides do not believe each other, or one has no TLS";
    NoPermission: PRIORITY_ABOVE_CEILING = CHRONORB | 4,
        "the request has a priority above what clients may propagate";
    NoPermission: REFUSED_BY_RULES = CHRONORB | 6,
        "the client's access rules permit none of the reference's addresses";
    NoPermission: NOT_AUTHORIZED = CHRONORB | 7,
        "the authorizer of the object adapter refuses the request";
    NoPermission: NOT_BIDIRECTIONAL = CHRONORB | 8,
        "the object adapter takes no requests on connections that its own ORB opened";
    NoResources: TOO_MANY_CONNECTIONS = CHRONORB | 1,
        "there are as many connections as there may be, and none is idle";
    Rebind: FORWARD_FORBIDDEN = CHRONORB | 1,
        "the rebind policy forbids to follow the location forward";
    Rebind: RECONNECT_FORBIDDEN = CHRONORB | 2,
        "the connection has ended, and the rebind policy forbids to make another";
    Marshal: INVALID_FIXED = CHRONORB | 14, "a fixed-point value is not valid";
    BadParam: VALUE_OUT_OF_RANGE = CHRONORB | 1, "a value is outside of the range of its type";
    BadParam: WRONG_SEGMENT_NAME = CHRONORB | 2,
        "another scheduling segment than the named one is the innermost";
    BadParam: NO_ARENA_IN_ANY = CHRONORB | 3,
        "an any that was made to be sent has no arena for its value";
    BadTypecode: INVALID_TYPE_CODE = CHRONORB | 1, "a type code is not valid";
    BadTypecode: WRONG_TYPE_IN_ANY = CHRONORB | 2, "an any holds a value of another type";
    NoImplement: OPAQUE_VALUE_IN_ANY = CHRONORB | 1,
        "an any holds a value that cannot be read without its type's code";
    ImpLimit: MESSAGE_TOO_LARGE = CHRONORB | 1, "the message is greater than its limit";
}
