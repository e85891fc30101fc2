//! Collisions of Rust names within one scope.

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

    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
