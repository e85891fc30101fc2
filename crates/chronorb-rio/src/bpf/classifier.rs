//! Compilation of the rules of an interface to programs with the semantics of [`Rules::classify`].

use std::net::IpAddr;
use std::ops::RangeInclusive;

use thiserror::Error;

use super::classic::{Code, Instruction, Op, ScratchSlot, Size, Source, Tag, Test};
pub(crate) use super::translation::{Maps, XDP_PASS};
use super::{AssembleError, Label, extended, translation};
use crate::class::{ClassId, Rule, Rules, Unknown};
use crate::frame::MAX_EXTENSIONS;

/// A program that classifies packets, for either dialect.
#[derive(Clone, Debug)]
pub(crate) struct Classifier {
    hardware: [u8; 6],
    /// Returns the number of the class plus one, or 0 for the kernel.
    code: Code,
}

/// The maximum number of addresses of an interface.
pub(crate) const MAX_ADDRESSES: usize = 32;

/// The interface has more than [`MAX_ADDRESSES`] addresses.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "the interface has {0} addresses, more than the {MAX_ADDRESSES} that packets can be told apart \
    by"
)]
pub(crate) struct TooManyAddresses(pub usize);

impl Classifier {
    /// Compiles the rules for an interface with this hardware address and these addresses.
    ///
    /// # Errors
    /// [`TooManyAddresses`]
    pub(crate) fn new(
        rules: &Rules,
        hardware: [u8; 6],
        own: &[(IpAddr, u8)],
    ) -> Result<Self, TooManyAddresses> {
        if own.len() > MAX_ADDRESSES {
            return Err(TooManyAddresses(own.len()));
        }
        let addresses: Vec<IpAddr> = own.iter().map(|(address, _)| *address).collect();
        let mut writer = Writer::default();
        writer.ethernet();
        writer.network(&addresses);
        writer.addressee();
        writer.decide(&sections(rules, &addresses));
        let code = writer.code;
        Ok(Self { hardware, code })
    }

    /// Returns the filter of a socket that accepts exactly the packets of one class, uncut.
    ///
    /// # Errors
    /// [`AssembleError`]; cannot occur within [`MAX_RULES`](crate::class::MAX_RULES).
    pub(crate) fn filter(&self, class: ClassId) -> Result<Vec<Instruction>, AssembleError> {
        let whole_or_nothing = |verdict| {
            if verdict == Self::verdict(class) {
                u32::MAX
            } else {
                0
            }
        };
        self.code.map_returns(whole_or_nothing).assemble()
    }

    /// Returns the program of an interface. It sends the packets of each class to the socket of the
    /// class at their receive queue. Packets without such a socket go to the kernel.
    ///
    /// # Errors
    /// [`AssembleError`]; cannot occur within [`MAX_RULES`](crate::class::MAX_RULES).
    pub(crate) fn xdp(&self, maps: Maps) -> Result<Vec<extended::EbpfInstruction>, AssembleError> {
        translation::translate(&self.code, self.hardware, maps).assemble()
    }

    /// Returns the value that the program returns for a class.
    const fn verdict(class: ClassId) -> u32 {
        class.index() as u32 + 1
    }
}

/// A section of the port range that ends at `last_port`. Its branches are tested in order;
/// `otherwise` is the verdict for packets that match none.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Section {
    last_port: u16,
    branches: Vec<Branch>,
    otherwise: u32,
}

/// A conjunction of tests, and the verdict for packets that pass all of them.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Branch {
    tests: Vec<(ScratchSlot, RangeInclusive<u32>)>,
    verdict: u32,
}

/// Groups the rules by ports, so that few are evaluated for a packet. If rules overlap so much that
/// the program would become too long, one section covers all ports and each rule tests them itself.
fn sections(rules: &Rules, own: &[IpAddr]) -> Vec<Section> {
    let otherwise = match rules.unknown() {
        Unknown::Kernel => KERNEL,
        Unknown::Class(class) => Classifier::verdict(class),
    };
    // A rule for another host's address never matches.
    let rules = || {
        let place = |to| own.iter().position(|it| *it == to);
        rules.iter().filter_map(move |rule| match rule.to {
            None => Some((rule, None)),
            Some(to) => place(to).map(|place| (rule, Some(place))),
        })
    };
    let mut lasts = vec![u16::MAX];
    for ports in rules().filter_map(|(rule, _)| rule.ports.as_ref()) {
        lasts.push(*ports.end());
        lasts.extend(ports.start().checked_sub(1));
    }
    lasts.sort_unstable();
    lasts.dedup();
    let mut sections: Vec<Section> = Vec::with_capacity(lasts.len());
    for last_port in lasts {
        let covers = |rule: &Rule| (rule.ports.as_ref()).is_none_or(|it| it.contains(&last_port));
        let covering = rules().filter(|(rule, _)| covers(rule));
        let section = Section::new(last_port, covering, otherwise, false);
        match sections.last_mut() {
            Some(before) if before.says_the_same(&section) => before.last_port = last_port,
            _ => sections.push(section),
        }
    }
    let branches: usize = sections.iter().map(|it| it.branches.len()).sum();
    if branches > MAX_BRANCHES {
        return vec![Section::new(u16::MAX, rules(), otherwise, true)];
    }
    sections
}

