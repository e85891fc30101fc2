//! `chronorb ior forward`: where locate requests lead to.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use chronorb_cdr::{Arena, CdrError, Frame};
use chronorb_giop::{
    HEADER_LEN, HeaderError, IiopProfile, Ior, LocateReplyHeader, LocateRequestHeader,
    LocateStatus, MessageHeader, MessageType, Protocol, TAG_INTERNET_IOP, Target, Version,
    encode_locate_request, finish_message, start_message,
};
use chronorb_orb::OrbConfig;
use chronorb_rt::Deadline;
use chronorb_transport::host_addresses;
use thiserror::Error;

use super::IorError;
use super::arguments::ForwardArguments;
use crate::client::{Client, shortened};
use crate::output::{print, report};

/// A server could not be asked where an object is.
#[derive(Debug, Error)]
pub(crate) enum ForwardError {
    #[error("the reference {0} has no address of IIOP")]
    NoAddress(String),
    #[error("{address}: {source}")]
    Connection { address: String, source: io::Error },
    #[error("{address} answers with a malformed message: {cause}")]
    Malformed { address: String, cause: String },
    #[error("{address} answers with {answer}")]
    Unexpected { address: String, answer: String },
    #[error("the reference is forwarded more than {MAX_FORWARDS} times")]
    TooMany,
}

/// Follows the forwards, and returns whether the last server has the object.
pub(super) fn run(arguments: &ForwardArguments, config: OrbConfig) -> Result<bool, IorError> {
    let timeout = arguments.reference.timeout(&config);
    let max_message = config.max_message_size;
    let client = Client::new(config, timeout)?;
    let mut ior = client.object(&arguments.reference.reference)?.ior().clone();
    for _ in 0..=MAX_FORWARDS {
        let (address, answer) = ask(&ior, timeout, max_message)?;
        match answer {
            LocateAnswer::Here => {
                report(format_args!("{address} has the object"));
                print(&format!("{ior}\n"))?;
                return Ok(true);
            }
            LocateAnswer::Unknown => {
                report(format_args!("{address} does not have the object"));
                return Ok(false);
            }
            LocateAnswer::Forward { to, permanent } => {
                let lasting = if permanent { ", permanently" } else { "" };
                report(format_args!("{address} forwards{lasting}"));
                ior = to;
            }
        }
    }
    Err(ForwardError::TooMany.into())
}

/// The answer to a locate request.
enum LocateAnswer {
    Here,
    Unknown,
    Forward { to: Ior, permanent: bool },
}

/// Asks the first server of IIOP that can be connected to.
fn ask(
    ior: &Ior,
    timeout: Duration,
    max_message: usize,
) -> Result<(String, LocateAnswer), ForwardError> {
    let profiles = ior.profiles.iter();
    let profiles = profiles.filter(|profile| profile.tag == TAG_INTERNET_IOP);
    let mut failure = ForwardError::NoAddress(shortened(&ior.to_string()));
    for profile in profiles {
        let Ok(body) = IiopProfile::decode(&profile.data) else {
            continue;
        };
        let address = format!("{}:{}", body.host, body.port);
        match connect(&body, timeout) {
            Ok(stream) => {
                let answer = locate(stream, &body, &address, timeout, max_message)?;
                return Ok((address, answer));
            }
            Err(source) => failure = ForwardError::Connection { address, source },
        }
    }
    Err(failure)
}

fn connect(profile: &IiopProfile, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for mut address in host_addresses(&profile.host, Deadline::after(timeout))? {
        address.set_port(profile.port);
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sends a locate request, and reads the reply.
fn locate(
    mut stream: TcpStream,
    profile: &IiopProfile,
    address: &str,
    timeout: Duration,
    max_message: usize,
) -> Result<LocateAnswer, ForwardError> {
    let failed = |source| ForwardError::Connection {
        address: address.to_owned(),
        source,
    };
    let malformed = |cause: CdrError| ForwardError::Malformed {
        address: address.to_owned(),
        cause: cause.to_string(),
    };
    let protocol = Protocol::Giop(profile.version.min(Version::V1_2));
    let mut frame = Frame::new(256, max_message);
    let header = LocateRequestHeader {
        request_id: REQUEST_ID,
        target: Target::Key(&profile.object_key),
    };
    let mut e = start_message(&mut frame, protocol, MessageType::LocateRequest);
    let e = e.as_mut().map_err(|error| malformed(*error))?;
    encode_locate_request(e, protocol, &header).map_err(malformed)?;
    finish_message(&mut frame);
    stream.set_write_timeout(Some(timeout)).map_err(failed)?;
    stream.write_all(frame.as_slice()).map_err(failed)?;

    frame.clear();
    let deadline = Instant::now() + timeout;
    fill(&mut stream, &mut frame, HEADER_LEN, deadline).map_err(failed)?;
    let wrong = |cause: HeaderError| ForwardError::Malformed {
        address: address.to_owned(),
        cause: cause.to_string(),
    };
    let header = MessageHeader::parse(frame.as_slice()).map_err(wrong)?;
    let unexpected = |answer: String| ForwardError::Unexpected {
        address: address.to_owned(),
        answer,
    };
    if header.message_len() > max_message {
        let answer = format!(
            "a message of {} octets (-ORBMaxMessageSize)",
            header.message_len()
        );
        return Err(unexpected(answer));
    }
    fill(&mut stream, &mut frame, header.message_len(), deadline).map_err(failed)?;
    if header.kind != MessageType::LocateReply || header.more_fragments {
        return Err(unexpected(format!("the message {:?}", header.kind)));
    }
    let arena = Arena::new(0);
    let mut d = header.decoder(&mut frame, &arena);
    let reply = LocateReplyHeader::decode(&mut d, header.protocol).map_err(malformed)?;
    if reply.request_id != REQUEST_ID {
        return Err(unexpected("a reply to another request".to_owned()));
    }
    Ok(match reply.status {
        LocateStatus::ObjectHere => LocateAnswer::Here,
        LocateStatus::UnknownObject => LocateAnswer::Unknown,
        LocateStatus::ObjectForward => LocateAnswer::Forward {
            to: Ior::decode(&mut d).map_err(malformed)?,
            permanent: false,
        },
        LocateStatus::ObjectForwardPerm => LocateAnswer::Forward {
            to: Ior::decode(&mut d).map_err(malformed)?,
            permanent: true,
        },
        other => return Err(unexpected(format!("the status {other:?}"))),
    })
}

/// Reads until the frame has `len` octets. Memory grows with the octets that arrive.
fn fill(
    stream: &mut TcpStream,
    frame: &mut Frame,
    len: usize,
    deadline: Instant,
) -> io::Result<()> {
    let mut chunk = [0; 4096];
    while frame.len() < len {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let room = (len - frame.len()).min(chunk.len());
        match stream.read(&mut chunk[..room]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => frame
                .extend_from_slice(&chunk[..n])
                .map_err(|error| io::Error::other(error.to_string()))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

const REQUEST_ID: u32 = 2;
/// The ORB follows as many.
const MAX_FORWARDS: u32 = 8;
