//! Types, constants and annotations.

use arbitrary::Result;

use super::{Kind, MAX_DEPTH, Writer};

/// Types without a name that can be discriminators.
const INTEGERS: &[&str] = &[
    "short",
    "unsigned short",
    "long",
    "unsigned long",
    "long long",
    "unsigned long long",
    "octet",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
];

const OTHERS: &[&str] = &[
    "boolean",
    "char",
    "wchar",
    "float",
    "double",
    "long double",
    "string",
    "wstring",
    "any",
    "Object",
    "CORBA::TypeCode",
    "ValueBase",
];

impl Writer<'_> {
    /// A type for members and parameters.
    pub(super) fn type_spec(&mut self) -> Result<String> {
        self.depth += 1;
        let made = self.any_type();
        self.depth -= 1;
        made
    }

    fn any_type(&mut self) -> Result<String> {
        let choices = if self.depth > MAX_DEPTH { 3 } else { 7 };
        Ok(match self.below(choices)? {
            0 => self.pick(INTEGERS)?.to_owned(),
            1 => self.pick(OTHERS)?.to_owned(),
            2 => match self.known(is_type)? {
                Some(name) => name,
                None => "long".to_owned(),
            },
            3 => {
                let length = self.length()?;
                format!("{}<{length}>", self.pick(&["string", "wstring"])?)
            }
            4 => {
                let element = self.type_spec()?;
                if self.one_in(2)? {
                    format!("sequence<{element}>")
                } else {
                    format!("sequence<{element}, {}>", self.length()?)
                }
            }
            5 => {
                let digits = self.below(31)? + 1;
                format!("fixed<{digits}, {}>", self.below(digits + 1)?)
            }
            _ => {
                let (key, value) = (self.type_spec()?, self.type_spec()?);
                format!("map<{key}, {value}>")
            }
        })
    }

    /// A type for parameters, attributes and results: one with a name of its own.
    pub(super) fn param_type(&mut self) -> Result<String> {
        Ok(match self.below(3)? {
            0 => self.pick(INTEGERS)?.to_owned(),
            1 => self.pick(OTHERS)?.to_owned(),
            _ => match self.known(is_type)? {
                Some(name) => name,
                None => "string".to_owned(),
            },
        })
    }

    /// A declarator, sometimes of an array.
    pub(super) fn declarator(&mut self, name: &str) -> Result<String> {
        let mut declarator = name.to_owned();
        while self.one_in(6)? {
            let length = self.length()?;
            declarator += &format!("[{length}]");
        }
        Ok(declarator)
    }

    /// A small positive integer, or a constant that is one.
    pub(super) fn length(&mut self) -> Result<String> {
        if self.one_in(3)?
            && let Some(name) = self.known(|kind| kind == Kind::Length)?
        {
            return Ok(name);
        }
        Ok((self.below(9)? + 1).to_string())
    }

    /// A discriminator's type, and labels of it that are all different.
    pub(super) fn discriminator(&mut self) -> Result<(String, Vec<String>)> {
        let texts = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect();
        Ok(match self.below(5)? {
            0 => {
                let name = self.known(|kind| kind == Kind::Enum)?;
                match name {
                    Some(name) => {
                        let scope = name.rsplit_once("::").map_or("", |(scope, _)| scope);
                        let last = name.rsplit("::").next().unwrap_or_default();
                        let labels = (0..3).map(|i| format!("{scope}::{last}_{i}")).collect();
                        (name, labels)
                    }
                    None => ("boolean".to_owned(), texts(&["TRUE", "FALSE"])),
                }
            }
            1 => ("boolean".to_owned(), texts(&["TRUE", "FALSE"])),
            2 => (
                "char".to_owned(),
                texts(&["'a'", "'\\x42'", "'\\n'", "'\\377'"]),
            ),
            3 => (
                "wchar".to_owned(),
                texts(&["L'a'", "L'\\u20ac'", "L'\\101'"]),
            ),
            _ => {
                let name = match self.known(|kind| kind == Kind::Integer)? {
                    Some(name) if self.one_in(2)? => name,
                    _ => self.pick(INTEGERS)?.to_owned(),
                };
                (
                    name,
                    texts(&["0", "1 << 2", "7", "0x10 - 3", "100 % 30", "0100"]),
                )
            }
        })
    }

    /// A constant's type and value.
    pub(super) fn constant(&mut self) -> Result<(String, String)> {
        Ok(match self.below(8)? {
            0 => (self.pick(INTEGERS)?.to_owned(), self.integer()?),
            1 => {
                let value = self.pick(&["1.5", "-2e3", ".25", "1 / 3.0", "1e-5 * 2.0", "3."])?;
                (
                    self.pick(&["float", "double", "long double"])?.to_owned(),
                    value.to_owned(),
                )
            }
            2 => (
                "boolean".to_owned(),
                self.pick(&["TRUE", "FALSE"])?.to_owned(),
            ),
            3 => (
                "string".to_owned(),
                self.pick(&[
                    "\"\"",
                    "\"a\\tb\" \"\\x41\"",
                    "\"\\\"\\\\\"",
                    "\"??=\\0101\"",
                ])?
                .to_owned(),
            ),
            4 => (
                "wstring".to_owned(),
                self.pick(&["L\"\"", "L\"\\u00e9\" L\"x\"", "L\"\\\\\""])?
                    .to_owned(),
            ),
            5 => (
                "char".to_owned(),
                self.pick(&["'a'", "'\\''", "'\\0'", "'\"'"])?.to_owned(),
            ),
            6 => (
                "wchar".to_owned(),
                self.pick(&["L'a'", "L'\\u2260'"])?.to_owned(),
            ),
            _ => (
                "fixed".to_owned(),
                self.pick(&["1.5d", "0.001d", "12d * 2.50d", "1d / 3d", "-0.5D + 1d"])?
                    .to_owned(),
            ),
        })
    }

    /// An integer expression with a small positive value.
    fn integer(&mut self) -> Result<String> {
        self.depth += 1;
        let value = if self.depth > MAX_DEPTH {
            "1".to_owned()
        } else {
            match self.below(6)? {
                0 => (self.below(8)? + 1).to_string(),
                1 => self.length()?,
                2 => format!("({} + {})", self.integer()?, self.integer()?),
                3 => format!("({} | {} & 3)", self.integer()?, self.integer()?),
                4 => format!("({} % 3 + 1)", self.integer()?),
                _ => format!("(1 << {} % 2)", self.integer()?),
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    /// Sometimes annotations that fit a member, each with a blank behind it.
    pub(super) fn annotations(&mut self) -> Result<&'static str> {
        if !self.one_in(4)? {
            return Ok("");
        }
        self.pick(&[
            "@key ",
            "@optional ",
            "@unit(\"m\") ",
            "@external ",
            "@must_understand @id(7) ",
            "@hashid(\"x\") ",
            "@verbatim(language = \"c++\", text = \"// x\") ",
            "@rust::name(\"renamed\") ",
            "@default_literal ",
            "/** documented */ ",
        ])
    }
}

/// Whether values of this kind can be sent.
fn is_type(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Exception | Kind::Length | Kind::Interface { local: true, .. }
    )
}
