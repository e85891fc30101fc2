//! The interfaces of the event channel, as generated from the IDL.

chronorb::include_idl!("RtecBase");
chronorb::include_idl!("RtecEventComm");
chronorb::include_idl!("RtecEventChannelAdmin");
chronorb::include_idl!("ChronorbEvents");
