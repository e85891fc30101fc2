//! Filters: which class of a queueing discipline a packet goes to.

use super::message::Request;
use super::qdisc::{Handle, fixed};
use super::{Netlink, NetlinkError};
use crate::bpf::classic::Instruction;

impl Netlink {
    /// Gives a queueing discipline a filter (`cls_bpf`): a program that is run for each packet, from its Ethernet header
    /// on, and returns the [`Handle`] of the class that it goes to, or 0 where it does not know.
    ///
    /// # Errors
    /// [`NetlinkError`], for example where the kernel has no such filter or refuses the program.
    pub fn add_filter(
        &mut self,
        index: u32,
        discipline: Handle,
        program: &[Instruction],
    ) -> Result<(), NetlinkError> {
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
            // What the program returns is the class only where a class is given.
            options.number(TCA_BPF_CLASSID, discipline.0);
        });
        let what = format_args!("attach a filter to the interface {index}");
        self.order(&what, request)
    }
}

/// `struct sock_filter`.
fn octets(instruction: &Instruction) -> [u8; 8] {
    let mut octets = [0; 8];
    octets[..2].copy_from_slice(&instruction.code.to_ne_bytes());
    octets[2..4].copy_from_slice(&[instruction.jt, instruction.jf]);
    octets[4..].copy_from_slice(&instruction.k.to_ne_bytes());
    octets
}

/// The place of the filter among others of the discipline.
const FIRST: u32 = 1;

// <linux/pkt_cls.h>
const TCA_BPF_CLASSID: u16 = 3;
const TCA_BPF_OPS_LEN: u16 = 4;
const TCA_BPF_OPS: u16 = 5;
