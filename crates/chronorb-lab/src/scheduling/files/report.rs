//! Claims, charts and tables of the part.

use chronorb_report::{Axis, Chart, Mark, Series, Table, Unit, units};

use super::FileRow;
use super::cases::{FILES, ONE_WAY, ScheduleFile, WAITING};
use crate::Claim;
use crate::scheduling::outcome::SchedulingOutcome;

/// Returns the claims: no simulation above its analysis; for each file no response of the ORB above
/// it; and the faults that an analysis without one-way calls and threads would not find.
pub(in crate::scheduling) fn claims(outcome: &SchedulingOutcome) -> Vec<Claim> {
    let rows = &outcome.files;
    let mut claims = vec![simulated_within(rows)];
    let files = FILES.iter();
    claims.extend(files.map(|file| measured_within(outcome.real_time, rows, file)));
    claims.push(one_way_is_late(outcome.real_time, rows));
    claims.push(few_threads_are_late(outcome.real_time, rows));
    claims
}

fn simulated_within(rows: &[FileRow]) -> Claim {
    let claim = "Schedule files: no simulated response exceeds the analysed one";
    let bounds = rows.iter().flat_map(|row| {
        [
            (row.analysed_ns, row.simulated_ns),
            (
                row.analysed_with_overhead_ns,
                row.simulated_with_overhead_ns,
            ),
        ]
    });
    let bounds = bounds.filter_map(|(analysed, simulated)| Some((analysed?, simulated)));
    let (mut all, mut above) = (0, 0);
    for (analysed, simulated) in bounds {
        all += 1;
        above += u64::from(simulated > analysed);
    }
    let measured = format!(
        "{above} of {} simulated operations above",
        units::count(all)
    );
    Claim::aim(claim).holds((all > 0).then_some((above == 0, measured)))
}

fn measured_within(real_time: bool, rows: &[FileRow], file: &ScheduleFile) -> Claim {
    let claim = format!(
        "{}: no response of the ORB exceeds the analysed one with the costs of calls by more than \
         the stolen time and the doctor's latencies of the same run",
        file.name
    );
    let of = rows.iter().filter(|row| is_of(row, file.name));
    let of = of.filter(|row| row.analysed_with_overhead_ns.is_some());
    let (mut all, mut above, mut unexplained, mut above_simulated) = (0, 0, 0, 0);
    let mut excess = 0;
    for row in of {
        let (analysed, simulated) = (
            row.analysed_with_overhead_ns,
            row.simulated_with_overhead_ns,
        );
        all += 1;
        above += u64::from(row.exceeds(analysed));
        excess = excess.max(row.measured_ns.saturating_sub(analysed.unwrap_or(u64::MAX)));
        unexplained += u64::from(row.exceeds_unexplained(analysed));
        above_simulated += u64::from(row.exceeds_unexplained(Some(simulated)));
    }
    let measured = format!(
        "{above} of {} operations in runs above, by {} at most, {unexplained} of them by more than \
         the disturbance; {above_simulated} above the simulated one by more than that",
        units::count(all),
        nanos(excess),
    );
    Claim::aim(claim).holds((real_time && all > 0).then_some((unexplained == 0, measured)))
}

/// The caller computes for 5 ms and has 6: alone it would be on time.
fn one_way_is_late(real_time: bool, rows: &[FileRow]) -> Claim {
    let claim = "One-way call to a more urgent operation: the rest of the caller waits, so that \
                 all jobs are late, as analysed";
    let of = rows.iter().filter(|row| row.watched && row.file == ONE_WAY);
    let (mut jobs, mut missed, mut longest, mut analysed) = (0, 0, 0, None);
    for row in of {
        jobs += row.jobs;
        missed += row.missed;
        longest = longest.max(row.measured_ns);
        analysed = row.analysed_ns;
    }
    let measured = format!(
        "{} of {} jobs late, the longest {}, analysed {}",
        units::count(missed),
        units::count(jobs),
        nanos(longest),
        bound(analysed),
    );
    let holds = jobs > 0 && missed == jobs;
    Claim::aim(claim).holds((real_time && jobs > 0).then_some((holds, measured)))
}

