//! An authority and a certificate for the loopback, made for one run by the `openssl` program.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory with an authority, a certificate for `127.0.0.1` and `localhost` that it vouches for, and the key of
/// that. Dropping it removes them.
#[derive(Debug)]
pub(crate) struct Certificates {
    directory: PathBuf,
}

impl Certificates {
    /// Makes them, or says why not and what to do about it.
    pub(crate) fn make() -> Result<Self, String> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("chronorb-lab-{}-tls-{number}", process::id());
        let directory = env::temp_dir().join(name);
        let explain = |error: io::Error| format!("{}: {error}", directory.display());
        let made = DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(explain)?;
        let made = Self { directory };
        made.run(&format!(
            "{AUTHORITY_OF} -keyout authority.key -out {AUTHORITY}"
        ))?;
        made.run(&format!(
            "{SERVER_OF} -CA {AUTHORITY} -CAkey authority.key -keyout {KEY} -out {CERTIFICATE}"
        ))?;
        Ok(made)
    }

    /// Where they are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn run(&self, arguments: &str) -> Result<(), String> {
        let mut command = Command::new("openssl");
        command
            .args(arguments.split(' '))
            .current_dir(&self.directory);
        let output = command
            .output()
            .map_err(|error| format!("openssl cannot be run: {error}. {REMEDY}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "openssl cannot make certificates: {}",
                String::from_utf8_lossy(&output.stderr).trim_end()
            )),
        }
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        // Who cannot remove them leaves a directory of temporary files, and nothing else.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The files.
pub(crate) const AUTHORITY: &str = "authority.pem";
pub(crate) const CERTIFICATE: &str = "server.pem";
pub(crate) const KEY: &str = "server.key";

/// How many were made in this process.
static MADE: AtomicU32 = AtomicU32::new(0);

const AUTHORITY_OF: &str = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=laboratory";
const SERVER_OF: &str = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:127.0.0.1,DNS:localhost";
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
