//! A simulator of a schedule in virtual time, as the ORB executes it: operations, calls, threads,
//! lanes, processors, packets and locks.
//!
//! Its input is the parsed file and the numbers of an assignment (priorities, lanes and their
//! threads). It shares no code with the analysis, so an error there shows as a simulated response
//! above the analysed one. All times are integers.
//!
//! # Rules
//! * **Threads of clients.** An operation with a period is the work of one thread, or of as many as
//!   the numbers have: a job begins when one of them has ended the job before. If the file gives
//!   the operation a lane, or if another operation or a transaction calls it, its arrivals are
//!   requests from outside, which the lane serves.
//! * **Calls.** A frame is one execution of an operation. After a two-way call its thread waits
//!   for the reply and serves nothing else. After a one-way call it goes on at once, and the
//!   callee is independent. A two-way call without messages to an operation of the same lane is
//!   executed by the calling thread, as by the ORB's collocation.
//! * **Lanes.** A lane has its number of threads. A request gets a free one, or waits in the order
//!   of the lane. A frame keeps its thread to its end.
//! * **Processors.** Each executes its most urgent frame and is preemptive. Equal priorities are
//!   served in the order in which they became ready, and a preempted frame keeps its place.
//! * **Execution.** A piece is what a frame executes between two-way calls. Each has the overhead
//!   of its node. Calls without `before` divide the execution time evenly.
//! * **Links.** A message over a link with a rate is cut into packets of its MTU, each with headers
//!   and the octets of its Ethernet frame. A node sends one packet at a time, that of the most
//!   urgent message, without preemption, and receives while it sends. A message over a link without
//!   a rate is one packet, because its octets are unknown.
//! * **Locks.** A frame takes its locks one after another, without nesting, within its pieces. A
//!   section that fits into no piece is held over calls. A holder inherits the priority of waiting
//!   frames. With ceilings it has at least the greatest priority of the operations that take the
//!   lock. If these are on several processors, it is above all lanes, and does not preempt another
//!   such holder. A frame that finds a lock held waits without its processor, and the most urgent
//!   one is next.
//! * **Blocking of an operation.** Less urgent work of the file that is executed when such an
//!   operation becomes ready, and holds no lock, goes on for at most its `blocking`, and that of
//!   all operations with a priority between.
//! * **Jitter.** The first arrival of an activity, and each request to a called operation with a
//!   jitter, is released late by at most the jitter. Jobs are released in their order.
//! * **Work outside of the file** occupies each processor once, for its `blocking`. It interrupts
//!   the least urgent operations, without those that have the priority of a ceiling, and nothing
//!   interrupts it. On a link it is a packet that has begun when a message finds the link idle.
//!
//! At one instant, work ends first, then messages arrive, then jobs are released, and then
//! processors and links choose.

mod cpu;
mod lane;
mod link;
mod lock;
mod machine;
mod program;
mod random;
mod run;
mod slab;
mod work;
mod works;

pub use run::{
    ActivityOutcome, LaneNumbers, Numbers, SimulationError, SimulationOutcome, SimulationRun,
    WorkOutcome, WorkSlice,
};
pub use work::Work;
