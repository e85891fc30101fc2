//! The interface between the clients and the server of the demonstration.

chronorb::include_idl!("demo");
