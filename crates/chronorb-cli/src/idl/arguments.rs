//! The command line of `chronorb idl`.

use std::io;
use std::path::{Path, PathBuf};

use chronorb_build::Builder;
use chronorb_idl::{Compilation, Failure, Options, PreprocessedSource, SourceEncoding};
use clap::{Args, Subcommand, ValueEnum};

use super::is_standard_input;

#[derive(Debug, Subcommand)]
pub(crate) enum IdlCommand {
    /// Check IDL files and everything that they include.
    ///
    /// Each finding is shown with its file and line, a marked excerpt and a hint.
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        #[command(flatten)]
        input: IdlInput,

        #[command(flatten)]
        findings: FindingsArguments,

        /// Warn of IDL that other compilers refuse, as annotations and sequences as parameters.
        #[arg(long)]
        portable: bool,
    },

    /// Compile IDL files to Rust, each NAME.idl to NAME.rs.
    ///
    /// Files are written when all were compiled without an error; when one of them is wrong,
    /// nothing is written. A build script does the same with the crate chronorb-build.
    #[command(after_help = RUST_EXAMPLES)]
    Rust {
        #[command(flatten)]
        input: IdlInput,

        #[command(flatten)]
        findings: FindingsArguments,

        #[command(flatten)]
        rust: RustArguments,
    },

    /// Write a package with a server and a client of the first interface of an IDL file.
    ///
    /// The server prints the calls and returns empty results; the client calls each operation once.
    /// Both compile as they are, and are there to be changed.
    #[command(after_help = EXAMPLE_EXAMPLES)]
    Example(ExampleArguments),

    /// Print the checked model of an IDL file as JSON.
    ///
    /// Every definition with its repository identifier, its types resolved and its constants
    /// computed, for generators of other languages and for tools. The form has a version; the book
    /// describes it, and there is a JSON Schema beside that page.
    #[command(after_help = MODEL_EXAMPLES)]
    Model {
        #[command(flatten)]
        input: OneInput,

        #[command(flatten)]
        findings: FindingsArguments,
    },

    /// Print the files that each IDL file reads, as rules of a makefile or as JSON.
    ///
    /// The files are preprocessed and not checked.
    #[command(after_help = DEPS_EXAMPLES)]
    Deps(DepsArguments),

    /// Print an IDL file without macros, conditions and includes.
    ///
    /// Line markers (# 12 "file.idl") name the origin of each line. The output compiles to the same
    /// as the file itself, without options -D.
    #[command(after_help = PREPROCESS_EXAMPLES)]
    Preprocess {
        #[command(flatten)]
        input: OneInput,

        #[command(flatten)]
        findings: FindingsArguments,
    },
}

#[derive(Args, Debug)]
pub(crate) struct IdlInput {
    /// The IDL files; - is standard input, for commands that write no file.
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) options: PreprocessorOptions,
}

#[derive(Args, Debug)]
pub(crate) struct OneInput {
    /// The IDL file; - is standard input.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,

    #[command(flatten)]
    pub(super) options: PreprocessorOptions,
}

#[derive(Args, Debug)]
pub(crate) struct PreprocessorOptions {
    /// Search this directory for included files; may be given several times.
    #[arg(short = 'I', value_name = "DIR")]
    pub(super) include: Vec<PathBuf>,

    /// Define a macro of the preprocessor; without a value it is 1.
    #[arg(short = 'D', value_name = "NAME[=VALUE]", value_parser = definition)]
    pub(super) define: Vec<(String, String)>,

    /// The encoding of the IDL files.
    #[arg(long, value_name = "ENCODING", value_enum, default_value_t)]
    pub(super) encoding: EncodingName,

    /// Whether to warn of IDL that other compilers refuse; an option of one command.
    #[arg(skip)]
    pub(super) portable: bool,
}

/// An encoding of IDL files.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(super) enum EncodingName {
    #[default]
    #[value(name = "utf-8")]
    Utf8,
    /// ISO 8859-1
    #[value(name = "latin-1")]
    Latin1,
    /// Shift-JIS, as code page 932
    #[value(name = "shift-jis")]
    ShiftJis,
}

