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

/// Returns the name of a built-in file, if there is one with this name.
pub(crate) fn named(name: &str) -> Option<&'static str> {
    let mut names = FILES.iter().map(|(known, _)| *known);
    names.find(|known| *known == name)
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

/// Returns the names of the files that the definitions need and that no file has included:
/// `Components.idl` for components, homes and events, `orb.idl` for the import of the module
/// `CORBA`, and `X.idl` for that of another module `X`.
pub(crate) fn implied(items: &[Item]) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |name: String| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for import in items.iter().filter_map(imported) {
        if import == "CORBA" {
            if !defines(items, import) {
                add("orb.idl".to_owned());
            }
        } else if !defines(items, import) {
            add(format!("{import}.idl"));
        }
    }
    if needs_components(items) && !defines_components(items) {
        add("Components.idl".to_owned());
    }
    names
}

/// Returns the outermost name of an import.
fn imported(item: &Item) -> Option<&str> {
    let Item::Import(import) = item else {
        return None;
    };
    match &import.what {
        Ok(name) => name.parts.first().map(|part| &*part.name),
        Err(id) => {
            let path = id.strip_prefix("IDL:")?.split(':').next()?;
            // The first part may be a prefix, as `omg.org`.
            path.split('/').find(|part| !part.contains('.'))
        }
    }
}

/// Returns whether a module, interface or value type has this name.
fn defines(items: &[Item], name: &str) -> bool {
    items.iter().any(|item| {
        let defined = match item {
            Item::Module(module) => &module.name.name,
            Item::Interface(interface) => &interface.head.name.name,
            Item::Value(value) => &value.head.name.name,
            _ => return false,
        };
        **defined == *name
    })
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
