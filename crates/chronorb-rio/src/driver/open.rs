//! Opening an interface by the driver that it can have.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::packet::Packet;
use super::xdp::{self, Xdp};
use super::{Driver, DriverError};

/// Which driver an interface is opened by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Choice {
    /// AF_XDP if it can be had, otherwise packet sockets.
    #[default]
    Auto,
    /// AF_XDP.
    Xdp,
    /// Packet sockets.
    Packet,
    /// The kernel's own TCP, which is none: who has a choice of it goes by sockets.
    Kernel,
}

impl Choice {
    /// Its name, as settings write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Xdp => "xdp",
            Self::Packet => "packet",
            Self::Kernel => "kernel",
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Choice {
    type Err = UnknownChoice;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Auto, Self::Xdp, Self::Packet, Self::Kernel]
            .into_iter()
            .find(|choice| choice.name() == name)
            .ok_or_else(|| UnknownChoice(name.to_owned()))
    }
}

/// A driver is named that there is not.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0:?} is no driver: take auto, xdp, packet or kernel")]
pub struct UnknownChoice(pub String);

/// How an interface is opened.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Options {
    /// Which driver.
    pub driver: Choice,
    /// How AF_XDP is opened, if it is.
    pub xdp: xdp::Options,
}

/// Opens an interface of this network namespace.
///
/// # Errors
/// [`OpenError`] tells of each driver that was tried why it was not possible.
pub(crate) fn open(interface: &str, options: Options) -> Result<Box<dyn Driver>, OpenError> {
    let drivers: &[Choice] = match options.driver {
        Choice::Auto => &[Choice::Xdp, Choice::Packet],
        Choice::Xdp => &[Choice::Xdp],
        Choice::Packet => &[Choice::Packet],
        Choice::Kernel => &[Choice::Kernel],
    };
    let mut refused = Vec::new();
    for choice in drivers {
        let opened = match choice {
            Choice::Packet => Packet::open(interface).map(boxed),
            Choice::Kernel => Err(DriverError::Kernel),
            Choice::Auto | Choice::Xdp => Xdp::open(interface, options.xdp).map(boxed),
        };
        match opened {
            Ok(driver) => return Ok(driver),
            Err(error) => refused.push((*choice, error)),
        }
    }
    Err(OpenError { refused })
}

/// Why an interface cannot be opened.
#[derive(Debug, Error)]
pub struct OpenError {
    /// The drivers that were tried, in their order, and why each could not be had.
    pub refused: Vec<(Choice, DriverError)>,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // That there is no such interface is said once.
        if let Some((_, error @ DriverError::NoInterface(_))) = self.refused.first() {
            return error.fmt(f);
        }
        for (number, (driver, error)) in self.refused.iter().enumerate() {
            let before = if number == 0 { "" } else { "; " };
            write!(f, "{before}by driver {driver}: {error}")?;
        }
        Ok(())
    }
}

fn boxed(driver: impl Driver + 'static) -> Box<dyn Driver> {
    Box::new(driver)
}
