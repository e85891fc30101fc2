//! Documents: blocks of text, tables, charts and claims, rendered as a page or as text.

use std::fmt::Write;

use crate::chart::Chart;
use crate::claim::{Claim, Score};
use crate::page::{document, escape, pairs};
use crate::table::Table;
use crate::verdict::Verdict;

/// A report: a title, and blocks in the order in which they are read.
#[derive(Clone, Debug)]
pub struct Document {
    title: String,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
enum Block {
    Lead(String),
    Caveat(String),
    Note(String),
    Section(String),
    Subsection(String),
    /// Claims, each with the report that has its figures, where it is not this one.
    Claims(Vec<(Option<String>, Claim)>),
    Table(Table),
    Chart(Chart),
    Facts(Vec<(String, String)>),
    Tiles(Vec<Tile>),
    /// The machine: on pages only.
    Environment(Vec<(String, String)>),
    /// The commands that repeat what is reported: on pages only.
    Commands(String),
}

/// A report among others, at a glance.
#[derive(Clone, Debug)]
pub struct Tile {
    /// The name, which a page links to `NAME.html`.
    pub name: String,
    /// The subject in a few words.
    pub title: String,
    /// The finding in a sentence, or the reason of the failure.
    pub finding: Result<String, String>,
    /// The verdicts on its claims.
    pub score: Score,
    /// The time that it took, in words.
    pub took: String,
}

/// The kind of output for which text is rendered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    /// Text without control characters.
    Plain,
    /// Text with the escape sequences of ECMA-48 for bold and coloured text.
    Terminal,
}

