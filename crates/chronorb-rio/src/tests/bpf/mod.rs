//! Equivalence of the rules and the programs made from them in both dialects, run by interpreters.

mod classic;
mod extended;
pub(crate) mod packets;

use crate::bpf::classic::{Code, Op, Size, Source, Test};
use crate::bpf::classifier::{Classifier, MAX_ADDRESSES, Maps, TooManyAddresses};
use crate::bpf::{AssembleError, extended as wide};
use crate::class::{ClassId, MAX_CLASSES, MAX_RULES, Rule, Rules, Unknown, Verdict};
use crate::frame::Headers;
use extended::{MAPS, Redirect, run};
use packets::{HARDWARE, OWN, frames, own, rules, worst_rules};
use proptest::prelude::*;

/// Classifies the packet by the rules in plain Rust.
fn classify(rules: &Rules, frame: &[u8]) -> Verdict {
    match Headers::read(frame) {
        Ok(headers) => rules.classify(&headers, HARDWARE, &own()),
        Err(_) => Verdict::Kernel,
    }
}

/// Returns the verdict of the programs. Both dialects must agree.
fn programs_say(rules: &Rules, frame: &[u8]) -> Verdict {
    let classifier = Classifier::new(rules, HARDWARE, &own()).expect("there are few addresses");
    let xdp = classifier.xdp(MAPS).expect("it can be assembled");
    let verdict = match run(&xdp, frame, 0) {
        Redirect::Pass => Verdict::Kernel,
        Redirect::To(class) => Verdict::Class(class_of(class as usize)),
    };
    for queue in [1, MAPS.queues - 1, MAPS.queues, MAPS.queues + 1, u32::MAX] {
        let place = |class| Maps::place(class, queue.min(MAPS.queues)).into();
        let expected = match verdict {
            Verdict::Kernel => Redirect::Pass,
            Verdict::Class(class) => Redirect::To(place(class)),
        };
        assert_eq!(run(&xdp, frame, queue), expected, "by queue {queue}");
    }
    for class in (0..MAX_CLASSES).map(class_of) {
        let filter = classifier.filter(class).expect("it can be assembled");
        let takes = if verdict == Verdict::Class(class) {
            u32::MAX
        } else {
            0
        };
        assert_eq!(classic::run(&filter, frame, None), takes, "{filter:#?}");
        if let Some((stripped, tag)) = strip(frame) {
            assert_eq!(classic::run(&filter, &stripped, Some(tag)), takes);
        }
    }
    verdict
}

/// Returns the frame as a socket sees it, with its tag separate.
fn strip(frame: &[u8]) -> Option<(Vec<u8>, (u16, u16))> {
    let number = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let tag = (number(12)?, number(14)?);
    // Programs see a frame with a second tag differently, but neither result is a class.
    let is_tagged = tag.0 == 0x8100 && number(16)? != 0x8100;
    is_tagged.then(|| ([&frame[..12], &frame[16..]].concat(), tag))
}

fn class_of(number: usize) -> ClassId {
    ClassId::new(number).expect("there are so many classes")
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 512,
        ..ProptestConfig::default()
    })]

    #[test]
    fn both_dialects_say_what_the_rules_say(
        rules in rules(),
        frames in prop::collection::vec(frames(), 1..8),
    ) {
        for frame in frames {
            prop_assert_eq!(programs_say(&rules, &frame), classify(&rules, &frame));
        }
    }

    #[test]
    fn a_packet_that_is_cut_off_is_the_kernels(
        rules in rules(),
        frame in frames(),
        len in 0..200_usize,
    ) {
        let len = len.min(frame.len());
        prop_assert_eq!(programs_say(&rules, &frame[..len]), classify(&rules, &frame[..len]));
    }
}

#[test]
fn as_many_rules_as_there_can_be_fit() {
    for rules in worst_rules() {
        assert_eq!(rules.iter().len(), MAX_RULES);
        let own: Vec<_> = (0..MAX_ADDRESSES as u128)
            .map(|number| (std::net::Ipv6Addr::from_bits(number << 64).into(), 64))
            .collect();
        let classifier = Classifier::new(&rules, HARDWARE, &own).expect("there are not too many");
        let filter = classifier.filter(class_of(0)).expect("it fits");
        let xdp = classifier.xdp(MAPS).expect("it fits");
        assert!(filter.len() < xdp.len());
    }
}

#[test]
fn the_maps_have_a_place_for_each_class_and_queue_and_for_all_later_queues() {
    let mut places = Vec::new();
    for queue in 0..=MAPS.queues {
        places.extend((0..MAX_CLASSES).map(|class| Maps::place(class_of(class), queue)));
    }
    assert_eq!(places, (0..Maps::places(MAPS.queues)).collect::<Vec<_>>());
}

