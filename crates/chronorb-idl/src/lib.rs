//! OMG IDL front end of chronorb: preprocessor, parser, checker, model.
//!
//! [`compile`] reads an IDL file with everything that it includes. It returns a checked
//! [`model::Model`], or a [`Failure`] with every error found, each with its code, its place, a
//! marked excerpt and a hint:
//!
//! ```
//! use chronorb_idl::{Options, compile_text};
//!
//! let failure = compile_text("clock.idl", "interface Clock { lnog now(); };", &Options::default())
//!     .unwrap_err();
//! let error = failure.diagnostics.iter().next().unwrap();
//! assert_eq!(error.code, "E0200");
//! assert_eq!(error.hint.as_deref(), Some("did you mean `long`?"));
//! ```
//!
//! # Stages
//!
//! `source` keeps the texts, `lexer` cuts them into tokens, `preprocessor` executes `#` directives
//! and expands macros, `parser` builds the syntax tree and continues after errors, and `check`
//! resolves names, evaluates constants and builds the model.
//!
//! # Features
//!
//! `json` adds the module [`json`](https://docs.rs/chronorb-idl): models and diagnostics for
//! programs in other languages.
//!
//! # Bad input
//!
//! No file makes the compiler panic, hang or grow without bound. Sizes, nesting, includes and macro
//! expansion have limits, and exceeding one is an error with its own code ([`codes`], `E08xx`).

#![cfg_attr(docsrs, feature(doc_cfg))]

mod ast;
mod builtin;
mod check;
pub mod codes;
mod decimal;
mod diagnostics;
#[cfg(feature = "json")]
pub mod json;
mod lexer;
pub mod model;
mod options;
mod parser;
mod portable;
mod preprocessor;
mod source;
mod span;
mod suggest;

use std::io;
use std::path::{Path, PathBuf};

pub use diagnostics::{Diagnostic, Diagnostics, Failure, Label, Severity};
pub use options::Options;
pub use source::SourceEncoding;

use diagnostics::Sink;
use model::Model;
use preprocessor::FoundFile;
use source::{ReadError, Sources};

/// The result of a correct file: its model, and warnings.
#[derive(Clone, Debug)]
pub struct Compilation {
    /// The checked definitions.
    pub model: Model,
    /// Warnings; empty for most files.
    pub warnings: Diagnostics,
}

/// An IDL file after the preprocessor: macros, conditions and includes are resolved.
#[derive(Clone, Debug)]
pub struct PreprocessedSource {
    /// The text of the file and of all that it includes. Line markers (`# 12 "file.idl"`) give the
    /// origin of each line. The text compiles to the same model without the options that made it.
    pub text: String,
    /// Every file that was read from a directory, the main file first.
    pub files: Vec<PathBuf>,
    /// Warnings; empty for most files.
    pub warnings: Diagnostics,
}

/// Compiles an IDL file and everything that it includes.
///
/// # Errors
///
/// A file that cannot be read, and every error in the files; see [`codes`].
pub fn compile(main: &Path, options: &Options) -> Result<Compilation, Failure> {
    Front::read(main, options).compile(options)
}

/// Compiles a text as if it stood in a file called `name`.
///
/// Files that it includes are searched beside `name` and in the include directories.
///
/// # Errors
///
/// Every error in the text and in the files that it includes; see [`codes`].
pub fn compile_text(name: &str, text: &str, options: &Options) -> Result<Compilation, Failure> {
    Front::of_text(name, text, options).compile(options)
}

/// Compiles the output of a reader, such as standard input, as if it stood in a file called `name`.
///
/// Files that it includes are searched beside `name` and in the include directories.
///
/// # Errors
///
/// Those of the reader, and every error in its output and in the files that this includes; see
/// [`codes`].
pub fn compile_from(
    name: &str,
    reader: impl io::Read,
    options: &Options,
) -> Result<Compilation, Failure> {
    Front::read_from(name, reader, options).compile(options)
}

/// Preprocesses an IDL file with everything that it includes, without checking its contents.
///
/// # Errors
///
/// A file that cannot be read, and every error that the preprocessor finds; see [`codes`].
pub fn preprocess(main: &Path, options: &Options) -> Result<PreprocessedSource, Failure> {
    Front::read(main, options).preprocess(options)
}

/// Preprocesses a text as if it stood in a file called `name`.
///
/// # Errors
///
/// Every error that the preprocessor finds; see [`codes`].
pub fn preprocess_text(
    name: &str,
    text: &str,
    options: &Options,
) -> Result<PreprocessedSource, Failure> {
    Front::of_text(name, text, options).preprocess(options)
}

/// Preprocesses the output of a reader as if it stood in a file called `name`.
///
/// # Errors
///
/// Those of the reader, and every error that the preprocessor finds; see [`codes`].
pub fn preprocess_from(
    name: &str,
    reader: impl io::Read,
    options: &Options,
) -> Result<PreprocessedSource, Failure> {
    Front::read_from(name, reader, options).preprocess(options)
}

/// The number of files that definitions may imply.
const MAX_IMPORTS: usize = 90;

/// The texts that were read, and the findings.
struct Front {
    sources: Sources,
    sink: Sink,
}

impl Front {
    fn read(main: &Path, options: &Options) -> Self {
        Self::of(main, options, |sources| sources.read(main))
    }

