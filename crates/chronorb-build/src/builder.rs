//! Compilation of IDL files to Rust files.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io};

use chronorb_idl::model::Model;
use chronorb_idl::{Compilation, Failure, Options, SourceEncoding};

use crate::files::TemporaryFiles;
use crate::generate::{
    ExampleSources, GenerateError, GenerateOptions, GeneratedFile, SharedModules, example,
    generate, generate_each, generate_files, is_defined, second_names,
};
use crate::names::SecondName;
use crate::operation_demux::OperationDemux;
use crate::realtime::real_time_annotations;
use crate::renames::{rename_files, renamed};

/// Compiles one IDL file into `OUT_DIR`, from a build script:
///
/// ```no_run
/// fn main() -> Result<(), chronorb_build::BuildError> {
///     chronorb_build::compile("idl/quoter.idl")
/// }
/// ```
///
/// The program includes it with `chronorb::include_idl!("quoter")`.
///
/// # Errors
///
/// See [`BuildError`].
pub fn compile(file: impl AsRef<Path>) -> Result<(), BuildError> {
    configure().compile(&[file])
}

/// Compiles IDL files with settings; see [`Builder`].
pub fn configure() -> Builder {
    Builder::default()
}

/// The settings of a compilation. It ends with [`Builder::compile`].
#[derive(Clone, Debug)]
pub struct Builder {
    out_dir: Option<PathBuf>,
    include_dirs: Vec<PathBuf>,
    defines: Vec<(String, String)>,
    emit_rerun_if_changed: bool,
    file_per_module: bool,
    shared: Option<String>,
    strict: bool,
    encoding: SourceEncoding,
    renames: Vec<(String, String)>,
    options: GenerateOptions,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            out_dir: None,
            include_dirs: Vec::new(),
            defines: Vec::new(),
            emit_rerun_if_changed: true,
            file_per_module: false,
            shared: None,
            strict: false,
            encoding: SourceEncoding::default(),
            renames: Vec::new(),
            options: GenerateOptions::default(),
        }
    }
}