impl Document {
    /// A document without blocks.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            blocks: Vec::new(),
        }
    }

    /// Adds the subject in a sentence or two.
    #[must_use]
    pub fn lead(self, text: impl Into<String>) -> Self {
        self.with([Block::Lead(text.into())])
    }

    /// Adds restrictions of the figures, a paragraph each.
    #[must_use]
    pub fn caveats(self, texts: impl IntoIterator<Item = String>) -> Self {
        self.with(texts.into_iter().map(Block::Caveat))
    }

    /// Adds paragraphs.
    #[must_use]
    pub fn notes(self, texts: impl IntoIterator<Item = String>) -> Self {
        self.with(texts.into_iter().map(Block::Note))
    }

    /// Begins a section.
    #[must_use]
    pub fn section(self, heading: impl Into<String>) -> Self {
        self.with([Block::Section(heading.into())])
    }

    /// Begins a part of a section.
    #[must_use]
    pub fn subsection(self, heading: impl Into<String>) -> Self {
        self.with([Block::Subsection(heading.into())])
    }

    /// Adds claims.
    #[must_use]
    pub fn claims(self, claims: impl IntoIterator<Item = Claim>) -> Self {
        self.claims_of(claims.into_iter().map(|claim| (None, claim)))
    }

    /// Adds claims whose figures are in other reports, each with the name of its report.
    #[must_use]
    pub fn claims_of(self, claims: impl IntoIterator<Item = (Option<String>, Claim)>) -> Self {
        let claims: Vec<_> = claims.into_iter().collect();
        let any = !claims.is_empty();
        self.with(any.then_some(Block::Claims(claims)))
    }

    /// Adds tables; those without lines are left out.
    #[must_use]
    pub fn tables(self, tables: impl IntoIterator<Item = Table>) -> Self {
        let tables = tables.into_iter().filter(|table| !table.lines.is_empty());
        self.with(tables.map(Block::Table))
    }

    /// Adds a chart; one that is empty is left out.
    #[must_use]
    pub fn chart(self, chart: Chart) -> Self {
        let any = !chart.is_empty();
        self.with(any.then_some(Block::Chart(chart)))
    }

    /// Adds a section with charts and tables, unless all of them are empty.
    #[must_use]
    pub fn part(
        self,
        heading: impl Into<String>,
        charts: impl IntoIterator<Item = Chart>,
        tables: impl IntoIterator<Item = Table>,
    ) -> Self {
        let begin = self.blocks.len();
        let section = self.section(heading);
        let charts = charts.into_iter();
        let mut all = charts.fold(section, Self::chart).tables(tables);
        if all.blocks.len() == begin + 1 {
            all.blocks.truncate(begin);
        }
        all
    }

    /// Adds names with the texts that belong to them.
    #[must_use]
    pub fn facts<N: Into<String>>(self, facts: impl IntoIterator<Item = (N, String)>) -> Self {
        let facts: Vec<_> = named(facts);
        let any = !facts.is_empty();
        self.with(any.then_some(Block::Facts(facts)))
    }

    /// Adds the strip of other reports, with links to their pages.
    #[must_use]
    pub fn tiles(self, tiles: Vec<Tile>) -> Self {
        self.with([Block::Tiles(tiles)])
    }

    /// Adds the description of the machine, which only pages show.
    #[must_use]
    pub fn environment<N: Into<String>>(self, rows: impl IntoIterator<Item = (N, String)>) -> Self {
        self.with([Block::Environment(named(rows))])
    }

    /// Adds the commands that repeat what is reported, which only pages show.
    #[must_use]
    pub fn commands(self, lines: impl Into<String>) -> Self {
        self.with([Block::Commands(lines.into())])
    }

    fn with(mut self, blocks: impl IntoIterator<Item = Block>) -> Self {
        self.blocks.extend(blocks);
        self
    }

    /// Renders one HTML page that needs nothing else, for light, dark and narrow screens.
    #[must_use]
    pub fn html(&self) -> String {
        let mut body = String::new();
        let mut sections = 0;
        let mut contents = self.contents();
        for block in &self.blocks {
            match block {
                Block::Section(_) | Block::Environment(_) | Block::Commands(_) => sections += 1,
                _ => {}
            }
            if !matches!(block, Block::Lead(_) | Block::Caveat(_)) {
                body.push_str(&std::mem::take(&mut contents));
            }
            block.html(&mut body, sections);
        }
        document(&self.title, &body)
    }

    /// Returns the list of sections; empty if there are few.
    fn contents(&self) -> String {
        let headings = self.blocks.iter().filter_map(|block| match block {
            Block::Section(heading) => Some(heading.as_str()),
            Block::Environment(_) => Some(WHERE),
            Block::Commands(_) => Some(AGAIN),
            _ => None,
        });
        let items: Vec<String> = (1..)
            .zip(headings)
            .map(|(at, heading)| {
                let entry = escape(contents_entry(heading));
                format!("<li><a href=\"#s{at}\">{entry}</a></li>\n")
            })
            .collect();
        if items.len() < FEWEST_IN_CONTENTS {
            String::new()
        } else {
            format!("<nav><ol>\n{}</ol></nav>\n", items.concat())
        }
    }

    /// Renders text in lines of at most 100 columns, but for tables.
    #[must_use]
    pub fn text(&self, target: Target) -> String {
        let mut text = format!("{}\n", bold(&wrapped(&clean(&self.title), ""), target));
        let mut before = None;
        for block in &self.blocks {
            let piece = clean(&block.text());
            if piece.is_empty() {
                continue;
            }
            let is_same = before == Some(std::mem::discriminant(block));
            let is_listed = matches!(block, Block::Note(_) | Block::Caveat(_));
            if !(is_same && is_listed) {
                text.push('\n');
            }
            before = Some(std::mem::discriminant(block));
            text.push_str(&match block {
                Block::Section(_) | Block::Subsection(_) => bold(piece.trim_end(), target) + "\n",
                _ => coloured(piece, target),
            });
        }
        text
    }
}

fn named<N: Into<String>>(rows: impl IntoIterator<Item = (N, String)>) -> Vec<(String, String)> {
    let rows = rows.into_iter();
    rows.map(|(name, value)| (name.into(), value)).collect()
}

