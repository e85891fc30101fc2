//! Texts of the IDL as Markdown without code for `rustdoc`.
//!
//! `rustdoc` compiles and runs the code blocks of comments that name no other language, in lists
//! and block quotes too, and passes HTML on to its pages. Therefore each code block is one that
//! this module writes, with the language `text`, and there is no HTML.

/// Returns the text as Markdown without code and HTML.
///
/// Fenced code blocks keep their lines. Other lines are not indented, and have one blank between
/// words, so that none is an indented code block within a list or quote.
pub(crate) fn tamed(text: &str) -> String {
    let text = text.replace('\t', "    ");
    let mut lines = text.lines();
    let mut tamed: Vec<String> = Vec::new();
    while let Some(line) = lines.next() {
        let Some(fence) = Fence::opening(line.trim()) else {
            tamed.push(escaped(&words(line)));
            continue;
        };
        let content = lines.by_ref().take_while(|line| !fence.is_closed_by(line));
        let content: Vec<String> = content.map(fit).collect();
        let longest = content.iter().map(|line| longest_run(line)).max();
        let marks = "`".repeat(longest.map_or(0, |longest| longest + 1).max(3));
        // Otherwise a paragraph or the title of a link could continue in the fence.
        tamed.push(String::new());
        tamed.push(format!("{marks}text"));
        tamed.extend(content);
        tamed.push(marks);
    }
    tamed.join("\n")
}