fn few_threads_are_late(real_time: bool, rows: &[FileRow]) -> Claim {
    let claim = "Operations that wait: with fewer threads of the lane than analysed jobs of the \
                 fast client are late, with as many none but for disturbances";
    let mut few = true;
    let mut each = Vec::new();
    for name in names(rows).filter(|name| name.starts_with(WAITING)) {
        let of = rows.iter().filter(|row| row.watched && row.file == name);
        let (mut jobs, mut missed, mut unexplained) = (0, 0, false);
        for row in of {
            jobs += row.jobs;
            missed += row.missed;
            unexplained |= row.exceeds_unexplained(Some(row.deadline_ns));
        }
        few &= if name == WAITING {
            !unexplained
        } else {
            missed > 0
        };
        each.push(format!(
            "{} of {}",
            units::count(missed),
            units::count(jobs)
        ));
    }
    let measured = format!("with 1, 2, 3 and 4 threads {} jobs late", each.join(", "));
    Claim::aim(claim).holds((real_time && !each.is_empty()).then_some((few, measured)))
}

pub(in crate::scheduling) fn finding(rows: &[FileRow]) -> String {
    let bounded = || rows.iter().filter(|row| row.analysed_ns.is_some());
    let above = bounded().filter(|row| row.exceeds(row.analysed_with_overhead_ns));
    let unexplained =
        bounded().filter(|row| row.exceeds_unexplained(row.analysed_with_overhead_ns));
    format!(
        "of {} operations of schedule files in runs of the ORB {} took longer than analysed, {} of \
         them by more than the machine was disturbed",
        units::count(bounded().count() as u64),
        units::count(above.count() as u64),
        units::count(unexplained.count() as u64),
    )
}

/// Returns the responses of the watched operation of each variant.
pub(in crate::scheduling) fn chart(rows: &[FileRow]) -> Chart {
    let caption = "Response times of one operation of each file, the longest of all runs: a bar is \
                   measured, a ring is simulated, a stroke is the analysis, both with the costs of \
                   calls. Dots are deadlines. Without a stroke there is no bound.";
    let of = |time: fn(&FileRow) -> Option<u64>| {
        let each = names(rows).map(|name| {
            let of = rows.iter().filter(|row| row.watched && row.file == name);
            let longest = of.filter_map(time).max();
            longest.map(|time| time as f64 / 1e3)
        });
        each.collect::<Vec<_>>()
    };
    let simulated = of(|row| Some(row.simulated_with_overhead_ns));
    let series = [
        Series::of_groups(Mark::Bars, "measured", of(|row| Some(row.measured_ns))),
        Series::of_groups(Mark::Rings, "", simulated),
        Series::of_groups(
            Mark::Strokes,
            "analysed",
            of(|row| row.analysed_with_overhead_ns),
        ),
        Series::of_groups(Mark::Dots, "deadline", of(|row| Some(row.deadline_ns))),
    ];
    let names = Axis::groups("schedule file", names(rows).map(str::to_owned));
    Chart::new(caption, names, Axis::log("response", Unit::Time)).series(series)
}

/// Returns a table for each variant.
pub(in crate::scheduling) fn tables(rows: &[FileRow]) -> Vec<Table> {
    let tables = names(rows).map(|name| {
        let mut operations: Vec<Vec<&FileRow>> = Vec::new();
        for row in rows.iter().filter(|row| row.file == name) {
            match operations
                .iter_mut()
                .find(|of| of[0].operation == row.operation)
            {
                Some(rows) => rows.push(row),
                None => operations.push(vec![row]),
            }
        }
        let lines = operations.into_iter().map(|rows| {
            let first = rows[0];
            let sum = |of: fn(&FileRow) -> u64| units::count(rows.iter().map(|it| of(it)).sum());
            let longest = rows.iter().map(|row| row.measured_ns).max().unwrap_or(0);
            let disturbed = rows.iter().map(|row| row.disturbance_ns).max().unwrap_or(0);
            let unexplained = rows
                .iter()
                .filter(|row| row.exceeds_unexplained(row.analysed_with_overhead_ns));
            let cells = vec![
                nanos(first.deadline_ns),
                bound(first.analysed_ns),
                nanos(first.simulated_ns),
                bound(first.analysed_with_overhead_ns),
                nanos(first.simulated_with_overhead_ns),
                nanos(longest),
                sum(|row| row.jobs),
                sum(|row| row.missed),
                units::count(unexplained.count() as u64),
                nanos(disturbed),
            ];
            (first.operation.clone(), cells)
        });
        Table::new(format!("Schedule file {name}"), COLUMNS, lines)
    });
    tables.collect()
}

