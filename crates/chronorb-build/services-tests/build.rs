//! Compiles every IDL file of the compiler, the laboratory and `interop/`, and those of Debian's
//! `omniorb-idl`, one module for each.
//!
//! Each file is generated once, and uses the modules of the files that it includes.

use std::path::{Path, PathBuf};
use std::{env, fs};

use chronorb_build::{BuildError, configure};

const OMNIORB: &str = "/usr/share/idl/omniORB";

/// Files of the services that break rules of CORBA 3; see `crates/chronorb-idl/tests/omniidl`.
const WRONG: [&str; 9] = [
    "CosTSPortability",
    "NRService",
    "SECIOP",
    "SSLIOP",
    "Security",
    "SecurityAdmin",
    "SecurityLevel1",
    "SecurityLevel2",
    "SecurityReplaceable",
];

fn main() -> Result<(), BuildError> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let [omg, laboratory, interop] = [
        "crates/chronorb-idl/idl",
        "crates/chronorb-lab/idl",
        "interop/chronorb-interop/idl",
    ]
    .map(|folder| repository.join(folder));
    Set {
        name: "omg",
        folders: vec![omg.clone(), laboratory, interop],
        search: Vec::new(),
        defines: &[],
        left_out: &[],
    }
    .compile()?;
    let omniorb = PathBuf::from(OMNIORB);
    Set {
        name: "omniorb",
        folders: vec![omniorb.join("COS"), omniorb],
        search: vec![omg],
        // Files test this macro if they need extensions of omniidl.
        defines: &[("__OMNIIDL__", "1")],
        left_out: &WRONG,
    }
    .compile()
}

/// Files that include each other.
struct Set {
    /// The module with their modules.
    name: &'static str,
    /// The directories of the files, which are searched first for includes. A missing directory has
    /// no files.
    folders: Vec<PathBuf>,
    /// Further directories for includes.
    search: Vec<PathBuf>,
    defines: &'static [(&'static str, &'static str)],
    left_out: &'static [&'static str],
}

impl Set {
    fn compile(&self) -> Result<(), BuildError> {
        let out_dir = PathBuf::from(env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?);
        let dir = out_dir.join(self.name);
        fs::create_dir_all(&dir).map_err(|source| BuildError::Write {
            path: dir.clone(),
            source,
        })?;
        let files = self.files();
        if files.is_empty() {
            // `cargo xtask test` installs them; with CHRONORB_PEERS=required it fails where it
            // cannot.
            println!("cargo::warning=NOT RUN: {} has no IDL files", self.name);
        }
        let mut builder = configure()
            .out_dir(dir)
            .shared(format!("crate::{}", self.name))
            // Warnings about third-party files are of no use here.
            .emit_rerun_if_changed(false);
        for folder in self.folders.iter().chain(&self.search) {
            builder = builder.include(folder);
        }
        for (name, value) in self.defines {
            builder = builder.define(*name, *value);
        }
        builder.compile(&files)
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for folder in &self.folders {
            println!("cargo::rerun-if-changed={}", folder.display());
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let path = entry.path();
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let is_idl = path.extension().is_some_and(|extension| extension == "idl");
                if is_idl && !self.left_out.contains(&&*stem) {
                    files.push(path);
                }
            }
        }
        files.sort();
        files
    }
}
