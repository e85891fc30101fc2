//! Tests of all checks by tables: `machine.txt` is a machine on which every check is good, and
//! `cases.txt` has changes of it with the verdicts that follow.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ptr;
use std::time::Duration;

use chronorb_net::{Coalescing, Offloads};
use chronorb_rio::{PacketAccess, PacketRights};
use chronorb_rt::{MemoryLock, PriorityRefusal};
use tempfile::TempDir;

use crate::check::{self, Check};
use crate::checks::CHECKS;
use crate::finding::{Finding, Verdict};
use crate::machine::{Link, Machine};

/// The text of a file that cannot be read, not even by root.
pub(crate) const UNREADABLE: &str = "UNREADABLE";
/// The text of a file that does not exist.
const ABSENT: &str = "ABSENT";

/// A machine of files in a temporary folder.
pub(crate) struct Fixture {
    pub(crate) machine: Machine,
    folder: TempDir,
}

impl Fixture {
    /// A machine that has these files and no others.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let mut fixture = Self {
            machine: Machine::below(folder.path()),
            folder,
        };
        for (path, text) in files {
            fixture.set(path, text);
        }
        fixture
    }

    /// The machine on which every check is good.
    pub(crate) fn tuned() -> Self {
        let mut fixture = Self::new(&[]);
        fixture.tune(|_| true);
        fixture
    }

    /// Sets the files for which `wanted` holds, and all answers, as on the tuned machine.
    fn tune(&mut self, wanted: impl Fn(&str) -> bool) {
        let lines = include_str!("machine.txt").lines();
        for line in lines.filter(|line| !line.starts_with('#')) {
            if !line.starts_with('/') || wanted(line) {
                self.change(line);
            }
        }
    }

    /// Undoes changes of the tuned machine.
    fn undo(&mut self, changes: &[String]) {
        self.machine.links.clear();
        let paths = changes.iter().filter_map(|change| {
            let path = change
                .strip_prefix('-')
                .unwrap_or(change)
                .split(" =")
                .next();
            path.filter(|path| path.starts_with('/'))
        });
        let paths: Vec<_> = paths.collect();
        for path in &paths {
            self.set(path, ABSENT);
        }
        self.tune(|line| paths.iter().any(|path| line.starts_with(path)));
    }

    /// Applies a change `file = text` or `-file`.
    fn change(&mut self, change: &str) {
        if let Some(path) = change.strip_prefix("-/") {
            return self.set(&format!("/{path}"), ABSENT);
        }
        let (name, text) = change.split_once(" =").expect(change);
        let text = text.strip_prefix(' ').unwrap_or(text);
        let text = text
            .replace("\\n", "\n")
            .replace("\\t", "\t")
            .replace("\\0", "\0");
        self.set(name, &text);
    }

    fn set(&mut self, name: &str, text: &str) {
        if !name.starts_with('/') {
            return self.set_answer(name, text);
        }
        let path = self.folder.path().join(name.trim_start_matches('/'));
        // A directory can be opened, but not read like a file.
        let removed = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        let removed = removed.map_err(|error| error.kind());
        assert!(
            matches!(removed, Ok(()) | Err(io::ErrorKind::NotFound)),
            "{name}"
        );
        match text {
            ABSENT => {}
            UNREADABLE => fs::create_dir_all(&path).expect(name),
            text => {
                fs::create_dir_all(path.parent().expect(name)).expect(name);
                fs::write(&path, text).expect(name);
            }
        }
    }

    /// Replaces the answer of the kernel to a call.
    fn set_answer(&mut self, name: &str, text: &str) {
        let machine = &mut self.machine;
        let number = || text.parse().expect(text);
        let words: Vec<_> = text.split(' ').collect();
        match name.split_once(' ').unwrap_or((name, "")) {
            ("max_fifo", _) => {
                machine.rights.max_fifo = (text != "none").then(|| text.parse().expect(text));
                machine.rights.refusal = None;
            }
            ("refusal", _) => {
                machine.rights.refusal = Some(match text {
                    "no right" => PriorityRefusal::NoRight,
                    _ => PriorityRefusal::ControlGroup,
                });
            }
            ("memory_lock", _) => {
                machine.rights.memory_lock = match text {
                    "unlimited" => MemoryLock::Unlimited,
                    "none" => MemoryLock::None,
                    _ => MemoryLock::Limited(number()),
                };
            }
            ("timer_resolution_ns", _) => {
                machine.timer_resolution = Duration::from_nanos(number());
            }
            ("packets", _) => {
                let access = |word| match word {
                    "granted" => PacketAccess::Granted,
                    "denied" => PacketAccess::Denied,
                    _ => PacketAccess::Absent(97),
                };
                machine.packets = PacketRights {
                    xdp_socket: access(words[0]),
                    xdp_program: access(words[1]),
                    packet_socket: access(words[2]),
                };
            }
            ("offloads", interface) => {
                let offloads = Offloads {
                    generic_receive: words.contains(&"gro"),
                    large_receive: words.contains(&"lro"),
                    tcp_segmentation: words.contains(&"tso"),
                    generic_segmentation: words.contains(&"gso"),
                };
                self.link(interface).offloads = readable(text, offloads);
            }
            ("coalescing", interface) => {
                let number = |index: usize| words.get(index).and_then(|word| word.parse().ok());
                let coalescing = Coalescing {
                    receive_us: number(0).unwrap_or_default(),
                    receive_frames: number(1).unwrap_or_default(),
                    adaptive_receive: words.contains(&"adaptive"),
                };
                self.link(interface).coalescing = readable(text, coalescing);
            }
            ("disciplines", _) => {
                let pairs = text.split(", ").filter_map(|pair| pair.split_once(' '));
                let pairs =
                    pairs.map(|(index, kind)| (index.parse().expect(text), kind.to_owned()));
                machine.disciplines = readable(text, pairs.collect());
            }
            _ => panic!("{name} is neither a path nor a call"),
        }
    }

    fn link(&mut self, interface: &str) -> &mut Link {
        let links = &mut self.machine.links;
        links.entry(interface.to_owned()).or_insert_with(|| Link {
            offloads: Err(String::new()),
            coalescing: Err(String::new()),
        })
    }
}