impl Section {
    fn new<'r>(
        last_port: u16,
        rules: impl Iterator<Item = (&'r Rule, Option<usize>)>,
        otherwise: u32,
        asks_for_ports: bool,
    ) -> Self {
        let mut section = Self {
            last_port,
            branches: Vec::new(),
            otherwise,
        };
        for (rule, place) in rules {
            let verdict = Classifier::verdict(rule.class);
            let tests = tests(rule, place, asks_for_ports);
            if tests.is_empty() {
                section.otherwise = verdict;
                break;
            }
            section.branches.push(Branch { tests, verdict });
        }
        section
    }

    fn says_the_same(&self, other: &Self) -> bool {
        self.branches == other.branches && self.otherwise == other.otherwise
    }
}

/// Returns the tests of a rule. `address` is the index of its address among the own ones.
fn tests(
    rule: &Rule,
    place: Option<usize>,
    asks_for_ports: bool,
) -> Vec<(ScratchSlot, RangeInclusive<u32>)> {
    let exactly = |slot, number: u32| (slot, number..=number);
    let ports = rule.ports.as_ref().filter(|_| asks_for_ports);
    let ports = ports.map(|it| (PORT, u32::from(*it.start())..=u32::from(*it.end())));
    let place = place.map(|place| exactly(ADDRESS, place as u32));
    let dscp = rule.dscp.map(|dscp| exactly(DSCP, dscp.into()));
    let vlan = (rule.vlan_priority).map(|it| exactly(VLAN_PRIORITY, it.into()));
    [ports, place, dscp, vlan].into_iter().flatten().collect()
}

#[derive(Default)]
struct Writer {
    code: Code,
}

impl Writer {
    /// Reads the Ethernet header. `X` becomes the position of the packet, and `A` its EtherType.
    fn ethernet(&mut self) {
        let (tag_inside, tagged, network) = (self.label(), self.label(), self.label());
        let stripped = |tag| Op::Load(Source::Stripped(tag));
        self.code
            .extend([stripped(Tag::IsThere), Op::If(Test::Is(0), tag_inside)]);
        self.code.push(stripped(Tag::Kind));
        self.require(Test::Is(TAG));
        self.code.extend([
            stripped(Tag::Control),
            Op::Right(TAG_PRIORITY_SHIFT),
            Op::Store(VLAN_PRIORITY),
            Op::SetX(ETHERNET_LEN),
            Op::Load(Source::At(Size::Half, 12)),
            Op::Jump(network),
            Op::Bind(tag_inside),
            Op::Load(Source::At(Size::Half, 12)),
            Op::If(Test::Is(TAG), tagged),
            Op::Load(Source::Number(UNTAGGED)),
            Op::Store(VLAN_PRIORITY),
            Op::SetX(ETHERNET_LEN),
            Op::Load(Source::At(Size::Half, 12)),
            Op::Jump(network),
            Op::Bind(tagged),
            Op::Load(Source::At(Size::Half, 14)),
            Op::Right(TAG_PRIORITY_SHIFT),
            Op::Store(VLAN_PRIORITY),
            Op::SetX(ETHERNET_LEN + TAG_LEN),
            Op::Load(Source::At(Size::Half, 16)),
            Op::Bind(network),
        ]);
    }

    /// Reads the packet up to its TCP header, which must be complete. Then the slots hold all
    /// values that rules test.
    fn network(&mut self, own: &[IpAddr]) {
        let (ipv4, other, segment) = (self.label(), self.label(), self.label());
        self.code.extend([
            Op::Unless(Test::Is(IPV4), other),
            Op::Jump(ipv4),
            Op::Bind(other),
        ]);
        self.require(Test::Is(IPV6));
        self.ipv6(own, segment);
        self.code.push(Op::Bind(ipv4));
        self.ipv4(own);
        self.code.push(Op::Bind(segment));
        self.tcp();
    }

