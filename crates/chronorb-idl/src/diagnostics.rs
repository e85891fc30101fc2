//! Errors and warnings, and their rendering.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ariadne::{Color, Config, IndexType, ReportKind, Source};

use crate::builtin;
use crate::codes;
use crate::lexer::END_OF_LITERAL;
use crate::model::Location;
use crate::options::Options;
use crate::portable::Feature;
use crate::source::{Region, SourceFile, Sources};
use crate::span::Span;

/// The severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Severity {
    /// An error; there is no model.
    Error,
    /// A warning; the model is sound.
    Warning,
}

/// One finding.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The stable code, for example `E0200`; see [`crate::codes`].
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// A one-line description of the problem.
    pub message: String,
    /// The places concerned: first the fault, then for example earlier definitions. Empty only if
    /// the main file could not be read.
    pub labels: Vec<Label>,
    /// Further information.
    pub notes: Vec<String>,
    /// A suggested remedy.
    pub hint: Option<String>,
}

/// A marked place with a remark.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Label {
    /// The file, according to `#line` directives if there are any.
    pub path: PathBuf,
    /// The start of the marked text.
    pub location: Location,
    /// The end of the marked text, behind its last character.
    pub end: Location,
    /// The remark.
    pub text: String,
    span: Span,
    region: Region,
}

impl Label {
    /// Returns the marked bytes, counted from the start of the file that was read.
    pub fn bytes(&self) -> Range<u32> {
        self.span.start..self.span.end
    }
}

/// Findings in the order of files and lines, with the texts that rendering needs.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    files: Vec<Arc<SourceFile>>,
}

/// A file with errors. Displays as the rendered diagnostics without colour.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Failure {
    /// The errors, at least one, with the warnings between them, in the order of files and lines.
    pub diagnostics: Diagnostics,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostics.render(false))
    }
}

impl Diagnostics {
    /// Returns the findings.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// Returns the number of findings.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the paths of the files that were read, the main file first.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Renders the findings as text for people, with or without ANSI colours.
    pub fn render(&self, color: bool) -> String {
        self.render_each(color).join("\n")
    }

    /// Renders each finding as text for people; see [`Self::render`].
    pub fn render_each(&self, color: bool) -> Vec<String> {
        let mut excerpts = Excerpts {
            files: &self.files,
            sources: HashMap::new(),
        };
        let render = |item: &Diagnostic| {
            let mut out = String::new();
            item.render(&mut excerpts, color, &mut out);
            out
        };
        self.items.iter().map(render).collect()
    }

    /// Turns the warnings for which `denied` holds into errors. Returns whether there were any.
    pub fn deny(&mut self, denied: impl Fn(&Diagnostic) -> bool) -> bool {
        let mut any = false;
        for item in &mut self.items {
            if item.severity == Severity::Warning && denied(item) {
                item.severity = Severity::Error;
                any = true;
            }
        }
        any
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Diagnostic {
    pub(crate) fn error(
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        Self::without_place(code, message).label(span, label)
    }

    pub(crate) fn warning(
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, span, message, label)
        }
    }

    pub(crate) fn without_place(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            hint: None,
        }
    }

    pub(crate) fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label {
            path: PathBuf::new(),
            location: Location::default(),
            end: Location::default(),
            text: text.into(),
            span,
            region: Region::default(),
        });
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn render(&self, excerpts: &mut Excerpts<'_>, color: bool, out: &mut String) {
        let (shown, hidden): (Vec<_>, Vec<_>) = self
            .labels
            .iter()
            .partition(|label| excerpts.can_show(label));
        let primary = self.labels.first();
        let Some(primary) = primary.filter(|label| excerpts.can_show(label)) else {
            self.render_plain(out);
            return;
        };
        let config = Config::new()
            .with_color(color)
            .with_index_type(IndexType::Char)
            .with_cross_gap(false);
        let (kind, tint) = match self.severity {
            Severity::Error => (ReportKind::Error, Color::Red),
            Severity::Warning => (ReportKind::Warning, Color::Yellow),
        };
        let mut report = ariadne::Report::build(kind, excerpts.range(primary))
            .with_code(self.code)
            .with_message(printable(&self.message))
            .with_config(config);
        for (number, label) in shown.iter().enumerate() {
            // One excerpt for each file, that of the fault first, in the order of lines.
            let elsewhere = label.region != primary.region;
            let order = label.location.line as i32;
            report.add_label(
                ariadne::Label::new(excerpts.range(label))
                    .with_message(printable(&label.text))
                    .with_color(if number == 0 { tint } else { Color::Cyan })
                    .with_order(if elsewhere { order } else { order - i32::MAX }),
            );
        }
        for label in hidden {
            report.add_note(format!("{}: {}", label.place(), printable(&label.text)));
        }
        for note in &self.notes {
            report.add_note(printable(note));
        }
        if let Some(hint) = &self.hint {
            report.add_help(printable(hint));
        }
        let mut bytes = Vec::new();
        if report.finish().write(excerpts, &mut bytes).is_err() {
            self.render_plain(out);
            return;
        }
        for line in String::from_utf8_lossy(&bytes).lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }

    /// Renders the finding without an excerpt, for lines that are too long to show.
    fn render_plain(&self, out: &mut String) {
        let kind = match self.severity {
            Severity::Error => "Error",
            Severity::Warning => "Warning",
        };
        let _ = writeln!(out, "[{}] {kind}: {}", self.code, printable(&self.message));
        for label in &self.labels {
            let _ = writeln!(out, "  {}: {}", label.place(), printable(&label.text));
        }
        for note in &self.notes {
            let _ = writeln!(out, "  Note: {}", printable(note));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(out, "  Help: {}", printable(hint));
        }
    }
}

