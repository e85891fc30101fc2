//! The name server of chronorb, used by JacORB.

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb::transport::parse_endpoints;
use chronorb_giop::IiopProfile;
use chronorb_interop::Failure;
use chronorb_naming::NameServer;
use chronorb_naming::idl::cos_naming::{NameComponent, NamingContext};

use crate::support::jacorb::Jacorb;

#[test]
fn jacorb_uses_the_name_server() -> Result<(), Failure> {
    let Some(jacorb) = Jacorb::get() else {
        return Ok(());
    };
    let mut config = OrbConfig::default();
    config.listen_endpoints = parse_endpoints("iiop://127.0.0.1:0")?;
    let orb = Orb::with_config(config)?;
    let poa = orb.root_poa()?;
    let service = NameServer::new().serve_in(&poa)?;
    poa.manager().activate()?;
    let profile = IiopProfile::decode(&service.root().ior().profiles[0].data)?;
    let root = format!("corbaloc:iiop:1.2@127.0.0.1:{}/NameService", profile.port);
    jacorb.start(None, "JacorbNames", |_| vec![root]).finish();

    // The context that JacORB has left is bound to the name that it has replaced an object of.
    let names = NamingContext::unchecked_narrow(service.root());
    let plant = NameComponent {
        id: "plant",
        kind: "area",
    };
    let radar = NameComponent {
        id: "radar.1",
        kind: "sensor",
    };
    assert_eq!(names.resolve(&[plant, radar])?, names.resolve(&[plant])?);
    assert_eq!(service.context_count(), 2);
    Ok(orb.shutdown(true)?)
}
