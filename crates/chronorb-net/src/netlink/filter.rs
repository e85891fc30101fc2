//! Filters: which class of a queueing discipline a packet goes to.

use libc::sock_filter;

use super::message::Request;
use super::qdisc::{Handle, fixed};
use super::{Netlink, NetlinkError};

impl Netlink {
    /// Gives a queueing discipline a filter (`cls_bpf`): a program that is run for each packet,
    /// from its Ethernet header on, and returns the [`Handle`] of the class that it goes to, or 0
    /// where it does not know.
    ///
    /// # Errors
    /// [`NetlinkError`], for example where the kernel has no such filter or refuses the program.
    pub fn add_filter(
        &mut self,
        index: u32,
        discipline: Handle,
        program: &[sock_filter],
    ) -> Result<(), NetlinkError> {
        let request = filter(index, discipline, program, |options| {
            // The program's result is the class only if a class is given.
            options.number(TCA_BPF_CLASSID, discipline.0);
        });
        let what = format_args!("attach a filter to the interface {index}");
        self.order(&what, request)
    }

    /// Sends all that comes in by an interface, which has
    /// [`Discipline::Ingress`](super::Discipline::Ingress), out by another: by one of the kind
    /// `ifb` it is then taken in as if it had come in by the first.
    ///
    /// # Errors
    /// [`NetlinkError`], for example where the kernel cannot redirect (`act_mirred`).
    pub fn redirect(&mut self, index: u32, to: u32) -> Result<(), NetlinkError> {
        let all = [sock_filter {
            code: RETURN,
            jt: 0,
            jf: 0,
            k: u32::MAX,
        }];
        let request = filter(index, Handle::new(0xffff, 0), &all, |options| {
            options.nest(TCA_BPF_ACT, |actions| {
                actions.nest(FIRST as u16, |action| {
                    action.text(TCA_ACT_KIND, "mirred");
                    action.nest(TCA_ACT_OPTIONS, |options| {
                        // `struct tc_mirred`.
                        let parameters = [0, 0, TC_ACT_STOLEN, 0, 0, TCA_EGRESS_REDIR, to];
                        options.attribute(
                            TCA_MIRRED_PARMS,
                            &parameters.map(u32::to_ne_bytes).concat(),
                        );
                    });
                });
            });
        });
        let what = format_args!("redirect what comes in by the interface {index} to {to}");
        self.order(&what, request)
    }
}

/// Makes a program for all packets of a discipline, with the options that `fill` adds.
fn filter(
    index: u32,
    discipline: Handle,
    program: &[sock_filter],
    fill: impl FnOnce(&mut Request),
) -> Request {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let info = FIRST << 16 | u32::from((libc::ETH_P_ALL as u16).to_be());
    let fixed = fixed(index, Handle(0), discipline, info);
    let mut request = Request::new(libc::RTM_NEWTFILTER, flags, &fixed);
    request.text(libc::TCA_KIND, "bpf");
    request.nest(libc::TCA_OPTIONS, |options| {
        let len = u16::try_from(program.len()).unwrap_or(u16::MAX);
        options.attribute(TCA_BPF_OPS_LEN, &len.to_ne_bytes());
        let octets: Vec<u8> = program.iter().flat_map(octets).collect();
        options.attribute(TCA_BPF_OPS, &octets);
        fill(options);
    });
    request
}

/// The instruction as it is in memory.
fn octets(instruction: &sock_filter) -> [u8; 8] {
    let mut octets = [0; 8];
    octets[..2].copy_from_slice(&instruction.code.to_ne_bytes());
    octets[2..4].copy_from_slice(&[instruction.jt, instruction.jf]);
    octets[4..].copy_from_slice(&instruction.k.to_ne_bytes());
    octets
}

/// The place of the filter among others of the discipline.
const FIRST: u32 = 1;

/// `BPF_RET`: a program of this ends with its number, which is all packets for the greatest one.
const RETURN: u16 = 0x06;

// <linux/pkt_cls.h>, <linux/tc_act/tc_mirred.h>
const TCA_BPF_ACT: u16 = 1;
const TCA_BPF_CLASSID: u16 = 3;
const TCA_BPF_OPS_LEN: u16 = 4;
const TCA_BPF_OPS: u16 = 5;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;
const TC_ACT_STOLEN: u32 = 4;
const TCA_EGRESS_REDIR: u32 = 1;
