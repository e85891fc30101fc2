//! Where the paths of local protocols mean something: on one machine, since its start, among the
//! processes that see the same files.

use std::fs;
use std::sync::OnceLock;

use chronorb_giop::{Place as Name, TAG_PLACE};

use super::Place;

/// For protocols whose addresses are files of this machine.
pub(super) const OF_FILES: Place = Place {
    component: || Name(here()?.to_owned()).tagged().ok(),
    is_here: |components| {
        let told = components.iter().find(|told| told.tag == TAG_PLACE);
        // Other ORBs do not tell, and a process that cannot know where it is tries.
        match (told, here()) {
            (Some(told), Some(here)) => Name::decode(&told.data).is_ok_and(|told| told.0 == here),
            _ => true,
        }
    },
};

/// A name of this place that no other one has; `None` where `/proc` does not tell.
fn here() -> Option<&'static str> {
    static HERE: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let files = fs::read_link("/proc/self/ns/mnt").ok()?;
        Some(format!("{} {}", start.trim(), files.display()))
    };
    HERE.get_or_init(read).as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_knows_itself_and_no_other() {
        let here = (OF_FILES.component)().expect("proc is mounted");
        assert!((OF_FILES.is_here)(std::slice::from_ref(&here)));
        let elsewhere = Name("another".to_owned()).tagged().expect("it fits");
        assert!(!(OF_FILES.is_here)(&[elsewhere]));
    }

    #[test]
    fn who_does_not_tell_may_be_here() {
        assert!((OF_FILES.is_here)(&[]));
    }
}
