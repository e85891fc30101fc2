//! The state of a name server as text, one binding a line, and back.
//!
//! ```text
//! # comment
//! context NAME             a new context of this server, bound to the name
//! context NAME =NAME       a context that has the other name, too
//! context NAME IOR:…       a context of another server
//! object NAME IOR:…        an object
//! object NAME =NAME        a context that names are not resolved through
//! ```
//!
//! A name is in text form, from the root on, and `/` is the root itself. White space, characters
//! that are not shown and `%` are written `%hh`, as in a `corbaname:` URL. `lease=SECONDS` may
//! follow.
//! Contexts come first, those near to the root before others; so equal states have equal texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use chronorb_giop::name_text::TextComponents;
use chronorb_giop::{Ior, IorError};
use chronorb_rt::{Monotonic, is_hidden};
use thiserror::Error;

use crate::change::{Binding, BindingKind, Change, Target};
use crate::idl::cos_naming::{NameComponent, NameComponentBuf};
use crate::limits::Limits;
use crate::name::{NameTextError, name_from_text, name_to_text};
use crate::tree::{ChangeError, Place, ROOT, Tree, TreeError};

/// The most components of a name that is written, as by default in [`Limits`].
const MAX_COMPONENTS: usize = 64;

/// The content of an exported text.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ExportSummary {
    /// Bindings that are in the text.
    pub bindings: usize,
    /// Bindings that are in comments only, because their context is destroyed, has no name from the
    /// root on, or has one of more than 64 components.
    pub omitted: usize,
    /// Contexts that no name from the root leads to. They are not in the text.
    pub orphans: usize,
}

/// The reason why a text is not imported, and its line.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("line {line}: {cause}")]
pub struct ImportError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The cause.
    pub cause: ImportCause,
}