impl Builder {
    /// Sets the directory for the generated files; the default is `OUT_DIR`.
    pub fn out_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(dir.into());
        self
    }

    /// Adds a directory in which `#include` searches.
    pub fn include(mut self, dir: impl Into<PathBuf>) -> Self {
        self.include_dirs.push(dir.into());
        self
    }

    /// Defines a macro of the preprocessor, as by `#define NAME VALUE`.
    pub fn define(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.defines.push((name.into(), value.into()));
        self
    }

    /// Sets whether to tell cargo which files were read, and to show warnings through it. The
    /// default is on. A program that is not a build script turns it off, and gets warnings on
    /// standard error.
    pub fn emit_rerun_if_changed(mut self, on: bool) -> Self {
        self.emit_rerun_if_changed = on;
        self
    }

    /// Leaves out the documentation comments of the IDL.
    pub fn disable_comments(mut self, on: bool) -> Self {
        self.options.disable_comments = on;
        self
    }

    /// Generates only code that never allocates: types have no owned twins, and operations whose
    /// results or exceptions borrow are called with a scope, by the methods that end in `_in`.
    /// Operations that carry object references are refused.
    pub fn no_alloc(mut self, on: bool) -> Self {
        self.options.no_alloc = on;
        self
    }

    /// Refuses `@verbatim(language="rust")`, whose text becomes Rust code unchanged. It is for IDL
    /// files from others. Without it such a file is code, and is trusted like code.
    pub fn no_verbatim(mut self, on: bool) -> Self {
        self.options.no_verbatim = on;
        self
    }

    /// Generates methods for asynchronous calls of all operations and attributes, as `@ami` does
    /// for single ones; see [`GenerateOptions::ami`].
    pub fn ami(mut self, on: bool) -> Self {
        self.options.ami = on;
        self
    }

    /// Refuses IDL that the standard forbids and other compilers accept, which is a warning
    /// otherwise; see [`chronorb_idl::codes::LENIENT`].
    pub fn strict(mut self, on: bool) -> Self {
        self.strict = on;
        self
    }

    /// Sets the encoding of the IDL files. The default is UTF-8.
    pub fn encoding(mut self, encoding: SourceEncoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Gives a definition, or a part of one, another Rust name, as `@rust::name` does in the IDL.
    /// `idl` is an absolute name: of a module or type, of an operation or attribute, or, behind
    /// that of its owner, of a parameter, member, enumerator, flag or field:
    ///
    /// ```no_run
    /// # fn main() -> Result<(), chronorb_build::BuildError> {
    /// chronorb_build::configure()
    ///     .rename("::Market::Quoter::onTime", "is_on_time")
    ///     .rename("::Market::Quoter::getQuote::symbol", "of")
    ///     .compile(&["idl/quoter.idl"])
    /// # }
    /// ```
    ///
    /// The file `quoter.rename` beside `quoter.idl` does the same for all that compile it, in lines
    /// of the form `::Market::Quoter::onTime = is_on_time`. A name of the builder takes precedence
    /// over one of the file, and that over an annotation. Names that no file defines are errors.
    pub fn rename(mut self, idl: impl Into<String>, rust: impl Into<String>) -> Self {
        self.renames.push((idl.into(), rust.into()));
        self
    }

    /// Generates a second trait for each interface, `QuoterOwnedServant` beside `QuoterServant`,
    /// whose results are owned values; see [`GenerateOptions::owned_servants`]. Bases that another
    /// crate has generated need the same.
    pub fn owned_servants(mut self, on: bool) -> Self {
        self.options.owned_servants = on;
        self
    }

    /// Sets the lookup of operations in skeletons. The default, a perfect hash, is right for every
    /// program that does not compare lookups.
    pub fn operation_demux(mut self, strategy: OperationDemux) -> Self {
        self.options.operation_demux = strategy;
        self
    }

    /// Uses what another crate, or another module, has generated already, instead of generating
    /// it again. `idl` is a module, as `::CosNaming`, or an included file, as `TimeBase.idl`.
    /// `rust` is the absolute path of the Rust module with the generated items.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), chronorb_build::BuildError> {
    /// chronorb_build::configure()
    ///     .include("idl")
    ///     .extern_path("::CosNaming", "::naming_idl::cos_naming")
    ///     .extern_path("TimeBase.idl", "crate::time_base")
    ///     .compile(&["idl/trader.idl"])
    /// # }
    /// ```
    ///
    /// Definitions of the main file are never external, even if it reopens such a module. Of
    /// several nested modules the innermost decides; a module takes precedence over a file.
    pub fn extern_path(mut self, idl: impl Into<String>, rust: impl Into<String>) -> Self {
        self.options.extern_paths.push((idl.into(), rust.into()));
        self
    }

    /// Generates each file once, including included files, as a separate module in the module
    /// with this absolute path. Thus files that include the same one agree about its types.
    /// `mod.rs` declares all of them:
    ///
    /// ```no_run
    /// # fn main() -> Result<(), chronorb_build::BuildError> {
    /// chronorb_build::configure()
    ///     .include("idl")
    ///     .shared("crate::services")
    ///     .compile(&["idl/CosNaming.idl", "idl/CosTrading.idl"])
    /// # }
    /// ```
    ///
    /// The program includes them with `mod services { chronorb::include_idl!("mod"); }`, and has
    /// `services::cos_naming` and `services::cos_trading`, or has the files in `src/services`.
    /// Of two files with one name, the module of the second has the name of its folder before it:
    /// `radar/types.idl` beside `types.idl` is `services::radar_types`.
    /// Files that are built into the compiler, as `orb.idl`, are among them if others use their
    /// definitions.
    ///
    /// [`file_per_module`](Self::file_per_module) has no effect then.
    pub fn shared(mut self, module: impl Into<String>) -> Self {
        self.shared = Some(module.into());
        self
    }

    /// Writes a file for each module of the IDL at file level: `NAME.rs`, which a program includes
    /// by `mod NAME;`, and beside it `NAME/MODULE.rs`. It is for code that is checked in. For
    /// `include!`, one file is right.
    pub fn file_per_module(mut self, on: bool) -> Self {
        self.file_per_module = on;
        self
    }

    /// Compiles the files, each `NAME.idl` to `NAME.rs`, and to `NAME.rt.toml` if it has real-time
    /// annotations ([`crate::real_time_annotations`]).
    ///
    /// Files are written after all have been compiled without an error. Each replaces its
    /// predecessor atomically.
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
    pub fn compile(self, files: &[impl AsRef<Path>]) -> Result<(), BuildError> {
        let options = Options {
            include_dirs: self.include_dirs.clone(),
            defines: self.defines.clone(),
            strict: self.strict,
            portable: false,
            encoding: self.encoding,
        };
        let mut output = Output::new(&self)?;
        for file in files {
            let compilation = chronorb_idl::compile(file.as_ref(), &options)?;
            self.report(&compilation);
            output.add(file.as_ref(), &compilation)?;
        }
        for second in output.commit()? {
            self.warn(&format!("chronorb: warning: {second}"));
        }
        Ok(())
    }

    /// Writes the output of [`Builder::compile`] for files that are already compiled. `compiled`
    /// has the path of each file and the result of [`chronorb_idl::compile`]. Prints no warnings.
    /// Returns the definitions whose Rust name is another one than their IDL name gives, because
    /// that is taken, each once.
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
    pub fn write(self, compiled: &[(PathBuf, Compilation)]) -> Result<Vec<SecondName>, BuildError> {
        let mut output = Output::new(&self)?;
        for (file, compilation) in compiled {
            output.add(file, compilation)?;
        }
        output.commit()
    }

    /// Checks that a compiled file has a Rust form with these settings. Generates nothing, so that
    /// [`GenerateError::TooMuchText`] is not found. Returns the definitions whose Rust name is
    /// another one than their IDL name gives, because that is taken.
    ///
    /// # Errors
    ///
    /// [`BuildError::Generate`], and those about renames in files beside the IDL.
    pub fn check(&self, compilation: &Compilation) -> Result<Vec<SecondName>, BuildError> {
        let (model, _) = renamed(&compilation.model, &self.renames)?;
        Ok(second_names(&model, &self.options)?)
    }

    /// Returns a servant, a server and a client of the first interface of a compiled file, to begin
    /// a program with. `library` is the name in Rust of the library that [`ExampleSources`]
    /// describes. Its generated code needs [`owned_servants`](Self::owned_servants). Writes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`BuildError::NoInterface`], [`BuildError::Generate`], and those about renames in files
    /// beside the IDL.
    pub fn example(
        &self,
        compilation: &Compilation,
        library: &str,
    ) -> Result<ExampleSources, BuildError> {
        let (model, _) = renamed(&compilation.model, &self.renames)?;
        let mut options = self.options.clone();
        options.owned_servants = true;
        let example = example(&model, &options, library)?;
        example.ok_or(BuildError::NoInterface)
    }

    /// Shows the lines of a warning.
    fn warn(&self, warning: &str) {
        for line in warning.lines() {
            if self.emit_rerun_if_changed {
                println!("cargo::warning={line}");
            } else {
                eprintln!("{line}");
            }
        }
    }

    fn report(&self, compilation: &Compilation) {
        self.warn(&compilation.warnings.render(false));
        if !self.emit_rerun_if_changed {
            return;
        }
        for file in compilation.model.files_on_disk() {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        for file in rename_files(&compilation.model) {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
}

/// Generated files that are not yet in their places.
struct Output<'a> {
    builder: &'a Builder,
    dir: PathBuf,
    staged: TemporaryFiles,
    /// The IDL file of each Rust file.
    sources: HashMap<String, PathBuf>,
    /// External paths that were not used.
    unused: Vec<&'a str>,
    /// Renames that were not used.
    unused_renames: Vec<&'a str>,
    /// The lines of `mod.rs`.
    modules: String,
    second_names: Vec<SecondName>,
    /// The modules for files, if each file has one.
    shared: SharedModules,
    /// The names of files with real-time annotations, without their extension.
    annotated: HashSet<String>,
}

impl<'a> Output<'a> {
    fn new(builder: &'a Builder) -> Result<Self, BuildError> {
        let dir = builder.out_dir.clone();
        let dir = dir.or_else(|| env::var_os("OUT_DIR").map(Into::into));
        let paths = &builder.options.extern_paths;
        Ok(Self {
            builder,
            dir: dir.ok_or(BuildError::NoOutDir)?,
            staged: TemporaryFiles::default(),
            sources: HashMap::new(),
            unused: paths.iter().map(|(idl, _)| idl.as_str()).collect(),
            unused_renames: builder
                .renames
                .iter()
                .map(|(idl, _)| idl.as_str())
                .collect(),
            modules: String::new(),
            second_names: Vec::new(),
            shared: SharedModules::default(),
            annotated: HashSet::new(),
        })
    }

    fn add(&mut self, file: &Path, compilation: &Compilation) -> Result<(), BuildError> {
        let (model, used) = renamed(&compilation.model, &self.builder.renames)?;
        self.unused_renames.retain(|idl| !used.contains(*idl));
        let model = &*model;
        for second in second_names(model, &self.builder.options)? {
            // Several files may include the one with the definition.
            if !self.second_names.contains(&second) {
                self.second_names.push(second);
            }
        }
        if let Some(root) = &self.builder.shared {
            return self.add_shared(file, model, root);
        }
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        if let Some(first) = self.sources.insert(stem.to_string(), file.to_owned()) {
            return Err(BuildError::SameName {
                first,
                second: file.to_owned(),
            });
        }
        let options = &self.builder.options;
        self.unused.retain(|idl| !is_defined(model, idl));
        let generated = if self.builder.file_per_module {
            generate_files(model, options)?
        } else {
            vec![GeneratedFile {
                path: format!("{stem}.rs").into(),
                text: generate(model, options)?,
            }]
        };
        for file in generated {
            if let Some(dir) = file.path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
                make(&self.dir.join(dir))?;
            }
            self.stage(&file.path, &file.text)?;
        }
        if let Some(text) = real_time_annotations(model) {
            self.stage(Path::new(&format!("{stem}.rt.toml")), &text)?;
        }
        Ok(())
    }

    /// Adds the file and all that it includes, unless they were added before.
    fn add_shared(&mut self, file: &Path, model: &Model, root: &str) -> Result<(), BuildError> {
        self.unused.retain(|idl| !is_defined(model, idl));
        let sources = &self.sources;
        let is_present = |name: &str| sources.contains_key(name);
        let options = &self.builder.options;
        let modules = generate_each(model, options, root, &mut self.shared, is_present)?;
        for module in modules {
            let (name, source) = (module.name, module.source);
            self.sources.insert(name.clone(), source.clone());
            self.stage(Path::new(&format!("{name}.rs")), &module.text)?;
            let idl = source.file_name().unwrap_or_default().to_string_lossy();
            let idl = idl.replace(char::is_control, " ");
            let _ = write!(
                self.modules,
                "\n/// The definitions of `{idl}`.\n#[path = \"{name}.rs\"]\npub mod {name};\n"
            );
        }
        if let Some(text) = real_time_annotations(model) {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            // Of two files with one name, the second has that of its module.
            let name = if self.annotated.insert(stem.to_string()) {
                stem.into_owned()
            } else {
                self.shared.name(file)
            };
            self.stage(Path::new(&format!("{name}.rt.toml")), &text)?;
        }
        Ok(())
    }

    fn stage(&mut self, path: &Path, text: &str) -> Result<(), BuildError> {
        let path = self.dir.join(path);
        self.staged
            .add(&path, text)
            .map_err(|source| BuildError::Write { path, source })
    }

    /// Puts the files into their places, and returns the definitions with second names.
    fn commit(mut self) -> Result<Vec<SecondName>, BuildError> {
        if self.builder.shared.is_some() {
            let version = env!("CARGO_PKG_VERSION");
            let modules = std::mem::take(&mut self.modules);
            let text =
                format!("// @generated by chronorb-build {version}. Do not edit.\n{modules}");
            self.stage(Path::new("mod.rs"), &text)?;
        }
        if let Some(idl) = self.unused.first() {
            return Err(BuildError::UnusedExternPath {
                idl: (*idl).to_owned(),
            });
        }
        if let Some(idl) = self.unused_renames.first() {
            return Err(BuildError::UnusedRename {
                idl: (*idl).to_owned(),
                file: None,
            });
        }
        self.staged
            .commit()
            .map_err(|(path, source)| BuildError::Write { path, source })?;
        Ok(self.second_names)
    }
}

/// Creates a directory inside the one for generated files, unless it exists.
fn make(dir: &Path) -> Result<(), BuildError> {
    match fs::create_dir(dir) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(BuildError::Write {
            path: dir.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

/// An error of the compilation of IDL files to Rust files. No file was written then, or, for
/// [`BuildError::Write`], no file was written partially.
///
/// `Debug` shows the same as `Display`, because a build script that returns the error prints that.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The IDL is wrong; the text shows where.
    #[error("{0}")]
    Idl(#[from] Failure),

    /// The IDL has no Rust form.
    #[error(transparent)]
    Generate(#[from] GenerateError),

    /// Two files would be written to the same Rust file.
    #[error(
        "{first} and {second} would both be written to the same file\n  hint: write each to a \
         directory of its own, or compile both with shared, which gives each file a module",
        first = .first.display(),
        second = .second.display()
    )]
    SameName {
        /// The first of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },

    /// No file defines the module, or includes the file, of an external path.
    #[error("no file defines or includes `{idl}`, for which there is an extern_path")]
    UnusedExternPath {
        /// The module or file.
        idl: String,
    },

    /// No file defines the name of a rename.
    #[error(
        "no file defines `{idl}`, which {by} renames\n  \
         hint: write the absolute name, as ::Market::Quoter::getQuote",
        by = .file.as_ref().map_or_else(|| "the builder".to_owned(), |f| f.display().to_string())
    )]
    UnusedRename {
        /// The name in the IDL.
        idl: String,
        /// The file with the rename; `None` for [`Builder::rename`].
        file: Option<PathBuf>,
    },

    /// A line of a file with renames is malformed.
    #[error(
        "{path}:{line}: this line {what}\n  hint: write ::Market::Quoter::getQuote = fetch",
        path = .path.display()
    )]
    BadRename {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The fault.
        what: &'static str,
    },

    /// A file with renames could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    ReadRenames {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },

    /// The file itself, unlike those that it includes, defines no interface that objects can have.
    #[error("the file defines no interface for which there can be a server")]
    NoInterface,

    /// `OUT_DIR` is not set, as outside of build scripts, and no directory was given.
    #[error("OUT_DIR is not set; name a directory with out_dir")]
    NoOutDir,

    /// A file could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first line of a build script's output says only `Error: `.
        writeln!(f)?;
        fmt::Display::fmt(self, f)
    }
}
