//! The distribution: the stripped command, its manual pages and completions, a Debian package of
//! them and of units of systemd, the book as HTML, and checksums.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::packages::{failure, read, remove, version, write};
use crate::run::{self, Failure, ask, root};

/// Makes all of it. The option is `--out DIR`. The same commit and compiler make the same files:
/// all times are that of the commit, or `SOURCE_DATE_EPOCH`.
pub(crate) fn dist(options: &[&str]) -> Result<(), Failure> {
    let out = match options {
        [] => run::target_dir().join("dist-out"),
        ["--out", dir] => root().join(dir),
        _ => return Err(Failure("dist: the one option is --out DIR".to_owned())),
    };
    let dist = Dist {
        version: version(&read(&root().join("Cargo.toml"))?)?,
        epoch: epoch()?,
        out,
    };
    remove(&dist.out)?;
    make(&dist.out)?;
    progress("builds the command, profile dist, stripped");
    dist.program()?;
    progress("writes manual pages and completions");
    dist.documents()?;
    progress("collects the licences of dependencies");
    let licences = licences()?;
    write(&dist.out.join(DEPENDENCIES), &licences)?;
    progress("makes the Debian package");
    dist.debian_package()?;
    dist.book()?;
    progress("makes checksums");
    dist.checksums()?;
    dist.print()
}

struct Dist {
    version: String,
    /// In seconds since 1970, as text.
    epoch: String,
    out: PathBuf,
}

impl Dist {
    fn program(&self) -> Result<(), Failure> {
        let build = [
            "build",
            "--locked",
            "--package=chronorb-cli",
            "--profile=dist",
        ];
        let stripped = [
            ("CARGO_PROFILE_DIST_STRIP", "symbols".to_owned()),
            ("CARGO_PROFILE_DIST_DEBUG", "none".to_owned()),
        ];
        run::cargo(&build, &stripped)?;
        copy(
            &run::target_dir().join("dist").join(NAME),
            &self.out.join(NAME),
        )
    }

    fn documents(&self) -> Result<(), Failure> {
        let program = self.out.join(NAME);
        run::run(
            Command::new(&program)
                .arg("man-pages")
                .arg(self.out.join("man")),
        )?;
        for (shell, file) in COMPLETIONS {
            let text = output(Command::new(&program).args(["completions", shell]))?;
            write(&self.out.join("completions").join(file), &text)?;
        }
        Ok(())
    }

    fn debian_package(&self) -> Result<(), Failure> {
        // Its name does not depend on --out, and is not in the package.
        let tree = run::target_dir().join("debian");
        remove(&tree)?;
        let usr = tree.join("usr");
        let doc = usr.join("share/doc").join(NAME);
        copy(&self.out.join(NAME), &usr.join("bin").join(NAME))?;
        for page in files(&self.out.join("man"))? {
            let name = page.file_name().unwrap_or_default();
            let packed = usr.join("share/man/man1").join(name);
            copy(&page, &packed)?;
            gzip(&packed)?;
        }
        for ((_, file), place) in COMPLETIONS.iter().zip(COMPLETION_PLACES) {
            copy(
                &self.out.join("completions").join(file),
                &usr.join("share").join(place),
            )?;
        }
        let units = root().join("crates/chronorb-cli/systemd");
        for unit in UNITS {
            copy(
                &units.join(unit),
                &usr.join("lib/systemd/system").join(unit),
            )?;
        }
        write(&doc.join("copyright"), &copyright()?)?;
        for (name, text) in [
            ("changelog", self.debian_changelog()?),
            (DEPENDENCIES, read(&self.out.join(DEPENDENCIES))?),
        ] {
            write(&doc.join(name), &text)?;
            gzip(&doc.join(name))?;
        }
        let installed = files_below(&usr)?;
        let mut octets = 0;
        let mut sums = Command::new("md5sum");
        sums.current_dir(&tree);
        for file in &installed {
            octets += fs::metadata(file)
                .map_err(|error| failure(file, error))?
                .len();
            sums.arg(file.strip_prefix(&tree).unwrap_or(file));
        }
        write(&tree.join("DEBIAN/md5sums"), &output(&mut sums)?)?;
        let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
        let architecture = architecture.trim();
        let control = self.control(architecture, octets.div_ceil(1024))?;
        write(&tree.join("DEBIAN/control"), &control)?;
        set_modes(&tree)?;
        let package = format!("{NAME}_{}_{architecture}.deb", self.version);
        let mut deb = Command::new("dpkg-deb");
        deb.env("SOURCE_DATE_EPOCH", &self.epoch);
        deb.args(["--root-owner-group", "--build"]).arg(&tree);
        run::run(deb.arg(self.out.join(package)))
    }

