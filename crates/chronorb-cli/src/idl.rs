//! `chronorb idl`: checking IDL and compiling it to Rust.

use std::env;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use chronorb_build::BuildError;
use chronorb_idl::{Diagnostics, Options};

use crate::arguments::IdlInput;

/// Checks all files and shows what is wrong or remarkable.
pub(crate) fn check(input: &IdlInput) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for file in &input.files {
        match chronorb_idl::compile(file, &input.options()) {
            Ok(compilation) => {
                show(&compilation.warnings);
                println!("{}: no errors", file.display());
            }
            Err(failure) => {
                show(&failure.diagnostics);
                status = ExitCode::FAILURE;
            }
        }
    }
    status
}

/// Compiles all files to Rust, or shows what is wrong with them and writes nothing.
pub(crate) fn rust(input: &IdlInput, out: &Path) -> ExitCode {
    // The builder ends at the first wrong file; people want to see the errors of all.
    let mut all_correct = true;
    for file in &input.files {
        if let Err(failure) = chronorb_idl::compile(file, &input.options()) {
            show(&failure.diagnostics);
            all_correct = false;
        }
    }
    if !all_correct {
        return ExitCode::FAILURE;
    }
    let is_new = !out.exists();
    if let Err(error) = fs::create_dir_all(out) {
        eprintln!(
            "chronorb: cannot make the directory {}: {error}",
            out.display()
        );
        return ExitCode::FAILURE;
    }
    match build(input, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if is_new {
                // It is empty; if it is not, somebody else needs it.
                let _ = fs::remove_dir(out);
            }
            eprintln!("chronorb: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build(input: &IdlInput, out: &Path) -> Result<(), BuildError> {
    let mut builder = chronorb_build::configure()
        .out_dir(out)
        .emit_rerun_if_changed(false);
    for dir in &input.include {
        builder = builder.include(dir);
    }
    for (name, value) in &input.define {
        builder = builder.define(name, value);
    }
    builder.compile(&input.files)
}

impl IdlInput {
    fn options(&self) -> Options {
        Options {
            include_dirs: self.include.clone(),
            defines: self.define.clone(),
        }
    }
}

/// Shows diagnostics, with colours where people see them and want them.
fn show(diagnostics: &Diagnostics) {
    let wants_color = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    eprint!(
        "{}",
        diagnostics.render(wants_color && io::stderr().is_terminal())
    );
}