impl Block {
    fn html(&self, body: &mut String, section: usize) {
        let mut paragraph = |class: &str, text: &str| {
            let _ = writeln!(body, "<p{class}>{}</p>", escape(text));
        };
        match self {
            Self::Lead(text) => paragraph(" class=\"lead\"", text),
            Self::Caveat(text) => paragraph(" class=\"caveat\"", text),
            Self::Note(text) => paragraph("", text),
            Self::Section(heading) => {
                let _ = writeln!(body, "<h2 id=\"s{section}\">{}</h2>", escape(heading));
            }
            Self::Subsection(heading) => {
                let _ = writeln!(body, "<h3>{}</h3>", escape(heading));
            }
            Self::Claims(claims) => claims_html(body, claims),
            Self::Table(table) => body.push_str(&table.html()),
            Self::Chart(chart) => body.push_str(&chart.html()),
            Self::Facts(rows) => body.push_str(&facts_html(rows)),
            Self::Tiles(tiles) => {
                body.push_str("<div class=\"tiles\">\n");
                tiles.iter().for_each(|tile| tile.html(body));
                body.push_str("</div>\n");
            }
            Self::Environment(rows) => {
                let _ = writeln!(
                    body,
                    "<h2 id=\"s{section}\">{WHERE}</h2>\n{}",
                    facts_html(rows)
                );
            }
            Self::Commands(lines) => {
                let lines = escape(lines);
                let _ = writeln!(
                    body,
                    "<h2 id=\"s{section}\">{AGAIN}</h2>\n<pre>{lines}</pre>"
                );
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Lead(text) | Self::Caveat(text) | Self::Note(text) => wrapped(text, "") + "\n",
            Self::Section(heading) | Self::Subsection(heading) => wrapped(heading, "") + "\n",
            Self::Claims(claims) => {
                let mut text = String::new();
                for (_, claim) in claims {
                    let begin = format!("{:14}", claim.word());
                    let _ = writeln!(text, "{}", wrapped(&claim.claim, &begin));
                    for line in claim.lines() {
                        let _ = writeln!(text, "{}", wrapped(&line, &" ".repeat(16)));
                    }
                }
                text
            }
            Self::Table(table) => table.text(),
            Self::Facts(rows) => {
                let rows = rows.iter();
                let rows =
                    rows.map(|(name, value)| wrapped(&format!("{name}: {value}"), "") + "\n");
                rows.collect()
            }
            Self::Tiles(tiles) => tiles.iter().map(|tile| tile.text()).collect(),
            Self::Chart(_) | Self::Environment(_) | Self::Commands(_) => String::new(),
        }
    }
}

impl Tile {
    fn html(&self, body: &mut String) {
        let name = escape(&self.name);
        let (link, finding) = match &self.finding {
            Ok(finding) => (
                format!("<a href=\"{name}.html\">{name}</a>"),
                format!("<p>{}</p>", escape(finding)),
            ),
            // A failed experiment has left no page.
            Err(failure) => (
                name.into_owned(),
                format!(
                    "<p><span class=\"verdict missed\">failed</span> {}</p>",
                    escape(failure)
                ),
            ),
        };
        let _ = write!(
            body,
            "<article><h3>{link}</h3><small>{}</small>",
            escape(&self.title)
        );
        score_html(body, &self.score);
        let _ = writeln!(
            body,
            "{finding}<small>took {}</small></article>",
            escape(&self.took)
        );
    }

