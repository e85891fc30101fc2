//! The binding of a service of this program, as long as it serves.

use chronorb_orb::{Object, OrbConfig};

use super::arguments::ServerArguments;
use super::names::{NameServer, NsError};

/// The binding of a service in a name server.
pub(crate) struct Binding {
    names: NameServer,
    name: String,
    reference: String,
}

impl Binding {
    /// Binds an object, in place of another one.
    pub(crate) fn make(
        name: String,
        server: &ServerArguments,
        config: OrbConfig,
        service: &Object,
    ) -> Result<Self, NsError> {
        let names = NameServer::connect(server, config)?;
        let reference = service.ior().to_string();
        names.rebind(&name, &reference)?;
        Ok(Self {
            names,
            name,
            reference,
        })
    }

    /// Removes the binding, unless another service has replaced it.
    pub(crate) fn remove(self) -> Result<(), NsError> {
        match self.names.resolve(&self.name) {
            Ok(bound) if bound.ior().to_string() == self.reference => self.names.unbind(&self.name),
            Ok(_) | Err(NsError::NotFound { .. } | NsError::Nil(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Returns the settings of an ORB that calls, beside another one that serves.
pub(crate) fn calling_config(config: &OrbConfig) -> OrbConfig {
    let mut config = config.clone();
    config.listen_endpoints.clear();
    config.monitor = Default::default();
    config.bidirectional = Default::default();
    config
}
