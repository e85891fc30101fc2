//! Selection of a driver and opening of an interface with it.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::packet::Packet;
use super::xdp::{self, Xdp};
use super::{Driver, DriverError};

/// The choice of a driver.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Choice {
    /// AF_XDP if it is available, otherwise packet sockets.
    #[default]
    Auto,
    /// AF_XDP.
    Xdp,
    /// Packet sockets.
    Packet,
    /// The kernel's own TCP, which is not a driver. Its users open sockets instead.
    Kernel,
}

impl Choice {
    /// Returns the name in settings.
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

/// The error of an unknown driver name.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0:?} is no driver: take auto, xdp, packet or kernel")]
pub struct UnknownChoice(pub String);

/// Options for opening an interface.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Options {
    /// The driver.
    pub driver: Choice,
    /// The options of AF_XDP.
    pub xdp: xdp::Options,
}

/// Opens an interface of this network namespace.
///
/// # Errors
/// [`OpenError`] gives the reason for each driver that was tried.
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

/// The error of an interface that cannot be opened.
#[derive(Debug, Error)]
pub struct OpenError {
    /// The drivers that were tried, in order, each with its error.
    pub refused: Vec<(Choice, DriverError)>,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A missing interface is the same error for each driver.
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