    fn text(&self) -> String {
        let mut text = format!("{}, in {}\n", self.name, self.took);
        let finding = match &self.finding {
            Ok(finding) => finding.clone(),
            Err(failure) => format!("failed: {failure}"),
        };
        let _ = writeln!(text, "{}", wrapped(&finding, "  "));
        for (what, score) in [
            ("claims of the papers", self.score.of_papers()),
            ("aims", self.score.of_aims()),
        ] {
            if !score.is_empty() {
                let _ = writeln!(text, "  {what}: {score}");
            }
        }
        text
    }
}

/// Returns the entry of a heading in the contents: a long one without the findings behind its
/// colon.
fn contents_entry(heading: &str) -> &str {
    match heading.split_once(": ") {
        Some((subject, _)) if heading.chars().count() > LONGEST_ENTRY => subject,
        _ => heading,
    }
}

fn claims_html(body: &mut String, claims: &[(Option<String>, Claim)]) {
    score_html(body, &Score::of(claims.iter().map(|(_, claim)| claim)));
    body.push_str("<ul class=\"claims\">\n");
    for (report, claim) in claims {
        let word = claim.word();
        let class = match claim.verdict() {
            Verdict::NotMeasured => "",
            _ => word,
        };
        let _ = write!(
            body,
            "<li><span class=\"verdict {class}\">{word}</span><div>{}",
            escape(&claim.claim)
        );
        for line in claim.lines() {
            let _ = write!(body, "<small>{}</small>", escape(&line));
        }
        if let Some(report) = report {
            let report = escape(report);
            let _ = write!(
                body,
                "<small><a href=\"{report}.html\">{report}</a></small>"
            );
        }
        body.push_str("</div></li>\n");
    }
    body.push_str("</ul>\n");
}

fn score_html(body: &mut String, score: &Score) {
    if score.counts().next().is_none() {
        return;
    }
    body.push_str("<div class=\"score\">");
    for (count, word) in score.counts() {
        let _ = write!(
            body,
            "<span class=\"verdict {}\">{count} {word}</span>",
            word.split(' ').next().unwrap_or_default()
        );
    }
    body.push_str("</div>\n");
}

fn facts_html(rows: &[(String, String)]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    format!("<div class=\"wide\">{}</div>\n", pairs(&rows))
}

/// Wraps a text behind `begin`. The other lines are indented by its length.
fn wrapped(text: &str, begin: &str) -> String {
    let indent = if begin.trim().is_empty() {
        begin.len()
    } else {
        begin.len() + 2
    };
    let mut line = format!("{begin:indent$}");
    let mut lines = String::new();
    for word in text.split(' ') {
        let is_begun = line.chars().count() > indent;
        if is_begun && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = " ".repeat(indent);
        } else if is_begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines + line.trim_end()
}

/// Replaces control characters, which would move the cursor of a terminal.
fn clean(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' => '\n',
        control if control.is_control() => '\u{fffd}',
        other => other,
    };
    text.chars().map(shown).collect()
}

fn bold(text: &str, target: Target) -> String {
    match target {
        Target::Plain => text.to_owned(),
        Target::Terminal => format!("\u{1b}[1m{text}\u{1b}[0m"),
    }
}

/// Colours the verdicts that lines begin with.
fn coloured(text: String, target: Target) -> String {
    if target == Target::Plain {
        return text;
    }
    let colours = [
        ("reproduced ", 32),
        ("met ", 32),
        ("missed ", 31),
        ("failed: ", 31),
    ];
    let lines = text.split_inclusive('\n').map(|line| {
        let found = colours
            .iter()
            .find(|(word, _)| line.trim_start().starts_with(word));
        found.map_or_else(
            || line.to_owned(),
            |(word, colour)| line.replacen(word, &format!("\u{1b}[{colour}m{word}\u{1b}[0m"), 1),
        )
    });
    lines.collect()
}

