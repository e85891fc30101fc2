//! Generated IDL: many modules that have everything and use each other.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::measure::{cost, median, ms};
use super::{chronorb, make};
use crate::run::Failure;

/// Runs of each command, of which the median counts.
const RUNS: usize = 5;

/// The number of lines from which the time of a check is compared with that of the model.
const JUDGED: usize = 10_000;

/// Prints what checking, printing the model and generating take for a quarter, a half and all of
/// the lines.
pub(super) fn table(folder: &Path, most: usize) -> Result<(), Failure> {
    println!("generated IDL, median of {RUNS} runs; ns/line tells whether time is linear");
    println!(
        "{:>8} {:>10} {:>9} {:>9} {:>10} {:>9} {:>9} {:>11} {:>9} {:>9}",
        "lines",
        "check ms",
        "ns/line",
        "MiB",
        "model ms",
        "ns/line",
        "MiB",
        "rust ms",
        "ns/line",
        "MiB"
    );
    let out = folder.join("rust");
    make(&out)?;
    for lines in [most / 8, most / 4, most / 2, most] {
        let file = folder.join(format!("generated_{lines}.idl"));
        let text = text(lines);
        let lines = text.lines().count();
        fs::write(&file, text).map_err(|e| Failure(format!("{}: {e}", file.display())))?;
        let mut row = format!("{lines:>8}");
        let mut medians = Vec::new();
        for (command, width) in [("check", 10), ("model", 10), ("rust", 11)] {
            let (mut times, mut peaks) = (Vec::new(), Vec::new());
            for _ in 0..RUNS {
                let mut chronorb = Command::new(chronorb());
                chronorb.args(["idl", command]).arg(&file);
                if command == "rust" {
                    chronorb.arg("--out").arg(&out);
                    // A file that is there already would be compared, not written.
                    let _ = fs::remove_dir_all(&out);
                }
                let cost = cost(&mut chronorb)?;
                times.push(cost.time);
                peaks.push(cost.memory);
            }
            let time = median(&times).unwrap_or_default();
            medians.push(time);
            let memory = peaks.into_iter().max().unwrap_or(0);
            let _ = write!(
                row,
                " {:>width$} {:>9} {:>9}",
                ms(time),
                time.as_nanos() / lines as u128,
                memory / 1024
            );
        }
        println!("{row}");
        if let [check, model, _] = medians[..]
            && lines >= JUDGED
            && check > 2 * model
        {
            return Err(Failure(format!(
                "checking {lines} lines takes {} ms, more than twice the {} ms of the model",
                ms(check),
                ms(model)
            )));
        }
    }
    Ok(())
}

/// At least so many lines of IDL, the same each time.
fn text(lines: usize) -> String {
    let mut text = String::from("#pragma prefix \"speed.example.org\"\n");
    let mut count = 1;
    let mut number = 0;
    while count < lines {
        let module = module(number);
        count += module.lines().count();
        text += &module;
        number += 1;
    }
    text
}

/// A module that uses the one before it.
fn module(number: usize) -> String {
    let before = number.saturating_sub(1);
    // The first module has nothing before it.
    let (point, base) = match number {
        0 => ("Place".to_owned(), String::new()),
        _ => (format!("M{before}::Point"), format!(" : M{before}::Store")),
    };
    let derived = match number % 4 {
        // Chains of bases end, as those of people do.
        0 => String::new(),
        _ => base,
    };
    let mut text = format!("module M{number} {{\n");
    let _ = write!(
        text,
        "  const long SIZE = ({number} % 97 + 3) * 4;\n\
         \x20 const string NAME = \"module \" \"{number}\";\n\
         \x20 enum Color {{ RED, GREEN, BLUE }};\n\
         \x20 typedef sequence<double, SIZE> Series;\n\
         \x20 typedef string<64> Label;\n\
         \x20 typedef long Matrix[4][SIZE];\n\
         \x20 struct Place {{ long line; long column; }};\n\
         \x20 /** A point with everything\n   * that it needs. */\n\
         \x20 struct Point {{\n"
    );
    for member in 0..8 {
        let _ = writeln!(text, "    double coordinate_{member};");
    }
    let _ = write!(
        text,
        "    Label tag;\n    Series values;\n    Color hue;\n    Matrix grid;\n  }};\n\
         \x20 typedef sequence<Point> Points;\n\
         \x20 union Shape switch (Color) {{\n    case RED: Point one;\n    case GREEN: Points \
         many;\n\
         \x20   default: string text;\n  }};\n\
         \x20 exception Missing {{ Label tag; unsigned long index; }};\n\
         \x20 exception Full {{ }};\n\
         \x20 interface Store{derived} {{\n\
         \x20   readonly attribute unsigned long size_{number};\n\
         \x20   attribute Label label_{number};\n"
    );
    for operation in 0..6 {
        let _ = write!(
            text,
            "    Points find_{number}_{operation}(in Label name, in {point} from, out Shape \
             found)\n\
             \x20     raises (Missing, Full);\n"
        );
    }
    let _ = write!(
        text,
        "    oneway void notify_{number}(in Shape what, in long long time);\n  }};\n\
         \x20 interface Reader {{\n    Store open(in string name) raises (Missing);\n    any \
         read(in Color what);\n  }};\n}};\n"
    );
    text
}