impl Label {
    fn place(&self) -> String {
        let path = printable(&self.path.display().to_string());
        format!("{path}:{}:{}", self.location.line, self.location.column)
    }
}

/// Collects findings while compiling, within limits.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    items: Vec<Diagnostic>,
    seen: HashSet<(&'static str, Span)>,
    /// The instances of template modules that are being checked, the innermost last.
    instances: Vec<Span>,
    errors: usize,
    warnings: usize,
    stopped: bool,
    /// The features that other compilers do not have, by file and message, if they are wanted.
    features: Option<BTreeMap<(u32, &'static str), FeatureUse>>,
}

/// The first use of a feature in a file, and the number of its uses.
#[derive(Debug)]
struct FeatureUse {
    feature: &'static Feature,
    first: Span,
    uses: usize,
}

/// The number of errors after which compiling stops, and of warnings after which they are dropped.
const MAX_FINDINGS: usize = 50;

impl Sink {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            features: options.portable.then(BTreeMap::new),
            ..Self::default()
        }
    }

    /// Returns whether features that other compilers do not have are recorded.
    pub(crate) fn is_portable(&self) -> bool {
        self.features.is_some()
    }

    /// Records the use of a feature that other compilers do not have, if they are wanted.
    pub(crate) fn unportable(&mut self, feature: &'static Feature, at: Span) {
        if let Some(features) = &mut self.features {
            let found = features.entry((at.file, feature.message));
            let found = found.or_insert(FeatureUse {
                feature,
                first: at,
                uses: 0,
            });
            found.uses += 1;
            if at.start < found.first.start {
                found.first = at;
            }
        }
    }

    /// Adds a warning for each feature in a file, except for built-in files.
    fn add_features(&mut self, sources: &Sources) {
        for ((file, _), found) in self.features.take().into_iter().flatten() {
            if builtin::is_built_in(&sources.get(file).path) {
                continue;
            }
            let feature = found.feature;
            let mut item =
                Diagnostic::warning(feature.code, found.first, feature.message, "not portable")
                    .note(feature.note)
                    .hint(feature.hint);
            if found.uses > 1 {
                item = item.note(format!("{} uses in this file", found.uses));
            }
            self.items.push(item);
        }
    }

    /// Records a finding, unless one with the same code is recorded at the same place, or there are
    /// too many.
    pub(crate) fn push(&mut self, mut item: Diagnostic) {
        let count = match item.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if *count >= MAX_FINDINGS || self.stopped {
            return;
        }
        if let Some(label) = item.labels.first()
            && !self.seen.insert((item.code, label.span))
        {
            return;
        }
        *count += 1;
        for at in self.instances.iter().rev().take(3) {
            item = item.label(*at, "for this instance of the template module");
        }
        self.items.push(item);
    }

    /// Attributes findings to an instance of a template module, until [`Self::leave`].
    pub(crate) fn enter(&mut self, instance: Span) {
        self.instances.push(instance);
    }

    /// Ends the effect of [`Self::enter`].
    pub(crate) fn leave(&mut self) {
        self.instances.pop();
    }

    /// Records an error after which no further ones are searched.
    pub(crate) fn stop(&mut self, item: Diagnostic) {
        self.push(item);
        self.stopped = true;
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Returns the files of names that are defined twice, as pairs of numbers.
    pub(crate) fn duplicates(&self) -> impl Iterator<Item = (u32, u32)> {
        let twice = self
            .items
            .iter()
            .filter(|item| item.code == codes::DUPLICATE);
        twice.filter_map(|item| match item.labels.as_slice() {
            [again, first, ..] => Some((again.span.file, first.span.file)),
            _ => None,
        })
    }

    /// Returns whether the search for errors should stop.
    pub(crate) fn is_full(&self) -> bool {
        self.stopped || self.errors >= MAX_FINDINGS
    }

    /// Returns the warnings, or all findings if there are errors.
    pub(crate) fn finish(mut self, sources: &Sources) -> Result<Diagnostics, Failure> {
        if self.errors >= MAX_FINDINGS
            && let Some(last) = self
                .items
                .iter_mut()
                .rfind(|item| item.severity == Severity::Error)
        {
            last.notes
                .push(format!("stopped after {MAX_FINDINGS} errors"));
        }
        if self.errors == 0 {
            self.add_features(sources);
        }
        for label in self.items.iter_mut().flat_map(|item| &mut item.labels) {
            label.region = sources.region(label.span);
            // The span of a macro may reach into the next region.
            label.span.end = label.span.end.min(label.region.span.end);
            label.location = sources.location(label.span);
            label.end = Location {
                file: label.location.file,
                ..sources.location(label.span.after())
            };
            label.path = sources.path(label.span).to_owned();
        }
        self.drop_consequences();
        self.items.sort_by_key(|item| {
            let span = item.labels.first().map(|label| label.span);
            span.map(|span| (span.file, span.start))
        });
        let diagnostics = Diagnostics {
            items: self.items,
            files: sources.files().to_vec(),
        };
        if self.errors > 0 {
            return Err(Failure { diagnostics });
        }
        Ok(diagnostics)
    }
}

