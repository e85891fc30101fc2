//! Settings of transports that wrap others.

#[cfg(any(feature = "faults", feature = "trace"))]
use super::OrbConfig;

/// The trace files of connections.
#[cfg(feature = "trace")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraceSettings {
    /// `-ORBTraceFile PATH`: a file in the format pcapng, of all protocols of the ORB; none by
    /// default. The effects of [`-ORBFaults`](OrbConfig::faults) are recorded as they occur.
    pub file: Option<std::path::PathBuf>,
    /// `-ORBTraceSize OCTETS`: the size at which the next file begins, 65536 to 1099511627776; the
    /// last two are kept.
    pub size: u64,
}

#[cfg(feature = "trace")]
impl Default for TraceSettings {
    fn default() -> Self {
        Self {
            file: None,
            size: DEFAULT_TRACE_SIZE,
        }
    }
}

#[cfg(feature = "faults")]
pub(super) fn faults(config: &mut OrbConfig, text: &str) -> Result<(), String> {
    use chronorb_transport::faults::FaultPlans;

    config.faults = match text {
        "off" => None,
        plans => Some(FaultPlans::parse(plans).map_err(|error| error.to_string())?),
    };
    Ok(())
}

#[cfg(feature = "trace")]
pub(super) fn trace_file(config: &mut OrbConfig, text: &str) -> Result<(), String> {
    config.trace.file = match text {
        "off" => None,
        "" => return Err("there is no path".to_owned()),
        path => Some(path.into()),
    };
    Ok(())
}

#[cfg(feature = "trace")]
pub(super) fn trace_size(config: &mut OrbConfig, text: &str) -> Result<(), String> {
    config.trace.size = super::settings::number(text, 1 << 16, 1 << 40)?;
    Ok(())
}

#[cfg(feature = "trace")]
const DEFAULT_TRACE_SIZE: u64 = 64 << 20;
