//! The OMG's IDL files, which are part of the compiler. They resolve `#include`s of files that are
//! in none of the include directories.

use std::path::{Path, PathBuf};

use crate::ast::Item;

/// Embeds files of the folder `idl` with their names.
macro_rules! embedded {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../idl/", $name)))),*]
    };
}

/// Names and texts.
const FILES: &[(&str, &str)] = embedded! {
    "BiDirPolicy.idl"
    "CONV_FRAME.idl"
    "CORBA.idl"
    "CSI.idl"
    "CSIIOP.idl"
    "Components.idl"
    "Compression.idl"
    "CosEventChannelAdmin.idl"
    "CosEventComm.idl"
    "CosNaming.idl"
    "CosNotification.idl"
    "CosNotifyChannelAdmin.idl"
    "CosNotifyComm.idl"
    "CosNotifyFilter.idl"
    "CosTime.idl"
    "CosTimerEvent.idl"
    "CosTransactions.idl"
    "CosTypedEventComm.idl"
    "Dynamic.idl"
    "DynamicAny.idl"
    "ETF.idl"
    "FT.idl"
    "GIOP.idl"
    "GSSUP.idl"
    "IIOP.idl"
    "IOP.idl"
    "InterfaceRepository.idl"
    "MIOP.idl"
    "Messaging.idl"
    "PortableGroup.idl"
    "PortableInterceptor.idl"
    "PortableServer.idl"
    "RTCORBA.idl"
    "RTCosScheduling.idl"
    "RTPortableServer.idl"
    "RTScheduling.idl"
    "SSLIOP.idl"
    "SendingContext.idl"
    "TimeBase.idl"
    "ZIOP.idl"
    "orb.idl"
};

/// Returns the text of `#include <NAME>` where no such file is found.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    let file = FILES.iter().find(|(known, _)| *known == name);
    file.map(|(_, text)| *text)
}

/// Returns the built-in file that an include with a directory, or with different case, may mean.
/// Other compilers keep theirs in directories, as `tao/orb.idl`.
pub(crate) fn similar(name: &str) -> Option<&'static str> {
    let last = name.rsplit('/').next()?;
    let mut names = FILES.iter().map(|(known, _)| *known);
    names.find(|known| known.eq_ignore_ascii_case(last))
}

/// Returns the path of such a file in messages and in the model.
pub(crate) fn path(name: &str) -> PathBuf {
    format!("<{name}>").into()
}

/// Returns the file that the definitions need and that no file has included: that with the module
/// `Components` for components, homes and events, or that with the module `CORBA` for its import.
pub(crate) fn implied(items: &[Item]) -> Option<&'static str> {
    if needs_components(items) && !defines_components(items) {
        return Some("Components.idl");
    }
    (imports_corba(items) && !defines_corba(items)).then_some("orb.idl")
}

fn imports_corba(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Import(import) => match &import.what {
            Ok(name) => matches!(name.parts.as_slice(), [only] if *only.name == *"CORBA"),
            Err(id) => &**id == "IDL:omg.org/CORBA:1.0",
        },
        _ => false,
    })
}

fn defines_corba(items: &[Item]) -> bool {
    items
        .iter()
        .any(|item| matches!(item, Item::Module(module) if *module.name.name == *"CORBA"))
}

fn needs_components(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Component(_) | Item::Home(_) => true,
        Item::Value(value) => value.head.event,
        Item::ValueForward(head) => head.event,
        Item::Module(module) => needs_components(&module.items),
        Item::Template(module) => needs_components(&module.items),
        _ => false,
    })
}

fn defines_components(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Module(module) if *module.name.name == *"Components" => {
            let mut items = module.items.iter();
            items
                .any(|item| matches!(item, Item::Interface(i) if *i.head.name.name == *"CCMObject"))
        }
        _ => false,
    })
}

/// Returns whether a path is that of a file on disk with the name of a built-in one.
pub(crate) fn is_own_version(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    !is_built_in(path) && name.and_then(similar).is_some()
}

/// Returns whether a path is that of a built-in file.
pub(crate) fn is_built_in(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    path.starts_with(b"<") && path.ends_with(b">")
}
