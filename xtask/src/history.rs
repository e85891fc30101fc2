//! The history of commits, which has no merges and no unfinished work.

use crate::run::{Failure, ask, root};

/// The commit after which history is linear.
const BASE: &str = "e5f0ecc4";

/// Returns complaints about the commits after [`BASE`]; none where history is cut off.
pub(crate) fn complaints() -> Result<Vec<String>, Failure> {
    if !has_commit(BASE) {
        println!("left out: merges and unfinished work, as {BASE} is not here");
        return Ok(Vec::new());
    }
    let root = root().display().to_string();
    let range = format!("{BASE}..HEAD");
    let log = ask("git", &["-C", &root, "log", FORMAT, &range]);
    let log = log.ok_or_else(|| Failure("git log failed".to_owned()))?;
    Ok(log.lines().filter_map(complaint).collect())
}

/// Whether history has a commit.
pub(crate) fn has_commit(commit: &str) -> bool {
    let root = root().display().to_string();
    let args = ["-C", &root, "merge-base", "--is-ancestor", commit, "HEAD"];
    ask("git", &args).is_some()
}

/// The commit, its parents and its subject.
const FORMAT: &str = "--format=%h%x09%p%x09%s";

fn complaint(line: &str) -> Option<String> {
    let (commit, rest) = line.split_once('\t')?;
    let (parents, subject) = rest.split_once('\t')?;
    if parents.contains(' ') {
        return Some(format!("{commit} is a merge: rebase instead ({subject})"));
    }
    let first = subject.split(|c: char| !c.is_alphanumeric()).next();
    let is_wip = first.is_some_and(|word| word.eq_ignore_ascii_case("wip"));
    is_wip.then(|| format!("{commit} is unfinished work: {subject}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_and_unfinished_work_are_refused() {
        assert_eq!(complaint("c\tp\torb: wipe the slots"), None);
        assert_eq!(complaint("c\tp\tWipe the slots"), None);
        assert!(complaint("c\tp q\tMerge branch 'main'").is_some_and(|it| it.contains("merge")));
        assert!(complaint("c\tp\twip").is_some());
        assert!(complaint("c\tp\tWIP: slots").is_some());
    }
}
