//! The ORB of commands that call objects, and the errors that they report.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use chronorb_orb::{
    InitError, Object, Orb, OrbConfig, RealTimeMode, SystemException, SystemExceptionKind, minor,
};
use chronorb_rt::visible;
use thiserror::Error;

/// The ORB of one command.
pub(crate) struct Client {
    pub(crate) orb: Orb,
}

/// A command that calls objects could not do its work.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    /// The ORB cannot be made.
    #[error(transparent)]
    Init(#[from] InitError),
    /// A reference cannot be read from a file, or from standard input.
    #[error("the reference in {from}: {source}")]
    Input { from: String, source: io::Error },
    /// The text is no reference, or a call failed.
    #[error("{subject}: {cause}{}", advice(*exception, *was_asked))]
    Failed {
        /// The action that failed and its object.
        subject: String,
        exception: SystemException,
        /// The exception, and its cause as far as it is known.
        cause: String,
        /// Whether a server was asked: not where the reference, or this command, lets nothing be
        /// sent.
        was_asked: bool,
    },
}

impl ClientError {
    /// Whether this is a failed call with an exception of this kind.
    pub(crate) fn is_kind(&self, kind: SystemExceptionKind) -> bool {
        matches!(self, Self::Failed { exception, .. } if exception.kind == kind)
    }
}

impl Client {
    /// Makes an ORB whose calls take at most `timeout`.
    pub(crate) fn new(mut config: OrbConfig, timeout: Duration) -> Result<Self, ClientError> {
        config.request_timeout = timeout;
        config.connect_timeout = config.connect_timeout.min(timeout);
        if config.real_time == RealTimeMode::Preferred {
            // No command needs a right to priorities.
            config.real_time = RealTimeMode::Off;
        }
        let orb = Orb::with_config(config)?;
        Ok(Self { orb })
    }

    /// Returns the object of a reference: a URL, the name of a file that holds one, or `-` for
    /// standard input.
    pub(crate) fn object(&self, reference: &str) -> Result<Object, ClientError> {
        let text = text(reference)?;
        let object = self.orb.string_to_object(&text);
        object.map_err(|exception| self.failed(shortened(&text), exception))
    }

    /// Converts an exception of this thread's last call.
    pub(crate) fn failed(
        &self,
        subject: impl Into<String>,
        exception: SystemException,
    ) -> ClientError {
        ClientError::Failed {
            subject: subject.into(),
            exception,
            cause: self.cause(exception),
            was_asked: self.was_asked(exception),
        }
    }

    /// Whether a connection was tried, as far as the ORB knows the cause of an exception.
    fn was_asked(&self, exception: SystemException) -> bool {
        let failure = self.orb.last_failure();
        let known = failure.filter(|failure| failure.exception() == exception);
        let is_unusable = known.is_some_and(|failure| failure.cause().starts_with(NO_PROFILE));
        let is_refused_here = exception.kind == SystemExceptionKind::NoPermission
            && matches!(
                exception.minor,
                minor::NO_PROTECTION | minor::REFUSED_BY_RULES
            );
        !is_unusable && !is_refused_here
    }

    /// The exception, and its cause as far as the ORB knows it.
    pub(crate) fn cause(&self, exception: SystemException) -> String {
        let failure = self.orb.last_failure();
        match failure.filter(|failure| failure.exception() == exception) {
            // It may name addresses that a peer has sent.
            Some(failure) => visible(&failure.to_string()).into_owned(),
            None => exception.to_string(),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It serves nothing.
        let _ = self.orb.shutdown(false);
    }
}

/// Returns the longest time of a call of a command: the given one in milliseconds, that of
/// `-ORBRequestTimeout` if it is not the default, or else 5 seconds.
pub(crate) fn call_time(given: Option<u64>, config: &OrbConfig) -> Duration {
    match given {
        Some(millis) => Duration::from_millis(millis),
        None if config.request_timeout != OrbConfig::default().request_timeout => {
            config.request_timeout
        }
        None => Duration::from_secs(5),
    }
}

/// The reference that stands for a text of standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// Returns the text of a reference, from a file or standard input if it names one.
pub(crate) fn text(reference: &str) -> Result<String, ClientError> {
    let from_input = reference == STANDARD_INPUT;
    let is_url = SCHEMES.iter().any(|scheme| {
        let start = reference.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    if is_url {
        return Ok(reference.to_owned());
    }
    let text = if from_input {
        let mut text = String::new();
        let read = io::stdin().take(MAX_INPUT + 1).read_to_string(&mut text);
        read.and_then(|octets| {
            if octets as u64 > MAX_INPUT {
                let error = "it is longer than 1 MiB";
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            Ok(text)
        })
    } else {
        chronorb_rt::read_text(Path::new(reference))
    };
    match text {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(ClientError::Input {
            from: if from_input {
                "standard input".to_owned()
            } else {
                format!("the file {reference}")
            },
            source,
        }),
    }
}

/// Returns the beginning of a long reference, for messages.
pub(crate) fn shortened(reference: &str) -> String {
    match reference.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &reference[..end]),
        None => reference.to_owned(),
    }
}

/// A sentence about the remedy, to follow the cause.
fn advice(exception: SystemException, was_asked: bool) -> &'static str {
    match exception.kind {
        SystemExceptionKind::NoPermission if exception.minor == minor::NO_PROTECTION => {
            "\nNo connection was made that both sides find safe enough: give this command the \
             settings of TLS (-ORBProtocols ssliop, and its certificates)."
        }
        SystemExceptionKind::NoPermission if exception.minor == minor::REFUSED_BY_RULES => {
            "\nThis command's own rules refuse the address (-ORBClientTransportRule)."
        }
        SystemExceptionKind::Transient if !was_asked => {
            "\nNo server was asked: chronorb ior decode shows the reference, and -ORBProtocols \
             chooses the protocols."
        }
        SystemExceptionKind::InvObjref => {
            "\nThe reference is nil or malformed: chronorb ior decode shows it."
        }
        SystemExceptionKind::Transient => {
            "\nIs the server running, and can its address be reached from this machine?"
        }
        SystemExceptionKind::Timeout => "\nA longer time is given by --timeout.",
        SystemExceptionKind::ObjectNotExist => {
            "\nThe server runs and does not have the object. It may have been restarted: get a new \
             reference."
        }
        SystemExceptionKind::NoPermission => {
            "\nThe server refuses this client; its access rules say why."
        }
        SystemExceptionKind::BadOperation => {
            "\nThe object has another interface: chronorb ior is-a asks it."
        }
        _ => "",
    }
}

/// The begin of the cause where a reference cannot be used.
const NO_PROFILE: &str = "the reference has no";
const SCHEMES: [&str; 4] = ["IOR:", "corbaloc:", "corbaname:", "file:"];
const MAX_INPUT: u64 = 1 << 20;
/// The characters of a reference in a message.
const MAX_SHOWN: usize = 80;
