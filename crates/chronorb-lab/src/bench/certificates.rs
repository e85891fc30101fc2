//! An authority and a certificate for the loopback, made for one run by the `openssl` program.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::process::output;

/// A directory with an authority, its certificate for `127.0.0.1` and `localhost`, and the key of
/// that. It is removed on drop.
#[derive(Debug)]
pub(crate) struct Certificates {
    directory: PathBuf,
}

impl Certificates {
    /// Makes the certificates. The error names the remedy.
    pub(crate) fn make() -> Result<Self, String> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("chronorb-lab-{}-tls-{number}", process::id());
        let directory = env::temp_dir().join(name);
        let explain = |error: io::Error| format!("{}: {error}", directory.display());
        let made = DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(explain)?;
        let made = Self { directory };
        made.run(&format!(
            "{REQUEST} /CN=laboratory -keyout authority.key -out {AUTHORITY}"
        ))?;
        made.run(&format!(
            "{REQUEST} /CN=localhost {OF_SERVER} -CA {AUTHORITY} -CAkey authority.key \
             -keyout {KEY} -out {CERTIFICATE}"
        ))?;
        Ok(made)
    }

    /// Returns the directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn run(&self, arguments: &str) -> Result<(), String> {
        let mut command = Command::new("openssl");
        command
            .args(arguments.split(' '))
            .current_dir(&self.directory);
        let output = output(&mut command)
            .map_err(|error| format!("openssl cannot be run: {error}. {REMEDY}"))?;
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "openssl cannot make certificates: {}",
            errors.trim_end()
        ))
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        // A failure leaves a temporary directory behind, and nothing else.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The names of the files.
pub(crate) const AUTHORITY: &str = "authority.pem";
pub(crate) const CERTIFICATE: &str = "server.pem";
pub(crate) const KEY: &str = "server.key";

/// The number of directories that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

const REQUEST: &str =
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj";
const OF_SERVER: &str = "-addext basicConstraints=critical,CA:FALSE -addext \
                         subjectAltName=IP:127.0.0.1,DNS:localhost";
const REMEDY: &str = "On Debian or Ubuntu: apt-get install openssl";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_last_as_long_as_they_are_wanted() {
        let certificates = Certificates::make().expect("openssl is there");
        let directory = certificates.directory().to_owned();
        for file in [AUTHORITY, CERTIFICATE, KEY] {
            let text = fs::read_to_string(directory.join(file)).unwrap();
            assert!(text.starts_with("-----BEGIN"), "{file}");
        }
        drop(certificates);
        assert!(!directory.exists());
    }
}
