//! Test that the tagged component of SSLIOP is read and written as omniORB writes it.

use chronorb_giop::{
    AssociationOptions, Component, IiopProfile, Ior, SslSecTrans, TAG_SSL_SEC_TRANS,
    TaggedComponent,
};

/// Printed by a server of omniORB 4.2.5 with `-ORBendPoint giop:ssl:127.0.0.1:14001`.
const OF_OMNIORB: &str = "\
    IOR:010000001d00000049444c3a6368726f6e6f72622f496e7465726f702f4875623a312e300000000001000000\
    000000006c000000010102000a0000003132372e302e302e310000000c000000ff696e7465726f70006875620300\
    000000000000080000000100000000545441010000001c0000000100000001000100010000000100010509010100\
    01000000090101001400000008000000010066006600b136";

fn profile() -> IiopProfile {
    let ior: Ior = OF_OMNIORB.parse().expect("a reference");
    IiopProfile::decode(&ior.profiles[0].data).expect("a profile of IIOP")
}

#[test]
fn the_component_of_omniorb_is_read_and_written() {
    let profile = profile();
    // There is no connection without TLS.
    assert_eq!((&*profile.host, profile.port), ("127.0.0.1", 0));
    let mut components = profile.components.iter();
    let component = components.find(|component| component.tag == TAG_SSL_SEC_TRANS);
    let component = component.expect("it tells of TLS");
    let both_prove_who_they_are = AssociationOptions::INTEGRITY
        | AssociationOptions::CONFIDENTIALITY
        | AssociationOptions::ESTABLISH_TRUST_IN_TARGET
        | AssociationOptions::ESTABLISH_TRUST_IN_CLIENT;
    let ssl = SslSecTrans {
        target_supports: both_prove_who_they_are,
        target_requires: both_prove_who_they_are,
        port: 14001,
    };
    assert_eq!(component.typed(), Ok(Component::SslSecTrans(ssl)));
    assert!(ssl.requires_protection());
    if cfg!(target_endian = "little") {
        assert_eq!(Component::SslSecTrans(ssl).tagged().as_ref(), Ok(component));
    }
}

#[test]
fn both_byte_orders_are_read() {
    let component = |octets: &[u8]| TaggedComponent {
        tag: TAG_SSL_SEC_TRANS,
        data: octets.to_vec(),
    };
    let big = component(&[0, 0, 0, 0x67, 0, 1, 0x36, 0xb1]).typed();
    let little = component(&[1, 0, 0x67, 0, 1, 0, 0xb1, 0x36]).typed();
    assert_eq!(big, little);
    let Ok(Component::SslSecTrans(ssl)) = big else {
        panic!("{big:?}");
    };
    assert_eq!(ssl.port, 14001);
    assert!(!ssl.requires_protection(), "no protection is needed");
    for len in 0..7 {
        let cut = component(&[1, 0, 0x67, 0, 1, 0, 0xb1, 0x36][..len]);
        assert!(cut.typed().is_err(), "{len}");
    }
}