const WHERE: &str = "The machine";
const AGAIN: &str = "How to repeat it";
/// The least number of sections that have a list of contents.
const FEWEST_IN_CONTENTS: usize = 6;
/// The characters of the longest heading that the contents have whole.
const LONGEST_ENTRY: usize = 80;
const COLUMNS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::chart::{Mark, Series};
    use crate::units::Unit;

    fn document() -> Document {
        let chart = Chart::new(
            "how long",
            Axis::groups("", ["a"]),
            Axis::linear("", Unit::Time),
        );
        let missed = Claim::of_paper("RTAS 1998", "<quick>")
            .published("2 µs")
            .holds(Some((false, "3 µs".to_owned())))
            .because("it is & was so");
        Document::new("Title & more")
            .lead("Lead.")
            .caveats(["Caveat.".to_owned()])
            .claims([
                Claim::aim("quick").holds(Some((true, "1 µs".to_owned()))),
                missed,
            ])
            .section("Figures")
            .chart(chart.series([Series::new(Mark::Bars, "bar", [(0.0, 1.0)])]))
            .tables([Table::new(
                "Calls",
                ["p50"],
                [
                    ("group".to_owned(), Vec::new()),
                    ("one".to_owned(), vec!["1 µs".to_owned()]),
                ],
            )])
            .notes(["Note.".to_owned(), "Other.".to_owned()])
            .facts([("name", "\u{1b}[2Jvalue".to_owned())])
            .environment([("Kernel", "Linux".to_owned())])
            .commands("chronorb lab")
    }

    #[test]
    fn text_has_all_blocks_but_charts_and_the_machine() {
        assert_eq!(
            document().text(Target::Plain),
            "Title & more\n\nLead.\n\nCaveat.\n\nmet             quick\n                1 µs\n\
             missed          <quick>\n                RTAS 1998: 2 µs\n                3 µs\n\
             \x20               it is & was so\n\nFigures\n\nCalls   p50\ngroup\n  one  1 µs\n\n\
             Note.\nOther.\n\nname: \u{fffd}[2Jvalue\n"
        );
    }

    #[test]
    fn terminals_get_bold_headings_and_coloured_verdicts() {
        let text = document().text(Target::Terminal);
        assert!(
            text.starts_with("\u{1b}[1mTitle & more\u{1b}[0m\n"),
            "{text}"
        );
        assert!(
            text.contains("\u{1b}[31mmissed \u{1b}[0m         <quick>"),
            "{text}"
        );
        assert!(!text.contains("\u{1b}[2J"));
    }

    #[test]
    fn a_page_has_all_blocks_and_stands_alone() {
        let page = document().html();
        for part in [
            "<title>Title &amp; more</title>",
            "<p class=\"caveat\">Caveat.</p>",
            "<span class=\"verdict missed\">missed</span><div>&lt;quick&gt;",
            "<span class=\"verdict met\">1 met</span>",
            "<h2 id=\"s1\">Figures</h2>",
            "<svg",
            "<th colspan=\"2\">group</th>",
            "<th>Kernel</th><td>Linux</td>",
            "<pre>chronorb lab</pre>",
            "prefers-color-scheme: dark",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        for outside in ["src=", "href=", "url(", "@import", "<script", "<nav"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn many_sections_get_contents_and_tiles_link_to_their_pages() {
        assert!(Document::new("").part("Empty", [], []).blocks.is_empty());
        let tile = |name: &str, finding| Tile {
            name: name.to_owned(),
            title: "calls".to_owned(),
            finding,
            score: Score {
                aims_passed: 2,
                ..Score::default()
            },
            took: "3 s".to_owned(),
        };
        let tiles = vec![
            tile("os", Ok("it holds".to_owned())),
            tile("rio", Err("no <socket>".to_owned())),
        ];
        let mut document = Document::new("All").tiles(tiles);
        let long = format!("g: {}", "finding ".repeat(10));
        for heading in ["a", "b", "c: d", "d", "e", "f", &long] {
            document = document.section(heading);
        }
        let page = document.html();
        assert!(page.contains("<a href=\"os.html\">os</a>") && page.contains("2 met"));
        assert!(page.contains("no &lt;socket&gt;") && !page.contains("rio.html"));
        assert!(page.contains("<li><a href=\"#s6\">f</a></li>") && page.contains("id=\"s6\">f<"));
        assert!(page.contains("\"#s3\">c: d</a>") && page.contains("\"#s7\">g</a>"));
        let text = document.text(Target::Plain);
        assert!(
            text.contains("os, in 3 s\n  it holds\n  aims: 2 met\n"),
            "{text}"
        );
        assert!(
            text.contains("rio, in 3 s\n  failed: no <socket>\n"),
            "{text}"
        );
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = wrapped(&"word ".repeat(50), "missed");
        assert!(text.lines().count() > 2, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS));
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("        word"))
        );
    }
}
