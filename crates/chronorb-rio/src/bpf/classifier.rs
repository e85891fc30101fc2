//! From the rules of an interface to programs that tell its packets apart, as [`Rules::classify`]
//! does.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use thiserror::Error;

use super::classic::{Code, Instruction, Op, Size, Slot, Source, Tag, Test};
pub(crate) use super::translation::{Maps, XDP_PASS};
use super::{AssembleError, Label, extended, translation};
use crate::class::{ClassId, Rule, Rules, Unknown};
use crate::frame::MAX_EXTENSIONS;

/// A program that finds the class of a packet, for either dialect.
#[derive(Clone, Debug)]
pub(crate) struct Classifier {
    hardware: [u8; 6],
    /// Returns the number of the class and one, or 0 for the kernel.
    code: Code,
}

/// Addresses that an interface can have.
pub(crate) const MAX_ADDRESSES: usize = 32;

/// An interface has more than [`MAX_ADDRESSES`].
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "the interface has {0} addresses, more than the {MAX_ADDRESSES} that packets can be told apart by"
)]
pub(crate) struct TooManyAddresses(pub usize);

impl Classifier {
    /// The program for these rules and an interface with this hardware address and these addresses.
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

    /// The filter of a socket that takes the packets of one class whole, and no others.
    ///
    /// # Errors
    /// [`AssembleError`]; not for as many rules as an interface can have.
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

    /// The program of an interface that sends the packets of each class to its socket of the queue
    /// that they came by, where it has one, and leaves all others to the kernel.
    ///
    /// # Errors
    /// [`AssembleError`]; not for as many rules as an interface can have.
    pub(crate) fn xdp(&self, maps: Maps) -> Result<Vec<extended::Instruction>, AssembleError> {
        translation::translate(&self.code, self.hardware, maps).assemble()
    }

    /// What the program returns for a class.
    const fn verdict(class: ClassId) -> u32 {
        class.index() as u32 + 1
    }
}

/// For ports up to a number: what is asked, in this order, and where packets go that pass none of
/// it.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Section {
    last_port: u16,
    branches: Vec<Branch>,
    otherwise: u32,
}

/// Where packets go that pass all of these tests.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Branch {
    tests: Vec<(Slot, RangeInclusive<u32>)>,
    verdict: u32,
}

/// The rules by ports, so that few of them are asked for a packet. Where rules overlap so much that
/// this would take too much room there is one section for all ports, in which each rule is asked
/// for them.
fn sections(rules: &Rules, own: &[IpAddr]) -> Vec<Section> {
    let otherwise = match rules.unknown() {
        Unknown::Kernel => KERNEL,
        Unknown::Class(class) => Classifier::verdict(class),
    };
    // What goes to another host's address never matches.
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

/// What a packet must be for a rule that is for the address at this place among the own ones.
fn tests(
    rule: &Rule,
    place: Option<usize>,
    asks_for_ports: bool,
) -> Vec<(Slot, RangeInclusive<u32>)> {
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
    /// Reads the header of Ethernet: `X` is where the packet begins then, and `A` what kind it is
    /// of.
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

    /// Reads the packet up to its TCP header, which must be whole. All that rules ask for is in its
    /// slot then.
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
        // The version, and no fragment: neither an offset nor more to come.
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

    /// Passes by an extension header of IPv6, if one is there that every host passes by.
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
        // It goes on to another host unless no segment is left.
        self.behind(Size::Octet, 3);
        self.require(Test::Is(0));
        self.code.push(Op::Bind(pass));
        self.behind(Size::Octet, 0);
        self.code.push(Op::Store(NEXT));
        self.behind(Size::Octet, 1);
        self.code
            .extend([Op::Left(3), Op::Add(8), Op::AddX, Op::AToX]);
    }

    /// `A` is how long the packet is that begins at `X`: the frame has to be as long.
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

    /// Finds the address so many octets behind `X` among `own`.
    fn own<'a>(&mut self, at: u32, candidates: impl Iterator<Item = &'a IpAddr>, own: &[IpAddr]) {
        let found = self.label();
        // The kernel's check of classic programs goes through them once, and not by their jumps:
        // for it what follows a return knows no more slots than what precedes it.
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

    /// Reads the TCP header at `X`, which has to end where the packet ends or before.
    fn tcp(&mut self) {
        self.behind(Size::Half, 2);
        self.code.push(Op::Store(PORT));
        self.behind(Size::Octet, 12);
        self.code.extend([Op::Right(2), Op::And(0x3c)]);
        self.require(Test::AtLeast(20));
        self.code.extend([Op::AddX, Op::LoadX(END)]);
        self.refuse(Test::AboveX);
    }

    /// Leaves frames to the kernel that are to another interface, which those that listen to all
    /// see, or to many. Few come as far as here, with an address of this host, so that only packets
    /// of TCP to it are asked.
    fn addressee(&mut self) {
        self.code.push(Op::Load(Source::Addressee));
        self.require(Test::Is(0));
    }

    /// Finds the section of the port, by halves, and asks what there is to ask.
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

    /// Leaves the packet to the kernel unless this is so.
    fn require(&mut self, test: Test) {
        let on = self.label();
        self.code
            .extend([Op::If(test, on), Op::Return(KERNEL), Op::Bind(on)]);
    }

    /// Leaves the packet to the kernel if this is so.
    fn refuse(&mut self, test: Test) {
        let on = self.label();
        self.code
            .extend([Op::Unless(test, on), Op::Return(KERNEL), Op::Bind(on)]);
    }
}

/// What a program returns for packets of the kernel.
const KERNEL: u32 = 0;
/// So many branches fit into a classic program, with a search among as many sections.
const MAX_BRANCHES: usize = 192;

// What is known of a packet when its class is decided.
const PORT: Slot = Slot::new(0);
/// The place of its destination among the own addresses.
const ADDRESS: Slot = Slot::new(1);
const DSCP: Slot = Slot::new(2);
const VLAN_PRIORITY: Slot = Slot::new(3);
// What is kept on the way there.
/// Where the packet begins.
const NETWORK: Slot = Slot::new(4);
/// Where it ends.
const END: Slot = Slot::new(5);
/// What follows the header that is looked at.
const NEXT: Slot = Slot::new(6);

/// What [`VLAN_PRIORITY`] is for a packet without a tag.
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
