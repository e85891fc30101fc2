//! Compiles every file of `idl/`, and what Debian's `omniorb-idl` has, one module for each.
//!
//! A module takes what its file includes from the modules of the included files, so that each
//! definition is generated once, and every file shows that it can be used from outside.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use chronorb_build::{BuildError, configure};
use chronorb_idl::Options;

const OMNIORB: &str = "/usr/share/idl/omniORB";

/// Files of the services that break rules of CORBA 3; `crates/chronorb-idl/tests/omniidl` tells which.
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
    let (omg, ours) = (repository.join("idl/omg"), repository.join("idl"));
    Set {
        name: "omg",
        folders: vec![omg.clone(), ours],
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
        // Files ask for it where they need what compilers of CORBA 2 do not have.
        defines: &[("__OMNIIDL__", "1")],
        left_out: &WRONG,
    }
    .compile()
}

/// Files that include each other.
struct Set {
    /// The module with their modules.
    name: &'static str,
    /// Where they are, and where includes are searched first. What is not there has no files.
    folders: Vec<PathBuf>,
    /// Where includes are searched then.
    search: Vec<PathBuf>,
    defines: &'static [(&'static str, &'static str)],
    left_out: &'static [&'static str],
}

impl Set {
    fn compile(&self) -> Result<(), BuildError> {
        let out_dir = PathBuf::from(env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?);
        let dir = out_dir.join(self.name);
        write(fs::create_dir_all(&dir), &dir)?;
        let files = self.files();
        if files.is_empty() {
            // `cargo xtask test` installs them; with CHRONORB_PEERS=required it fails where it cannot.
            println!("cargo::warning=NOT RUN: {} has no IDL files", self.name);
        }
        let mut modules = String::new();
        for (module, file) in &files {
            self.generate(file, &dir, &files)?;
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let generated = dir.join(format!("{stem}.rs"));
            let _ = writeln!(
                modules,
                "#[allow(missing_docs)] pub mod {module} {{ include!({generated:?}); }}"
            );
        }
        let path = out_dir.join(format!("{}.rs", self.name));
        write(fs::write(&path, modules), &path)
    }

    /// By the name of the module.
    fn files(&self) -> BTreeMap<String, PathBuf> {
        let mut files = BTreeMap::new();
        for folder in &self.folders {
            println!("cargo::rerun-if-changed={}", folder.display());
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let path = entry.path();
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let is_idl = path.extension().is_some_and(|extension| extension == "idl");
                if is_idl && !self.left_out.contains(&&*stem) {
                    files.entry(module_name(&stem)).or_insert(path);
                }
            }
        }
        files
    }

    fn generate(
        &self,
        file: &Path,
        dir: &Path,
        files: &BTreeMap<String, PathBuf>,
    ) -> Result<(), BuildError> {
        let defines = self.defines.iter();
        let options = Options {
            include_dirs: [&self.folders[..], &self.search].concat(),
            defines: defines
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        let model = chronorb_idl::compile(file, &options)?.model;
        for read in model.files_on_disk() {
            println!("cargo::rerun-if-changed={}", read.display());
        }
        // Warnings about files of others help nobody here.
        let mut builder = configure().out_dir(dir).emit_rerun_if_changed(false);
        for folder in &options.include_dirs {
            builder = builder.include(folder);
        }
        for (name, value) in self.defines {
            builder = builder.define(*name, *value);
        }
        let included = model.files.iter().skip(1);
        for (module, path) in files {
            if included.clone().any(|included| included == path) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                builder = builder.extern_path(name, format!("crate::{}::{module}", self.name));
            }
        }
        builder.compile(&[file])
    }
}

fn module_name(stem: &str) -> String {
    stem.to_lowercase().replace('-', "_")
}

fn write(result: io::Result<()>, path: &Path) -> Result<(), BuildError> {
    result.map_err(|source| BuildError::Write {
        path: path.to_owned(),
        source,
    })
}