    /// Renders the book, where mdBook is installed.
    fn book(&self) -> Result<(), Failure> {
        if ask("mdbook", &["--version"]).is_none() {
            progress("leaves the book out: mdbook is missing (cargo install --locked mdbook)");
            return Ok(());
        }
        progress("renders the book");
        let mut mdbook = Command::new("mdbook");
        mdbook.arg("build").arg(root().join("docs"));
        run::run(mdbook.arg("--dest-dir").arg(self.out.join("book")))
    }

    fn control(&self, architecture: &str, kib: u64) -> Result<String, Failure> {
        let version = &self.version;
        let maintainer = maintainer();
        let depends = self.depends()?;
        Ok(format!(
            "Package: {NAME}\n\
             Version: {version}\n\
             Architecture: {architecture}\n\
             Maintainer: {maintainer}\n\
             Installed-Size: {kib}\n\
             Depends: {depends}\n\
             Section: devel\n\
             Priority: optional\n\
             Description: {DESCRIPTION}\n"
        ))
    }

    /// The packages of the libraries that the program is linked with.
    fn depends(&self) -> Result<String, Failure> {
        // The tool wants the folder of a source package.
        let source = run::target_dir().join("debian-source");
        write(&source.join("debian/control"), &format!("Source: {NAME}\n"))?;
        let mut shlibdeps = Command::new("dpkg-shlibdeps");
        let found = output(
            shlibdeps
                .current_dir(&source)
                .arg("-O")
                .arg(self.out.join(NAME)),
        )?;
        let depends = found.trim().strip_prefix("shlibs:Depends=");
        let depends = depends.map(str::to_owned);
        depends.ok_or_else(|| Failure(format!("dpkg-shlibdeps found {found:?}")))
    }

    fn debian_changelog(&self) -> Result<String, Failure> {
        let date = format!("@{}", self.epoch);
        let date = output(Command::new("date").args(["-u", "-R", "-d", &date]))?;
        let (version, maintainer) = (&self.version, maintainer());
        let date = date.trim();
        Ok(format!(
            "{NAME} ({version}) unstable; urgency=medium\n\n  * Version {version}.\n\n\
             \u{20}-- {maintainer}  {date}\n"
        ))
    }

    fn checksums(&self) -> Result<(), Failure> {
        let mut sums = Command::new("sha256sum");
        sums.current_dir(&self.out);
        for file in files_below(&self.out)? {
            sums.arg(file.strip_prefix(&self.out).unwrap_or(&file));
        }
        write(&self.out.join("SHA256SUMS"), &output(&mut sums)?)
    }

    fn print(&self) -> Result<(), Failure> {
        println!("{}:", self.out.display());
        for file in files(&self.out)? {
            let octets = fs::metadata(&file)
                .map_err(|error| failure(&file, error))?
                .len();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            println!("  {name:<32}{:>10.1} MiB", octets as f64 / 1024.0 / 1024.0);
        }
        Ok(())
    }
}

/// The names, versions and licences of all crates that are linked into the command, with the texts
/// that they come with.
fn licences() -> Result<String, Failure> {
    let cargo = |args: &[&str]| {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        output(cargo.current_dir(root()).args(args))
    };
    let tree = cargo(&[
        "tree",
        "--locked",
        "--package=chronorb-cli",
        "--edges=normal,no-proc-macro",
        "--prefix=none",
        "--format={p}",
    ])?;
    let linked: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or(rest)))
        .collect();
    let metadata = cargo(&["metadata", "--locked", "--format-version=1"])?;
    let metadata: Value = serde_json::from_str(&metadata)
        .map_err(|error| Failure(format!("cargo metadata: {error}")))?;
    let mut text = String::from("The crates that the program is made of, and their licences.\n");
    let of = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    for package in packages {
        let (name, version) = (of(package, "name"), of(package, "version"));
        // Crates without a source are those of this workspace.
        if package["source"].is_null() || !linked.contains(&(name.as_str(), version.as_str())) {
            continue;
        }
        let _ = write!(
            text,
            "\n{}\n\n{name} {version}: {}\n",
            "=".repeat(72),
            of(package, "license")
        );
        let manifest = PathBuf::from(of(package, "manifest_path"));
        for file in files(manifest.parent().unwrap_or(&manifest))? {
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .to_uppercase();
            let is_licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"]
                .iter()
                .any(|start| name.starts_with(start));
            if is_licence {
                let _ = write!(text, "\n--- {name}\n\n{}\n", read(&file)?.trim_end());
            }
        }
    }
    Ok(text)
}

