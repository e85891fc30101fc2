//! The policies of a reference as octets.

use chronorb_cdr::{CdrError, Endian};
use chronorb_giop::contexts::{decode_priority_range, encode_priority_range};
use chronorb_giop::{
    Component, Policies, PolicyValue, PriorityBandValue, PriorityModelValue, ProtocolValue,
    TAG_POLICIES, TaggedComponent, TcpPropertiesValue,
};
use proptest::collection::vec;
use proptest::prelude::*;

const TAO_UIOP: u32 = 0x5441_4f00;
const TAO_SHMIOP: u32 = 0x5441_4f02;

/// Returns the form in the byte order of this machine, which is the one that is written.
fn native<'a>(little: &'a [u8], big: &'a [u8]) -> &'a [u8] {
    if Endian::NATIVE.is_little() {
        little
    } else {
        big
    }
}

fn policies(policy_type: u32, data: &[u8]) -> Policies {
    let data = data.to_vec();
    Policies(vec![PolicyValue { policy_type, data }])
}

const MODEL: PriorityModelValue = PriorityModelValue {
    model: 1,
    server_priority: 0x1234,
};
const MODEL_LITTLE: &[u8] = b"\x01\0\0\0\x01\0\0\0\x34\x12";
const MODEL_BIG: &[u8] = b"\0\0\0\0\0\0\0\x01\x12\x34";

#[test]
fn a_priority_model_is_an_enumerator_and_a_short() {
    let written = PolicyValue::priority_model(MODEL).unwrap();
    assert_eq!(written.policy_type, 40);
    assert_eq!(written.data, native(MODEL_LITTLE, MODEL_BIG));
    for octets in [MODEL_LITTLE, MODEL_BIG] {
        assert_eq!(policies(40, octets).priority_model(), Some(MODEL));
    }
}

const BANDS: [PriorityBandValue; 2] = [
    PriorityBandValue { low: 0, high: 9 },
    PriorityBandValue {
        low: 10,
        high: 0x7fff,
    },
];
const BANDS_LITTLE: &[u8] = b"\x01\0\0\0\x02\0\0\0\0\0\x09\0\x0a\0\xff\x7f";
const BANDS_BIG: &[u8] = b"\0\0\0\0\0\0\0\x02\0\0\0\x09\0\x0a\x7f\xff";

#[test]
fn bands_are_a_sequence_of_pairs() {
    let written = PolicyValue::priority_bands(&BANDS).unwrap();
    assert_eq!(written.policy_type, 45);
    assert_eq!(written.data, native(BANDS_LITTLE, BANDS_BIG));
    for octets in [BANDS_LITTLE, BANDS_BIG] {
        assert_eq!(
            policies(45, octets).priority_bands(),
            Some(Ok(BANDS.to_vec()))
        );
    }
}

const PROTOCOLS: [ProtocolValue; 3] = [
    ProtocolValue::Other(TAO_SHMIOP),
    ProtocolValue::Other(TAO_UIOP),
    ProtocolValue::Iiop(TcpPropertiesValue {
        send_buffer_size: 0x1_0000,
        recv_buffer_size: 0x2_0000,
        keep_alive: true,
        dont_route: false,
        no_delay: true,
    }),
];
const PROTOCOLS_LITTLE: &[u8] = b"\x01\0\0\0\x03\0\0\0\
    \x02\x4f\x41\x54\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\
    \0\x4f\x41\x54\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\x01\0\0\0\x02\0\x01\0\x01";
const PROTOCOLS_BIG: &[u8] = b"\0\0\0\0\0\0\0\x03\
    \x54\x41\x4f\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\
    \x54\x41\x4f\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\x01\0\0\0\x02\0\0\x01\0\x01";

#[test]
fn protocols_are_tags_each_with_its_properties() {
    let written = PolicyValue::client_protocols(&PROTOCOLS).unwrap();
    assert_eq!(written.policy_type, 43);
    assert_eq!(written.data, native(PROTOCOLS_LITTLE, PROTOCOLS_BIG));
    for octets in [PROTOCOLS_LITTLE, PROTOCOLS_BIG] {
        let read = policies(43, octets).client_protocols();
        assert_eq!(read, Some(Ok(PROTOCOLS.to_vec())));
    }
}

#[test]
fn a_protocol_whose_properties_nobody_knows_cannot_be_passed_over() {
    let unknown = ProtocolValue::Other(77);
    let written = PolicyValue::client_protocols(&[unknown]);
    assert_eq!(written, Err(CdrError::InvalidEnum));
    let octets = b"\0\0\0\0\0\0\0\x01\0\0\0\x4d\0\0\0\0\0\0\0\0";
    let read = policies(43, octets).client_protocols();
    assert_eq!(read, Some(Err(CdrError::InvalidEnum)));
}

#[test]
fn a_policy_that_cannot_be_read_leaves_the_others() {
    let mut cut = PolicyValue::priority_bands(&BANDS).unwrap();
    cut.data.pop();
    let all = Policies(vec![cut, PolicyValue::priority_model(MODEL).unwrap()]);
    let component = Component::Policies(all).tagged().unwrap();
    let Component::Policies(read) = component.typed().unwrap() else {
        panic!("{component:?}");
    };
    assert_eq!(read.priority_bands(), Some(Err(CdrError::EndOfData)));
    assert_eq!(read.priority_model(), Some(MODEL));
}

#[test]
fn a_range_of_priorities_is_two_shorts() {
    let written = encode_priority_range(0x0102, 0x0304);
    let (little, big) = (b"\x01\0\x02\x01\x04\x03", b"\0\0\x01\x02\x03\x04");
    assert_eq!(written, native(little, big));
    assert_eq!(decode_priority_range(little), Ok((0x0102, 0x0304)));
    assert_eq!(decode_priority_range(big), Ok((0x0102, 0x0304)));
    assert_eq!(decode_priority_range(&big[..5]), Err(CdrError::EndOfData));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_octets_are_read_or_refused(kind in 38..46u32, data in vec(any::<u8>(), 0..64)) {
        let read = policies(kind, &data);
        let _ = (read.priority_model(), read.priority_bands(), read.client_protocols());
        let _ = TaggedComponent { tag: TAG_POLICIES, data: data.clone() }.typed();
        let _ = decode_priority_range(&data);
    }
}
