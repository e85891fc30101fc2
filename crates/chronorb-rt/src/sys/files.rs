//! Files that are read or written whole.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The greatest file that [`read_file`] reads: 1 MiB.
pub const MAX_FILE: usize = 1 << 20;

/// Reads a regular file of at most [`MAX_FILE`] octets, and returns it with its metadata.
///
/// The path may come from elsewhere: whatever it names, the call ends and takes little memory.
///
/// # Errors
/// Those of the system; [`io::ErrorKind::InvalidInput`] for a path that names no regular file,
/// [`io::ErrorKind::FileTooLarge`], and [`io::ErrorKind::WouldBlock`] where the system would wait.
pub fn read_file(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    read_file_up_to(path, MAX_FILE)
}

/// Reads a regular file as [`read_file`] does, of at most `most` octets.
///
/// # Errors
/// As [`read_file`].
pub fn read_file_up_to(path: &Path, most: usize) -> io::Result<(Vec<u8>, Metadata)> {
    let error = |kind, problem| Err(io::Error::new(kind, problem));
    let not_regular = "it is not a regular file";
    // Some devices act when they are opened.
    if !fs::metadata(path)?.is_file() {
        return error(io::ErrorKind::InvalidInput, not_regular);
    }
    // The file may be another one by now, and some regular files of /proc wait for data.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return error(io::ErrorKind::InvalidInput, not_regular);
    }
    let mut octets = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut octets)?;
    if octets.len() > most {
        let problem = format!("it is larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok((octets, metadata))
}

/// As [`read_file`], for a text.
///
/// # Errors
/// As [`read_file`], and [`io::ErrorKind::InvalidData`] for a file that is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    read_text_up_to(path, MAX_FILE)
}

/// As [`read_text`], of at most `most` octets.
///
/// # Errors
/// As [`read_text`].
pub fn read_text_up_to(path: &Path, most: usize) -> io::Result<String> {
    let (octets, _) = read_file_up_to(path, most)?;
    String::from_utf8(octets)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Writes a file, in place of its present content.
///
/// A symbolic link at the path is followed only if it belongs to this user or to root: in a
/// directory such as `/tmp` another user can make one that names a file of this user.
///
/// # Errors
/// Those of the system; [`io::ErrorKind::PermissionDenied`] for the symbolic link of another user.
pub fn write_file(path: &Path, octets: &[u8]) -> io::Result<()> {
    let create = |follow: bool| {
        let flags = if follow { 0 } else { libc::O_NOFOLLOW };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        // A pipe that no process reads is not waited for.
        options.custom_flags(flags | libc::O_NONBLOCK | libc::O_NOCTTY);
        options.open(path)
    };
    let mut file = match create(false) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            let owner = fs::symlink_metadata(path)?.uid();
            if owner != 0 && owner != rustix::process::geteuid().as_raw() {
                let problem = "it is a symbolic link of another user";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
            }
            create(true)
        }
        created => created,
    }?;
    rustix::io::ioctl_fionbio(&file, false)?;
    file.write_all(octets)
}

#[cfg(test)]
#[expect(unsafe_code, reason = "a pipe and a lease are made by system calls")]
mod tests {
    use std::ffi::CString;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    use super::*;

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("chronorb-rt-files-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn kind(path: &Path) -> io::ErrorKind {
        read_file(path).map(drop).unwrap_err().kind()
    }

    #[test]
    fn only_regular_files_are_read() {
        let folder = Folder::new("kinds");
        let fifo = folder.0.join("fifo");
        let name = CString::new(fifo.to_str().unwrap()).unwrap();
        // SAFETY: the name is a C string that lives longer than the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for path in [&fifo, &folder.0, Path::new("/dev/zero")] {
            assert_eq!(kind(path), io::ErrorKind::InvalidInput, "{path:?}");
        }
        assert_eq!(kind(&folder.0.join("none")), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_has_at_most_a_mebibyte() {
        let folder = Folder::new("size");
        let path = folder.0.join("file");
        fs::write(&path, vec![b'x'; MAX_FILE]).unwrap();
        assert_eq!(read_text(&path).unwrap().len(), MAX_FILE);
        fs::write(&path, vec![b'x'; MAX_FILE + 1]).unwrap();
        assert_eq!(kind(&path), io::ErrorKind::FileTooLarge);
        fs::write(&path, [0xff]).unwrap();
        let error = read_text(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_file_is_written_through_own_links_alone() {
        let folder = Folder::new("write");
        let (path, link) = (folder.0.join("file"), folder.0.join("link"));
        write_file(&path, b"a longer text").unwrap();
        write_file(&path, b"text").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_file(&link, b"other").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"other");
        write_file(Path::new("/dev/null"), b"text").unwrap();
        // Only root can make the link of another user.
        if std::os::unix::fs::lchown(&link, Some(65_534), None).is_ok() {
            let refused = write_file(&link, b"third").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(fs::read(&path).unwrap(), b"other");
        }
    }

    /// The constant of `fcntl.h`, which libc lacks.
    const F_SETSIG: i32 = 10;

    /// The kernel makes openers wait for the holder of a lease, up to 45 s, unless they use
    /// `O_NONBLOCK`.
    #[test]
    fn no_file_is_waited_for() {
        let folder = Folder::new("lease");
        let path = folder.0.join("file");
        let file = File::create(&path).unwrap();
        let fd = file.as_raw_fd();
        // SAFETY: these commands take integers. The signal, which is ignored, is that of SIGURG.
        let leased = unsafe {
            libc::fcntl(fd, F_SETSIG, libc::SIGURG) == 0
                && libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK) == 0
        };
        assert!(leased, "{}", io::Error::last_os_error());
        assert_eq!(kind(&path), io::ErrorKind::WouldBlock);
    }
}
