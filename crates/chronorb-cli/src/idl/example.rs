//! `chronorb idl example`: a package with a server and a client of an interface.

use std::fmt::Write as _;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use chronorb_build::{BuildError, ExampleSources, rename_files};
use chronorb_idl::Compilation;

use super::arguments::{ExampleArguments, PreprocessorOptions};
use super::findings::Findings;
use super::is_standard_input;

/// A failure to write a package.
#[derive(Debug, thiserror::Error)]
enum ExampleError {
    /// The IDL is standard input.
    #[error("standard input has no name that a package could have")]
    StandardInput,

    /// The directory for the package has other files.
    #[error("{} exists and is not empty; name another directory with --out", .0.display())]
    NotEmpty(PathBuf),

    /// The directory of the option `--checkout` has not the crates.
    #[error("{} is not a checkout of chronorb: it has no crates/chronorb", .0.display())]
    NoCheckout(PathBuf),

    /// An included file is neither below the main file nor below an include directory.
    #[error(
        "{} is included and has no place in the package; name its directory with -I",
        .0.display()
    )]
    OutsideFile(PathBuf),

    /// The path has characters that a manifest cannot have.
    #[error("the path {} is not text", .0.display())]
    NotText(PathBuf),

    /// The IDL has no example.
    #[error("{}: {source}", .file.display())]
    Build {
        file: PathBuf,
        source: Box<BuildError>,
    },

    /// A file cannot be read or written.
    #[error("cannot {what} {}: {source}", .path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// Writes the package, and prints how to run its programs.
