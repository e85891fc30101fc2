//! The texts that are compiled, and places in them.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::builtin;
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::Location;
use crate::span::Span;

/// The greatest size of one file in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// One text.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The path as it was given or found.
    pub(crate) path: PathBuf,
    /// The text; bytes that are not UTF-8 stand in it as U+FFFD.
    pub(crate) text: Arc<str>,
    /// Whether the file has bytes that are not UTF-8.
    pub(crate) lossy: bool,
    lines: Vec<u32>,
    /// The number of characters before every multiple of [`STRIDE`]; empty if the text is ASCII.
    characters: Vec<u32>,
}

/// The number of bytes whose characters are counted to find a column.
const STRIDE: usize = 1024;

impl SourceFile {
    /// Returns line and column of a byte offset, both from 1. The column counts characters.
    pub(crate) fn line_column(&self, offset: u32) -> (u32, u32) {
        let line = self.lines.partition_point(|&start| start <= offset).max(1);
        let start = self.lines[line - 1];
        let column = self.characters_before(offset) - self.characters_before(start);
        (line as u32, column + 1)
    }

    fn characters_before(&self, offset: u32) -> u32 {
        if self.characters.is_empty() {
            return offset;
        }
        let stride = offset as usize / STRIDE;
        let rest = &self.text.as_bytes()[stride * STRIDE..offset as usize];
        self.characters[stride] + characters(rest)
    }

    /// Returns the text of a line from 1, without its end.
    pub(crate) fn line_text(&self, line: u32) -> &str {
        let start = self.lines[line as usize - 1] as usize;
        let end = self
            .lines
            .get(line as usize)
            .map_or(self.text.len(), |&next| next as usize);
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }
}

/// Returns the number of characters that begin in these bytes of UTF-8.
fn characters(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u32
}

/// Every text that was read; the main file is number 0.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    files: Vec<Arc<SourceFile>>,
    encoding: SourceEncoding,
    by_path: HashMap<PathBuf, u32>,
    by_name: HashMap<PathBuf, Name>,
    /// The files that are read instead of others.
    replaced: HashMap<u32, u32>,
    renumbered: HashMap<u32, Vec<LineDirective>>,
    /// Names that `#line` directives give, other than those of texts.
    names: Vec<PathBuf>,
}

/// The effect of a `#line` directive on the lines behind it.
#[derive(Debug)]
struct LineDirective {
    /// The offset of the line behind the directive.
    from: u32,
    /// The line of the directive.
    line: u32,
    /// The number of the next line.
    number: u32,
    name: Name,
}

/// The file of a line according to a directive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Name {
    /// The text with this number.
    Text(u32),
    /// One of [`Sources::names`].
    Given(u32),
}

/// The part of a text behind a `#line` directive, or all of a text without any.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Region {
    /// The bytes.
    pub(crate) span: Span,
    /// The number of the line before its first one.
    pub(crate) line_offset: u32,
}

/// The encoding of IDL files.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum SourceEncoding {
    /// UTF-8. Other octets are an error in names and literals, and none in comments.
    #[default]
    Utf8,
    /// ISO 8859-1, the encoding of the standard, in which each octet is a character.
    Latin1,
    /// Shift-JIS, with the extensions of Windows (code page 932).
    ShiftJis,
}

impl SourceEncoding {
    /// Returns the text, and whether it has octets that are no characters, which stand in it as
    /// U+FFFD.
    fn decode(self, bytes: Vec<u8>) -> (String, bool) {
        match self {
            Self::Utf8 => match String::from_utf8(bytes) {
                Ok(text) => (text, false),
                Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
            },
            Self::Latin1 => (bytes.into_iter().map(char::from).collect(), false),
            Self::ShiftJis => {
                let (text, lossy) = encoding_rs::SHIFT_JIS.decode_without_bom_handling(&bytes);
                (text.into_owned(), lossy)
            }
        }
    }
}

impl Sources {
    /// Creates an empty set of files with this encoding.
    pub(crate) fn new(encoding: SourceEncoding) -> Self {
        Self {
            encoding,
            ..Self::default()
        }
    }

