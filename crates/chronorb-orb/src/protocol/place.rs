//! The namespace in which the paths of local protocols are valid: one machine, and the processes
//! that see the same files.

use std::fs;
use std::sync::OnceLock;

use chronorb_giop::{Place as Name, TAG_PLACE};

use super::{Place, Source};

/// The place of protocols whose addresses are files of this machine.
pub(super) const OF_FILES: Place = Place {
    component: || Name(here()?.to_owned()).tagged().ok(),
    is_here: |components, source| {
        let told = components.iter().find(|told| told.tag == TAG_PLACE);
        // Other ORBs do not publish it. A process that does not know its own place tries, but not
        // on the word of a message.
        match (told, here()) {
            (Some(told), Some(here)) => {
                Name::decode(&told.data).is_ok_and(|told| is_same(&told.0, here))
            }
            _ => source == Source::Application,
        }
    },
};

/// Whether two names denote one place: the same boot of the same machine, and the same files there.
/// The files before a reboot are unknown; a reference that is older than that is tried.
fn is_same(told: &str, here: &str) -> bool {
    let parts = |name: &'_ str| -> Option<[String; 3]> {
        let parts: Vec<_> = name.splitn(3, ' ').map(str::to_owned).collect();
        parts.try_into().ok()
    };
    match (parts(told), parts(here)) {
        (Some([start, machine, files]), Some(here)) => {
            if start == here[0] {
                files == here[2]
            } else {
                machine == here[1] && machine != UNKNOWN
            }
        }
        _ => told == here,
    }
}

/// Returns the unique name of this place: the boot, the machine, and the visible files; `None` if
/// `/proc` does not tell.
fn here() -> Option<&'static str> {
    static HERE: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let files = fs::read_link("/proc/self/ns/mnt").ok()?;
        // machine-id(5); in a container it may be missing or empty.
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let machine = match machine.trim() {
            id if id.is_empty() || id.contains(' ') => UNKNOWN,
            id => id,
        };
        Some(format!("{} {machine} {}", start.trim(), files.display()))
    };
    HERE.get_or_init(read).as_deref()
}

const UNKNOWN: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_knows_itself_and_no_other() {
        let here = (OF_FILES.component)().expect("proc is mounted");
        let here = std::slice::from_ref(&here);
        assert!((OF_FILES.is_here)(here, Source::Message(None)));
        let elsewhere = Name("another".to_owned()).tagged().expect("it fits");
        assert!(!(OF_FILES.is_here)(&[elsewhere], Source::Application));
    }

    #[test]
    fn references_outlive_the_start_of_their_machine_and_reach_no_other() {
        for (told, is_here) in [
            ("s m f", true),
            ("s - f", true),
            ("s m g", false),
            ("t m f", true),
            ("t m g", true),
            ("t n f", false),
            ("t - f", false),
            ("s", false),
            ("", false),
        ] {
            assert_eq!(is_same(told, "s m f"), is_here, "{told}");
        }
        assert!(!is_same("t - f", "s - f"));
    }

    #[test]
    fn a_profile_without_a_place_may_be_here_but_not_on_the_word_of_a_message() {
        assert!((OF_FILES.is_here)(&[], Source::Application));
        assert!(!(OF_FILES.is_here)(&[], Source::Message(None)));
    }
}
