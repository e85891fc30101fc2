//! References in files, and other texts that name them.

use std::fs;
use std::path::Path;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_orb::{Orb, OrbConfig};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

const TEXT: &str = "corbaloc::127.0.0.1:2809/Radar";

fn orb(change: impl FnOnce(&mut OrbConfig)) -> Orb {
    let mut config = OrbConfig::default();
    change(&mut config);
    Orb::with_config(config).expect("it starts")
}

/// Returns a folder with a reference in the file `good`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("good"), format!(" {TEXT}\n")).expect("it is written");
    folder
}

fn url(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn bad_param(minor: u32) -> SystemException {
    SystemException::no(SystemExceptionKind::BadParam, minor)
}

#[test]
fn a_file_with_a_reference_is_small_and_regular() {
    let orb = orb(|_| {});
    let folder = folder();
    let good = orb.string_to_object(&url(&folder.path().join("good")));
    assert_eq!(good.expect("it reads").ior().profiles.len(), 1);

    let fifo = folder.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).expect("it is made");
    let large = folder.path().join("large");
    fs::write(&large, format!("{TEXT}{}", " ".repeat(1 << 20))).expect("it is written");
    for path in [&fifo, &large, Path::new("/dev/zero"), folder.path()] {
        let refused = orb.string_to_object(&url(path)).map(drop);
        assert_eq!(refused, Err(bad_param(minor::STRING_TO_OBJECT)), "{path:?}");
    }
}

#[test]
fn a_configuration_file_is_small_and_regular() {
    let folder = folder();
    let file = folder.path().join("orb.toml");
    let read = |path: &Path| {
        let path = path.display().to_string();
        OrbConfig::read(&mut vec!["-ORBConfigFile".to_owned(), path])
    };
    fs::write(&file, "threads = 3\n").expect("it is written");
    assert_eq!(read(&file).expect("it reads").threads, 3.into());
    fs::write(&file, format!("threads = 3\n#{}", "x".repeat(1 << 20))).expect("it is written");
    let large = read(&file).expect_err("it is refused").to_string();
    assert!(large.contains("larger than 1 MiB"), "{large}");
    let endless = read(Path::new("/dev/zero")).expect_err("it is refused");
    assert!(
        endless.to_string().contains("not a regular file"),
        "{endless}"
    );
}

#[test]
fn texts_of_others_name_no_files_where_that_is_refused() {
    let folder = folder();
    let file = url(&folder.path().join("good"));
    let refusing = orb(|config| {
        config.file_references = false;
        config.init_refs = vec![("Radar".to_owned(), file.clone())];
        config.default_init_ref = Some(url(folder.path()));
    });
    let refused = Err(bad_param(minor::BAD_SCHEME));
    let of = |text: &str| refusing.string_to_object(text).map(drop);
    assert_eq!(of(&file), refused);
    assert_eq!(of("corbaloc:rir:/good"), refused);
    assert_eq!(of(TEXT), Ok(()));
    assert_eq!(
        of("corbaloc:rir:/Radar"),
        Ok(()),
        "the operator named the file"
    );
    assert!(refusing.resolve_initial_references("Radar").is_ok());

    let trusting = orb(|config| config.default_init_ref = Some(url(folder.path())));
    assert!(trusting.string_to_object("corbaloc:rir:/good").is_ok());
}
