//! The filter of a class's socket: a classic BPF program (bpf(4)), in which the kernel looks at each packet before it is put
//! into the class's ring.
//!
//! The kernel has taken a VLAN tag off before, and tells it beside. A read beyond the end of a packet ends the program, and the
//! packet is not the class's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::sock_filter;

use crate::class::{ClassId, Rule, Rules, Unknown};
use crate::frame::ETHERNET_LEN;

/// What of a host's packets belongs to this class, if the interface has these addresses.
pub(super) fn program(
    rules: &Rules,
    class: ClassId,
    addresses: &[(IpAddr, u8)],
) -> Vec<sock_filter> {
    let mut program = Program::default();
    program.only_to_this_host();
    program.keep_vlan_priority();
    program.load_u16(ETHERNET_TYPE);
    program.block(|block| {
        block.require_equal(IPV4);
        block.ipv4(addresses);
        block.decide(rules, class, IpAddr::is_ipv4);
    });
    program.load_u16(ETHERNET_TYPE);
    program.block(|block| {
        block.require_equal(IPV6);
        block.ipv6(addresses);
        block.decide(rules, class, IpAddr::is_ipv6);
    });
    program.end(false);
    program.0
}

/// Instructions. What is asked for by `require…` goes on if it is so, and ends the program or leaves the
/// [block](Program::block) if not.
#[derive(Default)]
struct Program(Vec<sock_filter>);

impl Program {
    /// Packets to other hosts are seen too where somebody listens to all of them.
    fn only_to_this_host(&mut self) {
        self.load_word(kernel_word(libc::SKF_AD_PKTTYPE));
        self.block(|block| {
            block.require_not_equal(libc::PACKET_HOST.into());
            block.end(false);
        });
    }

    fn keep_vlan_priority(&mut self) {
        self.add(LOAD_NUMBER, NO_VLAN);
        self.add(STORE, VLAN_PRIORITY);
        self.load_word(kernel_word(libc::SKF_AD_VLAN_TAG_PRESENT));
        self.block(|block| {
            block.require_not_equal(0);
            block.load_word(kernel_word(libc::SKF_AD_VLAN_TAG));
            block.add(SHIFT_RIGHT, 13);
            block.add(STORE, VLAN_PRIORITY);
        });
    }

    /// Goes on with whole TCP packets to one of the addresses, and keeps what rules look at.
    fn ipv4(&mut self, addresses: &[(IpAddr, u8)]) {
        self.load_u8(IP);
        self.add(AND, 0xf0);
        self.end_unless(JUMP_EQUAL, 0x40);
        self.load_u16(IP + 6);
        self.add(AND, 0x3fff);
        self.end_unless(JUMP_EQUAL, 0);
        self.load_u8(IP + 9);
        self.end_unless(JUMP_EQUAL, TCP);
        self.load_u8(IP + 1);
        self.add(SHIFT_RIGHT, 2);
        self.add(STORE, DSCP);
        self.add(LOAD_INDEX_OF_IPV4_LEN, IP);
        self.add(MOVE_INDEX, 0);
        self.end_unless(JUMP_AT_LEAST, 20);
        self.add(LOAD_U16_BY_INDEX, IP + 2);
        self.add(STORE, PORT);
        self.require_any(addresses, IpAddr::is_ipv4);
    }

    /// As [`ipv4`](Self::ipv4). Packets with extension headers are the kernel's.
    fn ipv6(&mut self, addresses: &[(IpAddr, u8)]) {
        self.load_u8(IP);
        self.add(AND, 0xf0);
        self.end_unless(JUMP_EQUAL, 0x60);
        self.load_u8(IP + 6);
        self.end_unless(JUMP_EQUAL, TCP);
        self.load_u16(IP);
        self.add(SHIFT_RIGHT, 6);
        self.add(AND, 0x3f);
        self.add(STORE, DSCP);
        self.load_u16(IP + 40 + 2);
        self.add(STORE, PORT);
        self.require_any(addresses, IpAddr::is_ipv6);
    }

    /// Ends the program unless the packet goes to one of the addresses of the family.
    fn require_any(&mut self, addresses: &[(IpAddr, u8)], family: fn(&IpAddr) -> bool) {
        let mut found = Vec::new();
        for (address, _) in addresses.iter().filter(|(address, _)| family(address)) {
            self.block(|block| {
                block.require_address(*address);
                found.push(block.0.len());
                block.add(JUMP, 0);
            });
        }
        self.end(false);
        for jump in found {
            self.0[jump].k = (self.0.len() - jump - 1) as u32;
        }
    }

