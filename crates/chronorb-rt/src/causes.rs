//! Errors for people, with their causes.

use std::error::Error;
use std::fmt::Write as _;

/// Returns the text of an error, followed by those of its causes that it does not contain already.
///
/// Many errors say what failed, and leave the reason of the operating system to their
/// [source](Error::source).
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let told = cause.to_string();
        if !text.contains(&told) {
            let _ = write!(text, ": {told}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Layer {
        #[error("the directory {0} cannot be used")]
        Directory(&'static str, #[source] Box<Self>),
        #[error("the file cannot be written: {0}")]
        File(#[source] io::Error),
    }

    #[test]
    fn each_cause_is_told_once() {
        let full = || io::Error::from_raw_os_error(28);
        let file = Layer::File(full());
        assert_eq!(with_causes(&file), file.to_string());
        let directory = Layer::Directory("/x", Box::new(file));
        assert_eq!(
            with_causes(&directory),
            format!(
                "the directory /x cannot be used: the file cannot be written: {}",
                full()
            )
        );
        assert_eq!(with_causes(&full()), full().to_string());
    }
}
