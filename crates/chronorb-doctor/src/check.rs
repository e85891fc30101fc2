//! Checks as data, and their evaluation.

use std::fmt::Display;

use crate::finding::{Finding, Verdict};
use crate::machine::{Machine, Unreadable};

/// A check of one property of the machine.
///
/// `read` names the states that the machine is in, and a rule for each state has the judgement and
/// the remedy.
#[derive(Debug)]
pub(crate) struct Check {
    /// The stable name for programs.
    pub(crate) id: &'static str,
    /// The name for people, of at most 20 characters.
    pub(crate) title: &'static str,
    /// The cost in the worst case, unless a rule has its own.
    cost: String,
    /// The remedy where the machine could not be read: how to find out.
    look: String,
    /// Reads the states of the machine.
    read: fn(&Machine) -> ReadStates,
    /// The judgements and remedies by state.
    pub(crate) rules: Vec<Rule>,
}

/// The states of the machine: several for a check that looks at each network interface.
pub(crate) type ReadStates = Result<Vec<State>, Unreadable>;

/// A state of the machine, with the words that a rule quotes.
#[derive(Debug)]
pub(crate) struct State {
    name: String,
    words: Vec<String>,
    /// The file that has the name of the state; empty where a reader concluded it.
    path: String,
}

impl State {
    pub(crate) fn new<const N: usize>(name: &str, words: [&dyn Display; N]) -> Self {
        Self {
            name: name.to_owned(),
            words: words.map(ToString::to_string).into(),
            path: String::new(),
        }
    }

    /// Creates a state from the text of a file, which is both its name and its only word.
    pub(crate) fn told(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..Self::new(text, [&text])
        }
    }
}

/// A reading of one state.
pub(crate) fn one<const N: usize>(name: &str, words: [&dyn Display; N]) -> ReadStates {
    Ok(vec![State::new(name, words)])
}

/// Reads the state that a file names.
pub(crate) fn told(machine: &Machine, path: &str) -> ReadStates {
    Ok(vec![State::told(path, &machine.read(path)?)])
}

/// The judgement and the remedy of a state. The texts quote the words of the state as `{0}`, `{1}`…
#[derive(Debug)]
pub(crate) struct Rule {
    /// The names of the states, separated by `|`. A path stands for the absence of that file, which
    /// is the word `{0}`.
    states: &'static str,
    verdict: Verdict,
    found: String,
    mend: String,
    /// The cost, where it is not that of the check.
    cost: Option<String>,
}

/// A rule applied to a state.
struct Judgement<'a> {
    verdict: Verdict,
    found: String,
    cost: &'a str,
    mend: String,
}

impl Check {
    /// Parses the texts of the checks, which describe their format at the beginning.
    pub(crate) fn parse(
        text: &'static str,
        reader: fn(&str) -> fn(&Machine) -> ReadStates,
    ) -> Vec<Self> {
        let mut checks: Vec<Self> = Vec::new();
        for (key, title, text) in entries(text) {
            let (word, name) = key.split_once(' ').unwrap_or((key, ""));
            if word == "check" {
                checks.push(Self {
                    id: name,
                    title,
                    cost: String::new(),
                    look: String::new(),
                    read: reader(name),
                    rules: Vec::new(),
                });
                continue;
            }
            let Some(check) = checks.last_mut() else {
                continue;
            };
            match (word, check.rules.last_mut()) {
                ("cost", None) => check.cost = text,
                ("cost", Some(rule)) => rule.cost = Some(text),
                ("mend", Some(rule)) => rule.mend = text,
                ("look", _) => check.look = text,
                _ => check.rules.push(Rule {
                    states: name,
                    verdict: verdict(word),
                    found: text,
                    mend: String::new(),
                    cost: None,
                }),
            }
        }
        checks
    }

