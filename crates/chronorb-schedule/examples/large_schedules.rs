//! The processor time to check large schedules: assignment, room and bottleneck, and the execution
//! times with which one fits that does not.
//!
//! `cargo run --release -p chronorb-schedule --example large_schedules -- FOLDER` makes schedules
//! of three shapes with 10, 100, 1,000 and 5,000 operations, writes them to the folder and prints a
//! table of seconds. Other arguments are schedules to measure instead.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use chronorb_schedule::Schedule;

/// The periods of operations, in milliseconds.
const PERIODS: [u64; 8] = [10, 20, 25, 40, 50, 100, 200, 500];

/// The operations whose execution time `chronorb sched check` looks at.
const CANDIDATES: usize = 200;
/// The changes that it shows.
const SHOWN: usize = 3;

/// The arrangement of operations.
#[derive(Clone, Copy)]
enum Shape {
    OneProcessor,
    /// Fifty operations to a node.
    Nodes,
    /// Pairs of a client and a server on other nodes of one link, fifty operations to a node.
    Calls,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [folder] = arguments.as_slice()
        && Path::new(folder).is_dir()
    {
        return measure_shapes(Path::new(folder));
    }
    for file in arguments {
        let text = std::fs::read_to_string(&file)?;
        println!("{file}: {}", measure(&text)?);
    }
    Ok(())
}

fn measure_shapes(folder: &Path) -> Result<(), Box<dyn Error>> {
    println!("| Operations | one processor | 50 to a node | calls and messages |");
    println!("|--:|--:|--:|--:|");
    for count in [10, 100, 1_000, 5_000] {
        let mut row = format!("| {count} |");
        for (name, shape) in [
            ("one", Shape::OneProcessor),
            ("nodes", Shape::Nodes),
            ("calls", Shape::Calls),
        ] {
            let text = schedule(count, shape)?;
            std::fs::write(folder.join(format!("{name}-{count}.toml")), &text)?;
            write!(row, " {} |", measure(&text)?)?;
        }
        println!("{row}");
    }
    Ok(())
}

/// Returns a schedule whose processors are used to about six tenths, or one if there are calls.
fn schedule(count: u64, shape: Shape) -> Result<String, std::fmt::Error> {
    let mut random = fastrand::Rng::with_seed(42);
    let mut text = String::new();
    let (nodes, load) = match shape {
        Shape::OneProcessor => (1, 600),
        Shape::Nodes => (count.div_ceil(50), 600),
        Shape::Calls => (count.div_ceil(50).max(2), 100),
    };
    for node in 0..nodes {
        writeln!(text, "[[node]]\nname = \"n{node}\"")?;
    }
    if matches!(shape, Shape::Calls) {
        text.push_str("[[link]]\nname = \"lan\"\nrate = \"10 Gbit\"\n");
    }
    let clients = match shape {
        Shape::Calls => count / 2,
        Shape::OneProcessor | Shape::Nodes => count,
    };
    for number in 0..clients {
        let period = PERIODS[random.usize(..PERIODS.len())];
        // Milliseconds by thousandths of a processor are microseconds.
        let mean = 1_000 * period * load * nodes / count;
        let cost = random.u64(2..=2 * mean);
        let node = number % nodes;
        writeln!(text, "[[operation]]\nname = \"Client::o{number}\"")?;
        writeln!(text, "node = \"n{node}\"\nperiod = \"{period} ms\"")?;
        writeln!(text, "wcet = \"{cost} ns\"")?;
        if matches!(shape, Shape::Calls) {
            let before = cost / 2;
            write!(
                text,
                "calls = [{{ operation = \"Server::o{number}\", before = \"{before} ns\", "
            )?;
            writeln!(text, "request = 64, reply = 64 }}]")?;
            writeln!(text, "[[operation]]\nname = \"Server::o{number}\"")?;
            let server = (node + 1) % nodes;
            writeln!(text, "node = \"n{server}\"\nwcet = \"{cost} ns\"")?;
        }
    }
    Ok(text)
}

/// Returns the seconds for a schedule, with its verdict.
fn measure(text: &str) -> Result<String, Box<dyn Error>> {
    let start = processor_seconds()?;
    let schedule = Schedule::parse("large.toml", text, &mut |_| Err(String::new()))?;
    let assignment = schedule.assign()?;
    let ranks = assignment.band_ranks();
    let factor = schedule.greatest_factor(&ranks)?;
    schedule.bottleneck(&ranks, factor)?;
    let verdict = if assignment.analysis.feasible {
        "fits"
    } else {
        let candidates = schedule.operations.len().min(CANDIDATES);
        schedule.least_cuts(&ranks, 0..candidates, SHOWN)?;
        "late"
    };
    let seconds = processor_seconds()? - start;
    Ok(format!("{seconds:.2} ({verdict})"))
}

/// Returns the processor time of the thread.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let time = text.split_whitespace().next().ok_or("no time")?;
    Ok(time.parse::<f64>()? / 1e9)
}
