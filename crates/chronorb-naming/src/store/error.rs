//! The errors of a store.

use std::io;

use thiserror::Error;

use crate::tree::ChangeError;

/// The reason why a store cannot be opened. The files are as before, except that a record that was
/// never finished may be cut off.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// An operation of the file system failed.
    #[error("{file}: the operation \"{operation}\" failed")]
    Io {
        /// The name of the file.
        file: &'static str,
        /// The operation.
        operation: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{file}: the file is no store of names")]
    Foreign {
        /// The name of the file.
        file: &'static str,
    },
    /// The file has a format of another version.
    #[error("{file}: the file has version {version} of the format; this program reads version 1")]
    Version {
        /// The name of the file.
        file: &'static str,
        /// The version of the file.
        version: u32,
    },
    /// The file was changed or lost data after it was written.
    #[error("{file}: damaged at offset {offset}: {defect}; restore the file from a copy")]
    Damaged {
        /// The name of the file.
        file: &'static str,
        /// The offset of the record that is damaged, in bytes.
        offset: u64,
        /// A description of the damage.
        defect: &'static str,
    },
    /// A change is not possible in the state that the changes before it made.
    #[error("{file}: the record at offset {offset} has a change that is not possible")]
    Change {
        /// The name of the file.
        file: &'static str,
        /// The offset of the record, in bytes.
        offset: u64,
        /// The cause.
        source: ChangeError,
    },
}

/// The reason why changes are not stored. The stored state is as before.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An operation of the file system failed, for example because the disc is full. The store can
    /// be used again.
    #[error("{file}: the operation \"{operation}\" failed")]
    Io {
        /// The name of the file.
        file: &'static str,
        /// The operation.
        operation: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The changes of one group have more than 64 MiB.
    #[error("the changes have {0} bytes, more than a record may have")]
    TooLong(usize),
    /// An earlier failure left the files in an unknown state. All further changes are refused until
    /// the store is opened again.
    #[error("an earlier failure of the disc left the store in doubt; restart the server")]
    Doubtful,
}