impl Sink {
    /// Drops the syntax errors in lines that the lexer or the preprocessor could not read.
    fn drop_consequences(&mut self) {
        let line = |item: &Diagnostic| {
            let label = item.labels.first()?;
            Some((label.location.file, label.location.line))
        };
        let unread: HashSet<_> = self
            .items
            .iter()
            .filter(|item| item.code.starts_with("E00"))
            .filter_map(line)
            .collect();
        self.items.retain(|item| {
            let label = item.labels.first();
            label.is_none_or(|label| label.text != END_OF_LITERAL)
        });
        self.items.retain(|item| {
            !item.code.starts_with("E01") || line(item).is_none_or(|line| !unread.contains(&line))
        });
    }
}

/// The longest line in bytes that is shown as an excerpt.
const MAX_EXCERPT: usize = 400;

/// The greatest number of lines that are put before an excerpt to give its lines their numbers.
const MAX_PADDING: usize = 20_000;

/// The texts in the form that ariadne reads. Each region is a text.
struct Excerpts<'a> {
    files: &'a [Arc<SourceFile>],
    sources: HashMap<Region, (String, Source<String>)>,
}

impl Excerpts<'_> {
    fn can_show(&mut self, label: &Label) -> bool {
        let file = &self.files[label.span.file as usize];
        let (first, _) = file.line_column(label.span.start);
        let (last, _) = file.line_column(label.span.end);
        let shown = last.saturating_sub(first) < 1000
            && (first..=last).all(|line| file.line_text(line).len() <= MAX_EXCERPT);
        if shown {
            self.sources.entry(label.region).or_insert_with(|| {
                let Span { start, end, .. } = label.region.span;
                // Preceding empty lines give the others their numbers, also in the margin.
                let padding = label.region.padding();
                let mut text = "\n".repeat(padding);
                text += &printable(&file.text[start as usize..end as usize]);
                let offset = label.region.line_offset as usize - padding;
                let source = Source::from(text).with_display_line_offset(offset);
                (printable(&label.path.display().to_string()), source)
            });
        }
        shown
    }

    /// Returns the marked characters, counted as ariadne does.
    fn range(&self, label: &Label) -> (Region, Range<usize>) {
        let text = &self.files[label.span.file as usize].text;
        let boundary = |at: u32| text.ceil_char_boundary(at as usize);
        let (start, mut end) = (boundary(label.span.start), boundary(label.span.end));
        // An empty range at the end of a line would be drawn on the next one.
        if end <= start {
            end = start + text[start..].chars().next().map_or(0, char::len_utf8);
        }
        let first = label.region.span.start as usize;
        let padding = label.region.padding();
        let characters = |at: usize| self.characters(label.region, at - first + padding);
        (label.region, characters(start)..characters(end))
    }

    /// Returns the number of characters before a byte of a region that can be shown.
    fn characters(&self, region: Region, byte: usize) -> usize {
        let counted = self.sources.get(&region).and_then(|(_, source)| {
            let (line, _, column) = source.get_byte_line(byte)?;
            let before = source.get_line_text(line)?.get(..column)?;
            Some(line.offset() + before.chars().count())
        });
        counted.unwrap_or(0)
    }
}

impl Region {
    /// Returns the number of empty lines before its text; none if there would be too many.
    fn padding(self) -> usize {
        let lines = self.line_offset as usize;
        if lines <= MAX_PADDING { lines } else { 0 }
    }
}

impl ariadne::Cache<Region> for &mut Excerpts<'_> {
    type Storage = String;

    fn fetch(&mut self, id: &Region) -> Result<&Source<String>, impl fmt::Debug> {
        let found = self.sources.get(id).map(|(_, source)| source);
        found.ok_or("a region without a text")
    }

    fn display<'a>(&self, id: &'a Region) -> Option<impl fmt::Display + 'a> {
        self.sources.get(id).map(|(path, _)| path.clone())
    }
}

/// Returns the text with every control character replaced by as many bytes of `?`.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => out.push(' '),
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push_str("???"),
            c if c.is_control() => out.extend(std::iter::repeat_n('?', c.len_utf8())),
            c => out.push(c),
        }
    }
    out
}
