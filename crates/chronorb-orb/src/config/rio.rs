//! Settings of the real-time I/O subsystem.

use std::path::PathBuf;
use std::str::FromStr;

use super::OrbConfig;
use super::settings::Setting;

/// By which network interface, and how, IIOP goes by the real-time I/O subsystem (`riop`).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RioSettings {
    /// `-ORBRioInterface NAME`: calls go by this interface, to servers that are reached by it; none by default, so
    /// that `riop` is for endpoints only.
    pub interface: Option<String>,
    /// `-ORBRioDriver`: how the interface is served, for endpoints too that do not say.
    pub driver: RioDriver,
    /// `-ORBRioPlan FILE`: the reservations of the interface's classes, in TOML.
    pub plan: Option<PathBuf>,
}

/// How packets are taken from a network interface.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RioDriver {
    /// XDP where it can be had, else packet sockets.
    #[default]
    Auto,
    /// Before the kernel's network looks at them (`AF_XDP`).
    Xdp,
    /// Beside the kernel's network (`AF_PACKET`).
    Packet,
}

/// Reads `auto`, `xdp` or `packet`.
impl FromStr for RioDriver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "xdp" => Ok(Self::Xdp),
            "packet" => Ok(Self::Packet),
            other => Err(format!("{other:?} is not auto, xdp or packet")),
        }
    }
}

pub(super) const INTERFACE: Setting = Setting {
    key: "rio_interface",
    options: &["-ORBRioInterface"],
    apply: |config: &mut OrbConfig, text| {
        if text.is_empty() {
            return Err("there is no name".to_owned());
        }
        config.rio.interface = Some(text.to_owned());
        Ok(())
    },
};

pub(super) const DRIVER: Setting = Setting {
    key: "rio_driver",
    options: &["-ORBRioDriver"],
    apply: |config: &mut OrbConfig, text| text.parse().map(|driver| config.rio.driver = driver),
};

pub(super) const PLAN: Setting = Setting {
    key: "rio_plan",
    options: &["-ORBRioPlan"],
    apply: |config: &mut OrbConfig, text| {
        config.rio.plan = Some(text.into());
        Ok(())
    },
};