fn copyright() -> Result<String, Failure> {
    let mit = read(&root().join("LICENSE-MIT"))?;
    let holder = mit.lines().find(|line| line.starts_with("Copyright"));
    let holder = holder.unwrap_or("Copyright").replace("(c) ", "");
    let body: String = mit
        .lines()
        .skip_while(|line| !line.starts_with("Permission"))
        .map(|line| {
            if line.is_empty() {
                " .\n".to_owned()
            } else {
                format!(" {line}\n")
            }
        })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: {NAME}\n\
         Comment: {DEPENDENCIES}.gz beside this file has the licences of the crates that are\n\
         \u{20}linked into the program.\n\n\
         Files: *\n\
         {holder}\n\
         License: Expat or Apache-2.0\n\n\
         License: Expat\n{body}\n\
         License: Apache-2.0\n\
         \u{20}See /usr/share/common-licenses/Apache-2.0.\n",
        holder = holder.replacen("Copyright", "Copyright:", 1),
    ))
}

/// Returns the maintainer of the package, from Debian's own variables, or the developers without an
/// address.
fn maintainer() -> String {
    let name =
        std::env::var("DEBFULLNAME").unwrap_or_else(|_| "The chronorb developers".to_owned());
    match std::env::var("DEBEMAIL") {
        Ok(address) => format!("{name} <{address}>"),
        Err(_) => name,
    }
}

fn epoch() -> Result<String, Failure> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let mut git = Command::new("git");
    let epoch = output(git.current_dir(root()).args(["log", "-1", "--format=%ct"]))?;
    Ok(epoch.trim().to_owned())
}

fn progress(what: &str) {
    eprintln!("dist: {what}");
}

/// Returns the standard output of a program.
fn output(command: &mut Command) -> Result<String, Failure> {
    let shown = format!("{command:?}");
    let output = command
        .output()
        .map_err(|error| Failure(format!("{shown}: {error}")))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(Failure(format!("{shown}: {}\n{told}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn gzip(file: &Path) -> Result<(), Failure> {
    output(Command::new("gzip").arg("-9n").arg(file)).map(drop)
}

fn make(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| failure(folder, error))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    make(to.parent().unwrap_or(to))?;
    fs::copy(from, to).map_err(|error| failure(from, error))?;
    Ok(())
}

/// The files in a folder, by their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = entries(folder)?;
    files.retain(|path| path.is_file());
    Ok(files)
}

/// The files in a folder and the folders below it.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| failure(folder, error))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(|error| failure(folder, error))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Sets the permissions of a package's files, whatever the umask is.
fn set_modes(folder: &Path) -> Result<(), Failure> {
    let set = |path: &Path, mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(path, permissions).map_err(|error| failure(path, error))
    };
    set(folder, 0o755)?;
    for path in entries(folder)? {
        if path.is_dir() {
            set_modes(&path)?;
        } else {
            let is_program = folder.ends_with("bin");
            set(&path, if is_program { 0o755 } else { 0o644 })?;
        }
    }
    Ok(())
}

const NAME: &str = "chronorb";
/// The list of the crates that are linked into the program, with their licences.
const DEPENDENCIES: &str = "dependencies.txt";
/// Shells, and the usual names of their files.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "chronorb.bash"),
    ("fish", "chronorb.fish"),
    ("zsh", "_chronorb"),
];
/// The units of systemd. A package installs them, and the operator enables them.
const UNITS: [&str; 2] = ["chronorb-ns.service", "chronorb-ns.socket"];
/// Debian's directories of completions, below `/usr/share`.
const COMPLETION_PLACES: [&str; 3] = [
    "bash-completion/completions/chronorb",
    "fish/vendor_completions.d/chronorb.fish",
    "zsh/vendor-completions/_chronorb",
];
const DESCRIPTION: &str = "command of the real-time CORBA ORB chronorb\n\
 \u{20}An IDL compiler (OMG IDL to Rust, or to a model as JSON), a check of the\n\
 \u{20}machine for what costs latency, a live view of running ORBs, and experiments\n\
 \u{20}that measure whether priorities hold and what calls cost.\n\
 \u{20}.\n\
 \u{20}Programs that use the ORB are built with the Rust crates chronorb and\n\
 \u{20}chronorb-build and do not need this package.";