    fn ipv4(&mut self, own: &[IpAddr]) {
        // The version, and no fragment: offset zero and no more fragments.
        self.behind(Size::Octet, 0);
        self.code.push(Op::Right(4));
        self.require(Test::Is(4));
        self.behind(Size::Octet, 9);
        self.require(Test::Is(TCP));
        self.behind(Size::Half, 6);
        self.refuse(Test::HasAny(0x3fff));
        self.behind(Size::Octet, 1);
        self.code.extend([Op::Right(2), Op::Store(DSCP)]);
        self.behind(Size::Half, 2);
        self.end();
        self.own(16, own.iter().filter(|it| it.is_ipv4()), own);
        self.behind(Size::Octet, 0);
        self.code.push(Op::And(0xf));
        self.require(Test::AtLeast(5));
        self.code.extend([Op::Left(2), Op::AddX, Op::AToX]);
    }

    fn ipv6(&mut self, own: &[IpAddr], segment: Label) {
        self.behind(Size::Octet, 0);
        self.code.push(Op::Right(4));
        self.require(Test::Is(6));
        self.behind(Size::Half, 0);
        self.code
            .extend([Op::Right(6), Op::And(0x3f), Op::Store(DSCP)]);
        self.behind(Size::Half, 4);
        self.code.push(Op::Add(IPV6_LEN));
        self.end();
        self.own(24, own.iter().filter(|it| it.is_ipv6()), own);
        self.behind(Size::Octet, 6);
        self.code.push(Op::Store(NEXT));
        self.code.extend([Op::XToA, Op::Add(IPV6_LEN), Op::AToX]);
        for _ in 0..MAX_EXTENSIONS {
            self.extension(segment);
        }
        self.code.push(Op::Load(Source::Slot(NEXT)));
        self.require(Test::Is(TCP));
        self.code.push(Op::Jump(segment));
    }

    /// Skips an IPv6 extension header, if the next header is one that every host skips.
    fn extension(&mut self, segment: Label) {
        let (other, pass, routing) = (self.label(), self.label(), self.label());
        self.code.extend([
            Op::Load(Source::Slot(NEXT)),
            Op::Unless(Test::Is(TCP), other),
            Op::Jump(segment),
            Op::Bind(other),
            Op::If(Test::Is(HOP_BY_HOP), pass),
            Op::If(Test::Is(DESTINATION), pass),
            Op::If(Test::Is(ROUTING), routing),
            Op::Return(KERNEL),
            Op::Bind(routing),
        ]);
        // The packet is forwarded to another host unless no segment is left.
        self.behind(Size::Octet, 3);
        self.require(Test::Is(0));
        self.code.push(Op::Bind(pass));
        self.behind(Size::Octet, 0);
        self.code.push(Op::Store(NEXT));
        self.behind(Size::Octet, 1);
        self.code
            .extend([Op::Left(3), Op::Add(8), Op::AddX, Op::AToX]);
    }

    /// Computes the end of the packet that begins at `X` and has its length in `A`. Refuses the
    /// packet if the frame ends before.
    fn end(&mut self) {
        self.code.extend([
            Op::AddX,
            Op::Store(END),
            Op::XToA,
            Op::Store(NETWORK),
            Op::Load(Source::Length),
            Op::AToX,
            Op::Load(Source::Slot(END)),
        ]);
        self.refuse(Test::AboveX);
        self.code.push(Op::LoadX(NETWORK));
    }

