use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chronorb_rio::class::{ClassId, Rule, Rules, Verdict};
use chronorb_rio::frame::{Headers, checksum};

/// Parses `data` as a received Ethernet frame and classifies it by rules. Asserts that all offsets
/// lie in the frame, that the Ethernet header is written as it was read, and that computed
/// checksums are accepted.
pub fn rio_frame(data: &[u8]) {
    let Ok(headers) = Headers::read(data) else {
        return;
    };
    assert!(headers.network <= headers.transport && headers.transport <= headers.end);
    assert!(headers.end <= data.len());
    assert!(headers.dscp < 64);
    let mut header = vec![0; headers.ethernet.octets()];
    assert_eq!(
        headers.ethernet.write(&mut header).map(|rest| rest.len()),
        Some(0)
    );
    assert_eq!(data[..headers.network], header);

    let to = headers.ethernet.to;
    let verdict = rules().classify(&headers, to, &OWN);
    let others = to.map(|octet| !octet);
    let at_others = rules().classify(&headers, others, &OWN);
    assert_eq!(at_others, Verdict::Kernel);
    let is_own = OWN.iter().any(|(address, _)| *address == headers.to);
    assert!(verdict == Verdict::Kernel || (headers.tcp.is_some() && is_own));
    assert!(headers.tcp.is_none() || !headers.is_fragment);

    let Some(payload) = headers.payload() else {
        return;
    };
    assert!(headers.transport + 20 <= payload.start && payload.end == headers.end);
    let mut frame = data.to_vec();
    if headers.from.is_ipv4() {
        let sum = checksum::ipv4(&frame[headers.network..headers.transport]);
        frame[headers.network + 10..][..2].copy_from_slice(&sum.to_be_bytes());
    }
    let sum = checksum::tcp(
        headers.from,
        headers.to,
        &frame[headers.transport..headers.end],
    );
    frame[headers.transport + 16..][..2].copy_from_slice(&sum.to_be_bytes());
    assert!(headers.has_right_checksums(&frame));
    assert_eq!(Headers::read(&frame), Ok(headers));
}

/// One of each kind.
fn rules() -> Rules {
    let class = |number| ClassId::new(number).expect("there are as many");
    let mut rules = Rules::new();
    for rule in [
        Rule {
            to: Some(OWN[0].0),
            ports: Some(2809..=2819),
            ..Rule::all(class(0))
        },
        Rule {
            dscp: Some(46),
            ..Rule::all(class(1))
        },
        Rule {
            vlan_priority: Some(5),
            ..Rule::all(class(2))
        },
    ] {
        rules.add(rule).expect("it can match");
    }
    rules
}

const OWN: [(IpAddr, u8); 2] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 24),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 64),
];
