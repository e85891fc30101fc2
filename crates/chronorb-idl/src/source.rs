//! The texts that are compiled, and places in them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::Location;

/// The greatest size of one file in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Bytes `start..end` of a file.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Span {
    pub(crate) file: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// From the start of this to the end of the other, or this alone when they stand in different files.
    pub(crate) fn to(self, other: Self) -> Self {
        if other.file == self.file && other.end >= self.start {
            Self {
                end: other.end,
                ..self
            }
        } else {
            self
        }
    }

    /// The empty span behind this.
    pub(crate) fn after(self) -> Self {
        Self {
            start: self.end,
            ..self
        }
    }
}

/// One text.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The path as it was given or found.
    pub(crate) path: PathBuf,
    /// The text; bytes that are not UTF-8 stand in it as U+FFFD.
    pub(crate) text: Arc<str>,
    /// Whether there were such bytes.
    pub(crate) lossy: bool,
    lines: Vec<u32>,
}

impl SourceFile {
    /// Line and column of a byte offset, both from 1; the column counts characters.
    pub(crate) fn line_column(&self, offset: u32) -> (u32, u32) {
        let line = self.lines.partition_point(|&start| start <= offset).max(1);
        let start = self.lines[line - 1] as usize;
        let before = self.text.get(start..offset as usize).unwrap_or("");
        (line as u32, before.chars().count() as u32 + 1)
    }

    /// The text of a line from 1, without its end.
    pub(crate) fn line_text(&self, line: u32) -> &str {
        let start = self.lines[line as usize - 1] as usize;
        let end = self
            .lines
            .get(line as usize)
            .map_or(self.text.len(), |&next| next as usize);
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }
}

/// Every text that was read; the main file is number 0.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    files: Vec<Arc<SourceFile>>,
    by_path: HashMap<PathBuf, u32>,
    renumbered: HashMap<u32, Vec<Renumbering>>,
}

/// What a `#line` directive says about the lines behind it.
#[derive(Debug)]
struct Renumbering {
    /// The offset of the directive.
    offset: u32,
    /// Its line.
    line: u32,
    /// The number that the next line is given.
    number: u32,
    name: Option<String>,
}

impl Sources {
    /// The number of the file at a path, which is read unless it was read before.
    pub(crate) fn read(&mut self, path: &Path) -> Result<u32, ReadError> {
        let canonical = fs::canonicalize(path)?;
        if let Some(&known) = self.by_path.get(&canonical) {
            return Ok(known);
        }
        // Anything but a regular file (a pipe, a device) could block or never end.
        if !fs::metadata(&canonical)?.is_file() {
            return Err(ReadError::NotAFile);
        }
        let mut bytes = Vec::new();
        File::open(&canonical)?
            .take(MAX_FILE + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(ReadError::TooLarge);
        }
        let (text, lossy) = match String::from_utf8(bytes) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        let number = self.add(path, text, lossy);
        self.by_path.insert(canonical, number);
        Ok(number)
    }

    /// Adds a text that is no file.
    pub(crate) fn add_text(&mut self, path: &Path, text: &str) -> Result<u32, ReadError> {
        if text.len() as u64 > MAX_FILE {
            return Err(ReadError::TooLarge);
        }
        Ok(self.add(path, text.to_owned(), false))
    }

    fn add(&mut self, path: &Path, text: String, lossy: bool) -> u32 {
        let mut lines = vec![0];
        lines.extend(text.match_indices('\n').map(|(i, _)| i as u32 + 1));
        self.files.push(Arc::new(SourceFile {
            path: path.to_owned(),
            text: text.into(),
            lossy,
            lines,
        }));
        self.files.len() as u32 - 1
    }

    pub(crate) fn get(&self, file: u32) -> &Arc<SourceFile> {
        &self.files[file as usize]
    }

    pub(crate) fn location(&self, span: Span) -> Location {
        let (line, column) = self.get(span.file).line_column(span.start);
        Location {
            file: span.file,
            line,
            column,
        }
    }

    /// Notes a `#line` directive.
    pub(crate) fn renumber(&mut self, at: Span, number: u32, name: Option<String>) {
        let line = self.location(at).line;
        let list = self.renumbered.entry(at.file).or_default();
        // A file that is included again brings the same directives.
        if list.last().is_none_or(|last| last.offset < at.start) {
            let name = name.or_else(|| list.last().and_then(|last| last.name.clone()));
            list.push(Renumbering {
                offset: at.start,
                line,
                number,
                name,
            });
        }
    }

    /// The file name and line that `#line` directives give to a place, if there are any before it.
    pub(crate) fn renumbered(&self, span: Span) -> Option<(Option<&str>, u32)> {
        let list = self.renumbered.get(&span.file)?;
        let index = list
            .partition_point(|r| r.offset <= span.start)
            .checked_sub(1)?;
        let last = &list[index];
        let ahead = self.location(span).line - last.line;
        let line = last.number.saturating_add(ahead).saturating_sub(1);
        Some((last.name.as_deref(), line))
    }

    /// Whether a place is in the main file, also by what line directives say.
    pub(crate) fn is_main(&self, span: Span) -> bool {
        // The output of a preprocessor begins with the name of the file that it read.
        let first = self.renumbered.get(&0).and_then(|list| list.first());
        let main = first.and_then(|first| first.name.as_deref());
        span.file == 0
            && self
                .renumbered(span)
                .and_then(|(name, _)| name)
                .is_none_or(|name| Some(name) == main)
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    pub(crate) fn files(&self) -> &[Arc<SourceFile>] {
        &self.files
    }
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("it is larger than 16 MiB")]
    TooLarge,
    #[error("it is not a regular file")]
    NotAFile,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ReadError {
    /// The diagnostic for this error at the directive that asked for the file, if there is one.
    pub(crate) fn into_diagnostic(self, path: &Path, at: Option<Span>) -> Diagnostic {
        let code = match self {
            Self::TooLarge => codes::FILE_TOO_LARGE,
            Self::NotAFile | Self::Io(_) => codes::UNREADABLE,
        };
        let message = format!("cannot read `{}`: {self}", path.display());
        match at {
            Some(span) => Diagnostic::error(code, span, message, "asked for here"),
            None => Diagnostic::without_place(code, message),
        }
    }
}
