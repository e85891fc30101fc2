//! Completions and manual pages.

use std::fs;
use std::path::Path;

use crate::support::{chronorb, stdout};

#[test]
fn completions_offer_the_commands_that_are_for_people() {
    for shell in ["bash", "fish", "zsh"] {
        let output = chronorb(Path::new("."), &["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let text = stdout(&output);
        for offered in ["doctor", "preprocess", "extern-path"] {
            assert!(text.contains(offered), "{shell}: {offered}");
        }
        for hidden in ["lab-child", "man-pages"] {
            assert!(!text.contains(hidden), "{shell}: {hidden}");
        }
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = chronorb(dir.path(), &["man-pages", "man"]);
    assert_eq!(output.status.code(), Some(0));
    let page = |name: &str| fs::read_to_string(dir.path().join("man").join(name));
    for name in ["chronorb.1", "chronorb-doctor.1", "chronorb-idl-check.1"] {
        let text = page(name).expect(name);
        assert!(text.contains(".SH DESCRIPTION"), "{name}");
    }
    assert!(page("chronorb-lab-child.1").is_err());
}
