//! The documents, compared with the code: links and anchors, excerpts, names of jobs, and the list
//! of files with `unsafe` code. Tests of the crates compare options, features, exceptions and
//! commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::packages::read;
use crate::run::{Failure, root};

/// Complaints about the documents among the tracked files.
pub(crate) fn complaints(files: &[&str]) -> Result<Vec<String>, Failure> {
    let mut complaints = unsafe_complaints(files)?;
    let mut pages = BTreeMap::new();
    for file in files.iter().filter(|file| file.ends_with(".md")) {
        if root().join(file).is_file() {
            pages.insert(PathBuf::from(file), Page::parse(&read(&root().join(file))?));
        }
    }
    let sources = Sources::read(files)?;
    for (file, page) in &pages {
        complaints.extend(link_complaints(file, page, &pages));
        let shown = file.display();
        for job in page.jobs.iter().filter(|job| !is_job(job)) {
            complaints.push(format!("{shown}: there is no `cargo xtask {job}`"));
        }
        if file.starts_with(BOOK) || *file == Path::new("README.md") {
            for (language, excerpt) in &page.excerpts {
                if !sources.contain(language, excerpt) {
                    let first = excerpt.lines().next().unwrap_or_default();
                    complaints.push(format!(
                        "{shown}: no example or test has the excerpt of {language} that begins \
                         with {first:?}"
                    ));
                }
            }
        }
    }
    complaints.extend(summary_complaints(&pages));
    let architecture = read(&root().join(ARCHITECTURE))?.lines().count();
    if architecture > ARCHITECTURE_LINES {
        complaints.push(format!(
            "{ARCHITECTURE} has {architecture} lines, more than {ARCHITECTURE_LINES}"
        ));
    }
    Ok(complaints)
}

/// One Markdown file, as far as it is compared.
#[derive(Default)]
struct Page {
    /// The anchors of its headings, as mdBook and GitHub make them.
    anchors: BTreeSet<String>,
    /// Targets of links without a scheme.
    links: Vec<String>,
    /// Blocks of Rust and IDL, with their language.
    excerpts: Vec<(&'static str, String)>,
    /// The jobs of `cargo xtask` that it names.
    jobs: BTreeSet<String>,
}

impl Page {
    fn parse(text: &str) -> Self {
        let mut page = Self::default();
        for rest in text.split(JOB).skip(1) {
            let job = rest.split(|c: char| !c.is_ascii_lowercase() && c != '-');
            page.jobs
                .extend(job.take(1).filter(|job| !job.is_empty()).map(str::to_owned));
        }
        let mut lines = text.lines();
        let mut prose = String::new();
        while let Some(line) = lines.next() {
            if let Some(info) = line.trim_start().strip_prefix("```") {
                let block = lines.by_ref().take_while(|line| line.trim_start() != "```");
                let block: String = block.map(|line| format!("{line}\n")).collect();
                let language = LANGUAGES.iter().find(|(language, _)| *language == info);
                page.excerpts
                    .extend(language.map(|(language, _)| (*language, block)));
                continue;
            }
            if line.starts_with('#') {
                page.add_anchor(line.trim_start_matches('#').trim());
            }
            prose.push_str(line);
            prose.push('\n');
        }
        // Text between backticks has no links.
        let prose: String = prose.split('`').step_by(2).collect();
        let targets = prose.match_indices("](").map(|(at, _)| &prose[at + 2..]);
        let targets = targets.filter_map(|rest| rest.split([')', '\n']).next());
        let local = targets.filter(|target| !target.contains("://") && !target.is_empty());
        page.links.extend(local.map(str::to_owned));
        page
    }

    fn add_anchor(&mut self, heading: &str) {
        let kept = heading.chars().filter_map(|c| match c {
            c if c.is_whitespace() => Some('-'),
            c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_ascii_lowercase()),
            _ => None,
        });
        let anchor: String = kept.collect();
        let mut unique = anchor.clone();
        let mut count = 0;
        while !self.anchors.insert(unique) {
            count += 1;
            unique = format!("{anchor}-{count}");
        }
    }
}