/// Returns whether a character may not be in a comment of Rust: control characters, and those that
/// change the direction of the text.
pub(crate) fn is_unfit(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the line without characters that may not be in a comment.
fn fit(line: &str) -> String {
    line.replace(is_unfit, " ").trim_end().to_owned()
}

/// Returns the words of a line with one blank between them.
fn words(line: &str) -> String {
    let words = line.split(|c| c == ' ' || is_unfit(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Returns the line with references to characters in place of those that could begin code or HTML.
///
/// A piece between two single backticks stays as it is, unless it has a `<`: the first of them may
/// belong to the address of a link.
fn escaped(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['\\', '`', '~', '<', '[']) {
        escaped.push_str(&rest[..at]);
        rest = &rest[at..];
        let c = char::from(rest.as_bytes()[0]);
        let run = rest.len() - rest.trim_start_matches(c).len();
        let taken = match c {
            '\\' => {
                let next = rest[1..].chars().next().filter(char::is_ascii_punctuation);
                match next {
                    Some('`') => escaped.push_str("&#96;"),
                    Some('<') => escaped.push_str("&lt;"),
                    Some(next) => escaped.extend(['\\', next]),
                    None => escaped.push('\\'),
                }
                1 + next.map_or(0, char::len_utf8)
            }
            '`' => match code_span(rest) {
                Some(span) if span.contains('<') => {
                    let inner = self::escaped(&span[1..span.len() - 1]);
                    escaped.extend(["&#96;", &inner, "&#96;"]);
                    span.len()
                }
                Some(span) => {
                    escaped.push_str(span);
                    span.len()
                }
                None => {
                    escaped.push_str(&"&#96;".repeat(run));
                    run
                }
            },
            '~' => {
                let mark = if run >= 3 { "&#126;" } else { "~" };
                escaped.push_str(&mark.repeat(run));
                run
            }
            '<' => {
                escaped.push_str(&"&lt;".repeat(run));
                run
            }
            // A footnote may contain blocks.
            '[' if rest.starts_with("[^") => {
                escaped.push_str("&#91;");
                1
            }
            _ => {
                escaped.push(c);
                1
            }
        };
        rest = &rest[taken..];
    }
    escaped + rest
}

/// Returns the piece between single backticks, with them, that a text begins with.
fn code_span(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('`')?;
    let end = inner.find('`').filter(|&end| end > 0)?;
    let span = &text[..end + 2];
    (!text[span.len()..].starts_with('`')).then_some(span)
}

/// Returns the length of the longest run of backticks.
fn longest_run(line: &str) -> usize {
    let runs = line.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// The opening of a fenced code block.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn opening(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = line.trim_start_matches(mark);
        let length = line.len() - info.len();
        (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self { mark, length })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

    use super::*;

    /// Returns the options of `rustdoc`.
    fn options() -> Options {
        Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_SMART_PUNCTUATION
    }

    /// Returns the parts of the Markdown that would be compiled, or are HTML.
    fn code(markdown: &str) -> Vec<String> {
        let code = Parser::new_ext(markdown, options()).filter(|event| match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => &**info != "text",
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented) | Tag::HtmlBlock)
            | Event::Html(_)
            | Event::InlineHtml(_) => true,
            _ => false,
        });
        code.map(|event| format!("{event:?}")).collect()
    }

    #[test]
    fn code_blocks_become_text() {
        let text = "Use:\n\n    quoter.ping(1);\n```\n  x;\n```\nend";
        let expected = "Use:\n\nquoter.ping(1);\n\n```text\n  x;\n```\nend";
        assert_eq!(tamed(text), expected);
        assert_eq!(tamed("~~~idl\n```\n\ty;"), "\n````text\n```\n    y;\n````");
    }

    #[test]
    fn ordinary_comments_stay_as_they_are() {
        for text in [
            "A quote of `sequence` & more, ~5 % or ~~less~~; see [here](http://a.b/c_d).",
            "- one\n- two\n\n| a | b |\n|---|---|\n| `1` | *2* |\n\n> said\n\n# Heading",
        ] {
            assert_eq!(tamed(text), text);
        }
        assert_eq!(
            tamed("sequence<long> of `map<a, b>` or \\`x\\`"),
            "sequence&lt;long> of &#96;map&lt;a, b>&#96; or &#96;x&#96;"
        );
    }

    #[test]
    fn code_in_lists_quotes_and_html_is_none() {
        for text in [
            "> ```\n> fn main() {}\n> ```",
            "- ```\n  fn main() {}",
            "1. ~~~\n   fn main() {}",
            "-     fn main() {}",
            ">\t\tfn main() {}",
            "[^a]: ```\n    x",
            "[^`x]:<script>`\n```\n\n    fn main() {}",
            "<div>\n```\n\n    fn main() {}\n</div>",
            "<!--\n```\n-->\n\n    fn main() {}",
            "| `a | <b> | c` |\n|--|--|--|\n| `a | <b> | c` |",
            "[](`1)<div>`",
            "a\r\r    fn main() {}",
            "- a\n\n\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}fn main() {}",
            "``` `x\n    fn main() {}",
            "````\n```\nx\n```\n````\n```\ny",
            "\\\\`<b>`",
        ] {
            let tamed = tamed(text);
            assert_eq!(code(&tamed), [""; 0], "{tamed}");
        }
        assert!(
            !code("> ```\n> fn main() {}\n> ```").is_empty(),
            "the test sees code"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn no_text_becomes_code(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "\n", "\n", "\n", "\n\n", " ", "  ", "    ", "\t", "`", "``", "```", "````",
                    "~~~", "~", "> ", ">", "- ", "-", "* ", "+ ", "1. ", "1)", "<div>",
                    "<script>", "</script>", "<!--", "-->", "<?", "<!X", "<![CDATA[", "<b>", "<",
                    "|", "---", "===", "[^a]: ", "[^`", "]: ", "[a]: b '", "'", "\"", "\\", "&",
                    "&#96;", "x", "rust", "fn main() {}", "#", "[", "](", "[ ] ", ":", "$", "!",
                    "\u{1}", "\r", "\u{a0}", "é",
                ]),
                0..40,
            )
        ) {
            let tamed = tamed(&pieces.concat());
            prop_assert_eq!(code(&tamed), [""; 0], "{}", tamed);
        }
    }
}
