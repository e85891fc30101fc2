//! The files of Unix-domain sockets: their permissions, and when they are replaced and removed.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::uds::Unix;
use chronorb_transport::{
    Acceptor, Address, ConnectError, Connection, ListenError, Setup, SocketOptions, Transport,
    parse_endpoints,
};

/// A directory of a test, removed with it.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("chronorb-unix-test-{}-{number}", process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("the name is new");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("socket")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn listen(endpoint: &str) -> Result<Box<dyn Acceptor>, ListenError> {
    let endpoints = parse_endpoints(endpoint).expect("an endpoint");
    let acceptors = Unix.listen(&endpoints[0], Setup::default())?;
    Ok(acceptors.into_iter().next().expect("one acceptor"))
}

fn listen_at(path: &Path) -> Result<Box<dyn Acceptor>, ListenError> {
    listen(&format!("uiop://{}", path.display()))
}

fn connect(path: &str, options: SocketOptions) -> Result<Box<dyn Connection>, ConnectError> {
    let deadline = Deadline::after(Duration::from_secs(60));
    Unix.connect(&Address::Path(path.to_owned()), options.into(), deadline)
}

fn mode(path: &Path) -> u32 {
    let file = fs::symlink_metadata(path).expect("it is there");
    file.permissions().mode() & 0o7777
}

fn refused(path: &Path) -> String {
    let refused = listen_at(path).expect_err("it must not be opened");
    refused.to_string()
}

#[test]
fn the_file_has_the_rights_that_are_asked_for_whatever_the_umask() {
    let directory = Directory::new();
    let path = directory.file();
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let private = listen_at(&path).expect("it opens");
    assert_eq!(mode(&path), 0o600);
    drop(private);
    for (option, expected) in [("0660", 0o660), ("666", 0o666), ("0222", 0o222)] {
        let endpoint = format!("uiop://{}|mode={option}", path.display());
        let _open = listen(&endpoint).expect("it opens");
        assert_eq!(mode(&path), expected);
    }
    rustix::process::umask(before);
}

#[test]
fn a_file_that_was_left_behind_is_replaced() {
    let directory = Directory::new();
    let path = directory.file();
    drop(UnixListener::bind(&path).expect("the name is new"));
    let _acceptor = listen_at(&path).expect("no other listener is there");
    UnixStream::connect(&path).expect("there is a listener");
    let files = fs::read_dir(&directory.0).expect("it is readable");
    assert_eq!(files.count(), 1, "nothing lies about");
}

#[test]
fn a_file_where_somebody_listens_is_left_alone() {
    let directory = Directory::new();
    let path = directory.file();
    let listener = UnixListener::bind(&path).expect("the name is new");
    let before = fs::symlink_metadata(&path).expect("it is there").ino();
    for _ in 0..2 {
        let error = refused(&path);
        assert!(error.contains("another process listens there"), "{error}");
    }
    let after = fs::symlink_metadata(&path).expect("it is there").ino();
    assert_eq!(after, before);
    UnixStream::connect(&path).expect("there is a listener");
    drop(listener);
}

