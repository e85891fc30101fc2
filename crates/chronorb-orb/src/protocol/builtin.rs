//! This ORB's own protocols.

use std::sync::Arc;

use chronorb_giop::TAG_INTERNET_IOP;
use chronorb_transport::tcp::Tcp;

use super::{AddressForm, PluggableProtocol, ProtocolProblem};
use crate::config::OrbConfig;

/// Returns all of them, in the clients' default order of preference.
#[cfg_attr(
    not(any(feature = "ssliop", feature = "miop", feature = "riop")),
    expect(unused_variables, reason = "others need nothing")
)]
pub(super) fn protocols(config: &OrbConfig) -> Result<Vec<PluggableProtocol>, ProtocolProblem> {
    let all = vec![
        // A reference with a group profile is one to a group, whatever its other profiles.
        #[cfg(feature = "miop")]
        crate::groups::protocol(config),
        #[cfg(feature = "shmiop")]
        PluggableProtocol::new(
            Arc::new(chronorb_transport::shm::SharedMemory),
            chronorb_giop::TAG_SHMIOP,
            AddressForm::PATH,
        )
        .by_files(),
        #[cfg(feature = "uiop")]
        PluggableProtocol::new(
            Arc::new(chronorb_transport::uds::Unix),
            chronorb_giop::TAG_UIOP,
            AddressForm::PATH,
        )
        .by_files()
        .with_omniorb(),
        #[cfg(feature = "riop")]
        real_time(config)?,
        PluggableProtocol::new(Arc::new(Tcp), TAG_INTERNET_IOP, AddressForm::HOST_AND_PORT),
        #[cfg(feature = "diop")]
        PluggableProtocol::new(
            Arc::new(chronorb_transport::udp::Udp),
            chronorb_giop::TAG_DIOP,
            AddressForm::HOST_AND_PORT,
        ),
    ];
    #[cfg(feature = "ssliop")]
    let all = {
        let mut all = all;
        let plain = all.iter().position(|p| p.tag() == TAG_INTERNET_IOP);
        let protected = super::ssliop::protocol(config)?;
        if let (Some(plain), Some(protected)) = (plain, protected) {
            all.insert(plain, protected);
        }
        all
    };
    Ok(all)
}

/// IIOP by the real-time I/O subsystem, where calls go by it only if there is an interface for
/// them.
#[cfg(feature = "riop")]
fn real_time(config: &OrbConfig) -> Result<PluggableProtocol, ProtocolProblem> {
    use chronorb_rio::plan::{DriverKind, Plan};
    use chronorb_rio::{DriverChoice, DriverOptions, Riop, RiopSettings};

    let settings = &config.rio;
    let of = |setting, problem: String| ProtocolProblem::Of { setting, problem };
    let mut riop = RiopSettings {
        interface: settings.interface.clone(),
        driver: DriverOptions {
            driver: settings.driver,
            ..DriverOptions::default()
        },
        ..RiopSettings::default()
    };
    let mut given = "-ORBRioInterface";
    if let Some(file) = &settings.plan {
        let mapping = config.priority_mapping.mapping();
        let to_native = |corba| mapping.to_native(crate::rtcorba::Priority::new(corba)?);
        let refused = |problem: String| {
            let file = file.display();
            of("-ORBRioPlan", format!("{file}: {problem}"))
        };
        let plan = Plan::read(file, &to_native).map_err(|error| refused(error.to_string()))?;
        if let Some(refusal) = plan.admit().refusals.first() {
            return Err(refused(refusal.to_string()));
        }
        if riop.interface.is_none() {
            (riop.interface, given) = (Some(plan.interface.name.clone()), "-ORBRioPlan");
        }
        riop.driver.driver = match (settings.driver, plan.interface.driver) {
            (DriverChoice::Auto, DriverKind::Xdp) => DriverChoice::Xdp,
            (DriverChoice::Auto, DriverKind::Packet) => DriverChoice::Packet,
            (DriverChoice::Auto, DriverKind::Kernel) => DriverChoice::Kernel,
            (driver, _) => driver,
        };
        (riop.plan, riop.reserved_on) = (plan.classes, Some(plan.interface));
    }
    let calls = riop.interface.is_some();
    let riop = Riop::open(riop).map_err(|error| of(given, error.to_string()))?;
    let protocol = PluggableProtocol::beside_iiop(Arc::new(riop));
    Ok(if calls {
        protocol
    } else {
        protocol.for_servers()
    })
}
