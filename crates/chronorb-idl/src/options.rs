//! The options of the compiler.

use std::path::PathBuf;

use crate::source::SourceEncoding;

/// The options of the compiler.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directories in which `#include` searches, in order.
    pub include_dirs: Vec<PathBuf>,
    /// Macros defined before the first line, as name and replacement.
    pub defines: Vec<(String, String)>,
    /// Whether IDL that the standard forbids, and that has a meaning nevertheless, is an error
    /// instead of a warning: the codes in [`crate::codes::LENIENT`].
    pub strict: bool,
    /// Whether IDL that other compilers refuse gets a warning, also IDL of later versions of the
    /// standard: the codes from [`crate::codes::IDL4_TYPE`] to [`crate::codes::ENCODING`].
    pub portable: bool,
    /// The encoding of all files.
    pub encoding: SourceEncoding,
}
