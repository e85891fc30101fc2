//! The processor quota of the process's control group.

use crate::sys::files::read_kernel_text;

/// Returns the number of processors whose time the control group may use, rounded down; the largest
/// number without a quota.
///
/// The standard library's `available_parallelism` also searches the table of mounts for control
/// groups in unusual places, which would add 8 KiB to a small program.
pub(crate) fn processors() -> usize {
    processors_by(&read_kernel_text)
}

/// As [`processors`], with a function that reads a file.
fn processors_by(read: &dyn Fn(&str) -> Option<String>) -> usize {
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let Some((version, group)) = cpu_group(&groups) else {
        return usize::MAX;
    };
    let mounts: &[&str] = match version {
        Version::One => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
        Version::Two => &["/sys/fs/cgroup"],
    };
    let mut least = usize::MAX;
    for mount in mounts {
        // The quotas of the group and of all its ancestors hold. In a container the mount may be
        // the group itself, and none of the names below it exist.
        let mut group = group;
        loop {
            let number = |name: &str| read(&format!("{mount}{group}/{name}"));
            let quota = match version {
                Version::One => number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us")),
                Version::Two => number("cpu.max").and_then(|max| {
                    let (quota, period) = max.split_once(' ')?;
                    Some((quota.to_owned(), period.to_owned()))
                }),
            };
            // Without a quota, version 1 has -1, and version 2 the word max.
            if let Some((quota, period)) = quota
                && let Ok(quota) = quota.trim_ascii().parse::<u64>()
                && let Ok(period) = period.trim_ascii().parse::<u64>()
                && let Some(processors) = quota.checked_div(period)
            {
                least = least.min(processors as usize);
            }
            let Some(parent) = group.rfind('/') else {
                break;
            };
            group = &group[..parent];
        }
    }
    least
}

/// A version of control groups.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Version {
    One,
    Two,
}

/// Returns the control group that controls processors, from the lines of `/proc/self/cgroup`. One
/// of version 1 names its controllers, and goes before that of version 2, which names none.
fn cpu_group(groups: &str) -> Option<(Version, &str)> {
    let mut second = None;
    for line in groups.split('\n') {
        let Some((controllers, path)) = line
            .split_once(':')
            .and_then(|(_, rest)| rest.split_once(':'))
        else {
            continue;
        };
        if controllers.split(',').any(|name| name == "cpu") {
            return Some((Version::One, path));
        }
        if controllers.is_empty() {
            second = Some((Version::Two, path));
        }
    }
    second
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result for files with these paths and contents.
    fn with_files(files: &[(&str, &str)]) -> usize {
        processors_by(&|path| {
            let file = files.iter().find(|(name, _)| *name == path);
            file.map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn the_least_quota_of_a_group_and_its_ancestors_holds() {
        let group = ("/proc/self/cgroup", "0::/a/b\n");
        let own = ("/sys/fs/cgroup/a/b/cpu.max", "700000 100000\n");
        let parent = ("/sys/fs/cgroup/a/cpu.max", "350000 100000\n");
        let without = ("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
        assert_eq!(with_files(&[group, own, without]), 7);
        assert_eq!(with_files(&[group, own, parent]), 3);
        assert_eq!(with_files(&[group, without]), usize::MAX);
        assert_eq!(with_files(&[group]), usize::MAX);
        assert_eq!(with_files(&[]), usize::MAX);
    }

    #[test]
    fn a_container_finds_the_quota_at_the_mount() {
        let group = ("/proc/self/cgroup", "0::/system.slice/docker-1234\n");
        let mount = ("/sys/fs/cgroup/cpu.max", "200000 100000\n");
        assert_eq!(with_files(&[group, mount]), 2);
    }

    #[test]
    fn the_first_version_is_read_where_it_controls_processors() {
        let groups = (
            "/proc/self/cgroup",
            "3:memory:/m\n2:cpu,cpuacct:/a\n1:name=systemd:/s\n0::/u\n",
        );
        let quota = ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n");
        let none = ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
        let period = ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
        let other = ("/sys/fs/cgroup/u/cpu.max", "700000 100000\n");
        assert_eq!(with_files(&[groups, quota, period, other]), 1);
        assert_eq!(with_files(&[groups, none, period, other]), usize::MAX);
        let broken = ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "0\n");
        assert_eq!(with_files(&[groups, quota, broken]), usize::MAX);
    }
}
