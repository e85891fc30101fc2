//! IDL that is written from the octets: most of it is correct.

mod definitions;
mod types;

use arbitrary::{Result, Unstructured};
use chronorb_build::{GenerateError, GenerateOptions, generate, real_time_annotations};
use chronorb_idl::{Options, compile_text, preprocess_text};

/// Writes IDL from `data`, compiles it, and what is correct to Rust, which has to be Rust. What the
/// preprocessor makes of it has to compile to the same.
pub fn idl_grammar(data: &[u8]) {
    let text = idl(data);
    let Ok(compilation) = compile_text(NAME, &text, &Options::default()) else {
        return;
    };
    let model = &compilation.model;
    let preprocessed = match preprocess_text(NAME, &text, &Options::default()) {
        Ok(preprocessed) => preprocessed.text,
        Err(failure) => panic!("correct, but not for the preprocessor:\n{failure}\n{text}"),
    };
    match compile_text(NAME, &preprocessed, &Options::default()) {
        Ok(again) => {
            let ids = |definitions: &[chronorb_idl::model::Definition]| -> Vec<_> {
                let ids = definitions.iter().map(|d| d.repository_id.clone());
                ids.collect()
            };
            assert_eq!(ids(&again.model.definitions), ids(&model.definitions));
        }
        Err(failure) => panic!("preprocessed it is wrong:\n{failure}\n{text}\n{preprocessed}"),
    }
    real_time_annotations(model);
    // What is built in would be generated again and again.
    let mut options = GenerateOptions::default();
    options.extern_paths = ["CORBA", "Components"]
        .map(|module| (format!("::{module}"), "::built_in".to_owned()))
        .to_vec();
    // That the text is Rust is looked at by the generator, item by item.
    if let Err(error @ GenerateError::Internal(_)) = generate(model, &options) {
        panic!("{error}\n{text}");
    }
}

/// The IDL that the octets stand for.
pub fn idl(data: &[u8]) -> String {
    let mut writer = Writer {
        data: Unstructured::new(data),
        out: String::new(),
        path: Vec::new(),
        known: Vec::new(),
        next: 0,
        depth: 0,
    };
    // It ends where the octets do; what is written until then is closed.
    let _ = writer.file();
    while let Some(open) = writer.path.pop() {
        writer.out.push_str(open.close);
    }
    writer.out
}

const NAME: &str = "no such directory/fuzz.idl";

/// The most definitions of a file.
const MAX_DEFINITIONS: usize = 60;
/// The deepest nesting of types and expressions.
const MAX_DEPTH: usize = 5;

/// The kind of definition that a name stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Interface {
        local: bool,
        is_abstract: bool,
    },
    /// A type that may be a member.
    Type,
    /// A type that may be a discriminator, a key, and a constant's.
    Integer,
    Struct,
    Exception,
    Enum,
    Bitset,
    Value {
        is_abstract: bool,
    },
    Event,
    Component,
    /// A constant that is a small positive integer.
    Length,
}

/// A name that can be used from everywhere.
#[derive(Clone, Debug)]
struct KnownName {
    name: String,
    kind: Kind,
}

/// A scope that is being written.
struct Open {
    name: String,
    close: &'static str,
}

struct Writer<'a> {
    data: Unstructured<'a>,
    out: String,
    path: Vec<Open>,
    known: Vec<KnownName>,
    next: usize,
    depth: usize,
}

impl Writer<'_> {
    /// One of the numbers below `end`; runs out with the octets.
    fn below(&mut self, end: usize) -> Result<usize> {
        if self.data.is_empty() {
            return Err(arbitrary::Error::NotEnoughData);
        }
        self.data.int_in_range(0..=end - 1)
    }

    fn one_in(&mut self, chances: usize) -> Result<bool> {
        Ok(self.below(chances)? == 0)
    }

    fn pick(&mut self, texts: &[&'static str]) -> Result<&'static str> {
        Ok(texts[self.below(texts.len())?])
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A new identifier.
    fn fresh(&mut self, stem: &str) -> String {
        self.next += 1;
        format!("{stem}{}", self.next)
    }

    /// The name from the outermost scope on.
    fn absolute(&self, name: &str) -> String {
        let scopes: String = self
            .path
            .iter()
            .map(|open| open.name.clone() + "::")
            .collect();
        format!("::{scopes}{name}")
    }

    fn learn(&mut self, name: &str, kind: Kind) {
        let name = self.absolute(name);
        self.known.push(KnownName { name, kind });
    }

    /// One of the known names for which `fits` holds.
    fn known(&mut self, fits: impl Fn(Kind) -> bool) -> Result<Option<String>> {
        let names: Vec<usize> = (0..self.known.len())
            .filter(|&i| fits(self.known[i].kind))
            .collect();
        match names.len() {
            0 => Ok(None),
            count => {
                let index = names[self.below(count)?];
                Ok(Some(self.known[index].name.clone()))
            }
        }
    }

    /// Different known names, at most three.
    fn several(&mut self, fits: impl Fn(Kind) -> bool + Copy) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for _ in 0..self.below(4)? {
            if let Some(name) = self.known(fits)?
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&mut self, name: &str, close: &'static str) {
        self.put(" {\n");
        self.path.push(Open {
            name: name.to_owned(),
            close,
        });
    }

    fn close(&mut self) {
        if let Some(open) = self.path.pop() {
            self.put(open.close);
        }
    }
}
