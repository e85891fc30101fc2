//! Collisions of Rust names within one scope, and the second names that resolve them.

use std::collections::HashMap;
use std::fmt;

use chronorb_idl::model::{Location, Model};

use crate::generate::GenerateError;

/// The place of a name in the IDL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// A description of the definition, for example ``operation `getQuote` ``.
    pub what: String,
    /// `file:line:column`.
    pub at: String,
}

impl Place {
    pub(crate) fn of(model: &Model, what: &str, name: &str, location: &Location) -> Self {
        Self {
            what: format!("{what} `{name}`"),
            at: Self::at(model, location),
        }
    }

    /// `file:line:column`.
    pub(crate) fn at(model: &Model, location: &Location) -> String {
        let file = model.path(location);
        let file = file.map_or_else(|| "<input>".to_owned(), |f| f.display().to_string());
        format!("{file}:{}:{}", location.line, location.column)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.what, self.at)
    }
}

/// A definition with another Rust name than its IDL name gives, because an earlier definition in
/// the same scope has that one.
///
/// Its text is a warning with both places and a hint.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{second} is `{rust_name}` in Rust, because {first} has the name `{wanted}`\n  \
     hint: another name is given with @rust::name(\"…\") or Builder::rename"
)]
pub struct SecondName {
    /// The Rust name that both would have.
    pub wanted: String,
    /// The Rust name of the second one.
    pub rust_name: String,
    /// The owner of the wanted name.
    pub first: Place,
    /// The definition that gets the second name.
    pub second: Place,
}

/// The Rust names that are taken in one scope, and their owners.
#[derive(Debug, Default)]
pub(crate) struct Claims(HashMap<String, Place>);

impl Claims {
    /// Takes the name; fails if it is taken.
    pub(crate) fn claim(&mut self, name: &str, place: Place) -> Result<(), GenerateError> {
        match self.0.insert(name.to_owned(), place.clone()) {
            None => Ok(()),
            Some(first) => Err(GenerateError::Collision {
                rust_name: name.to_owned(),
                first,
                second: place,
            }),
        }
    }

    /// Takes the names that `all` derives from `wanted`, or from `wanted` with as many underscores
    /// behind it as make them free. Returns the first of them, and the owner of the wanted name if
    /// it is taken. A name that was `given` is not changed.
    pub(crate) fn claim_distinct(
        &mut self,
        wanted: &str,
        given: bool,
        place: &Place,
        all: impl Fn(&str) -> Vec<String>,
    ) -> Result<(String, Option<SecondName>), GenerateError> {
        let mut rust_name = wanted.to_owned();
        let owner = |claims: &Self, name: &str| {
            let mut names = all(name).into_iter();
            names.find_map(|name| claims.0.get(&name).cloned())
        };
        let first = owner(self, wanted);
        if !given {
            while owner(self, &rust_name).is_some() {
                rust_name.push('_');
            }
        }
        for name in all(&rust_name) {
            self.claim(&name, place.clone())?;
        }
        let second = first.map(|first| SecondName {
            wanted: wanted.to_owned(),
            rust_name: rust_name.clone(),
            first,
            second: place.clone(),
        });
        Ok((rust_name, second))
    }

    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