fn readable<T>(text: &str, value: T) -> Result<T, String> {
    if text == UNREADABLE {
        Err("not permitted".to_owned())
    } else {
        Ok(value)
    }
}

fn check_of(id: &str) -> &'static Check {
    CHECKS.iter().find(|check| check.id == id).expect(id)
}

/// Runs a check, and sees that its finding is complete.
fn run(check: &Check, machine: &Machine) -> Finding {
    let finding = check.run(machine);
    let is_good = finding.verdict == Verdict::Good;
    assert_eq!(finding.cost.is_none(), is_good, "{finding:?}");
    assert_eq!(finding.remedy.is_none(), is_good, "{finding:?}");
    assert!(!finding.found.is_empty(), "{finding:?}");
    assert!(
        finding.remedy.iter().all(|remedy| !remedy.is_empty()),
        "{finding:?}"
    );
    finding
}

#[test]
fn each_case_has_its_verdict() {
    let mut section = ("", "");
    let mut used = BTreeSet::new();
    let mut fixture = Fixture::tuned();
    for line in include_str!("cases.txt").lines() {
        let Some((own, expected)) = line.split_once("=> ") else {
            let header = line
                .strip_prefix('[')
                .and_then(|line| line.split_once("] "));
            section = header.unwrap_or(section);
            continue;
        };
        let (id, header) = section;
        let (file, shared) = header.split_once(" & ").unwrap_or((header, ""));
        let shared = shared.split(" & ").filter(|change| !change.is_empty());
        let mut changes: Vec<_> = shared.map(str::to_owned).collect();
        for (index, change) in own.strip_suffix(' ').unwrap_or(own).split("& ").enumerate() {
            let change = change.strip_suffix(' ').unwrap_or(change);
            let is_text = index == 0 && !change.contains(" =") && !change.starts_with("-/");
            changes.push(if is_text {
                format!("{file} = {change}")
            } else {
                change.to_owned()
            });
        }
        changes.iter().for_each(|change| fixture.change(change));
        let finding = run(check_of(id), &fixture.machine);
        let (verdict, part) = expected.split_once(": ").unwrap_or((expected, ""));
        assert_eq!(
            finding.verdict,
            check::verdict(verdict),
            "[{id}] {line}\n{finding:?}"
        );
        let texts = [
            Some(&finding.found),
            finding.cost.as_ref(),
            finding.remedy.as_ref(),
        ];
        let texts = texts.map(|text| text.map_or("", String::as_str)).join("\n");
        assert!(
            texts.contains(&part.replace("\\n", "\n")),
            "[{id}] {line}\n{texts}"
        );
        let rules = check_of(id).rules_applied(&fixture.machine);
        used.extend(rules.map(ptr::from_ref));
        fixture.undo(&changes);
    }
    for check in CHECKS.iter() {
        for rule in &check.rules {
            let is_used = used.contains(&ptr::from_ref(rule));
            assert!(is_used, "{}: no case for {rule:?}", check.id);
        }
    }
}

#[test]
fn every_check_is_good_on_a_tuned_machine() {
    let fixture = Fixture::tuned();
    for check in CHECKS.iter() {
        let finding = run(check, &fixture.machine);
        assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
    }
}

#[test]
fn checks_have_ids_of_their_own_and_titles_that_fit() {
    let ids: BTreeSet<_> = CHECKS.iter().map(|check| check.id).collect();
    assert_eq!(ids.len(), CHECKS.len());
    for check in CHECKS.iter() {
        assert!(check.title.chars().count() <= 20, "{}", check.title);
    }
}

#[test]
fn a_machine_without_files_only_has_answers_to_calls() {
    let fixture = Fixture::new(&[]);
    let called = [
        "rt-priorities",
        "memory-lock",
        "timer-resolution",
        "real-time-io",
    ];
    for check in CHECKS.iter().filter(|check| !called.contains(&check.id)) {
        let finding = run(check, &fixture.machine);
        assert!(finding.found.contains("does not exist"), "{finding:?}");
    }
}

#[test]
fn this_machine_can_be_examined() {
    let machine = Machine::this();
    assert!(!machine.allowed_cpus().unwrap().is_empty());
    for check in CHECKS.iter() {
        run(check, &machine);
    }
}