    fn read_from(name: &str, reader: impl io::Read, options: &Options) -> Self {
        let name = Path::new(name);
        Self::of(name, options, |sources| sources.read_from(name, reader))
    }

    fn of_text(name: &str, text: &str, options: &Options) -> Self {
        let name = Path::new(name);
        Self::of(name, options, |sources| sources.add_text(name, text))
    }

    fn of(
        main: &Path,
        options: &Options,
        read: impl FnOnce(&mut Sources) -> Result<u32, ReadError>,
    ) -> Self {
        let mut front = Self {
            sources: Sources::new(options.encoding),
            sink: Sink::default(),
        };
        if let Err(error) = read(&mut front.sources) {
            front.sink.push(error.into_diagnostic(main, None));
        }
        front
    }

    fn compile(mut self, options: &Options) -> Result<Compilation, Failure> {
        let mut model = Model::default();
        if !self.sink.has_errors() {
            model = self.check(options);
            if self.replace_built_in_files() {
                model = self.check(options);
            }
        }
        let mut warnings = self.sink.finish(&self.sources)?;
        if options.strict && warnings.deny(|item| codes::LENIENT.contains(&item.code)) {
            return Err(Failure {
                diagnostics: warnings,
            });
        }
        model.files = self.sources.paths();
        model.line_files = self.sources.names().to_vec();
        Ok(Compilation { model, warnings })
    }

    fn check(&mut self, options: &Options) -> Model {
        let (tree, _) = self.parse_with_implied(options);
        check::check(&tree, &self.sources, &mut self.sink)
    }

    /// Reads everything behind the files that the definitions imply, and returns these too.
    fn parse_with_implied(&mut self, options: &Options) -> (Vec<ast::Item>, Vec<FoundFile>) {
        let mut implied = Vec::new();
        let mut tree = self.parse(&implied, options);
        // Restarts from the beginning, behind the files that the definitions imply. These may
        // import others.
        while let more @ [_, ..] = &self.implied(&tree, &implied, options)[..]
            && implied.len() < MAX_IMPORTS
        {
            implied = [more, &implied[..]].concat();
            // Built-in files import none on disk.
            implied.sort_by_key(|file| matches!(file, FoundFile::OnDisk(_)));
            tree = self.parse(&implied, options);
        }
        (tree, implied)
    }

    /// Returns the files that the definitions imply and that exist, without those that were read.
    fn implied(
        &self,
        tree: &[ast::Item],
        known: &[FoundFile],
        options: &Options,
    ) -> Vec<FoundFile> {
        let main = &self.sources.get(0).path;
        let is_new = |file: &FoundFile| {
            !known.contains(file) && !matches!(file, FoundFile::OnDisk(path) if path == main)
        };
        let names = builtin::implied(tree).into_iter();
        let found = names
            .filter_map(|name| preprocessor::find(&name, main.parent(), options, &mut Vec::new()));
        found.filter(is_new).collect()
    }

    /// Reads everything from the beginning, behind these files.
    fn parse(&mut self, implied: &[FoundFile], options: &Options) -> Vec<ast::Item> {
        self.sink = Sink::new(options);
        let (sources, sink) = (&mut self.sources, &mut self.sink);
        let stream = preprocessor::run_after(implied, sources, sink, options);
        let tree = parser::parse(&stream, sink);
        portable::check(sources, &stream, &tree, sink);
        tree
    }

    /// Replaces the built-in files that define the same as an own version of one of them, such as
    /// an `orb.idl` beside the main file. Returns whether there are new ones.
    fn replace_built_in_files(&mut self) -> bool {
        let path = |file: u32| self.sources.get(file).path.as_path();
        let replaced: Vec<(u32, u32)> = self
            .sink
            .duplicates()
            .flat_map(|(one, other)| [(one, other), (other, one)])
            .filter(|(file, by)| {
                builtin::is_built_in(path(*file)) && builtin::is_own_version(path(*by))
            })
            .collect();
        for (built_in, own) in &replaced {
            self.sources.replace(*built_in, *own);
        }
        !replaced.is_empty()
    }

    /// Returns whether built-in files were read, and own versions of such.
    fn has_own_versions(&self) -> bool {
        let paths = self.sources.paths();
        paths.iter().any(|path| builtin::is_built_in(path))
            && paths.iter().any(|path| builtin::is_own_version(path))
    }

    fn preprocess(mut self, options: &Options) -> Result<PreprocessedSource, Failure> {
        let mut text = String::new();
        if !self.sink.has_errors() {
            let mut stream = preprocessor::run(&mut self.sources, &mut self.sink, options);
            if !self.sink.has_errors() && self.has_own_versions() {
                self.check(options);
                self.replace_built_in_files();
                self.sink = Sink::default();
                stream = preprocessor::run(&mut self.sources, &mut self.sink, options);
            }
            if !self.sink.has_errors() && stream.has_imports() {
                let (_, mut implied) = self.parse_with_implied(options);
                // The compiler has the others.
                implied.retain(|file| matches!(file, FoundFile::OnDisk(_)));
                self.sink = Sink::default();
                let (sources, sink) = (&mut self.sources, &mut self.sink);
                stream = preprocessor::run_after(&implied, sources, sink, options);
            }
            if !self.sink.has_errors() {
                text = preprocessor::text(&stream, &self.sources);
            }
        }
        Ok(PreprocessedSource {
            text,
            warnings: self.sink.finish(&self.sources)?,
            files: self.sources.paths_on_disk(),
        })
    }
}
