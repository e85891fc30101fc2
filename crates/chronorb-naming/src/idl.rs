//! The interfaces of the naming service ([`cos_naming`]) and of leases ([`chronorb_naming`]), as
//! generated from the IDL.

chronorb::include_idl!("CosNaming");
chronorb::include_idl!("ChronorbNaming");
