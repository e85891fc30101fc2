//! RIO as a transport of the ORB: TCP at an interface whose packets have classes.
//!
//! The wire protocol is TCP/IP, so any peer works, whatever its stack. Endpoints have the form
//! `riop://ADDRESS:PORT/option=value&…`. Each endpoint has its own class unless it names a shared
//! one. All options are optional:
//!
//! | option | meaning |
//! |---|---|
//! | `interface` | the network interface; by default the one that has the address |
//! | `driver`, `mode` | `auto`, `xdp`, `packet` or `kernel`; the hook of XDP: `auto`, `native` or `generic` |
//! | `class` | the name of a class; endpoints with the same name share it, and the first one configures it |
//! | `processing` | `arrival`, `demand` or `periodic`; the default is `periodic` with a `budget`, otherwise `demand` |
//! | `period`, `budget` | of periodic processing: for example `10ms`, and packets per period; of processing on arrival: the bound that peers keep |
//! | `cap` | of processing on demand: packets per period, which is 10 ms by default |
//! | `cost` | the maximum processor time of a packet, for admission |
//! | `policy`, `priority` | `fifo`, `rr`, `deadline` or `other`, and the native priority; by default those of the serving lane |
//! | `cpu` | the CPU of the class's thread |
//! | `queue`, `connections`, `buffer`, `backlog` | waiting frames, connections, octets per connection, half-open connections |
//! | `output` | the sender: `direct` or `scheduled` |
//! | `vlan_priority` | the priority of packets that have a VLAN tag |
//! | `hostname_in_ior` | the host name in references, instead of the address |
//!
//! A link-local address (`fe80::…`) needs its interface, either as a zone,
//! `riop://[fe80::1%eth0]:2809`, or by the option `interface`. References contain the address
//! without the zone, since each host names its interfaces itself. Therefore the client needs an
//! [interface](RiopSettings::interface) or an address with a zone of its own.
//!
//! If there is a [plan](RiopSettings::plan), an endpoint has the class that it names, or else the
//! one with its port, or else the one with the scheduling of its lane. Options that the endpoint
//! does not give are taken from the plan. A client has the class of the plan that has its
//! scheduling.
//!
//! With the driver `kernel`, connections use the kernel's own TCP, bound to the interface, with the
//! buffers and the code point of their class. If [the kernel enforces the plan](crate::kernel),
//! they belong to the class of the interface's queues. Options for threads and for a separate stack
//! are then refused, and so are reservations that nothing enforces.
//!
//! In a class that is processed on arrival, the threads that wait for its acceptor or its
//! connections do the protocol work, so some thread must always wait. The lanes of the ORB do.
//!
//! The transport is made for networks that are directly attached to the interface. The length of
//! packets follows from the interface's MTU. ICMP messages that a packet is too long go to the
//! kernel and are not noticed, so a path with a smaller MTU needs the same MTU at the interface.
//! Unacknowledged data is retransmitted after 125 ms at the earliest. There is no congestion
//! control: a connection does not slow down if packets are lost.

mod acceptor;
mod connection;
mod kernel;
mod options;
mod planned;
mod riop;
mod zone;

pub use riop::{Riop, RiopError, RiopSettings};