/// Links to files or anchors that do not exist.
fn link_complaints(file: &Path, page: &Page, pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let mut complaints = Vec::new();
    for link in &page.links {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = if path.is_empty() {
            file.to_owned()
        } else {
            normal(&file.parent().unwrap_or(file).join(path))
        };
        let has_anchor = || {
            pages
                .get(&target)
                .is_some_and(|p| p.anchors.contains(anchor))
        };
        if !root().join(&target).exists() || !anchor.is_empty() && !has_anchor() {
            complaints.push(format!("{}: the link {link} leads nowhere", file.display()));
        }
    }
    complaints
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Pages of the book that its summary has not exactly once.
fn summary_complaints(pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let book = Path::new(BOOK);
    let Some(summary) = pages.get(&book.join(SUMMARY)) else {
        return vec![format!("{BOOK}/{SUMMARY} is missing")];
    };
    let chapters = pages.keys().filter_map(|file| file.strip_prefix(book).ok());
    let chapters = chapters.filter(|chapter| *chapter != Path::new(SUMMARY));
    chapters
        .filter(|chapter| {
            let listed = summary.links.iter();
            listed.filter(|link| Path::new(link) == *chapter).count() != 1
        })
        .map(|chapter| format!("{BOOK}/{SUMMARY}: {} is not in it once", chapter.display()))
        .collect()
}

/// The code that excerpts are taken from, without white space: lines are broken differently there.
struct Sources(Vec<(&'static str, String)>);

impl Sources {
    fn read(files: &[&str]) -> Result<Self, Failure> {
        let mut sources = Vec::new();
        // Examples and tests are compiled, and run.
        for (language, ending) in LANGUAGES {
            let compiled = files.iter().filter(|file| {
                let folders = ["examples/", "/tests/it/", "/generated-tests/"];
                file.ends_with(ending) && folders.iter().any(|folder| file.contains(folder))
            });
            for file in compiled.filter(|file| root().join(file).is_file()) {
                sources.push((language, dense(&read(&root().join(file))?)));
            }
        }
        Ok(Self(sources))
    }

    fn contain(&self, language: &str, excerpt: &str) -> bool {
        let excerpt = dense(excerpt);
        let mut of_language = self.0.iter().filter(|(other, _)| *other == language);
        of_language.any(|(_, source)| source.contains(&excerpt))
    }
}

/// The text without white space, and without the commas that come and go with line breaks.
fn dense(text: &str) -> String {
    let dense: String = text.split_whitespace().collect();
    dense
        .replace(",)", ")")
        .replace(",]", "]")
        .replace(",}", "}")
}

fn is_job(job: &str) -> bool {
    crate::USAGE.contains(&format!("\n  {job} ")) || crate::USAGE.contains(&format!("\n  {job}\n"))
}

/// Differences between the files with `unsafe` code and the table of them.
fn unsafe_complaints(files: &[&str]) -> Result<Vec<String>, Failure> {
    let mut found = BTreeSet::new();
    let sources = files.iter().filter(|file| {
        file.starts_with("crates/") && file.contains("/src/") && file.ends_with(".rs")
    });
    for file in sources.filter(|file| root().join(file).is_file()) {
        if has_unsafe(&read(&root().join(file))?) {
            found.insert((*file).to_owned());
        }
    }
    let text = read(&root().join(ARCHITECTURE))?;
    let section = text
        .lines()
        .skip_while(|line| *line != "## Unsafe code")
        .skip(1);
    let mut listed = BTreeSet::new();
    for row in section.take_while(|line| !line.starts_with("## ")) {
        let mut names = row.split('`').skip(1).step_by(2);
        if let Some(name) = names.next().filter(|_| row.starts_with("| `")) {
            listed.extend(names.map(|file| format!("crates/{name}/src/{file}")));
        }
    }
    let missing = found.difference(&listed);
    let missing =
        missing.map(|file| format!("{ARCHITECTURE}: the table of unsafe code lacks {file}"));
    let outdated = listed.difference(&found);
    let outdated = outdated.map(|file| format!("{ARCHITECTURE}: {file} has no unsafe code"));
    Ok(missing.chain(outdated).collect())
}

/// Whether the Rust has unsafe blocks, functions, implementations or attributes.
fn has_unsafe(text: &str) -> bool {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let mut after = code.flat_map(|line| {
        line.match_indices("unsafe").filter_map(|(at, word)| {
            let is_word = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            is_word.then(|| line[at + word.len()..].trim_start())
        })
    });
    after.any(|rest| {
        ["{", "(", "fn ", "impl", "extern", "trait "]
            .iter()
            .any(|s| rest.starts_with(s))
    })
}

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const ARCHITECTURE_LINES: usize = 220;
const BOOK: &str = "docs/src";
const SUMMARY: &str = "SUMMARY.md";
const JOB: &str = "cargo xtask ";
/// The languages of excerpts, and how their files end. Blocks of `rust,ignore` are not compared.
const LANGUAGES: [(&str, &str); 2] = [("rust", ".rs"), ("idl", ".idl")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_anchors_links_excerpts_and_jobs() {
        let page = Page::parse(
            "# A `b`: C\n## Twice\n## Twice\n[x](y.md#z), `[no](link)`, [web](https://w)\n\
             ```rust\nlet a = 1;\n```\nRun `cargo xtask tidy`.\n",
        );
        let anchors: Vec<_> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["a-b-c", "twice", "twice-1"]);
        assert_eq!(page.links, ["y.md#z"]);
        assert_eq!(page.excerpts, [("rust", "let a = 1;\n".to_owned())]);
        assert!(page.jobs.iter().all(|job| is_job(job)));
        assert!(!is_job("tid"));
    }

    #[test]
    fn unsafe_code_is_told_from_words() {
        assert!(has_unsafe("    unsafe { f() }"));
        assert!(has_unsafe("#[unsafe(no_mangle)]"));
        assert!(has_unsafe("pub unsafe fn f() {}"));
        assert!(!has_unsafe(
            "// unsafe { f() }\n#![deny(unsafe_code)]\nis_unsafe(x);"
        ));
    }

    #[test]
    fn excerpts_are_compared_without_their_line_breaks() {
        let sources = Sources(vec![("rust", dense("let x = f(\n    1,\n    2,\n);"))]);
        assert!(sources.contain("rust", "let x = f(1, 2);"));
        assert!(!sources.contain("idl", "let x = f(1, 2);"));
        assert!(!sources.contain("rust", "let y"));
    }
}
