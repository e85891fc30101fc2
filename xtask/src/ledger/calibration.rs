//! The calibration job: rustc compiles a fixed source, as most of CI does, one copy for each
//! processor at the same time, since processors that share a core slow each other.

use std::fs;
use std::process::Command;
use std::thread;

use crate::run::{Failure, own_processor_seconds, target_dir};

/// Runs the job, and returns the processor seconds of a copy.
pub(super) fn run() -> Result<f64, Failure> {
    let folder = target_dir().join("calibration");
    let source = folder.join("calibration.rs");
    let bad = |e: std::io::Error| Failure(format!("{}: {e}", source.display()));
    fs::create_dir_all(&folder).map_err(bad)?;
    fs::write(&source, text()).map_err(bad)?;
    let copies = thread::available_parallelism().map_or(1, usize::from);
    let before = own_processor_seconds();
    let mut compilers = Vec::new();
    for copy in 0..copies {
        let mut command = Command::new("rustc");
        command
            .args([
                "--edition=2024",
                "--crate-type=rlib",
                "-Copt-level=1",
                "-Ccodegen-units=1",
            ])
            .arg("-o")
            .arg(folder.join(format!("libcalibration{copy}.rlib")))
            .arg(&source);
        compilers.push(command.spawn().map_err(bad)?);
    }
    for mut compiler in compilers {
        let status = compiler.wait().map_err(bad)?;
        if !status.success() {
            return Err(Failure(format!("rustc {}: {status}", source.display())));
        }
    }
    Ok((own_processor_seconds() - before) / copies as f64)
}

fn text() -> String {
    let modules = (0..MODULES).map(|number| MODULE.replace('@', &number.to_string()));
    modules.collect()
}

/// A change of these changes all records.
const MODULES: u32 = 5;
const MODULE: &str = "\
pub mod part_@ {
    use std::collections::BTreeMap;
    use std::fmt;

    #[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
    pub struct Row {
        pub name: String,
        pub values: Vec<u64>,
        pub next: Option<Box<Row>>,
    }

    #[derive(Clone, Debug)]
    pub enum Order {
        Insert(Row),
        Remove { name: String },
        Scale(u64),
    }

    impl fmt::Display for Order {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Insert(row) => write!(f, \"insert {} {:?}\", row.name, row.values),
                Self::Remove { name } => write!(f, \"remove {name}\"),
                Self::Scale(factor) => write!(f, \"scale {factor:>8}\"),
            }
        }
    }

    pub fn apply(rows: &mut BTreeMap<String, Row>, orders: &[Order]) -> Result<u64, String> {
        let mut sum = @;
        for order in orders {
            match order {
                Order::Insert(row) if rows.contains_key(&row.name) => {
                    return Err(format!(\"{order} in part @\"));
                }
                Order::Insert(row) => drop(rows.insert(row.name.clone(), row.clone())),
                Order::Remove { name } => {
                    let row = rows.remove(name).ok_or_else(|| order.to_string())?;
                    sum += row.values.iter().copied().max().unwrap_or(@);
                }
                Order::Scale(factor) => rows.values_mut().for_each(|row| {
                    row.values.iter_mut().for_each(|value| *value = value.wrapping_mul(*factor));
                }),
            }
        }
        let mut sorted: Vec<_> = rows.values().collect();
        sorted.sort_by(|a, b| b.cmp(a));
        Ok(sorted.iter().flat_map(|row| &row.values).fold(sum, |sum, value| sum ^ value))
    }
}
";
