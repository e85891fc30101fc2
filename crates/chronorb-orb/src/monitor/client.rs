//! Asking a monitor.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use chronorb_rt::Deadline;
use thiserror::Error;

use super::place::connect_at_once;
use super::report::{ReadError, Report};

/// A connection to a monitor. While it is there, the ORB takes the time of each request.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    time_out: Duration,
    /// The received part of the next answer.
    input: Vec<u8>,
}

/// A failure to query a monitor.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no listener, or no permission.
    #[error("no connection: {0}")]
    Connect(#[source] io::Error),
    /// There is no answer in time.
    #[error("it does not answer")]
    TimedOut,
    /// The ORB has ended, or the monitor does not serve this user.
    #[error("it has closed the connection")]
    Closed,
    /// The answer has no end.
    #[error("its answer is longer than {MAX_ANSWER} octets")]
    TooLong,
    /// The connection fails.
    #[error("the connection fails: {0}")]
    Io(#[source] io::Error),
    /// The answer is no report.
    #[error(transparent)]
    Answer(#[from] ReadError),
}

impl Client {
    /// Connects to the monitor's socket `path`. No answer may take longer than `time_out`.
    ///
    /// # Errors
    /// [`ClientError::Connect`]; [`ClientError::TimedOut`] where too many wait for the monitor.
    pub fn connect(path: &Path, time_out: Duration) -> Result<Self, ClientError> {
        let stream = connect_at_once(path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => ClientError::TimedOut,
            _ => ClientError::Connect(error),
        })?;
        stream.set_nonblocking(false).map_err(ClientError::Io)?;
        Ok(Self {
            stream,
            time_out,
            input: Vec::new(),
        })
    }

    /// Requests the state of the ORB.
    ///
    /// # Errors
    /// [`ClientError`]; the connection is of no use then.
    pub fn snapshot(&mut self) -> Result<Report, ClientError> {
        let deadline = Deadline::after(self.time_out);
        let asked = self
            .stream
            .set_write_timeout(Some(self.time_out))
            .and_then(|()| self.stream.write_all(b"snapshot\n"));
        // A refusing monitor sends the reason before it closes.
        let line = self.read_line(deadline);
        let line = match (asked, line) {
            (_, Ok(line)) => line,
            (Err(error), Err(_)) => return Err(of_io(error)),
            (Ok(()), Err(error)) => return Err(error),
        };
        Ok(Report::read(&line)?)
    }

    fn read_line(&mut self, deadline: Deadline) -> Result<String, ClientError> {
        let mut part = [0; 16 << 10];
        loop {
            let time = deadline.remaining().ok_or(ClientError::TimedOut)?;
            self.stream
                .set_read_timeout(Some(time.max(Duration::from_micros(1))))
                .map_err(ClientError::Io)?;
            let received = match self.stream.read(&mut part) {
                Ok(0) => return Err(ClientError::Closed),
                Ok(received) => &part[..received],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(of_io(error)),
            };
            let end = received.iter().position(|&octet| octet == b'\n');
            let (line, rest) = received.split_at(end.unwrap_or(received.len()));
            if self.input.len() + line.len() > MAX_ANSWER {
                return Err(ClientError::TooLong);
            }
            self.input.extend_from_slice(line);
            if end.is_some() {
                let line = std::mem::replace(&mut self.input, rest[1..].to_vec());
                return String::from_utf8(line)
                    .map_err(|error| ReadError::Malformed(error.to_string()).into());
            }
        }
    }
}

/// Readable once the monitor has closed the connection, between one answer and the next question.
impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn of_io(error: io::Error) -> ClientError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::TimedOut,
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => ClientError::Closed,
        _ => ClientError::Io(error),
    }
}

/// Octets of an answer.
const MAX_ANSWER: usize = 64 << 20;