/// The reason why a line is not imported.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ImportCause {
    /// The line begins with an unknown word.
    #[error("{0:?} is not the beginning of a line")]
    Word(String),
    /// A field is missing, superfluous or none of the words that may stand there.
    #[error("the line is malformed: expected {0}")]
    Form(&'static str),
    /// A `%` or a `\` is not followed by what it has to be.
    #[error("a \"%\" or \"\\\" is not followed by an escaped character")]
    Escape,
    /// A name is malformed.
    #[error("the name is malformed: {0}")]
    Name(#[from] NameTextError),
    /// A reference is malformed.
    #[error("the reference is malformed: {0}")]
    Reference(#[from] IorError),
    /// A context is bound to the nil reference.
    #[error("a context cannot be a nil reference")]
    Nil,
    /// The context of a name or of a key does not exist in the lines before.
    #[error("no line before creates the context of this binding, or the one that it names")]
    NoContext,
    /// The name leads through a context of another server.
    #[error("the name leads through a context of another server")]
    Elsewhere,
    /// The name is bound by a line before.
    #[error("a line before binds this name")]
    AlreadyBound,
    /// The context exists already.
    #[error("a line before creates this context")]
    ContextExists,
    /// The context has bindings or is the root.
    #[error("a context is destroyed that has bindings or is the root")]
    Indestructible,
    /// A limit would be exceeded.
    #[error("the contexts, the bindings, their octets, or the length of the name exceed a limit")]
    Limit,
    /// A time to live is outside its limits.
    #[error("the time to live is not a number within its limits")]
    TimeToLive,
    /// The last line does not end, so a part of the file is missing.
    #[error("the last line does not end; the file is not whole")]
    Unfinished,
    /// A change is not possible.
    #[error(transparent)]
    Change(#[from] ChangeError),
}

impl From<TreeError<'_>> for ImportCause {
    fn from(error: TreeError<'_>) -> Self {
        match error {
            TreeError::NoContext
            | TreeError::NotFound(..)
            | TreeError::Destroyed(..)
            | TreeError::LeaseLost => Self::NoContext,
            TreeError::InvalidName => Self::Form("a name without NUL"),
            TreeError::AlreadyBound => Self::AlreadyBound,
            TreeError::NotEmpty | TreeError::Root => Self::Indestructible,
            TreeError::TooMany | TreeError::TooLong => Self::Limit,
        }
    }
}

/// Writes all contexts that names lead to, and their bindings.
///
/// # Errors
/// Those of `out`.
pub fn export_text(tree: &Tree, out: &mut dyn Write) -> io::Result<ExportSummary> {
    Export::new(tree).write(out)
}

/// A binding of a context.
struct Entry {
    /// The component in text form; `None` if it is not UTF-8.
    component: Option<String>,
    binding: Binding,
    /// Whether the binding gives the context its name in the text.
    is_first: bool,
}

/// The name of a context: the context around it, the index of the binding there, and the number of
/// components.
#[derive(Clone, Copy)]
struct Parent {
    context: u64,
    index: usize,
    depth: usize,
}

struct Export {
    contexts: BTreeMap<u64, Vec<Entry>>,
    /// The contexts with a name, each after the one around it.
    order: Vec<u64>,
    parents: BTreeMap<u64, Parent>,
}

impl Export {
    fn new(tree: &Tree) -> Self {
        let mut contexts = BTreeMap::from([(ROOT, Vec::new())]);
        for change in tree.changes() {
            match change {
                Change::CreateContext { context } => {
                    contexts.insert(context, Vec::new());
                }
                Change::Bind {
                    context,
                    id,
                    kind,
                    binding,
                } => contexts.entry(context).or_default().push(Entry {
                    component: component_text(&id, &kind),
                    binding,
                    is_first: false,
                }),
                Change::DestroyContext { .. } | Change::Unbind { .. } => {}
            }
        }
        let mut export = Self {
            contexts,
            order: vec![ROOT],
            parents: BTreeMap::new(),
        };
        export.name_contexts();
        export
    }

    /// Gives each context the name with the fewest components.
    fn name_contexts(&mut self) {
        let mut next = 0;
        while let Some(&context) = self.order.get(next) {
            next += 1;
            let depth = 1 + self.depth(context);
            let mut entries = self.contexts.remove(&context).unwrap_or_default();
            for (index, entry) in entries.iter_mut().enumerate() {
                let Target::Context(target) = entry.binding.target else {
                    continue;
                };
                // The present context is not among the contexts, but has a name.
                let is_new = target != ROOT
                    && target != context
                    && !self.parents.contains_key(&target)
                    && self.contexts.contains_key(&target);
                let is_path = entry.binding.kind == BindingKind::Context
                    && entry.binding.lease.is_none()
                    && entry.component.is_some();
                if is_new && is_path && depth <= MAX_COMPONENTS {
                    entry.is_first = true;
                    let parent = Parent {
                        context,
                        index,
                        depth,
                    };
                    self.parents.insert(target, parent);
                    self.order.push(target);
                }
            }
            self.contexts.insert(context, entries);
        }
    }

    fn depth(&self, context: u64) -> usize {
        self.parents.get(&context).map_or(0, |parent| parent.depth)
    }

    fn has_name(&self, context: u64) -> bool {
        context == ROOT || self.parents.contains_key(&context)
    }

    /// The name of a context; empty for the root.
    fn name(&self, context: u64) -> String {
        let mut components = Vec::new();
        let mut context = context;
        while let Some(parent) = self.parents.get(&context) {
            let around = self.contexts.get(&parent.context);
            let entry = around.and_then(|entries| entries.get(parent.index));
            components.extend(entry.and_then(|entry| entry.component.as_deref()));
            context = parent.context;
        }
        components.reverse();
        components.join("/")
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<ExportSummary> {
        let mut summary = ExportSummary {
            orphans: self.contexts.len() - self.order.len(),
            ..ExportSummary::default()
        };
        writeln!(out, "# Names of a chronorb name server")?;
        for context in self.order.iter().filter(|context| **context != ROOT) {
            writeln!(out, "context {}", self.name(*context))?;
            summary.bindings += 1;
        }
        for context in &self.order {
            let around = self.name(*context);
            let is_deep = self.depth(*context) >= MAX_COMPONENTS;
            let slash = if around.is_empty() { "" } else { "/" };
            let entries = self.contexts.get(context).map_or(&[][..], Vec::as_slice);
            for entry in entries.iter().filter(|entry| !entry.is_first) {
                let target = match &entry.binding.target {
                    Target::Reference(octets) => Some(reference_text(octets)),
                    Target::Context(target) => self.has_name(*target).then(|| {
                        let name = self.name(*target);
                        format!("={}", if name.is_empty() { "/" } else { &name })
                    }),
                };
                let component = entry.component.as_ref().filter(|_| !is_deep);
                let (Some(component), Some(target)) = (component, target) else {
                    let component = entry.component.as_deref().unwrap_or("(not UTF-8)");
                    writeln!(out, "# omitted, no text for it: {around}{slash}{component}")?;
                    summary.omitted += 1;
                    continue;
                };
                let word = match entry.binding.kind {
                    BindingKind::Object => "object",
                    BindingKind::Context => "context",
                };
                write!(out, "{word} {around}{slash}{component} {target}")?;
                if let Some(lease) = entry.binding.lease {
                    write!(out, " lease={}", lease.time_to_live)?;
                }
                writeln!(out)?;
                summary.bindings += 1;
            }
        }
        if summary.orphans > 0 {
            let orphans = summary.orphans;
            writeln!(out, "# omitted, no name from the root: {orphans} contexts")?;
        }
        Ok(summary)
    }
}

/// Reads a text, and returns the state of a server that has its bindings alone. Contexts and leases
/// get numbers from `first` on.
///
/// ```
/// use chronorb_naming::{Limits, export_text, import_text};
///
/// let text = "context plant\nobject plant/mixer.device IOR:0100000001000000000000000000000000\n";
/// let tree = import_text(text, Limits::default(), 1)?;
/// let mut again = Vec::new();
/// export_text(&tree, &mut again)?;
/// assert!(String::from_utf8(again)?.ends_with(text));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ImportError`] for the first line that cannot be imported.
pub fn import_text(text: &str, limits: Limits, first: u64) -> Result<Tree, ImportError> {
    let now = Monotonic::now();
    let mut tree = Tree::new(first);
    tree.set_limits(limits.clone());
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let done = import_line(line, &mut tree, &limits, now);
        done.map_err(|cause| ImportError {
            line: index + 1,
            cause,
        })?;
    }
    Ok(tree)
}

fn import_line(
    line: &str,
    tree: &mut Tree,
    limits: &Limits,
    now: Monotonic,
) -> Result<(), ImportCause> {
    let time_to_live = limits.time_to_live;
    let mut fields = line.split(' ');
    let word = fields.next().unwrap_or_default();
    let kind = match word {
        "context" => BindingKind::Context,
        "object" => BindingKind::Object,
        other => return Err(ImportCause::Word(other.chars().take(40).collect())),
    };
    let name = fields.next().ok_or(ImportCause::Form("a name"))?;
    let name = read_name(name, limits)?;
    let name: Vec<_> = name.iter().map(NameComponentBuf::as_view).collect();
    let (context, component) = match tree.walk(ROOT, &name, now)? {
        Place::Here(context, component) => (context, component),
        Place::Elsewhere(..) => return Err(ImportCause::Elsewhere),
    };
    let mut values: Vec<_> = fields.take(VALUES + 1).collect();
    let mut lease = None;
    if let [_, .., last] = &values[..]
        && let Some(seconds) = last.strip_prefix("lease=")
    {
        let seconds = seconds.parse().map_err(|_| ImportCause::TimeToLive)?;
        if seconds < time_to_live.0 || seconds > time_to_live.1 {
            return Err(ImportCause::TimeToLive);
        }
        lease = Some(tree.new_lease(seconds));
        values.pop();
    }
    let mut created = None;
    let target = match &values[..] {
        [] if kind == BindingKind::Context => {
            let (number, change) = tree.create_context()?;
            created = Some(change);
            Target::Context(number)
        }
        [value] => match value.strip_prefix('=') {
            Some("/") => Target::Context(ROOT),
            Some(name) => local_context(name, tree, limits, now)?,
            None => Target::Reference(reference(value, kind)?),
        },
        _ => {
            return Err(ImportCause::Form(
                "IOR:… or =NAME, and perhaps lease=SECONDS",
            ));
        }
    };
    let binding = Binding {
        kind,
        target,
        lease,
    };
    let bound = tree.bind(context, component, binding, false, now)?;
    for change in created.iter().chain([&bound]) {
        tree.apply(change, now)?;
    }
    Ok(())
}

/// Returns the context that a name is bound to.
fn local_context(
    name: &str,
    tree: &Tree,
    limits: &Limits,
    now: Monotonic,
) -> Result<Target, ImportCause> {
    let name = read_name(name, limits)?;
    let name: Vec<_> = name.iter().map(NameComponentBuf::as_view).collect();
    let Place::Here(context, component) = tree.walk(ROOT, &name, now)? else {
        return Err(ImportCause::Elsewhere);
    };
    match tree.resolve(context, component, now)? {
        Target::Reference(_) => Err(ImportCause::NoContext),
        target => Ok(target),
    }
}

/// Returns the octets of a reference in text form, in their own byte order.
pub(crate) fn reference(text: &str, kind: BindingKind) -> Result<Arc<[u8]>, ImportCause> {
    let ior: Ior = text.parse()?;
    if ior.is_nil() && kind == BindingKind::Context {
        return Err(ImportCause::Nil);
    }
    let digits = text.as_bytes().get(4..).unwrap_or_default();
    let (pairs, _) = digits.as_chunks();
    Ok(pairs.iter().filter_map(|pair| hex(*pair)).collect())
}

/// The octet of two hexadecimal digits.
pub(crate) fn hex(digits: [u8; 2]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let octet = digit(digits[0])? << 4 | digit(digits[1])?;
    u8::try_from(octet).ok()
}

fn reference_text(octets: &[u8]) -> String {
    let mut text = String::with_capacity(4 + 2 * octets.len());
    text.push_str("IOR:");
    for octet in octets {
        // Writing to a string does not fail.
        let _ = write!(text, "{octet:02x}");
    }
    text
}

/// A component in text form, with `%hh` for what would end a field or a line.
fn component_text(id: &[u8], kind: &[u8]) -> Option<String> {
    let component = NameComponent {
        id: std::str::from_utf8(id).ok()?,
        kind: std::str::from_utf8(kind).ok()?,
    };
    let name = name_to_text(&[component]).ok()?;
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if c == '%' || c.is_whitespace() || is_hidden(c) {
            for octet in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(text, "%{octet:02x}");
            }
        } else {
            text.push(c);
        }
    }
    Some(text)
}

/// Reads a name within the limits, of which no more is kept than they allow.
fn read_name(text: &str, limits: &Limits) -> Result<Vec<NameComponentBuf>, ImportCause> {
    if text.len() > limits.longest_text().saturating_mul(ESCAPED) {
        return Err(ImportCause::Limit);
    }
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [octet, after @ ..] = rest {
        rest = after;
        if *octet == b'%' {
            let (digits, after) = rest.split_first_chunk().ok_or(ImportCause::Escape)?;
            octets.push(hex(*digits).ok_or(ImportCause::Escape)?);
            rest = after;
        } else {
            octets.push(*octet);
        }
    }
    let name = String::from_utf8(octets).map_err(|_| ImportCause::Escape)?;
    if TextComponents::new(&name).nth(limits.components).is_some() {
        return Err(ImportCause::Limit);
    }
    Ok(name_from_text(&name)?)
}

/// The most fields of a line after its name.
const VALUES: usize = 2;
/// The characters of an octet that is written `%hh`.
const ESCAPED: usize = 3;
