//! The files of a store: the operations that it needs, and a directory of the file system.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use thiserror::Error;

/// The files of a directory that belongs to one store alone.
///
/// A name that was created or renamed survives a crash of the machine only after
/// [`sync_dir`](Self::sync_dir), and the content of a file only after [`StoreFile::sync`].
pub trait Files {
    /// An open file.
    type File: StoreFile;

    /// Opens a file to read and write it; `None` if it does not exist.
    ///
    /// # Errors
    /// Those of the file system.
    fn open(&mut self, name: &str) -> io::Result<Option<Self::File>>;

    /// Creates an empty file, or empties the one that exists.
    ///
    /// # Errors
    /// Those of the file system.
    fn create(&mut self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name, in place of the file that has it.
    ///
    /// # Errors
    /// Those of the file system; both names are as before.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// Those of the file system, also if the file does not exist.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Makes the names durable.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync_dir(&mut self) -> io::Result<()>;
}

/// An open file of a store.
pub trait StoreFile {
    /// Returns the length in bytes.
    ///
    /// # Errors
    /// Those of the file system.
    fn length(&self) -> io::Result<u64>;

    /// Reads at an offset, and returns the number of bytes; 0 at the end.
    ///
    /// # Errors
    /// Those of the file system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all data at an offset.
    ///
    /// # Errors
    /// Those of the file system; any part of the data may be written.
    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Shortens the file.
    ///
    /// # Errors
    /// Those of the file system.
    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// Makes the content and the length durable.
    ///
    /// # Errors
    /// Those of the file system. Data that was written since the last success may be lost, even if
    /// another call succeeds.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory of the file system, locked by this process.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    handle: File,
    /// Holds the lock until it is dropped.
    _lock: File,
}

/// The reason why a directory cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// Another process has the lock.
    #[error("another process uses the names in {}; stop it or choose another one", .0.display())]
    Locked(PathBuf),
    /// Another user can replace the files.
    #[error("the directory {} of the names is not safe: {problem}", .path.display())]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// The reason.
        problem: &'static str,
    },
    /// The directory cannot be created, opened or locked.
    #[error("the directory {} of the names cannot be used", .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Directory {
    /// Opens a directory and locks it, so that no second server writes to it. Creates the last
    /// component of the path if it does not exist, for this user alone.
    ///
    /// The directory has to belong to this user or to root, and not every user may write to it.
    ///
    /// # Errors
    /// See [`DirectoryError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DirectoryError> {
        let path = path.as_ref();
        let failure = |source| DirectoryError::Io {
            path: path.to_owned(),
            source,
        };
        create_directory(path).map_err(failure)?;
        let path = path.canonicalize().map_err(failure)?;
        let handle = File::open(&path).map_err(failure)?;
        let metadata = handle.metadata().map_err(failure)?;
        if let Some(problem) = problem_of(metadata.uid(), metadata.mode()) {
            return Err(DirectoryError::Unsafe { path, problem });
        }
        let lock = options()
            .create(true)
            .truncate(false)
            .open(path.join("names.lock"))
            .map_err(failure)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path,
                handle,
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(DirectoryError::Locked(path)),
            Err(TryLockError::Error(source)) => Err(failure(source)),
        }
    }
}

/// Creates a directory whose entry survives a crash.
fn create_directory(path: &Path) -> io::Result<()> {
    let is_new = match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => true,
        Err(_) if path.is_dir() => false,
        Err(error) => return Err(error),
    };
    // A process that ended may have left the entry of an existing directory unsynced, too. The
    // parent of a directory that was there before may be unreadable.
    let parent = path.canonicalize()?.parent().map(Path::to_owned);
    let synced = parent.map_or(Ok(()), |parent| File::open(parent)?.sync_all());
    if is_new { synced } else { Ok(()) }
}

/// Returns the reason why another user can replace files in a directory of this owner and mode.
fn problem_of(owner: u32, mode: u32) -> Option<&'static str> {
    let own = rustix::process::geteuid().as_raw();
    if owner != 0 && owner != own {
        Some("it belongs to another user")
    } else if mode & 0o002 != 0 {
        Some("every user may write to it")
    } else {
        None
    }
}

/// The options of all files: to read and write, and through no symbolic link.
fn options() -> OpenOptions {
    let mut options = File::options();
    options
        .read(true)
        .write(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

impl Files for Directory {
    type File = File;

    fn open(&mut self, name: &str) -> io::Result<Option<File>> {
        match options().open(self.path.join(name)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&mut self, name: &str) -> io::Result<File> {
        let mut options = options();
        options.create(true).truncate(true);
        options.open(self.path.join(name))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

impl StoreFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match FileExt::read_at(self, buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}