impl From<EncodingName> for SourceEncoding {
    fn from(name: EncodingName) -> Self {
        match name {
            EncodingName::Utf8 => Self::Utf8,
            EncodingName::Latin1 => Self::Latin1,
            EncodingName::ShiftJis => Self::ShiftJis,
        }
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct FindingsArguments {
    /// Turn warnings into errors: all of them with "warnings", or one by its code, as W0002; may be
    /// given several times.
    #[arg(long, value_name = "WHAT", value_parser = denied)]
    pub(super) deny: Vec<DenyRule>,

    /// Refuse IDL that the standard forbids and other compilers accept, which is a warning
    /// otherwise.
    #[arg(long)]
    pub(super) strict: bool,

    /// The form of findings: for people on standard error, or for programs on standard output, one
    /// JSON object in a line.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(super) message_format: MessageFormat,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(super) enum MessageFormat {
    #[default]
    Human,
    Json,
}

/// Warnings that are errors.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum DenyRule {
    All,
    Code(String),
}

#[derive(Args, Debug)]
pub(crate) struct RustArguments {
    /// The directory for the Rust files; it is created if it is missing.
    #[arg(long, value_name = "DIR")]
    pub(super) out: PathBuf,

    /// Use code that another crate or module has: IDL is a module (::CosNaming) or an included file
    /// (TimeBase.idl), PATH the absolute path of a Rust module; may be given several times.
    #[arg(long, value_name = "IDL=PATH", value_parser = pair)]
    extern_path: Vec<(String, String)>,

    /// Give a definition another name in Rust, as @rust::name does: ::M::Quoter::onTime=is_on_time;
    /// may be given several times.
    #[arg(long, value_name = "IDL=NAME", value_parser = pair)]
    rename: Vec<(String, String)>,

    /// Generate methods for asynchronous calls of all operations, as @ami does for single ones.
    #[arg(long, conflicts_with = "no_alloc")]
    ami: bool,

    /// Generate a second trait for each interface, whose results are owned values:
    /// QuoterOwnedServant beside QuoterServant.
    #[arg(long, conflicts_with = "no_alloc")]
    owned_servants: bool,

    /// Generate only code that never allocates.
    #[arg(long)]
    no_alloc: bool,

    /// Refuse @verbatim(language="rust"), which copies Rust code into the output: for files from
    /// untrusted sources.
    #[arg(long)]
    no_verbatim: bool,

    /// Write a file for each module at file level.
    #[arg(long, conflicts_with = "shared")]
    file_per_module: bool,

    /// Generate each file once, included ones too, as modules of this module of the program:
    /// crate::services. A mod.rs declares them.
    #[arg(long, value_name = "MODULE")]
    shared: Option<String>,

