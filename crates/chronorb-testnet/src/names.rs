//! Names of network namespaces, by which other programs find them: `ip netns exec NAME …`.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use chronorb_net::{NAMES, Netlink, NetworkNamespace, Undo, path_of, undo_or_tell};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_bind_recursive, mount_change};

use super::NetworkError;

/// Names that namespaces have until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Undo>);

impl Names {
    /// Gives a namespace a name, after it was reported to `tell`.
    pub(super) fn give(
        &mut self,
        namespace: &NetworkNamespace,
        name: &str,
        tell: &mut dyn FnMut(&Undo) -> io::Result<()>,
    ) -> Result<(), NetworkError> {
        let path = path_of(name);
        if path.exists() {
            return Err(NetworkError::NameTaken(name.to_owned()));
        }
        let failed = |source| NetworkError::io("give a network namespace a name", source);
        let undo = Undo::Name {
            name: name.to_owned(),
            inode: inode(namespace).map_err(failed)?,
        };
        tell(&undo).map_err(|source| NetworkError::io("have a change undone later", source))?;
        mark(namespace)?;
        prepare().map_err(failed)?;
        let mut file = OpenOptions::new();
        // Mounting on it needs no read permission, and it must not be mistaken for a file.
        let made = file.write(true).create_new(true).mode(0o000).open(&path);
        made.map_err(failed)?;
        self.0.push(undo);
        let source = format!("/proc/self/fd/{}", namespace.as_fd().as_raw_fd());
        mount_bind(source, &path).map_err(|error| failed(error.into()))
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        undo_or_tell(&self.0);
    }
}

/// Removes the names of networks whose processes have ended, and those of the network `name`.
/// Returns the removed names. Names of other programs' namespaces are left alone.
///
/// # Errors
/// [`NetworkError`], after removing as much as possible. [`NetworkError::NotOurs`] if `name` was
/// given by another program.
pub fn remove_abandoned(name: Option<&str>) -> Result<Vec<String>, NetworkError> {
    let failed = |source| NetworkError::io("remove the name of a network namespace", source);
    let entries = match fs::read_dir(NAMES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut removed = Vec::new();
    let mut foreign = None;
    for entry in entries.flatten() {
        let Ok(found) = entry.file_name().into_string() else {
            continue;
        };
        let is_meant =
            name.is_some_and(|name| SUFFIXES.iter().any(|s| found == format!("{name}{s}")));
        if !is_meant && !is_abandoned(&found) {
            continue;
        }
        if !is_ours(&entry.path()).map_err(failed)? {
            if is_meant {
                foreign.get_or_insert(found);
            }
            continue;
        }
        let inode = entry.metadata().map_err(failed)?.ino();
        let undo = Undo::Name {
            name: found.clone(),
            inode,
        };
        undo.undo().map_err(|error| failed(error.source))?;
        removed.push(found);
    }
    removed.sort();
    foreign.map_or(Ok(removed), |name| Err(NetworkError::NotOurs(name)))
}

/// Marks a namespace as one of ours, so that it is recognized by its name.
fn mark(namespace: &NetworkNamespace) -> Result<(), NetworkError> {
    let mark = || {
        let mut netlink = Netlink::open()?;
        let loopback = netlink.link("lo")?.index;
        netlink.set_alias(loopback, MARK)
    };
    let marked = namespace.enter(mark);
    Ok(marked.map_err(|error| NetworkError::io("enter a network namespace", error))??)
}

/// Whether a name is that of a namespace with the mark, or a file that was to become a name, and
/// has not.
fn is_ours(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(its) if its.is_file() && its.len() == 0 && !is_mount(&its) => return Ok(true),
        Ok(its) if its.is_file() => {}
        _ => return Ok(false),
    }
    let alias = || Netlink::open()?.link("lo").map(|loopback| loopback.alias);
    let entered = NetworkNamespace::open(path).and_then(|namespace| namespace.enter(alias));
    match entered {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        Ok(Ok(alias)) => Ok(alias.as_deref() == Some(MARK)),
        // It is not the name of a namespace, or the namespace has ended.
        _ => Ok(false),
    }
}

fn is_mount(its: &Metadata) -> bool {
    fs::metadata(NAMES).is_ok_and(|directory| directory.dev() != its.dev())
}

/// Whether a name is one of ours whose process is gone.
fn is_abandoned(name: &str) -> bool {
    owner(name).is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
}

/// The process that a name is of, where it is one that networks get by themselves.
fn owner(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(PREFIX)?;
    SUFFIXES
        .iter()
        .find_map(|suffix| rest.strip_suffix(suffix)?.parse().ok())
}

/// The name of a network that was given none.
pub(super) fn own_name() -> String {
    format!("{PREFIX}{}", std::process::id())
}

/// Prepares the directory of names as `ip netns` does: mounts in it propagate to all mount
/// namespaces.
fn prepare() -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(NAMES)?;
    let share = || {
        mount_change(
            NAMES,
            MountPropagationFlags::SHARED | MountPropagationFlags::REC,
        )
    };
    match share() {
        // It is no mount of its own yet.
        Err(Errno::INVAL) => {
            mount_bind_recursive(NAMES, NAMES)?;
            share()?;
        }
        shared => shared?,
    }
    Ok(())
}

fn inode(namespace: &NetworkNamespace) -> io::Result<u64> {
    let file = File::from(namespace.as_fd().try_clone_to_owned()?);
    Ok(file.metadata()?.ino())
}

const PREFIX: &str = "chronorb-";
/// The alias of the loopback interface in each namespace that has a name.
const MARK: &str = "chronorb test network";
/// The suffixes of the hosts, and of the switch.
pub(super) const SUFFIXES: [&str; 3] = ["-a", "-b", "-switch"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_it_is() {
        assert_eq!(owner("chronorb-4711-a"), Some(4711));
        assert_eq!(owner("chronorb-4711-switch"), Some(4711));
        for other in ["other", "chronorb-4711", "chronorb-4711-c", "chronorb-x-a"] {
            assert_eq!(owner(other), None, "{other}");
        }
        assert_eq!(
            owner(&format!("{}-b", own_name())),
            Some(std::process::id())
        );
    }
}
