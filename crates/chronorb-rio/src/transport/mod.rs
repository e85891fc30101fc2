//! RIO as a transport of the ORB: TCP by an interface whose packets have classes.
//!
//! What goes by the wire is TCP/IP, so that any peer will do, whatever its stack. Endpoints are
//! `riop://ADDRESS:PORT/option=value&…`, and each has a class of its own, but for those that name
//! one. Options, all of which can be left out:
//!
//! | option | what it says |
//! |---|---|
//! | `interface` | the network interface; otherwise the one that has the address |
//! | `driver`, `mode` | `auto`, `xdp`, `packet` or `kernel`; how XDP is attached: `auto`, `native` or `generic` |
//! | `class` | its name; endpoints with the same name share a class, which is as the first of them says |
//! | `processing` | `arrival`, `demand` or `periodic`, which is what it is with a `budget`, and `demand` otherwise |
//! | `period`, `budget` | of periodic processing: for example `10ms`, and packets in each period; of processing on arrival: what peers keep to |
//! | `cap` | of processing on demand: packets in each period, which is 10 ms then if it is not given |
//! | `cost` | processor time that a packet takes at most, for admission |
//! | `policy`, `priority` | `fifo`, `rr`, `deadline` or `other`, and the native priority; otherwise those of who serves |
//! | `cpu` | the CPU of the class's thread |
//! | `queue`, `connections`, `buffer`, `backlog` | frames that wait, connections, octets for each, half-open ones |
//! | `output` | `direct` or `scheduled`: who sends |
//! | `vlan_priority` | of packets that have a VLAN tag |
//! | `hostname_in_ior` | what references name instead of the address |
//!
//! An address of one link (`fe80::…`) is told with its interface, `riop://[fe80::1%eth0]:2809`, or
//! has the option `interface`. References tell it without, since each host names its interfaces
//! itself: who connects has an [interface](RiopSettings::interface), or an address with a zone of
//! its own.
//!
//! Where there is a [plan](RiopSettings::plan), an endpoint is of the class of it that it names, or
//! else of the one that has its port: what its options do not say is as the plan says. Who connects
//! is of the class of the plan that is scheduled as it is.
//!
//! With the driver `kernel` connections are the kernel's own TCP, bound to the interface, with the
//! buffers and the code point of their class, and in the class of the interface's queues where [the
//! kernel keeps the plan](crate::kernel). Options for threads and for a stack of one's own are
//! refused then, and so is what such a class is promised where nobody keeps it.
//!
//! In a class that is processed on arrival the threads that wait for its acceptor, or for one of
//! its connections, do the protocol work; others do not wait for it. That is how the lanes of the
//! ORB wait.
//!
//! It is made for the networks that its interface is attached to. Packets are as long as that one's
//! MTU allows, and routers that say that they are too long are not heard, since what they say goes
//! to the kernel: a path with a smaller MTU needs that of the interface to be as small. What is not
//! acknowledged is sent again after 125 ms at the earliest, and a connection does not slow down
//! where packets are lost.

mod acceptor;
mod connection;
mod kernel;
mod options;
mod planned;
mod riop;
mod zone;

pub use riop::{Riop, RiopError, RiopSettings};
