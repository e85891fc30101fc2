//! The time and memory of the IDL compiler: on generated IDL of growing size, and on the IDL of the
//! COS services beside omniidl.

mod cos;
mod generated;
mod measure;

use std::path::PathBuf;

use crate::run::{self, Failure};

/// Measures and prints both tables. `options` may hold the greatest number of lines, and
/// `--generated` or `--cos` for one of the tables alone.
pub(crate) fn idl_speed(options: &[&str]) -> Result<(), Failure> {
    let mut most = 100_000;
    let (mut with_generated, mut with_cos) = (true, true);
    for option in options {
        match *option {
            "--generated" => with_cos = false,
            "--cos" => with_generated = false,
            lines => {
                most = lines
                    .parse()
                    .ok()
                    .filter(|lines| (1000..=1_000_000).contains(lines))
                    .ok_or_else(|| Failure(format!("{lines:?}: not 1000 to 1000000 lines")))?;
            }
        }
    }
    run::cargo(&["build", "--release", "--package", "chronorb-cli"], &[])?;
    let folder = run::target_dir().join("idl-speed");
    make(&folder)?;
    if with_generated {
        generated::table(&folder, most)?;
    }
    if with_cos {
        cos::table(&folder)?;
    }
    Ok(())
}

/// The command that was built.
fn chronorb() -> PathBuf {
    run::target_dir().join("release/chronorb")
}

fn make(folder: &std::path::Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure(format!("{}: {error}", folder.display())))
}
