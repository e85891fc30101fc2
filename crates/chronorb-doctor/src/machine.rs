//! The machine as the checks read it: files below a root, and answers of the kernel to calls.

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

use crate::cpu_list::CpuList;

/// A machine to examine: this one, or a fixture of files.
#[derive(Debug)]
pub(crate) struct Machine {
    root: PathBuf,
    pub(crate) rights: Rights,
    pub(crate) packets: PacketRights,
    pub(crate) timer_resolution: Duration,
    /// The settings of the interfaces by name.
    pub(crate) links: BTreeMap<String, Link>,
    /// The queueing disciplines, inner ones included: the number of the interface, and the kind.
    pub(crate) disciplines: Result<Vec<(u32, String)>, String>,
}

/// The settings of an interface that ethtool(8) shows, or the reasons why they are unknown.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) offloads: Result<Offloads, String>,
    pub(crate) coalescing: Result<Coalescing, String>,
}

fn disciplines() -> Result<Vec<(u32, String)>, NetlinkError> {
    let all = Netlink::open()?.all_disciplines()?;
    Ok(all.into_iter().map(|it| (it.index, it.kind)).collect())
}

impl Machine {
    /// The machine that this process runs on.
    pub(crate) fn this() -> Self {
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

    /// A machine of the files below `root`. Its rights are those of this process.
    #[cfg(test)]
    pub(crate) fn below(root: &std::path::Path) -> Self {
        Self {
            root: root.to_owned(),
            rights: Rights::probe(),
            packets: PacketRights {
                packet_socket: chronorb_rio::PacketAccess::Denied,
                xdp_socket: chronorb_rio::PacketAccess::Denied,
                xdp_program: chronorb_rio::PacketAccess::Denied,
            },
            timer_resolution: Duration::from_nanos(1),
            links: BTreeMap::new(),
            disciplines: Ok(Vec::new()),
        }
    }

    /// Reads the text of a file without white space around it; of a long file, the beginning.
    pub(crate) fn read(&self, path: &str) -> Result<String, Unreadable> {
        let failed = |error| Unreadable::failed(path, &error);
        let mut octets = Vec::new();
        File::open(self.below_root(path))
            .and_then(|file| file.take(LONGEST).read_to_end(&mut octets))
            .map_err(failed)?;
        Ok(String::from_utf8_lossy(&octets).trim().to_owned())
    }

    /// Reads the single value of a file.
    pub(crate) fn value<T: FromStr>(&self, path: &str) -> Result<T, Unreadable> {
        let text = self.read(path)?;
        text.parse().map_err(|_| Unreadable::rubbish(path, &text))
    }

    /// Reads a list of CPUs, which is empty where the file says `(null)`.
    pub(crate) fn cpus(&self, path: &str) -> Result<CpuList, Unreadable> {
        let text = self.read(path)?;
        if text == "(null)" {
            return Ok(CpuList::default());
        }
        CpuList::parse(&text).ok_or_else(|| Unreadable::rubbish(path, &text))
    }

    /// Lists the names in a directory, sorted.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, Unreadable> {
        let failed = |error| Unreadable::failed(path, &error);
        let mut names = Vec::new();
        for entry in fs::read_dir(self.below_root(path)).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name().to_string_lossy().into());
        }
        names.sort();
        Ok(names)
    }

    /// Whether a file exists, readable or not.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.below_root(path).symlink_metadata().is_ok()
    }

    /// Returns the value of the last `name=` on the kernel's command line.
    pub(crate) fn boot_option(&self, name: &str) -> Result<Option<String>, Unreadable> {
        let line = self.read("/proc/cmdline")?;
        let words = line.split_whitespace().take_while(|word| *word != "--");
        let values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        Ok(values.last().map(str::to_owned))
    }

    /// Returns the CPUs that this process may use.
    pub(crate) fn allowed_cpus(&self) -> Result<CpuList, Unreadable> {
        let path = "/proc/self/status";
        let status = self.read(path)?;
        let list = value_of(&status, "Cpus_allowed_list").unwrap_or(&status);
        CpuList::parse(list).ok_or_else(|| Unreadable::rubbish(path, list))
    }

    fn below_root(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// A file that could not be read, or has no sense.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Unreadable {
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
    /// A file with a text that it should not have.
    pub(crate) fn rubbish(path: &str, text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(LONGEST_QUOTATION).collect();
        Self {
            path: path.to_owned(),
            cause: Cause::Rubbish(shown),
        }
    }

    /// Returns the path of a file that does not exist, because the kernel lacks what it would show.
    pub(crate) fn absent(&self) -> Option<&str> {
        (self.cause == Cause::Absent).then_some(&self.path)
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

/// Returns the value of the first line `name : value`.
pub fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    let value = pairs.find(|(key, _)| key.trim() == name);
    value.map(|(_, value)| value.trim())
}

/// Whether a word is one of several, which white space separates.
pub(crate) fn is_among(words: &str, wanted: &str) -> bool {
    words.split_whitespace().any(|word| word == wanted)
}

/// Returns the one of several words that the kernel marks as being in use.
pub(crate) fn marked(words: &str, [begin, end]: [char; 2]) -> Option<&str> {
    let mut words = words.split_whitespace();
    words.find_map(|word| word.strip_prefix(begin)?.strip_suffix(end))
}

/// A bound above the useful length of all files that are read.
const LONGEST: u64 = 1 << 20;
const LONGEST_QUOTATION: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Fixture, UNREADABLE};

    #[test]
    fn reasons_why_a_file_cannot_be_read_are_told_apart() {
        let fixture = Fixture::new(&[("/a", "seven"), ("/b", UNREADABLE), ("/c", " 7\n")]);
        let machine = &fixture.machine;
        let error = |path| machine.value::<u32>(path).unwrap_err();
        let text = error("/a").to_string();
        assert_eq!(text, "/a says \"seven\", which makes no sense");
        assert!(error("/b").to_string().starts_with("/b cannot be read: "));
        assert_eq!(error("/d").to_string(), "/d does not exist");
        assert_eq!(
            (error("/d").absent(), error("/a").absent()),
            (Some("/d"), None)
        );
        assert_eq!(machine.value("/c"), Ok(7));
    }

    #[test]
    fn long_files_and_control_characters_do_no_harm() {
        let fixture = Fixture::new(&[("/long", &"x\u{1b}".repeat(1 << 20))]);
        let text = fixture.machine.read("/long").unwrap();
        assert_eq!(text.len() as u64, LONGEST);
        let shown = Unreadable::rubbish("/long", &text).to_string();
        assert!(shown.len() < 1000 && !shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn the_last_option_on_the_command_line_counts() {
        let line = "quiet preempt=none preempt=full xpreempt=lazy -- preempt=voluntary";
        let fixture = Fixture::new(&[("/proc/cmdline", line)]);
        let option = |name| fixture.machine.boot_option(name).unwrap();
        assert_eq!(option("preempt").as_deref(), Some("full"));
        assert_eq!(option("quiet"), None);
    }

    #[test]
    fn values_are_found_by_name() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A: fast one\nmodel name\t: other\n";
        assert_eq!(value_of(cpuinfo, "model name"), Some("A: fast one"));
        assert_eq!(value_of("", "model name"), None);
    }
}
