//! Selection of a driver and opening of an interface with it.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::packet::Packet;
use super::xdp::{self, Xdp};
use super::{Driver, DriverError};

/// The choice of a driver.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DriverChoice {
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

impl DriverChoice {
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

impl fmt::Display for DriverChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DriverChoice {
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
pub struct DriverOptions {
    /// The driver.
    pub driver: DriverChoice,
    /// The options of AF_XDP.
    pub xdp: xdp::XdpOptions,
}

/// Opens an interface of this network namespace.
///
/// # Errors
/// [`DriverOpenError`] gives the reason for each driver that was tried.
pub(crate) fn open(
    interface: &str,
    options: DriverOptions,
) -> Result<Box<dyn Driver>, DriverOpenError> {
    let drivers: &[DriverChoice] = match options.driver {
        DriverChoice::Auto => &[DriverChoice::Xdp, DriverChoice::Packet],
        DriverChoice::Xdp => &[DriverChoice::Xdp],
        DriverChoice::Packet => &[DriverChoice::Packet],
        DriverChoice::Kernel => &[DriverChoice::Kernel],
    };
    let mut refused = Vec::new();
    for choice in drivers {
        let opened = match choice {
            DriverChoice::Packet => Packet::open(interface).map(boxed),
            DriverChoice::Kernel => Err(DriverError::Kernel),
            DriverChoice::Auto | DriverChoice::Xdp => Xdp::open(interface, options.xdp).map(boxed),
        };
        match opened {
            Ok(driver) => return Ok(driver),
            Err(error) => refused.push((*choice, error)),
        }
    }
    Err(DriverOpenError { refused })
}

/// The error of an interface that cannot be opened.
#[derive(Debug, Error)]
pub struct DriverOpenError {
    /// The drivers that were tried, in order, each with its error.
    pub refused: Vec<(DriverChoice, DriverError)>,
}

impl fmt::Display for DriverOpenError {
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
