//! What is looked at: files below a root, and what the kernel only tells when it is called.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use chronorb_net::{Coalescing, Netlink, NetlinkError, Offloads};
use chronorb_rio::PacketRights;
use chronorb_rt::{Monotonic, Rights};

use super::cpu_list::CpuList;

/// A machine that can be examined: this one, or one made up of files.
#[derive(Debug)]
pub(super) struct Machine {
    root: PathBuf,
    pub(super) rights: Rights,
    pub(super) packets: PacketRights,
    pub(super) timer_resolution: Duration,
    /// What the interfaces say of themselves, by name.
    pub(super) links: BTreeMap<String, Link>,
    /// The queueing disciplines, the inner ones too: the number of the interface, and the kind.
    pub(super) disciplines: Result<Vec<(u32, String)>, String>,
}

/// What ethtool(8) knows of an interface, or why it does not.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) offloads: Result<Offloads, String>,
    pub(super) coalescing: Result<Coalescing, String>,
}

fn disciplines() -> Result<Vec<(u32, String)>, NetlinkError> {
    let all = Netlink::open()?.all_disciplines()?;
    Ok(all.into_iter().map(|it| (it.index, it.kind)).collect())
}

impl Machine {
    /// The machine that this process runs on.
    pub(super) fn this() -> Self {
        let mut machine = Self {
            root: PathBuf::from("/"),
            rights: Rights::probe(),
            packets: PacketRights::probe(),
            timer_resolution: Monotonic::resolution(),
            links: BTreeMap::new(),
            disciplines: disciplines().map_err(|error| error.to_string()),
        };
        for name in machine.list("/sys/class/net").unwrap_or_default() {
            let link = Link {
                offloads: Offloads::of(&name).map_err(|error| error.to_string()),
                coalescing: Coalescing::of(&name).map_err(|error| error.to_string()),
            };
            machine.links.insert(name, link);
        }
        machine
    }

    /// A machine of files below `root`, whose interfaces are not told.
    #[cfg(test)]
    pub(super) fn below(root: &std::path::Path) -> Self {
        Self {
            root: root.to_owned(),
            rights: Rights::probe(),
            packets: PacketRights::probe(),
            timer_resolution: Duration::from_nanos(1),
            links: BTreeMap::new(),
            disciplines: Ok(Vec::new()),
        }
    }

    /// The text of a file without white space around it; of a long file, its beginning.
    pub(super) fn read(&self, path: &str) -> Result<String, Unreadable> {
        let failed = |error| Unreadable::failed(path, &error);
        let mut octets = Vec::new();
        File::open(self.below_root(path))
            .and_then(|file| file.take(LONGEST).read_to_end(&mut octets))
            .map_err(failed)?;
        Ok(String::from_utf8_lossy(&octets).trim().to_owned())
    }

    /// The one value that a file holds.
    pub(super) fn value<T: FromStr>(&self, path: &str) -> Result<T, Unreadable> {
        let text = self.read(path)?;
        text.parse().map_err(|_| Unreadable::rubbish(path, &text))
    }

    /// The list of CPUs that a file holds; empty where it says `(null)`.
    pub(super) fn cpus(&self, path: &str) -> Result<CpuList, Unreadable> {
        let text = self.read(path)?;
        match text.as_str() {
            "(null)" => Ok(CpuList::default()),
            list => CpuList::parse(list).ok_or_else(|| Unreadable::rubbish(path, list)),
        }
    }