pub(super) fn run(arguments: &ExampleArguments) -> ExitCode {
    let findings = Findings::from(arguments.findings.clone());
    if is_standard_input(&arguments.input.file) {
        findings.failure(&ExampleError::StandardInput.to_string());
        return ExitCode::FAILURE;
    }
    let compiled = arguments.input.options.compile(&arguments.input.file);
    let Some(compilation) = findings.compilation(compiled) else {
        return ExitCode::FAILURE;
    };
    match write_package(arguments, &compilation) {
        Ok((out, example)) => {
            let (out, object) = (out.display(), &example.object);
            println!(
                "{out}: a server and a client of {}. The servant is in src/servant.rs.\n  \
                 cd {out}\n  \
                 cargo run --bin server -- -ORBListenEndpoints iiop://127.0.0.1:2809\n  \
                 cargo run --bin client -- corbaloc::127.0.0.1:2809/{object}",
                example.interface
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            findings.failure(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Writes the files, and returns the directory.
fn write_package(
    arguments: &ExampleArguments,
    compilation: &Compilation,
) -> Result<(PathBuf, ExampleSources), ExampleError> {
    let file = &arguments.input.file;
    let package = package_name(file);
    let library = package.replace('-', "_");
    let example = chronorb_build::configure().example(compilation, &library);
    let example = example.map_err(|source| ExampleError::Build {
        file: file.clone(),
        source: Box::new(source),
    })?;
    let dependencies = dependencies(arguments.checkout.as_deref())?;
    let copies = copies(&arguments.input.options, file, compilation)?;
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(&package));
    if fs::read_dir(&out).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(ExampleError::NotEmpty(out));
    }

    let name = file.file_name().unwrap_or_default();
    let name = name
        .to_str()
        .ok_or_else(|| ExampleError::NotText(file.clone()))?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    for (from, to) in copies {
        let to = out.join("idl").join(to);
        make_parent(&to)?;
        fs::copy(&from, &to).map_err(|source| ExampleError::File {
            what: "copy",
            path: from,
            source,
        })?;
    }
    let manifest = format!(
        "[package]\nname = \"{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         # The package belongs to no workspace around it.\n[workspace]\n{dependencies}"
    );
    let build = build_script(&arguments.input.options, name);
    let root = format!(
        "//! A servant of the interface `{}`.\n\nmod servant;\n\npub use servant::Example;\n\n\
         /// The generated code.\npub mod idl {{\n    chronorb::include_idl!({stem:?});\n}}\n",
        example.interface
    );
    for (path, text) in [
        ("Cargo.toml", manifest.as_str()),
        ("build.rs", &build),
        ("src/lib.rs", &root),
        ("src/servant.rs", &example.servant),
        ("src/bin/server.rs", &example.server),
        ("src/bin/client.rs", &example.client),
    ] {
        let path = out.join(path);
        make_parent(&path)?;
        fs::write(&path, text).map_err(|source| ExampleError::File {
            what: "write",
            path,
            source,
        })?;
    }
    Ok((out, example))
}

/// Returns the name of the package for an IDL file: `quoter-example` for `Quoter.idl`.
fn package_name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let stem = stem.replace(|c| !is_plain(c), "-").to_ascii_lowercase();
    let prefix = if stem.starts_with(|c: char| c.is_ascii_alphabetic()) {
        ""
    } else {
        "idl-"
    };
    format!("{prefix}{stem}-example")
}

/// Returns the sections of the manifest with the crates: of this version, or in a checkout.
fn dependencies(checkout: Option<&Path>) -> Result<String, ExampleError> {
    let mut text = String::new();
    let sections = [
        ("dependencies", "chronorb"),
        ("build-dependencies", "chronorb-build"),
    ];
    for (section, name) in sections {
        let source = match checkout {
            None => format!("{:?}", env!("CARGO_PKG_VERSION")),
            Some(checkout) => {
                let no_checkout = |_| ExampleError::NoCheckout(checkout.to_owned());
                let path = checkout.join("crates").join(name);
                let path = path.canonicalize().map_err(no_checkout)?;
                let path = path
                    .to_str()
                    .ok_or_else(|| ExampleError::NotText(path.clone()))?;
                format!("{{ path = {path:?} }}")
            }
        };
        let _ = write!(text, "\n[{section}]\n{name} = {source}\n");
    }
    Ok(text)
}

/// Returns the files that the compiler read, and those with renames beside them, with their paths
/// in the package's directory `idl`, so that `#include` finds them there.
fn copies(
    options: &PreprocessorOptions,
    main: &Path,
    compilation: &Compilation,
) -> Result<Vec<(PathBuf, PathBuf)>, ExampleError> {
    let beside = main.parent().unwrap_or_else(|| Path::new(""));
    let roots = [beside]
        .into_iter()
        .chain(options.include.iter().map(PathBuf::as_path));
    let roots: Vec<_> = roots.map(absolute).collect::<Result<_, _>>()?;
    let model = &compilation.model;
    let read = model.files_on_disk().map(Path::to_owned);
    let files = read.chain(rename_files(model));
    files
        .map(|file| {
            let full = absolute(&file)?;
            // The innermost directory decides, because it was meant for this file.
            let below = roots.iter().filter_map(|root| full.strip_prefix(root).ok());
            let below = below.min_by_key(|path| path.components().count());
            match below {
                Some(below) => Ok((file, below.to_owned())),
                None => Err(ExampleError::OutsideFile(file)),
            }
        })
        .collect()
}

/// Returns the absolute path without `.` and `..`.
fn absolute(path: &Path) -> Result<PathBuf, ExampleError> {
    let failed = |source| ExampleError::File {
        what: "find",
        path: path.to_owned(),
        source,
    };
    let full = env::current_dir().map_err(failed)?.join(path);
    let mut plain = PathBuf::new();
    for component in full.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    Ok(plain)
}

fn build_script(options: &PreprocessorOptions, file: &str) -> String {
    let defines = options.define.iter();
    let defines = defines.map(|(name, value)| format!("        .define({name:?}, {value:?})\n"));
    let file = format!("idl/{file}");
    format!(
        "fn main() -> Result<(), chronorb_build::BuildError> {{\n    \
         chronorb_build::configure()\n        .include(\"idl\")\n{}        \
         .owned_servants(true)\n        .compile(&[{file:?}])\n}}\n",
        defines.collect::<String>()
    )
}

fn make_parent(path: &Path) -> Result<(), ExampleError> {
    let dir = path.parent().unwrap_or(path);
    fs::create_dir_all(dir).map_err(|source| ExampleError::File {
        what: "make the directory",
        path: dir.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_the_name_of_the_file_as_far_as_cargo_permits() {
        for (file, name) in [
            ("idl/Quoter.idl", "quoter-example"),
            ("a b.v2.idl", "a-b-v2-example"),
            ("2x.idl", "idl-2x-example"),
            ("_x", "idl-_x-example"),
        ] {
            assert_eq!(package_name(Path::new(file)), name);
        }
    }
}
