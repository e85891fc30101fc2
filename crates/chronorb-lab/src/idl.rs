//! The interfaces between the clients and the servers of the experiments.

chronorb::include_idl!("demo");
chronorb::include_idl!("overtake");
chronorb::include_idl!("whitebox");
chronorb::include_idl!("peers");
