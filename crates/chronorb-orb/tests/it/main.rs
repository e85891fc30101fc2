//! The ORB from its users' point of view: two ORBs in one process, scripted misbehaving servers,
//! and peers that send anything.
//!
//! The allocations of calls are counted by a separate program, `allocations`.

#[cfg(feature = "ssliop")]
#[path = "../../../chronorb-transport/tests/it/certificates/mod.rs"]
mod certificates;
mod settings_in_the_book;
mod support;

mod asynchronous {
    mod aside;
    mod peers;
    mod results;
    mod unasked;
}

mod client {
    #[cfg(feature = "baselines")]
    mod active;
    mod attempts;
    mod bands;
    mod binding;
    mod buffering;
    mod calls;
    mod causes;
    mod code_sets;
    mod collocation;
    mod connections;
    mod end_times;
    mod exclusive;
    mod failover;
    mod failures;
    mod files;
    mod forgotten;
    mod forks;
    mod hostile;
    mod idle;
    mod limits;
    mod names;
    mod outboxes;
    mod policies;
    mod profiles;
    mod rebind;
    mod references;
    mod sharing;
}

mod poa {
    mod activation;
    mod adapters;
    mod authorizers;
    mod demultiplexing;
    mod keys;
    mod let_go;
    mod lifecycle;
    mod managers;
    mod parked;
    mod persistence;
    mod policies;
    mod servant_managers;
    mod threads;
}

mod pools {
    mod buffered_ranks;
    mod end;
    mod expiry;
    #[cfg(feature = "baselines")]
    mod filter_chain;
    mod growth;
    mod lane_orders;
    mod lanes;
    mod model;
    mod ordered;
    mod overload;
    mod reactive;
    mod stages;
    mod staying;
    mod stress;
    mod sync_scope;
    mod thread_per_connection;
    mod threads;
    #[cfg(feature = "baselines")]
    mod worker_pool;
}

mod protocols {
    #[cfg(feature = "bidir")]
    mod bidirectional;
    #[cfg(all(feature = "bidir", feature = "access"))]
    mod claims;
    #[cfg(feature = "diop")]
    mod diop;
    #[cfg(feature = "faults")]
    mod faults;
    mod fragments;
    mod gathering;
    mod gioplite;
    #[cfg(feature = "miop")]
    mod groups;
    #[cfg(feature = "miop")]
    mod groups_apart;
    mod half_open;
    #[cfg(any(feature = "uiop", feature = "diop"))]
    mod others;
    mod pluggable;
    mod policies;
    #[cfg(feature = "riop")]
    mod riop;
    #[cfg(all(feature = "riop", feature = "schedule"))]
    mod scheduled_riop;
    #[cfg(feature = "shmiop")]
    mod shmiop;
    #[cfg(feature = "ssliop")]
    mod ssliop;
    #[cfg(feature = "ssliop")]
    mod ssliop_hostile;
    #[cfg(feature = "trace")]
    mod trace;
    #[cfg(feature = "uiop")]
    mod uiop;
}

mod rtcorba {
    mod ceilings;
    mod deadlines;
    mod mappings;
    mod mutexes;
    mod object_priorities;
    mod work_lanes;
}

#[cfg(feature = "distributable-threads")]
mod rtscheduling {
    mod authority;
    mod cancel;
    mod hops;
    mod nodes;
    mod segments;
}

mod server {
    #[cfg(feature = "access")]
    mod access;
    mod admission;
    mod hostile;
    mod idle;
    mod listening;
    #[cfg(feature = "schedule")]
    mod measured;
    #[cfg(feature = "monitor-client")]
    mod monitor;
    #[cfg(feature = "schedule")]
    mod schedules;
    mod stack;
    mod system_calls;
}
