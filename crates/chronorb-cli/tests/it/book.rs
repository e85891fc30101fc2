//! The command, compared with the book, the README and `CONTRIBUTING.md`: the commands and options
//! that they name exist, and the page of commands lists all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{chronorb, stdout};

/// The help of a command, and the subcommands that it lists.
struct Help {
    text: String,
    commands: BTreeSet<String>,
}

/// The help of commands, each asked for once.
#[derive(Default)]
struct Helps(BTreeMap<Vec<String>, Help>);

impl Helps {
    fn of(&mut self, command: &[String]) -> &Help {
        self.0.entry(command.to_vec()).or_insert_with(|| {
            let arguments: Vec<&str> = command
                .iter()
                .map(String::as_str)
                .chain(["--help"])
                .collect();
            let output = chronorb(Path::new("."), &arguments);
            assert!(output.status.success(), "{arguments:?}");
            let text = stdout(&output).to_owned();
            let section = text.split("Commands:\n").nth(1).unwrap_or_default();
            let rows = section.lines().take_while(|line| !line.is_empty());
            let names = rows.filter(|row| row.starts_with("  ") && !row.starts_with("   "));
            let names = names.filter_map(|row| row.split_whitespace().next());
            let commands = names
                .filter(|name| *name != "help")
                .map(str::to_owned)
                .collect();
            Help { text, commands }
        })
    }

    /// Follows words to the command that they name; the rest are its arguments.
    fn follow<'w>(&mut self, words: &[&'w str]) -> (Vec<String>, Vec<&'w str>) {
        let mut command = Vec::new();
        let mut rest = words;
        while let Some((first, others)) = rest.split_first() {
            if !self.of(&command).commands.contains(*first) {
                break;
            }
            command.push((*first).to_owned());
            rest = others;
        }
        (command, rest.to_vec())
    }
}

/// The pages, by their path.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let book = fs::read_dir(root.join("docs/src")).expect("there is a book");
    let book = book.map(|entry| entry.expect("it can be listed").path());
    let all = book.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let all = all.chain([root.join("README.md"), root.join("CONTRIBUTING.md")]);
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("it is text");
        (path, text)
    };
    all.map(read).collect()
}

/// The command lines of a page that begin with `chronorb`: in blocks of shell commands, and between
/// backticks.
fn command_lines(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for (n, part) in page.split("```").enumerate() {
        if n % 2 == 1 {
            let block = part.strip_prefix("sh\n").unwrap_or_default();
            lines.extend(block.replace("\\\n", " ").lines().map(str::to_owned));
        } else {
            let code = part.split('`').skip(1).step_by(2);
            lines.extend(code.map(|code| code.replace('\n', " ")));
        }
    }
    lines.retain(|line| line.starts_with("chronorb ") && !line.contains('…'));
    lines
}

#[test]
fn commands_and_options_of_the_pages_exist() {
    let mut helps = Helps::default();
    for (path, page) in pages() {
        for line in command_lines(&page) {
            let ours = line
                .split(['|', '#', ';', '&', '>'])
                .next()
                .unwrap_or_default();
            let words: Vec<&str> = ours.split_whitespace().skip(1).collect();
            let (command, rest) = helps.follow(&words);
            let shown = format!("{}: {line}", path.display());
            let help = helps.of(&command);
            if let Some(first) = rest.first() {
                // A name where a command should stand; upper case stands for any.
                let is_open = help.commands.is_empty() || first.starts_with('-');
                let stands_for = first.chars().all(|c| c.is_ascii_uppercase());
                assert!(
                    is_open || stands_for,
                    "{shown}: there is no command {first}"
                );
                if stands_for && !help.commands.is_empty() {
                    continue;
                }
            }
            for option in rest.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap_or(option);
                let has = |word: &str| word.trim_end_matches([',', ']']) == option;
                assert!(
                    help.text.split_whitespace().any(has),
                    "{shown}: there is no {option}"
                );
            }
        }
    }
}

#[test]
fn the_page_of_commands_has_all() {
    let pages = pages();
    let page = pages.iter().find(|(path, _)| path.ends_with("commands.md"));
    let (_, page) = page.expect("there is the page");
    let mut helps = Helps::default();
    let groups: Vec<String> = helps.of(&[]).commands.iter().cloned().collect();
    for group in groups {
        let commands = helps.of(std::slice::from_ref(&group)).commands.clone();
        let names = if commands.is_empty() {
            vec![format!("| `chronorb {group}` |")]
        } else {
            commands
                .iter()
                .map(|name| format!("| `chronorb {group} {name}` |"))
                .collect()
        };
        for name in names {
            assert_eq!(page.matches(&name).count(), 1, "{name}");
        }
    }
}