    /// Returns the number of the file at a path, and reads it on first use.
    pub(crate) fn read(&mut self, path: &Path) -> Result<u32, ReadError> {
        let canonical = fs::canonicalize(path)?;
        if let Some(&known) = self.by_path.get(&canonical) {
            return Ok(known);
        }
        let number = self.read_from(path, open(&canonical)?)?;
        self.by_path.insert(canonical, number);
        Ok(number)
    }

    /// Adds the output of a reader as if it stood at a path.
    pub(crate) fn read_from(&mut self, path: &Path, reader: impl Read) -> Result<u32, ReadError> {
        let mut bytes = Vec::new();
        reader.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(ReadError::TooLarge);
        }
        let (text, lossy) = self.encoding.decode(bytes);
        Ok(self.add(path, text, lossy))
    }

    /// Adds a text that is no file.
    pub(crate) fn add_text(&mut self, path: &Path, text: &str) -> Result<u32, ReadError> {
        if text.len() as u64 > MAX_FILE {
            return Err(ReadError::TooLarge);
        }
        Ok(self.add(path, text.to_owned(), false))
    }

    /// Returns the number of a text that is part of the compiler.
    pub(crate) fn built_in(&mut self, name: &str, text: &str) -> u32 {
        let path = builtin::path(name);
        if let Some(&known) = self.by_path.get(&path) {
            return known;
        }
        let number = self.add(&path, text.to_owned(), false);
        self.by_path.insert(path, number);
        number
    }

    /// Reads a file instead of another one from now on, and once at most.
    pub(crate) fn replace(&mut self, other: u32, by: u32) {
        self.replaced.insert(other, by);
    }

    /// Returns the file that is read instead of this one; usually the file itself.
    pub(crate) fn replacement(&self, number: u32) -> u32 {
        self.replaced.get(&number).copied().unwrap_or(number)
    }

    /// Returns whether the file is read instead of others.
    pub(crate) fn is_replacement(&self, number: u32) -> bool {
        self.replaced.values().any(|by| *by == number)
    }

    fn add(&mut self, path: &Path, text: String, lossy: bool) -> u32 {
        let mut lines = vec![0];
        lines.extend(text.match_indices('\n').map(|(i, _)| i as u32 + 1));
        let mut before = vec![];
        if !text.is_ascii() {
            let mut count = 0;
            for stride in text.as_bytes().chunks(STRIDE) {
                before.push(count);
                count += characters(stride);
            }
            before.push(count);
        }
        self.files.push(Arc::new(SourceFile {
            path: path.to_owned(),
            text: text.into(),
            lossy,
            lines,
            characters: before,
        }));
        let number = self.files.len() as u32 - 1;
        let name = self.by_name.entry(path.to_owned());
        name.or_insert(Name::Text(number));
        number
    }

    pub(crate) fn get(&self, file: u32) -> &Arc<SourceFile> {
        &self.files[file as usize]
    }

    /// Returns the place of the start of a span, as `#line` directives say if there are any before
    /// it. Files that only they name are counted behind the others.
    pub(crate) fn location(&self, span: Span) -> Location {
        let (line, column) = self.get(span.file).line_column(span.start);
        let Some(last) = self.renumbering(span) else {
            return Location {
                file: span.file,
                line,
                column,
            };
        };
        let ahead = line - last.line;
        Location {
            file: match last.name {
                Name::Text(file) => file,
                Name::Given(name) => self.files.len() as u32 + name,
            },
            line: last.number.saturating_add(ahead).saturating_sub(1),
            column,
        }
    }

    /// Returns the path of [`Self::location`].
    pub(crate) fn path(&self, span: Span) -> &Path {
        match self.renumbering(span).map(|last| last.name) {
            Some(Name::Given(name)) => &self.names[name as usize],
            Some(Name::Text(file)) => &self.get(file).path,
            None => &self.get(span.file).path,
        }
    }

    /// Records a `#line` directive. Returns the start of the line behind it.
    pub(crate) fn renumber(&mut self, at: Span, number: u32, name: Option<&str>) -> Span {
        let file = self.get(at.file);
        let (line, _) = file.line_column(at.start);
        let Some(&from) = file.lines.get(line as usize) else {
            return at;
        };
        let name = name.map(|name| self.name(Path::new(name)));
        let list = self.renumbered.entry(at.file).or_default();
        // A file that is included again has the same directives.
        if list.last().is_none_or(|last| last.from < from) {
            let before = list.last().map_or(Name::Text(at.file), |last| last.name);
            list.push(LineDirective {
                from,
                line,
                number,
                name: name.unwrap_or(before),
            });
        }
        Span {
            file: at.file,
            start: from,
            end: from,
        }
    }

    fn name(&mut self, path: &Path) -> Name {
        if let Some(&name) = self.by_name.get(path) {
            return name;
        }
        let name = Name::Given(self.names.len() as u32);
        self.names.push(path.to_owned());
        self.by_name.insert(path.to_owned(), name);
        name
    }

    /// Returns the last `#line` directive before a place.
    fn renumbering(&self, span: Span) -> Option<&LineDirective> {
        let list = self.renumbered.get(&span.file)?;
        let index = list.partition_point(|r| r.from <= span.start);
        list.get(index.checked_sub(1)?)
    }

    /// Returns the region of a place.
    pub(crate) fn region(&self, span: Span) -> Region {
        let file = self.get(span.file);
        let list = self.renumbered.get(&span.file).map_or(&[][..], |list| list);
        let index = list.partition_point(|r| r.from <= span.start);
        let last = index.checked_sub(1).map(|before| &list[before]);
        let next = list.get(index).map(|next| next.from);
        Region {
            span: Span {
                file: span.file,
                start: last.map_or(0, |last| last.from),
                end: next.unwrap_or(file.text.len() as u32),
            },
            line_offset: last.map_or(0, |last| last.number.saturating_sub(1)),
        }
    }

    /// Returns whether a place is in the main file, also according to line directives.
    pub(crate) fn is_main(&self, span: Span) -> bool {
        let main = self.main();
        span.file == 0
            && self
                .renumbering(span)
                .is_none_or(|last| last.name == main || last.name == Name::Text(0))
    }

    /// Returns the path of the main file, also by what line directives say.
    pub(crate) fn main_path(&self) -> &Path {
        match self.main() {
            Name::Given(name) => &self.names[name as usize],
            Name::Text(file) => &self.get(file).path,
        }
    }

    fn main(&self) -> Name {
        // The output of a preprocessor begins with the name of the file that it read.
        let first = self.renumbered.get(&0).and_then(|list| list.first());
        first.map_or(Name::Text(0), |first| first.name)
    }

    /// Returns the names that only `#line` directives give.
    pub(crate) fn names(&self) -> &[PathBuf] {
        &self.names
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    pub(crate) fn paths_on_disk(&self) -> Vec<PathBuf> {
        let mut paths = self.paths();
        paths.retain(|path| !builtin::is_built_in(path));
        paths
    }

    pub(crate) fn files(&self) -> &[Arc<SourceFile>] {
        &self.files
    }
}

/// Opens a regular file. Anything else (a pipe, a device) could block or never end.
fn open(path: &Path) -> Result<File, ReadError> {
    if !fs::metadata(path)?.is_file() {
        return Err(ReadError::NotAFile);
    }
    // The file may have been replaced since the check, and some regular files of /proc block.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(ReadError::NotAFile);
    }
    Ok(file)
}

/// The error of a file that was not read.
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
    /// Returns the diagnostic for this error at the directive that asked for the file, if there is
    /// one.
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn no_file_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.idl");
        fs::write(&path, "").unwrap();
        let file = open(&path).unwrap();
        let about = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
        let about = fs::read_to_string(about).unwrap();
        let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = i32::from_str_radix(flags.unwrap().trim(), 8).unwrap();
        assert_eq!(flags & libc::O_NONBLOCK, libc::O_NONBLOCK);
    }
}
