//! IDL files that are part of the compiler, for includes that no directory has.

use std::path::{Path, PathBuf};

use crate::ast::Item;

/// The text of `#include <NAME>` where no such file is found.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    Some(match name {
        "orb.idl" => include_str!("../idl/orb.idl"),
        "CORBA.idl" => include_str!("../idl/CORBA.idl"),
        "InterfaceRepository.idl" => include_str!("../idl/InterfaceRepository.idl"),
        "Components.idl" => include_str!("../idl/Components.idl"),
        _ => return None,
    })
}

/// What such a file is called in messages and in the model.
pub(crate) fn path(name: &str) -> PathBuf {
    format!("<{name}>").into()
}

/// The file with the module `Components`, if there are components, homes or events that need it
/// and nothing that defines it.
pub(crate) fn implied(items: &[Item]) -> Option<&'static str> {
    (needs_components(items) && !defines_components(items)).then_some("Components.idl")
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

/// Whether this is such a path.
pub(crate) fn is_built_in(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    path.starts_with(b"<") && path.ends_with(b">")
}
