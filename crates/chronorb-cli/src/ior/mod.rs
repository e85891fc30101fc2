//! `chronorb ior`: shows, makes and tries references.

mod arguments;
mod components;
mod decode;
mod explain;
mod forward;
mod make;
mod ping;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use chronorb_cdr::CdrError;
use chronorb_giop::Ior;
use chronorb_giop::url::ObjectUrl;
use chronorb_orb::OrbConfig;
use thiserror::Error;

use crate::client::{self, Client, ClientError};
use crate::output::{self, print, print_json};

pub(crate) use arguments::IorCommand;

use arguments::{DecodeArguments, IsAArguments};
use decode::DecodedReference;
use forward::ForwardError;

/// A command of `chronorb ior` failed.
#[derive(Debug, Error)]
pub(crate) enum IorError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Forward(#[from] ForwardError),
    #[error(
        "{0}: the lengths fit the other byte order: the first octet says {1}, and the numbers are \
         not; the ORB that wrote the reference, or a change of its text, is at fault\n  hint: \
         with {2} behind `IOR:` it can be read; its profiles may have the same fault"
    )]
    ByteOrder(String, &'static str, &'static str),
    #[error("the profile cannot be written: {0}")]
    Profile(#[from] CdrError),
    #[error("nothing can be written: {0}")]
    Output(#[from] io::Error),
}

impl IorCommand {
    /// Runs the command, and returns the exit status.
    pub(crate) fn run(self, config: OrbConfig) -> ExitCode {
        let outcome = match self {
            Self::Decode(arguments) => decode(&arguments, config).map(|()| true),
            Self::Make(arguments) => make::run(&arguments, config).map(|()| true),
            Self::Ping(arguments) => ping::run(&arguments, config),
            Self::IsA(arguments) => is_a(&arguments, config),
            Self::Forward(arguments) => forward::run(&arguments, config),
        };
        match outcome {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(NO),
            // The reader of the output has closed it.
            Err(IorError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(error) => {
                output::report_error(&error);
                ExitCode::FAILURE
            }
        }
    }
}

fn decode(arguments: &DecodeArguments, config: OrbConfig) -> Result<(), IorError> {
    let text = client::text(&arguments.reference.reference)?;
    let timeout = arguments.reference.timeout(&config);
    let ior = match ObjectUrl::parse(&text) {
        // A nil reference has a content, and is no object.
        Ok(ObjectUrl::Ior(ior)) => ior,
        parsed => {
            if parsed.is_err() {
                check_byte_order(&text)?;
            }
            let client = Client::new(config, timeout)?;
            client.object(&text)?.ior().clone()
        }
    };
    let decoded = DecodedReference::new(&ior, arguments.resolve.then_some(timeout));
    if arguments.json {
        print_json(&decoded)?;
    } else {
        print(&decoded.to_string())?;
    }
    Ok(())
}

/// Reports a reference whose octets are malformed, and are not with the other byte order.
fn check_byte_order(text: &str) -> Result<(), IorError> {
    let text = text.trim();
    let (says, other) = match text.get(4..6) {
        Some("00") => ("big-endian", "01"),
        Some("01") => ("little-endian", "00"),
        _ => return Ok(()),
    };
    let swapped = format!("{}{other}{}", &text[..4], &text[6..]);
    if swapped.parse::<Ior>().is_ok() {
        return Err(IorError::ByteOrder(client::shortened(text), says, other));
    }
    Ok(())
}

fn is_a(arguments: &IsAArguments, config: OrbConfig) -> Result<bool, IorError> {
    let timeout = arguments.reference.timeout(&config);
    let client = Client::new(config, timeout)?;
    let object = client.object(&arguments.reference.reference)?;
    let id = &arguments.repository_id;
    let has = object
        .is_a(id)
        .map_err(|exception| client.failed(format!("asking for the interface {id}"), exception))?;
    print(if has { "yes\n" } else { "no\n" })?;
    Ok(has)
}

/// Milliseconds with their fraction, for JSON.
fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// The exit status where the answer is no.
const NO: u8 = 3;