#[test]
fn too_many_addresses_are_refused() {
    let own = vec![(OWN[0], 24); MAX_ADDRESSES + 1];
    let refused = Classifier::new(&Rules::new(), HARDWARE, &own).unwrap_err();
    assert_eq!(refused, TooManyAddresses(MAX_ADDRESSES + 1));
}

#[test]
fn without_rules_and_with_one_for_all_little_is_asked() {
    let mut rules = Rules::new();
    let len = |rules: &Rules| {
        let classifier = Classifier::new(rules, HARDWARE, &own()).expect("there are few");
        classifier.filter(class_of(1)).expect("it fits").len()
    };
    let none = len(&rules);
    rules.add(Rule::all(class_of(1))).expect("it is one");
    for port in 1..=100 {
        let ports = Some(port..=port);
        let hidden = Rule {
            ports,
            ..Rule::all(class_of(2))
        };
        rules.add(hidden).expect("they are few");
    }
    assert_eq!(len(&rules), none);
    rules.set_unknown(Unknown::Class(class_of(3)));
    assert_eq!(len(&rules), none);
}

#[test]
fn labels_are_checked() {
    let mut code = Code::default();
    let label = code.label();
    code.push(Op::Jump(label));
    assert_eq!(code.assemble(), Err(AssembleError::Unbound { at: 0 }));
    code.extend([Op::Bind(label), Op::Return(0), Op::Bind(label)]);
    assert_eq!(code.assemble(), Err(AssembleError::BoundTwice { at: 2 }));
}

#[test]
fn a_jump_that_is_too_far_is_refused() {
    let mut code = Code::default();
    let label = code.label();
    code.push(Op::If(Test::Is(1), label));
    code.extend((0..255).map(|_| Op::Return(0)));
    let near = {
        let mut near = code.clone();
        near.extend([Op::Bind(label), Op::Return(1)]);
        near
    };
    assert!(near.assemble().is_ok());
    code.extend([Op::Return(0), Op::Bind(label), Op::Return(1)]);
    let refused = AssembleError::OutOfRange {
        at: 0,
        distance: 256,
    };
    assert_eq!(code.assemble(), Err(refused));

    let mut back = Code::default();
    let label = back.label();
    back.extend([Op::Bind(label), Op::Jump(label)]);
    let refused = AssembleError::OutOfRange {
        at: 0,
        distance: -1,
    };
    assert_eq!(back.assemble(), Err(refused));

    let mut wide = wide::EbpfCode::default();
    let label = wide.label();
    wide.push(wide::EbpfOp::Jump(label));
    wide.extend((0..40_000).map(|_| wide::EbpfOp::Exit));
    wide.push(wide::EbpfOp::Bind(label));
    let refused = AssembleError::OutOfRange {
        at: 0,
        distance: 40_000,
    };
    assert_eq!(wide.assemble(), Err(refused));
}

#[test]
fn a_program_that_is_too_long_is_refused() {
    let mut code = Code::default();
    code.extend((0..4097).map(|_| Op::Return(0)));
    let refused = AssembleError::TooLong {
        len: 4097,
        max: 4096,
    };
    assert_eq!(code.assemble(), Err(refused));
}

#[test]
fn instructions_can_be_read() {
    let mut code = Code::default();
    let label = code.label();
    code.extend([
        Op::Load(Source::Behind(Size::Half, 2)),
        Op::If(Test::AtLeast(80), label),
        Op::Return(0),
        Op::Bind(label),
        Op::Return(7),
    ]);
    let listing = format!("{:?}", code.assemble().expect("it can be assembled"));
    assert_eq!(listing, "[ldh [x + 2], jge #0x50, +1, +0, ret #0, ret #7]");

    let [rules, ..] = worst_rules();
    let classifier = Classifier::new(&rules, HARDWARE, &own()).expect("there are few");
    let xdp = classifier.xdp(MAPS).expect("it can be assembled");
    let listing = format!("{xdp:?}");
    assert!(
        listing.starts_with("[r6 = r1, call 188, *(u64 *)(r10 -136) = r0, r2 = *(u32 *)(r6 +0)")
    );
    assert!(listing.ends_with("w0 = 2, exit]"), "{listing}");
    let classic = classifier.filter(class_of(0)).expect("it can be assembled");
    for listing in [format!("{classic:#?}"), format!("{xdp:#?}")] {
        let nameless = listing.lines().find(|line| line.trim().starts_with("0x"));
        assert_eq!(nameless, None);
    }
}