    /// Reads the machine and judges what was read.
    ///
    /// Of several states the worst gives verdict, cost and remedy.
    pub(crate) fn run(&self, machine: &Machine) -> Finding {
        let judged = (self.read)(machine)
            .and_then(|states| states.iter().map(|state| self.judge(state)).collect());
        let mut judged: Vec<_> = judged.unwrap_or_else(|unreadable| vec![self.unread(&unreadable)]);
        judged.sort_by_key(|judgement| judgement.verdict);
        let worst = judged.first().map(|first| (first.verdict, first.cost));
        let (verdict, cost) = worst.unwrap_or((Verdict::Good, &self.cost));
        let mut lines = Vec::new();
        let worst = judged.iter().filter(|one| one.verdict == verdict);
        // Interfaces share the line that introduces their commands.
        for line in worst.flat_map(|judgement| judgement.mend.lines()) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let is_good = verdict == Verdict::Good;
        let found: Vec<_> = judged.iter().map(|one| one.found.as_str()).collect();
        Finding {
            id: self.id,
            title: self.title,
            verdict,
            found: found.join("; "),
            cost: (!is_good).then(|| cost.to_owned()),
            remedy: (!is_good).then(|| lines.join("\n")),
        }
    }

    /// Returns the rules that the state of the machine leads to.
    #[cfg(test)]
    pub(crate) fn rules_applied(&self, machine: &Machine) -> impl Iterator<Item = &Rule> {
        let names = match (self.read)(machine) {
            Ok(states) => states.into_iter().map(|state| state.name).collect(),
            Err(unreadable) => Vec::from_iter(unreadable.absent().map(str::to_owned)),
        };
        names.into_iter().filter_map(|name| self.rule(&name))
    }

    fn judge(&self, state: &State) -> Result<Judgement<'_>, Unreadable> {
        let rule = self.rule(&state.name);
        let rule = rule.ok_or_else(|| Unreadable::rubbish(&state.path, &state.name))?;
        Ok(self.apply(rule, &state.words))
    }

    fn unread(&self, unreadable: &Unreadable) -> Judgement<'_> {
        match unreadable.absent().and_then(|path| self.rule(path)) {
            Some(rule) => self.apply(rule, &[unreadable.to_string()]),
            None => Judgement {
                verdict: Verdict::CannotBeTold,
                found: unreadable.to_string(),
                cost: &self.cost,
                mend: self.look.clone(),
            },
        }
    }

    fn rule(&self, state: &str) -> Option<&Rule> {
        let mut rules = self.rules.iter();
        rules.find(|rule| rule.states.split('|').any(|name| name == state))
    }

    fn apply<'a>(&'a self, rule: &'a Rule, words: &[String]) -> Judgement<'a> {
        Judgement {
            verdict: rule.verdict,
            found: fill(&rule.found, words),
            cost: rule.cost.as_ref().unwrap_or(&self.cost),
            mend: fill(&rule.mend, words),
        }
    }
}

/// Splits the texts of the checks into entries: the key, the first line, and the whole text.
fn entries(text: &'static str) -> Vec<(&'static str, &'static str, String)> {
    let mut entries: Vec<(_, _, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (separator, more) = match line.split_at_checked(4) {
            Some(("    ", more)) => (" ", more),
            Some(("  $ ", more)) => ("\n  ", more),
            Some(("  > ", more)) => ("\n", more),
            _ => {
                let entry = line.trim_start().split_once(": ");
                let entry = entry.map(|(key, first)| (key, first, first.replace("{boot}", BOOT)));
                entries.extend(entry);
                continue;
            }
        };
        if let Some((_, _, text)) = entries.last_mut() {
            *text += separator;
            *text += &more.replace("{boot}", BOOT);
        }
    }
    entries
}

pub(crate) fn verdict(word: &str) -> Verdict {
    match word {
        "good" => Verdict::Good,
        "costs" => Verdict::CostsLatency,
        "missing" => Verdict::Missing,
        "unknown" => Verdict::CannotBeTold,
        _ => panic!("{word} is not a verdict"),
    }
}

/// Replaces `{0}`, `{1}`… by words. Words are not searched for further ones.
fn fill(template: &str, words: &[String]) -> String {
    let mut parts = template.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (index, rest) = part.split_once('}').unwrap_or(("", part));
        let word = index
            .parse::<usize>()
            .ok()
            .and_then(|index| words.get(index));
        text.push_str(word.map_or("", String::as_str));
        text.push_str(rest);
    }
    text
}

const BOOT: &str = "add to the kernel's command line (GRUB_CMDLINE_LINUX in /etc/default/grub, \
                    then update-grub) and boot:";