/// Returns the notes on the part.
pub(in crate::scheduling) fn notes(rows: &[FileRow]) -> Vec<String> {
    let overheads = names(rows).filter_map(|name| {
        let row = rows.iter().find(|row| row.file == name)?;
        Some(format!(" {name}: {}.", nanos(row.overhead_ns)))
    });
    let dilation = rows.first().map_or(0, |row| row.dilation_ppm);
    vec![
        NOTE.to_owned(),
        format!(
            "The costs of calls are the p99 of jobs that only call, all activities at once, \
             divided by the pieces of the job. They are the overhead of each piece in the second \
             analysis and simulation.{} There each execution takes {:.2} % longer, which is what \
             the p90 of an execution alone takes, with interrupts and while wake-ups are measured.",
            overheads.collect::<String>(),
            dilation as f64 / 1e4,
        ),
    ]
}

/// Returns the variants in their order.
fn names(rows: &[FileRow]) -> impl Iterator<Item = &str> {
    let watched = rows.iter().filter(|row| row.watched && row.round == 1);
    watched.map(|row| row.file.as_str())
}

/// Whether a row is of any variant of a file.
fn is_of(row: &FileRow, file: &str) -> bool {
    let variant = row.file.strip_prefix(file);
    variant.is_some_and(|variant| variant.is_empty() || variant.starts_with(','))
}

fn bound(time: Option<u64>) -> String {
    time.map_or_else(|| "no bound".to_owned(), nanos)
}

fn nanos(time: u64) -> String {
    units::time(time as f64 / 1e3)
}

const NOTE: &str = "Schedule files: each node is a process with the lanes, threads and priorities \
     of the assignment; each activity has its threads. A node whose processor has a cpu in the \
     file computes on one processor of this machine. Any other node stands for a machine of its \
     own, and waits as long as it would execute. Runs take turns at a common first arrival, and at \
     those first arrivals with the longest simulated response of an operation, among random ones \
     and such with one activity later than the others.";
const COLUMNS: [&str; 10] = [
    "deadline",
    "analysed",
    "simulated",
    "with costs: analysed",
    "simulated",
    "measured",
    "jobs",
    "missed",
    "runs unexplained",
    "disturbance",
];

#[cfg(test)]
mod tests {
    use super::super::tests::rows;
    use super::*;

    fn row<'r>(rows: &'r mut [FileRow], file: &str) -> &'r mut FileRow {
        let mut rows = rows.iter_mut();
        rows.find(|row| row.watched && row.file == file).unwrap()
    }

    #[test]
    fn a_response_above_its_bound_needs_a_disturbance() {
        let mut rows = rows();
        let row = row(&mut rows, ONE_WAY);
        let bound = row.analysed_with_overhead_ns;
        row.measured_ns = bound.unwrap() + row.disturbance_ns;
        assert!(row.exceeds(bound) && !row.exceeds_unexplained(bound));
        row.measured_ns += 1;
        assert!(row.exceeds_unexplained(bound));
        assert!(!row.exceeds(None));
        let holds = |real_time, rows: &[FileRow]| {
            let claim = measured_within(real_time, rows, &FILES[0]);
            claim.verdict()
        };
        assert_eq!(holds(true, &rows), crate::Verdict::Missed);
        assert_eq!(holds(false, &rows), crate::Verdict::NotMeasured);
        rows.clear();
        assert_eq!(holds(true, &rows), crate::Verdict::NotMeasured);
    }

    #[test]
    fn a_variant_belongs_to_its_file_alone() {
        let of = |file: &str| rows().iter().filter(|row| is_of(row, file)).count();
        assert_eq!((of(ONE_WAY), of(WAITING), of("one")), (2, 4 * 7, 0));
    }

    #[test]
    fn faults_are_missed_where_no_job_is_late() {
        let mut rows = rows();
        assert_eq!(one_way_is_late(true, &rows).verdict(), crate::Verdict::Pass);
        assert_eq!(
            few_threads_are_late(true, &rows).verdict(),
            crate::Verdict::Pass
        );
        row(&mut rows, ONE_WAY).missed = 9;
        row(&mut rows, "waiting-threads, 3 threads").missed = 0;
        assert_eq!(
            one_way_is_late(true, &rows).verdict(),
            crate::Verdict::Missed
        );
        assert_eq!(
            few_threads_are_late(true, &rows).verdict(),
            crate::Verdict::Missed
        );
    }
}