#[test]
fn one_where_somebody_is_about_to_listen_is_left_alone() {
    let directory = Directory::new();
    let path = directory.file();
    drop(UnixListener::bind(&path).expect("the name is new"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("it is ours");
    let error = refused(&path);
    assert!(error.contains("about to listen"), "{error}");
}

#[test]
fn what_is_no_socket_is_never_touched() {
    let directory = Directory::new();
    let path = directory.file();
    fs::write(&path, "important").expect("the name is new");
    let error = refused(&path);
    assert!(error.contains("not a socket"), "{error}");
    assert_eq!(fs::read(&path).expect("it is there"), b"important");

    let link = directory.0.join("link");
    symlink(directory.0.join("nowhere"), &link).expect("the name is new");
    let error = refused(&link);
    assert!(error.contains("not a socket"), "{error}");
    assert!(fs::symlink_metadata(&link).is_ok_and(|file| file.is_symlink()));
}

#[test]
fn the_file_goes_with_the_endpoint() {
    let directory = Directory::new();
    let path = directory.file();
    let acceptor = listen_at(&path).expect("it opens");
    let file = fs::symlink_metadata(&path).expect("it is there");
    assert!(file.file_type().is_socket());
    drop(acceptor);
    assert!(fs::symlink_metadata(&path).is_err());
}

#[test]
fn another_file_in_its_place_stays() {
    let directory = Directory::new();
    let path = directory.file();
    let acceptor = listen_at(&path).expect("it opens");
    fs::remove_file(&path).expect("it is there");
    let listener = UnixListener::bind(&path).expect("the name is free");
    drop(acceptor);
    UnixStream::connect(&path).expect("there is a listener");
    drop(listener);
}

#[test]
fn directories_where_everybody_may_replace_the_file_are_refused() {
    let directory = Directory::new();
    let set = |mode| fs::set_permissions(&directory.0, fs::Permissions::from_mode(mode));
    set(0o777).expect("it is ours");
    let error = refused(&directory.file());
    assert!(error.contains("sticky"), "{error}");
    assert!(!directory.file().exists());
    set(0o1777).expect("it is ours");
    listen_at(&directory.file()).expect("other users cannot replace it");
}

#[test]
fn a_directory_that_is_missing_is_an_error() {
    let directory = Directory::new();
    let error = refused(&directory.0.join("missing/socket"));
    assert!(error.contains("No such file"), "{error}");
}

#[test]
fn a_path_is_published_as_others_can_use_it() {
    let name = format!("chronorb-relative-{}", process::id());
    let acceptor = listen(&format!("uiop://{name}")).expect("it opens");
    let path = acceptor.published()[0].as_path().expect("it is a path");
    let here = std::env::current_dir().expect("it is there");
    assert_eq!(Path::new(path), here.join(name));
}

#[test]
fn without_a_path_a_private_one_is_made_up() {
    let acceptors = [(); 3].map(|()| listen("uiop://").expect("it opens"));
    let mut paths = acceptors.each_ref().map(|acceptor| {
        let path = acceptor.published()[0].as_path().expect("it is a path");
        assert_eq!(mode(Path::new(path)), 0o600);
        path
    });
    paths.sort_unstable();
    assert!(paths.windows(2).all(|two| two[0] != two[1]), "{paths:?}");
}

#[test]
fn names_that_are_no_files_are_possible() {
    let endpoint = format!("uiop://@chronorb-unix-test-{}", process::id());
    let acceptor = listen(&endpoint).expect("the name is new");
    let address = acceptor.published()[0].to_string();
    assert_eq!(format!("uiop://{address}"), endpoint);
    connect(&address, SocketOptions::default()).expect("there is a listener");
    let error = listen(&endpoint).expect_err("the name is taken");
    assert!(error.to_string().contains("in use"), "{error}");
}

#[test]
fn names_that_are_too_long_are_refused_with_their_length() {
    let long = format!("/{}", "a".repeat(200));
    let endpoints = parse_endpoints(&format!("uiop://{long}")).expect("an endpoint");
    let error = Unix.check(&endpoints[0]).expect_err("too long").to_string();
    assert!(error.contains("201 octets"), "{error}");
    let error = connect(&long, SocketOptions::default());
    let error = error.expect_err("too long").to_string();
    assert!(error.contains("201 octets"), "{error}");
}

#[test]
fn buffers_are_as_long_as_asked_for_and_peers_have_numbers() {
    let directory = Directory::new();
    let path = directory.file();
    let _acceptor = listen_at(&path).expect("it opens");
    let options = SocketOptions {
        send_buffer: Some(30_000),
        receive_buffer: Some(20_000),
        ..SocketOptions::default()
    };
    let path = path.to_str().expect("it is UTF-8");
    let connection = connect(path, options).expect("there is a listener");
    let held = connection.options().expect("it is open");
    // The kernel doubles them, for its own book-keeping.
    assert_eq!(held.send_buffer, Some(60_000));
    assert_eq!(held.receive_buffer, Some(40_000));
    let peer = format!("process {}", process::id());
    assert!(connection.peer().starts_with(&peer));
}