    /// The sorted names in a directory.
    pub(super) fn list(&self, path: &str) -> Result<Vec<String>, Unreadable> {
        let failed = |error| Unreadable::failed(path, &error);
        let mut names = Vec::new();
        for entry in fs::read_dir(self.below_root(path)).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name().to_string_lossy().into());
        }
        names.sort();
        Ok(names)
    }

    /// Whether something is there, readable or not.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.below_root(path).symlink_metadata().is_ok()
    }

    /// The value of the last `name=` on the kernel's command line; nothing where it is not there.
    pub(super) fn boot_option(&self, name: &str) -> Result<Option<String>, Unreadable> {
        let line = self.read("/proc/cmdline")?;
        let words = line.split_whitespace().take_while(|word| *word != "--");
        let values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        Ok(values.last().map(str::to_owned))
    }

    /// The CPUs that this process may use.
    pub(super) fn allowed_cpus(&self) -> Result<CpuList, Unreadable> {
        let path = "/proc/self/status";
        let status = self.read(path)?;
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
            .ok_or_else(|| Unreadable::rubbish(path, &status))?;
        let list = list.trim();
        CpuList::parse(list).ok_or_else(|| Unreadable::rubbish(path, list))
    }

    fn below_root(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// Something could not be read, or not be understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Unreadable {
    path: String,
    cause: Cause,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Cause {
    Absent,
    Denied,
    Failed(String),
    Rubbish(String),
}

impl Unreadable {
    /// The file says something that it should not.
    pub(super) fn rubbish(path: &str, text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(LONGEST_QUOTATION).collect();
        Self {
            path: path.to_owned(),
            cause: Cause::Rubbish(shown),
        }
    }

    /// Whether there is no such file, so that the kernel does not have what it would tell of.
    pub(super) fn is_absent(&self) -> bool {
        self.cause == Cause::Absent
    }

    fn failed(path: &str, error: &io::Error) -> Self {
        Self {
            path: path.to_owned(),
            cause: match error.kind() {
                io::ErrorKind::NotFound => Cause::Absent,
                io::ErrorKind::PermissionDenied => Cause::Denied,
                _ => Cause::Failed(error.to_string()),
            },
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.cause {
            Cause::Absent => write!(f, "{path} does not exist"),
            Cause::Denied => write!(f, "{path} may not be read by this user"),
            Cause::Failed(error) => write!(f, "{path} cannot be read: {error}"),
            Cause::Rubbish(text) => write!(f, "{path} says {text:?}, which makes no sense"),
        }
    }
}

/// More than any file that is read holds of use.
const LONGEST: u64 = 1 << 20;
const LONGEST_QUOTATION: usize = 40;

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, UNREADABLE};
    use super::*;

    #[test]
    fn what_cannot_be_read_is_said_with_its_reason() {
        let fixture = Fixture::new(&[("/a", "seven"), ("/b", UNREADABLE), ("/c", " 7\n")]);
        let machine = &fixture.machine;
        let error = |path| machine.value::<u32>(path).unwrap_err();
        assert_eq!(
            error("/a").to_string(),
            "/a says \"seven\", which makes no sense"
        );
        assert!(error("/b").to_string().starts_with("/b cannot be read: "));
        assert_eq!(error("/d").to_string(), "/d does not exist");
        assert!(error("/d").is_absent() && !error("/a").is_absent());
        assert_eq!(machine.value("/c"), Ok(7));
    }

    #[test]
    fn long_files_and_strange_octets_do_no_harm() {
        let fixture = Fixture::new(&[("/long", &"x\u{1b}".repeat(1 << 20))]);
        let text = fixture.machine.read("/long").unwrap();
        assert_eq!(text.len() as u64, LONGEST);
        let shown = Unreadable::rubbish("/long", &text).to_string();
        assert!(shown.len() < 1000 && !shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn the_last_word_on_the_command_line_counts() {
        let fixture = Fixture::new(&[(
            "/proc/cmdline",
            "quiet preempt=none preempt=full xpreempt=lazy -- preempt=voluntary",
        )]);
        let option = |name| fixture.machine.boot_option(name).unwrap();
        assert_eq!(option("preempt").as_deref(), Some("full"));
        assert_eq!(option("quiet"), None);
    }

    #[test]
    fn this_machine_says_which_cpus_may_be_used() {
        assert!(!Machine::this().allowed_cpus().unwrap().is_empty());
    }
}
