use chronorb_build::{GenerateError, GenerateOptions, generate, real_time_annotations};
use chronorb_idl::{Options, compile_text};

/// Compiles `data` as an IDL file, and what is correct to Rust.
pub fn idl_source(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match compile_text(NAME, &text, &Options::default()) {
        Ok(compilation) => {
            compilation.warnings.render(false);
            real_time_annotations(&compilation.model);
            let rust = generate(&compilation.model, &GenerateOptions::default());
            if let Err(error @ GenerateError::Internal(_)) = rust {
                panic!("{error}");
            }
        }
        Err(failure) => {
            assert!(failure.diagnostics.iter().next().is_some());
            failure.diagnostics.render(false);
        }
    }
}

/// A file in a directory that is not there, so that no `#include` finds
/// anything beside it.
const NAME: &str = "no such directory/fuzz.idl";