    /// Asks the rules in their order, and ends the program.
    fn decide(&mut self, rules: &Rules, class: ClassId, family: fn(&IpAddr) -> bool) {
        let can_match = |rule: &&Rule| rule.to.as_ref().is_none_or(family);
        for rule in rules.iter().filter(can_match) {
            self.block(|block| {
                if let Some(ports) = &rule.ports {
                    block.add(LOAD, PORT);
                    block.require(JUMP_AT_LEAST, (*ports.start()).into());
                    block.require_at_most((*ports.end()).into());
                }
                if let Some(dscp) = rule.dscp {
                    block.add(LOAD, DSCP);
                    block.require_equal(dscp.into());
                }
                if let Some(priority) = rule.vlan_priority {
                    block.add(LOAD, VLAN_PRIORITY);
                    block.require_equal(priority.into());
                }
                if let Some(to) = rule.to {
                    block.require_address(to);
                }
                block.end(rule.class == class);
            });
        }
        self.end(rules.unknown() == Unknown::Class(class));
    }

    fn require_address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.load_word(IP + 16);
                self.require_equal(Ipv4Addr::to_bits(address));
            }
            IpAddr::V6(address) => {
                let bits = Ipv6Addr::to_bits(address);
                for word in 0..4 {
                    self.load_word(IP + 24 + 4 * word);
                    self.require_equal((bits >> (96 - 32 * word)) as u32);
                }
            }
        }
    }

    /// Instructions that are left, for what follows them, where a requirement in them does not hold.
    fn block(&mut self, write: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        write(self);
        let end = self.0.len();
        for (place, instruction) in self.0.iter_mut().enumerate().skip(start) {
            // The way out may be longer than a conditional jump is: it goes by the plain jump behind that.
            if instruction.code == JUMP && instruction.k == LEAVE {
                instruction.k = (end - place - 1) as u32;
            }
        }
    }

    fn require_equal(&mut self, number: u32) {
        self.require(JUMP_EQUAL, number);
    }

    fn require_not_equal(&mut self, number: u32) {
        self.jump(JUMP_EQUAL, number, 0, 1);
        self.add(JUMP, LEAVE);
    }

    fn require_at_most(&mut self, number: u32) {
        self.jump(JUMP_ABOVE, number, 0, 1);
        self.add(JUMP, LEAVE);
    }

    fn require(&mut self, condition: u16, number: u32) {
        self.jump(condition, number, 1, 0);
        self.add(JUMP, LEAVE);
    }

    fn end_unless(&mut self, condition: u16, number: u32) {
        self.jump(condition, number, 1, 0);
        self.end(false);
    }

    /// The packet is the class's, all of it, or it is not.
    fn end(&mut self, is_of_class: bool) {
        self.add(RETURN, if is_of_class { u32::MAX } else { 0 });
    }

    fn load_u8(&mut self, offset: u32) {
        self.add(LOAD_U8, offset);
    }

    fn load_u16(&mut self, offset: u32) {
        self.add(LOAD_U16, offset);
    }

    fn load_word(&mut self, offset: u32) {
        self.add(LOAD_WORD, offset);
    }

    fn add(&mut self, code: u16, k: u32) {
        self.jump(code, k, 0, 0);
    }

    fn jump(&mut self, code: u16, k: u32, jt: u8, jf: u8) {
        self.0.push(sock_filter { code, jt, jf, k });
    }
}

/// Where the kernel tells something that is not in the packet.
const fn kernel_word(what: i32) -> u32 {
    (libc::SKF_AD_OFF + what).cast_unsigned()
}

/// A jump out of the block; no block is so long.
const LEAVE: u32 = u32::MAX;

/// Words of the program's memory.
const PORT: u32 = 0;
const DSCP: u32 = 1;
const VLAN_PRIORITY: u32 = 2;
/// What no VLAN priority is.
const NO_VLAN: u32 = 8;

const ETHERNET_TYPE: u32 = 12;
/// Where the IP packet begins.
const IP: u32 = ETHERNET_LEN as u32;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TCP: u32 = 6;

/// Instructions by what they do.
const LOAD_WORD: u16 = 0x20;
const LOAD_U16: u16 = 0x28;
const LOAD_U8: u16 = 0x30;
const LOAD_U16_BY_INDEX: u16 = 0x48;
const LOAD_INDEX_OF_IPV4_LEN: u16 = 0xb1;
const LOAD_NUMBER: u16 = 0x00;
const LOAD: u16 = 0x60;
const STORE: u16 = 0x02;
const MOVE_INDEX: u16 = 0x87;
const AND: u16 = 0x54;
const SHIFT_RIGHT: u16 = 0x74;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_ABOVE: u16 = 0x25;
const JUMP_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
