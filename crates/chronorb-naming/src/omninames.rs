//! The data file of omniNames (omniORB 4): the changes of its name server as lines of text.
//!
//! ```text
//! port PORT
//! persistent IDENTIFIER
//! create KEY
//! destroy CONTEXT
//! bind CONTEXT ID KIND nobject|ncontext REFERENCE
//! unbind CONTEXT ID KIND
//! ```
//!
//! A context is named by its reference, or by its key in hexadecimal digits. The first context is
//! the root. Identifiers and kinds are in ISO 8859-1, with `\ `, `\n` and `\\` for a space, the end
//! of a line and a backslash.

use std::collections::HashMap;
use std::str;

use chronorb_giop::{IiopProfile, Ior, TAG_INTERNET_IOP, Target as Addressee};
use chronorb_rt::Monotonic;

use crate::change::{Binding, BindingKind, Target};
use crate::idl::cos_naming::NameComponent;
use crate::limits::Limits;
use crate::text::{ImportCause, ImportError, hex, reference};
use crate::tree::{ROOT, Tree, TreeError};

/// Reads a data file of omniNames, and returns the state of a server that has its contexts and
/// bindings. Contexts get numbers from `first` on.
///
/// References to contexts of the file become contexts of this server. All others stay as they are.
///
/// # Errors
/// [`ImportError`] for the first line that cannot be imported.
pub fn import_omninames(data: &[u8], limits: Limits, first: u64) -> Result<Tree, ImportError> {
    let mut tree = Tree::new(first);
    tree.set_limits(limits);
    let mut import = Import {
        tree,
        contexts: HashMap::new(),
        root: None,
        now: Monotonic::now(),
    };
    for (index, line) in data.split_inclusive(|octet| *octet == b'\n').enumerate() {
        let line = line.strip_suffix(b"\n").ok_or(ImportCause::Unfinished);
        let done = line.and_then(|line| import.line(line));
        done.map_err(|cause| ImportError {
            line: index + 1,
            cause,
        })?;
    }
    Ok(import.tree)
}

/// The length of the identifier of a context, except for the root.
const IDENTIFIER: usize = 12;

struct Import {
    tree: Tree,
    /// The contexts that exist, by their identifiers. The root's is its object key; the object keys
    /// of the others end with it.
    contexts: HashMap<Vec<u8>, u64>,
    /// The key of the root context.
    root: Option<Vec<u8>>,
    now: Monotonic,
}

impl Import {
    fn line(&mut self, line: &[u8]) -> Result<(), ImportCause> {
        let fields = fields(line)?;
        let fields: Vec<_> = fields.iter().map(String::as_str).collect();
        match &fields[..] {
            ["port", port] => match port.parse::<u16>() {
                Ok(_) => Ok(()),
                Err(_) => Err(ImportCause::Form("port PORT")),
            },
            ["persistent", _] => Ok(()),
            ["create", context] => self.create(context),
            ["destroy", context] => self.destroy(context),
            ["bind", context, id, kind, of, target] => {
                let of = match *of {
                    "nobject" => BindingKind::Object,
                    "ncontext" => BindingKind::Context,
                    _ => return Err(ImportCause::Form("nobject or ncontext")),
                };
                self.bind(context, &NameComponent { id, kind }, of, target)
            }
            ["unbind", context, id, kind] => {
                let (context, _) = self.context(context)?;
                self.unbind(context, &NameComponent { id, kind })
            }
            ["port" | "persistent", ..] => Err(ImportCause::Form("one field")),
            ["create" | "destroy", ..] => Err(ImportCause::Form("one context")),
            ["bind", ..] => Err(ImportCause::Form("bind CONTEXT ID KIND TYPE REFERENCE")),
            ["unbind", ..] => Err(ImportCause::Form("unbind CONTEXT ID KIND")),
            [word, ..] => Err(ImportCause::Word(word.chars().take(40).collect())),
            [] => Err(ImportCause::Form("a line")),
        }
    }

    fn create(&mut self, context: &str) -> Result<(), ImportCause> {
        let (key, _) = read_context(context)?;
        if self.contexts.contains_key(&key) {
            return Err(ImportCause::ContextExists);
        }
        let context = if self.root.is_none() {
            self.root = Some(key.clone());
            ROOT
        } else {
            let (context, change) = self.tree.create_context()?;
            self.tree.apply(&change, self.now)?;
            context
        };
        self.contexts.insert(key, context);
        Ok(())
    }

    fn destroy(&mut self, context: &str) -> Result<(), ImportCause> {
        let (context, _) = self.context(context)?;
        for change in self.tree.destroy(context, self.now)? {
            self.tree.apply(&change, self.now)?;
        }
        self.contexts.retain(|_, number| *number != context);
        Ok(())
    }

