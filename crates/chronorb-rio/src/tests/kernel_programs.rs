//! Programs made from rules: the kernel accepts them and classifies as the rules do.

use std::io;

use crate::bpf::classifier::{Classifier, MAX_ADDRESSES, Maps};
use crate::bpf::extended::{Alu, EbpfCode, EbpfOp, Register, Width};
use crate::class::{ClassId, Rules, Verdict};
use crate::driver::bpf::{Map, Program};
use crate::frame::Headers;
use proptest::prelude::*;

use crate::tests::bpf::packets::{HARDWARE, frames, own, rules, worst_rules};

struct Kernel {
    sockets: Map,
    counters: Map,
}

impl Kernel {
    /// Returns `None`, with a note, if this process may not load programs.
    fn new() -> Option<Self> {
        let maps = Map::of_sockets(Maps::places(QUEUES)).and_then(|sockets| {
            let counters = Map::of_counters(Maps::places(QUEUES))?;
            Ok(Self { sockets, counters })
        });
        match maps {
            Ok(kernel) => Some(kernel),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                println!("NOT RUN: programs cannot be loaded: {error}");
                let required = std::env::var("CHRONORB_PEERS").is_ok_and(|it| it == "required");
                assert!(!required, "CHRONORB_PEERS=required: {error}");
                None
            }
            Err(error) => panic!("maps cannot be had: {error}"),
        }
    }

    fn load(&self, classifier: &Classifier) -> Program {
        let maps = Maps {
            sockets: self.sockets.descriptor(),
            counters: self.counters.descriptor(),
            queues: QUEUES,
        };
        let program = classifier.xdp(maps).expect("it can be assembled");
        Program::xdp(&program).unwrap_or_else(|error| panic!("{error}"))
    }

    fn counts(&self) -> Vec<u64> {
        let count = |place| self.counters.count(place).expect("it has one");
        (0..Maps::places(QUEUES)).map(count).collect()
    }
}

#[test]
fn the_verifier_takes_as_many_rules_as_there_can_be() {
    let Some(kernel) = Kernel::new() else { return };
    let v6 = |number: u128| (std::net::Ipv6Addr::from_bits(number << 64).into(), 64);
    let mut addresses = own();
    addresses.extend((0..(MAX_ADDRESSES - addresses.len()) as u128).map(v6));
    for rules in worst_rules() {
        let classifier =
            Classifier::new(&rules, HARDWARE, &addresses).expect("there are not too many");
        kernel.load(&classifier);
    }
}

#[test]
fn the_verifier_takes_rules_for_hosts_that_have_few_addresses_or_none() {
    let Some(kernel) = Kernel::new() else { return };
    let [rules, ..] = worst_rules();
    for rules in [Rules::new(), rules] {
        for addresses in [&own()[..0], &own()[..1], &own()[1..2]] {
            kernel.load(&Classifier::new(&rules, HARDWARE, addresses).expect("there are few"));
        }
    }
}

#[test]
fn a_program_that_is_refused_says_why() {
    let Some(_) = Kernel::new() else { return };
    let mut code = EbpfCode::default();
    code.extend([
        EbpfOp::Alu(Alu::Move, Width::Full, Register::R0, Register::R7.into()),
        EbpfOp::Exit,
    ]);
    let program = code.assemble().expect("it can be assembled");
    let refused = Program::xdp(&program).unwrap_err();
    assert!(refused.to_string().contains("R7 !read_ok"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 128,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_kernel_reads_packets_as_the_rules_say(
        rules in rules(),
        frames in prop::collection::vec(frames(), 1..16),
    ) {
        let Some(kernel) = Kernel::new() else { return Ok(()) };
        let classifier = Classifier::new(&rules, HARDWARE, &own());
        let classifier = classifier.expect("there are few addresses");
        let program = kernel.load(&classifier);
        for frame in frames {
            let before = kernel.counts();
            // No class has a socket.
            prop_assert_eq!(program.run(&frame).expect("it is long enough"), 2);
            let after = kernel.counts();
            let grown: Vec<_> = (0..after.len()).filter(|at| after[*at] != before[*at]).collect();
            // The packet arrives at the first queue.
            let said = classify(&rules, &frame).map(|class| Maps::place(class, 0) as usize);
            prop_assert_eq!(grown, Vec::from_iter(said));
        }
    }
}

fn classify(rules: &Rules, frame: &[u8]) -> Option<ClassId> {
    let headers = Headers::read(frame).ok()?;
    match rules.classify(&headers, HARDWARE, &own()) {
        Verdict::Class(class) => Some(class),
        Verdict::Kernel => None,
    }
}

/// The number of receive queues in the programs.
const QUEUES: u32 = 4;
