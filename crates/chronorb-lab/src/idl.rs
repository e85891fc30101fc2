//! The interfaces between the clients and the servers of the experiments.

#![expect(
    unnameable_types,
    reason = "value types are public in a module that is not"
)]

chronorb::include_idl!("lab");
chronorb::include_idl!("endurance");
chronorb::include_idl!("failover");
chronorb::include_idl!("hostile");
chronorb::include_idl!("whitebox");
chronorb::include_idl!("peers");
