//! Completions and manual pages, generated from the command line.

use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> io::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut visible(), "chronorb", &mut text);
    match io::stdout().write_all(&text) {
        // The reader may have seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a manual page for each command into a directory.
pub(crate) fn man_pages(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(Arguments::command(), dir)
}

/// Returns the command line without hidden commands, which the generators would offer.
fn visible() -> Command {
    let all = Arguments::command();
    let commands = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    Command::new("chronorb")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(commands.cloned())
}