    /// Finds the address at this many octets behind `X` among `own`.
    fn own<'a>(&mut self, at: u32, candidates: impl Iterator<Item = &'a IpAddr>, own: &[IpAddr]) {
        let found = self.label();
        // The kernel checks classic programs linearly and does not follow jumps. It assumes that
        // after a return only the slots that were set before it are initialized.
        self.code
            .extend([Op::Load(Source::Number(0)), Op::Store(ADDRESS)]);
        for address in candidates {
            let another = self.label();
            let words = match address {
                IpAddr::V4(address) => vec![address.to_bits()],
                IpAddr::V6(address) => {
                    let bits = address.to_bits();
                    vec![
                        (bits >> 96) as u32,
                        (bits >> 64) as u32,
                        (bits >> 32) as u32,
                        bits as u32,
                    ]
                }
            };
            for (number, word) in (0..).zip(words) {
                self.behind(Size::Word, at + 4 * number);
                self.code.push(Op::Unless(Test::Is(word), another));
            }
            let place = own.iter().position(|it| it == address).unwrap_or_default();
            self.code.extend([
                Op::Load(Source::Number(place as u32)),
                Op::Store(ADDRESS),
                Op::Jump(found),
                Op::Bind(another),
            ]);
        }
        self.code.extend([Op::Return(KERNEL), Op::Bind(found)]);
    }

    /// Reads the TCP header at `X`, which must end at or before the end of the packet.
    fn tcp(&mut self) {
        self.behind(Size::Half, 2);
        self.code.push(Op::Store(PORT));
        self.behind(Size::Octet, 12);
        self.code.extend([Op::Right(2), Op::And(0x3c)]);
        self.require(Test::AtLeast(20));
        self.code.extend([Op::AddX, Op::LoadX(END)]);
        self.refuse(Test::AboveX);
    }

    /// Leaves multicast frames, and frames for other hosts that a promiscuous interface sees, to
    /// the kernel. This test is last because few such frames have an address of this host.
    fn addressee(&mut self) {
        self.code.push(Op::Load(Source::Addressee));
        self.require(Test::Is(0));
    }

    /// Finds the section of the port by binary search and evaluates its branches.
    fn decide(&mut self, sections: &[Section]) {
        if let [section] = sections {
            return self.section(section);
        }
        let (lower, higher) = sections.split_at(sections.len() / 2);
        let Some(Section { last_port, .. }) = lower.last() else {
            return self.code.push(Op::Return(KERNEL));
        };
        let (below, above) = (self.label(), self.label());
        self.code.extend([
            Op::Load(Source::Slot(PORT)),
            Op::Unless(Test::Above((*last_port).into()), below),
            Op::Jump(above),
            Op::Bind(below),
        ]);
        self.decide(lower);
        self.code.push(Op::Bind(above));
        self.decide(higher);
    }

    fn section(&mut self, section: &Section) {
        for Branch { tests, verdict } in &section.branches {
            let next = self.label();
            for (slot, range) in tests {
                self.code.push(Op::Load(Source::Slot(*slot)));
                if range.start() == range.end() {
                    self.code.push(Op::Unless(Test::Is(*range.start()), next));
                } else {
                    self.code.extend([
                        Op::Unless(Test::AtLeast(*range.start()), next),
                        Op::If(Test::Above(*range.end()), next),
                    ]);
                }
            }
            self.code.extend([Op::Return(*verdict), Op::Bind(next)]);
        }
        self.code.push(Op::Return(section.otherwise));
    }

    fn label(&mut self) -> Label {
        self.code.label()
    }

    fn behind(&mut self, size: Size, at: u32) {
        self.code.push(Op::Load(Source::Behind(size, at)));
    }

    /// Leaves the packet to the kernel unless the test holds.
    fn require(&mut self, test: Test) {
        let on = self.label();
        self.code
            .extend([Op::If(test, on), Op::Return(KERNEL), Op::Bind(on)]);
    }

    /// Leaves the packet to the kernel if the test holds.
    fn refuse(&mut self, test: Test) {
        let on = self.label();
        self.code
            .extend([Op::Unless(test, on), Op::Return(KERNEL), Op::Bind(on)]);
    }
}

/// The return value for packets of the kernel.
const KERNEL: u32 = 0;
/// The number of branches that fit into a classic program together with a search among as many
/// sections.
const MAX_BRANCHES: usize = 192;

// The slots that are filled when the class is decided.
const PORT: ScratchSlot = ScratchSlot::new(0);
/// The index of the destination among the own addresses.
const ADDRESS: ScratchSlot = ScratchSlot::new(1);
const DSCP: ScratchSlot = ScratchSlot::new(2);
const VLAN_PRIORITY: ScratchSlot = ScratchSlot::new(3);
// Intermediate slots.
/// The position of the packet.
const NETWORK: ScratchSlot = ScratchSlot::new(4);
/// The end of the packet.
const END: ScratchSlot = ScratchSlot::new(5);
/// The protocol that follows the present header.
const NEXT: ScratchSlot = ScratchSlot::new(6);

/// The value of [`VLAN_PRIORITY`] for a packet without a tag.
const UNTAGGED: u32 = 8;
const ETHERNET_LEN: u32 = 14;
const TAG: u32 = 0x8100;
const TAG_LEN: u32 = 4;
const TAG_PRIORITY_SHIFT: u32 = 13;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const IPV6_LEN: u32 = 40;
const HOP_BY_HOP: u32 = 0;
const TCP: u32 = 6;
const ROUTING: u32 = 43;
const DESTINATION: u32 = 60;
