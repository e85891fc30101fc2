//! The other ORBs and tools that tests use: what they need, and how to get it.

use std::path::Path;
use std::process::Command;

use crate::run::{Failure, ask, run};

/// Something that tests use and Rust does not bring.
struct Peer {
    /// The purpose of the package.
    purpose: &'static str,
    /// The Debian packages that bring it.
    packages: &'static [&'static str],
}

const PEERS: &[Peer] = &[
    Peer {
        purpose: "calls to and from omniORB",
        packages: &[
            "g++",
            "make",
            "omniorb",
            "omniidl",
            "libomniorb4-dev",
            "omniorb-nameserver",
        ],
    },
    Peer {
        purpose: "comparing the IDL compiler with omniidl, and building all of omniORB's services",
        packages: &["omniidl", "omniorb-idl"],
    },
    Peer {
        purpose: "calls to and from JacORB, which Maven gets, and groups on several machines",
        packages: &["openjdk-17-jdk-headless", "maven", "iproute2"],
    },
    Peer {
        purpose: "counting the instructions of a call",
        packages: &["valgrind"],
    },
    Peer {
        purpose: "checking captured traffic with tshark's GIOP dissector",
        packages: &["tshark"],
    },
];

/// Installs what is missing where it can, and says what had to be left out.
///
/// With `CHRONORB_PEERS=required` leaving out is a failure.
pub(crate) fn provide() -> Result<Vec<String>, Failure> {
    let missing = missing();
    if !missing.is_empty() && can_install() {
        install(&missing)?;
    }
    mount_tracefs();
    let left_out: Vec<String> = PEERS
        .iter()
        .filter(|peer| peer.packages.iter().any(|package| !is_installed(package)))
        .map(|peer| {
            let packages = peer.packages.join(" ");
            format!(
                "{} (install with: apt-get install {packages})",
                peer.purpose
            )
        })
        .collect();
    if are_required() && !left_out.is_empty() {
        return Err(Failure(format!(
            "CHRONORB_PEERS=required, and missing are: {}",
            left_out.join("; ")
        )));
    }
    print(&left_out);
    Ok(left_out)
}

/// Mounts the file system of the kernel's tracer, which not each machine does at its start. A test
/// that finds none says so.
fn mount_tracefs() {
    let folder = "/sys/kernel/tracing";
    if can_install() && !Path::new(folder).join("events").exists() {
        let _ = ask("mount", &["-t", "tracefs", "tracefs", folder]);
    }
}

/// Prints what is left out.
pub(crate) fn print(left_out: &[String]) {
    for what in left_out {
        println!("left out: {what}");
    }
}

/// Whether a missing peer is a failure.
pub(crate) fn are_required() -> bool {
    std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required")
}

/// Installs the packages that a job cannot do without.
///
/// # Errors
/// They are missing, and cannot be installed.
pub(crate) fn install_all(packages: &[&str]) -> Result<(), Failure> {
    let is_missing = |package: &&str| !is_installed(package);
    let missing: Vec<&str> = packages.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if can_install() {
        return install(&missing);
    }
    let missing = missing.join(" ");
    Err(Failure(format!(
        "packages are missing: apt-get install {missing}"
    )))
}

/// Whether programs with omniORB can be built.
pub(crate) fn has_omniorb() -> bool {
    ["g++", "make", "omniidl", "libomniorb4-dev"]
        .into_iter()
        .all(is_installed)
}

fn missing() -> Vec<&'static str> {
    PEERS
        .iter()
        .flat_map(|peer| peer.packages)
        .copied()
        .filter(|package| !is_installed(package))
        .collect()
}

fn install(packages: &[&str]) -> Result<(), Failure> {
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    run(apt().args(["update", "--quiet"]))?;
    run(apt()
        .args(["install", "--yes", "--quiet", "--no-install-recommends"])
        .args(packages))
}

fn is_installed(package: &str) -> bool {
    ask(
        "dpkg-query",
        &["--show", "--showformat=${db:Status-Status}", package],
    )
    .is_some_and(|status| status == "installed")
}

/// Whether this is root on a system with apt-get.
fn can_install() -> bool {
    ask("id", &["-u"]).is_some_and(|id| id == "0") && ask("apt-get", &["--version"]).is_some()
}
