//! Transports that wrap those of protocols.

use std::sync::Arc;

use chronorb_transport::Transport;

use super::{PluggableProtocol, ProtocolProblem};
use crate::config::OrbConfig;

/// Returns the protocols with their transports wrapped as configured. The trace shows the octets of
/// the transport itself, with the injected faults.
pub(super) fn wrapped(
    mut protocols: Vec<PluggableProtocol>,
    config: &OrbConfig,
) -> Result<Vec<PluggableProtocol>, ProtocolProblem> {
    #[cfg(feature = "trace")]
    trace(&mut protocols, config)?;
    #[cfg(feature = "faults")]
    disturb(&mut protocols, config)?;
    Ok(protocols)
}

#[cfg(feature = "trace")]
fn trace(protocols: &mut [PluggableProtocol], config: &OrbConfig) -> Result<(), ProtocolProblem> {
    use chronorb_transport::trace::{RecordingTransport, TraceFile, TraceLimits};

    let Some(path) = &config.trace.file else {
        return Ok(());
    };
    let limits = TraceLimits {
        file: config.trace.size,
        ..TraceLimits::default()
    };
    let file = TraceFile::create(path, limits).map_err(|error| ProtocolProblem::Of {
        setting: "-ORBTraceFile",
        problem: format!("{} cannot be written: {error}", path.display()),
    })?;
    for protocol in protocols {
        protocol.wrap(|transport| Arc::new(RecordingTransport::new(transport, file.clone())));
    }
    Ok(())
}

#[cfg(feature = "faults")]
fn disturb(protocols: &mut [PluggableProtocol], config: &OrbConfig) -> Result<(), ProtocolProblem> {
    use chronorb_transport::faults::Faulty;

    let Some(plans) = &config.faults else {
        return Ok(());
    };
    let has = |scheme: &str| protocols.iter().any(|of| of.scheme() == scheme);
    if let Some(unknown) = plans.schemes().find(|scheme| !has(scheme)) {
        let schemes: Vec<_> = protocols.iter().map(PluggableProtocol::scheme).collect();
        return Err(ProtocolProblem::Of {
            setting: "-ORBFaults",
            problem: format!(
                "there is no protocol {unknown:?}; there are {}",
                schemes.join(", ")
            ),
        });
    }
    for protocol in protocols {
        if let Some(plan) = plans.of(protocol.scheme()) {
            protocol.wrap(|transport| Arc::new(Faulty::new(transport, plan.clone())));
        }
    }
    Ok(())
}

impl PluggableProtocol {
    fn wrap(&mut self, wrapped: impl FnOnce(Arc<dyn Transport>) -> Arc<dyn Transport>) {
        self.transport = wrapped(self.transport.clone());
    }
}
