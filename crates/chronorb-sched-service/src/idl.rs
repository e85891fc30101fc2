//! The interfaces of the scheduling service, as generated from the IDL.

chronorb::include_idl!("RtecBase");
chronorb::include_idl!("RtecScheduler");
