//! Certificates and keys in files.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use chronorb_rt::read_file;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use super::TlsConfigError;

/// The certificates of a file, in their order. At least one.
pub(super) fn certificates(
    file: &Path,
    what: &'static str,
) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let (octets, _) = read_file(file).map_err(|source| unreadable(file, what, source))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&octets).collect();
    let all = all.map_err(|problem| malformed(file, what, problem))?;
    if all.is_empty() {
        return Err(missing(file, what));
    }
    Ok(all)
}

/// The lists of revoked certificates of a file. At least one.
pub(super) fn revocation_lists(
    file: &Path,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsConfigError> {
    let what = "list of revoked certificates";
    let (octets, _) = read_file(file).map_err(|source| unreadable(file, what, source))?;
    let all: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&octets).collect();
    let all = all.map_err(|problem| malformed(file, what, problem))?;
    if all.is_empty() {
        return Err(missing(file, what));
    }
    Ok(all)
}

/// The private key of a file that others cannot read.
pub(super) fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
    let what = "private key";
    let (octets, exposed) = read_secret(file).map_err(|source| unreadable(file, what, source))?;
    let key = PrivateKeyDer::from_pem_slice(&octets);
    // A file without a key, such as that of the certificate, has nothing to hide.
    if let Some(mode) = exposed
        && (is_encrypted(&octets) || !matches!(key, Err(pem::Error::NoItemsFound)))
    {
        return Err(TlsConfigError::Exposed {
            file: file.to_owned(),
            mode,
        });
    }
    match key {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) if is_encrypted(&octets) => Err(TlsConfigError::Encrypted {
            file: file.to_owned(),
        }),
        Err(pem::Error::NoItemsFound) => Err(missing(file, what)),
        Err(problem) => Err(malformed(file, what, problem)),
    }
}

/// The file's octets, and its mode if it is this user's, and others have rights to it.
fn read_secret(file: &Path) -> io::Result<(Vec<u8>, Option<u32>)> {
    let (octets, about) = read_file(file)?;
    let mode = about.permissions().mode() & 0o7777;
    let is_own = about.uid() == rustix::process::getuid().as_raw();
    Ok((octets, (is_own && mode & 0o077 != 0).then_some(mode)))
}

/// Both forms of keys with a passphrase show it in their clear part.
fn is_encrypted(octets: &[u8]) -> bool {
    let mark = b"ENCRYPTED";
    octets.windows(mark.len()).any(|window| window == mark)
}

fn unreadable(file: &Path, what: &'static str, source: io::Error) -> TlsConfigError {
    TlsConfigError::Unreadable {
        file: file.to_owned(),
        what,
        source,
    }
}

fn missing(file: &Path, what: &'static str) -> TlsConfigError {
    TlsConfigError::Missing {
        file: file.to_owned(),
        what,
    }
}

pub(super) fn malformed(file: &Path, what: &'static str, problem: impl ToString) -> TlsConfigError {
    TlsConfigError::Malformed {
        file: file.to_owned(),
        what,
        problem: problem.to_string(),
    }
}
