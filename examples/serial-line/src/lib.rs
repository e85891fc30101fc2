//! A protocol of an application, plugged into the ORB from outside: GIOP over a serial line.
//!
//! A line leads to one peer. The server has its end open and waits; a client opens the other one.
//! A line does not signal that a peer has connected or gone. Therefore the server's connection
//! begins with the first octet, and a new one with the first octet after the end of the former one.
//!
//! ```no_run
//! use chronorb::config::OrbConfig;
//!
//! let mut config = OrbConfig::read(&mut std::env::args().collect())?;
//! config.add_protocol(serial_line_example::protocol());
//! let endpoint = "serial:///dev/ttyS1|far=/dev/ttyUSB0&baud=115200";
//! config.listen_endpoints = chronorb::transport::parse_endpoints(endpoint)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connection;
mod line;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use chronorb::transport::{
    AcceptError, Acceptor, Address, ConnectError, Connection, Deadline, Endpoint, EndpointError,
    ListenError, Setup, Transport,
};
use chronorb::transport::{AddressForm, PluggableProtocol};

use self::connection::LineConnection;
use self::line::Line;

/// Returns the protocol for [`OrbConfig::add_protocol`](chronorb::config::OrbConfig::add_protocol).
pub fn protocol() -> PluggableProtocol {
    PluggableProtocol::new(Arc::new(Serial), TAG_SERIAL, AddressForm::PATH)
}

/// The tag of profiles with the path of a line, in the range for experiments.
pub const TAG_SERIAL: u32 = 0x7f00_5e41;

/// Serial lines: `serial:///dev/ttyS1|far=/dev/ttyUSB0&baud=115200`. References contain the path of
/// the far end, where the client is; the default is the same path as here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Transport for Serial {
    fn scheme(&self) -> &str {
        "serial"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        endpoint.check_options(&["baud", "far"])?;
        path_of(&endpoint.address)
            .ok_or_else(|| endpoint.error("it needs the path of a line, and a | after that"))?;
        baud(endpoint).map(drop)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        _setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        self.check(endpoint)?;
        let path = path_of(&endpoint.address).unwrap_or(Path::new(""));
        let line = Line::open(path, baud(endpoint)?);
        let line = line.map_err(|source| ListenError::Refused {
            endpoint: endpoint.to_string(),
            source,
        })?;
        Ok(vec![Box::new(LineAcceptor {
            line: Arc::new(line),
            published: [match endpoint.option("far") {
                Some(far) => Address::Path(far.to_owned()),
                None => endpoint.address.clone(),
            }],
        })])
    }

    fn connect(
        &self,
        address: &Address,
        _setup: Setup,
        _deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let refused = |source| ConnectError::Refused {
            address: address.to_string(),
            source,
        };
        let path = path_of(address).ok_or_else(|| refused(io::ErrorKind::InvalidInput.into()))?;
        let line = Line::open(path, None).map_err(refused)?;
        let connection = LineConnection::new(Arc::new(line)).map_err(refused)?;
        let connection = connection.ok_or_else(|| refused(io::ErrorKind::ResourceBusy.into()))?;
        Ok(Box::new(connection))
    }
}

fn path_of(address: &Address) -> Option<&Path> {
    let path = address.as_path()?;
    path.starts_with('/').then(|| Path::new(path))
}

/// Returns the requested speed of the endpoint; `None` leaves the speed of the line unchanged.
fn baud(endpoint: &Endpoint) -> Result<Option<u32>, EndpointError> {
    let Some(text) = endpoint.option("baud") else {
        return Ok(None);
    };
    let baud = text.parse().ok().filter(|baud| *baud > 0);
    let baud = baud.ok_or_else(|| endpoint.error(format!("{text:?} is not a number of bauds")))?;
    Ok(Some(baud))
}

/// The server's end of a line.
#[derive(Debug)]
struct LineAcceptor {
    line: Arc<Line>,
    published: [Address; 1],
}

impl Acceptor for LineAcceptor {
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        match LineConnection::new(self.line.clone()) {
            // The only possible connection still exists.
            Ok(None) => Ok(None),
            Ok(Some(connection)) => Ok(Some(Box::new(connection))),
            Err(_) => Err(AcceptError::Exhausted),
        }
    }

    fn published(&self) -> &[Address] {
        &self.published
    }
}

impl AsFd for LineAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}