    /// Leave out the documentation comments.
    #[arg(long)]
    disable_comments: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExampleArguments {
    #[command(flatten)]
    pub(super) input: OneInput,

    #[command(flatten)]
    pub(super) findings: FindingsArguments,

    /// The directory for the package, which must be empty or missing; QUOTER-example for QUOTER.idl
    /// by default.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// Depend on the crates in this checkout of chronorb's repository, instead of on published
    /// ones.
    #[arg(long, value_name = "DIR")]
    pub(super) checkout: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct DepsArguments {
    #[command(flatten)]
    pub(super) input: IdlInput,

    #[command(flatten)]
    pub(super) findings: FindingsArguments,

    /// The directory for the Rust files that the rules are for.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// Print one JSON object instead of rules.
    #[arg(long)]
    pub(super) json: bool,
}

impl PreprocessorOptions {
    /// Compiles a file, or standard input.
    pub(super) fn compile(&self, file: &Path) -> Result<Compilation, Failure> {
        if is_standard_input(file) {
            return chronorb_idl::compile_from(STANDARD_INPUT, io::stdin(), &self.options());
        }
        chronorb_idl::compile(file, &self.options())
    }

    /// Preprocesses a file, or standard input.
    pub(super) fn preprocess(&self, file: &Path) -> Result<PreprocessedSource, Failure> {
        if is_standard_input(file) {
            return chronorb_idl::preprocess_from(STANDARD_INPUT, io::stdin(), &self.options());
        }
        chronorb_idl::preprocess(file, &self.options())
    }

    fn options(&self) -> Options {
        Options {
            include_dirs: self.include.clone(),
            defines: self.define.clone(),
            portable: self.portable,
            encoding: self.encoding.into(),
            ..Options::default()
        }
    }
}

impl RustArguments {
    /// Returns the builder that generates and writes the Rust files.
    pub(super) fn builder(&self) -> Builder {
        let builder = chronorb_build::configure()
            .out_dir(&self.out)
            .ami(self.ami)
            .owned_servants(self.owned_servants)
            .no_alloc(self.no_alloc)
            .no_verbatim(self.no_verbatim)
            .file_per_module(self.file_per_module)
            .disable_comments(self.disable_comments);
        let builder = match &self.shared {
            Some(module) => builder.shared(module),
            None => builder,
        };
        let renames = self.rename.iter();
        let builder = renames.fold(builder, |builder, (idl, rust)| builder.rename(idl, rust));
        let paths = self.extern_path.iter();
        paths.fold(builder, |builder, (idl, rust)| {
            builder.extern_path(idl, rust)
        })
    }
}

impl DenyRule {
    /// Whether the warning with this code is an error.
    pub(super) fn is(&self, code: &str) -> bool {
        match self {
            Self::All => true,
            Self::Code(denied) => denied == code,
        }
    }
}

/// The name of standard input in messages. Files that it includes are searched in this directory.
const STANDARD_INPUT: &str = "<stdin>";

/// Parses `NAME` or `NAME=VALUE`.
fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let is_letter = |c: char| c == '_' || c.is_ascii_alphabetic();
    let is_identifier =
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
    if is_identifier {
        Ok((name.to_owned(), value.to_owned()))
    } else {
        Err(format!("{name:?} is not the name of a macro"))
    }
}

/// Parses `warnings` or the code of a warning.
fn denied(text: &str) -> Result<DenyRule, String> {
    let is_code = |text: &str| {
        text.strip_prefix('W')
            .is_some_and(|digits| digits.len() == 4 && digits.chars().all(|c| c.is_ascii_digit()))
    };
    match text {
        "warnings" => Ok(DenyRule::All),
        code if is_code(code) => Ok(DenyRule::Code(code.to_owned())),
        _ => Err("neither \"warnings\" nor the code of a warning, as W0002".to_owned()),
    }
}

/// Parses `IDL=RUST`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((idl, rust)) if !idl.is_empty() && !rust.is_empty() => {
            Ok((idl.to_owned(), rust.to_owned()))
        }
        _ => Err("not of the form IDL=RUST".to_owned()),
    }
}

const CHECK_EXAMPLES: &str = "\
Examples:
  chronorb idl check quoter.idl
  chronorb idl check -I idl -D WITH_HISTORY -D LIMIT=64 market.idl broker.idl
  chronorb idl check --portable quoter.idl
  chronorb idl check --deny warnings --message-format json *.idl | jq -r .message
  echo 'struct S { long a; };' | chronorb idl check -";

const RUST_EXAMPLES: &str = "\
Examples:
  chronorb idl rust quoter.idl --out src/generated
  chronorb idl rust -I idl -D LIMIT=64 market.idl broker.idl --out generated
  chronorb idl rust trader.idl --extern-path ::CosNaming=::naming_idl::cos_naming --out src";

const EXAMPLE_EXAMPLES: &str = "\
Examples:
  chronorb idl example quoter.idl
  chronorb idl example -I idl market.idl --out market-server
  chronorb idl example quoter.idl --checkout ../chronorb";

const MODEL_EXAMPLES: &str = "\
Examples:
  chronorb idl model quoter.idl
  chronorb idl model quoter.idl | jq -r '.definitions[].repository_id | values'";

const DEPS_EXAMPLES: &str = "\
Examples:
  chronorb idl deps -I idl market.idl broker.idl --out src/generated > idl.d
  chronorb idl deps market.idl --json | jq -r '.files[].reads[]'";

const PREPROCESS_EXAMPLES: &str = "\
Examples:
  chronorb idl preprocess -I idl -D WITH_HISTORY market.idl
  chronorb idl preprocess market.idl | chronorb idl check -";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_are_defined_with_and_without_a_value() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(definition("DEBUG"), pair("DEBUG", "1"));
        assert_eq!(definition("_N2=a=b"), pair("_N2", "a=b"));
        assert_eq!(definition("EMPTY="), pair("EMPTY", ""));
        for wrong in ["", "=1", "2N", "A-B=1"] {
            assert!(definition(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn warnings_are_denied_all_or_by_code() {
        assert_eq!(denied("warnings"), Ok(DenyRule::All));
        assert_eq!(denied("W0002"), Ok(DenyRule::Code("W0002".to_owned())));
        for wrong in ["", "warning", "E0200", "W2", "W00002", "Wxyzw"] {
            assert!(denied(wrong).is_err(), "{wrong}");
        }
    }
}