    fn bind(
        &mut self,
        context: &str,
        component: &NameComponent<'_>,
        kind: BindingKind,
        target: &str,
    ) -> Result<(), ImportCause> {
        let (context, own) = self.context(context)?;
        let octets = reference(target, kind)?;
        let target = match self.local(&target.parse()?, own.as_ref()) {
            Some(target) => Target::Context(target),
            None => Target::Reference(octets),
        };
        let binding = Binding {
            kind,
            target,
            lease: None,
        };
        let name = [*component];
        // Checks the component alone, since a name of one component leads nowhere else.
        self.tree.walk(context, &name, self.now)?;
        let bound = self
            .tree
            .bind(context, component, binding.clone(), false, self.now);
        let bound = match bound {
            // Another value: omniNames writes no removal of the one before.
            Err(TreeError::AlreadyBound) => {
                self.unbind(context, component)?;
                self.tree
                    .bind(context, component, binding, false, self.now)?
            }
            bound => bound?,
        };
        Ok(self.tree.apply(&bound, self.now)?)
    }

    fn unbind(&mut self, context: u64, component: &NameComponent<'_>) -> Result<(), ImportCause> {
        let change = self.tree.unbind(context, component, self.now)?;
        Ok(self.tree.apply(&change, self.now)?)
    }

    /// Returns the number of a context of the file, and its reference, if the line has it.
    fn context(&self, text: &str) -> Result<(u64, Option<Ior>), ImportCause> {
        let (key, ior) = read_context(text)?;
        let context = self.number(&key).ok_or(ImportCause::NoContext)?;
        Ok((context, ior))
    }

    /// Returns the number of the context with an object key or an identifier.
    fn number(&self, key: &[u8]) -> Option<u64> {
        let identifier = || key.last_chunk::<IDENTIFIER>().map(<[u8; _]>::as_slice);
        let found = self.contexts.get(key);
        found.or_else(|| self.contexts.get(identifier()?)).copied()
    }

    /// The context of the file that a reference means. `own` is a reference of this server.
    ///
    /// The keys of contexts are unique, except for that of the root, which all servers share.
    fn local(&self, target: &Ior, own: Option<&Ior>) -> Option<u64> {
        let key = object_key(target)?;
        let context = self.number(key)?;
        let is_root = self.root.as_deref() == Some(key);
        let is_own = || address(own?).map(|own| Some(own) == address(target));
        (!is_root || is_own() == Some(true)).then_some(context)
    }
}

/// Reads the name of a context: its reference, or its key. Returns the key and the reference.
fn read_context(text: &str) -> Result<(Vec<u8>, Option<Ior>), ImportCause> {
    if text.starts_with("IOR:") {
        let ior: Ior = text.parse()?;
        let key = object_key(&ior).ok_or(ImportCause::NoContext)?;
        return Ok((key.to_vec(), Some(ior)));
    }
    let (pairs, []) = text.as_bytes().as_chunks() else {
        return Err(ImportCause::Form("a key of hexadecimal digits"));
    };
    let key = pairs.iter().map(|pair| hex(*pair)).collect::<Option<_>>();
    let key = key.ok_or(ImportCause::Form("a key of hexadecimal digits"))?;
    Ok((key, None))
}

fn object_key(ior: &Ior) -> Option<&[u8]> {
    ior.profiles
        .iter()
        .find_map(|profile| Addressee::Profile(profile.as_view()).key())
}

/// The host and the port of a reference.
fn address(ior: &Ior) -> Option<(String, u16)> {
    let mut profiles = ior.profiles.iter();
    let profile = profiles.find(|profile| profile.tag == TAG_INTERNET_IOP)?;
    let profile = IiopProfile::decode(&profile.data).ok()?;
    Some((profile.host, profile.port))
}

/// Splits a line at its spaces, except for those that are escaped.
fn fields(line: &[u8]) -> Result<Vec<String>, ImportCause> {
    let mut fields = vec![String::new()];
    let mut octets = line.iter();
    while let Some(octet) = octets.next() {
        let c = match octet {
            b' ' => {
                fields.push(String::new());
                continue;
            }
            b'\\' => match octets.next() {
                Some(b'n') => '\n',
                Some(octet @ (b' ' | b'\\')) => char::from(*octet),
                _ => return Err(ImportCause::Escape),
            },
            octet => char::from(*octet),
        };
        if let Some(field) = fields.last_mut() {
            field.push(c);
        }
    }
    Ok(fields)
}
