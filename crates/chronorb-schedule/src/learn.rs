//! Writes measured execution times into the text of a schedule file, and leaves the rest as it is.

use std::ops::Range;

use chronorb_sched::Time;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Mistakes, ScheduleErrors};
use crate::schedule::Schedule;
use crate::units::readable_time;

/// A measured execution time of an operation, for [`Schedule::learn`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MeasuredCost {
    /// The index of the operation.
    pub operation: usize,
    /// The longest measured execution time.
    pub worst: Time,
    /// The number of measured executions.
    pub executions: u64,
}

/// The margin between the longest measured execution time and the declared one, in hundredths.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Margin(pub u32);

impl Margin {
    /// Returns a time with the margin, rounded up to what [`readable_time`] writes; `None` if it
    /// exceeds 64 bits.
    ///
    /// # Example
    /// ```
    /// use chronorb_schedule::Margin;
    ///
    /// assert_eq!(Margin(20).add_to(1_000_000), Some(1_200_000));
    /// assert_eq!(Margin(20).add_to(1_001), Some(1_202));
    /// ```
    pub fn add_to(self, time: Time) -> Option<Time> {
        let product = u128::from(time) * (100 + u128::from(self.0));
        let exact = Time::try_from(product.div_ceil(100)).ok()?;
        crate::units::parse_time(&readable_time(exact))
    }
}

impl Schedule {
    /// Returns the text of a schedule file with these execution times, each with the margin. All
    /// other text, as comments and the order of keys, stays as it is. A comment beside each time
    /// says how it was measured; one that a person has written there stays.
    ///
    /// `text` is that of the schedule's file. Operations of included files get a table of their
    /// own at the end.
    ///
    /// # Errors
    /// [`ScheduleErrors`] where the text is no TOML, or a time with its margin exceeds 64 bits.
    pub fn learn(
        &self,
        file: &str,
        text: &str,
        costs: &[MeasuredCost],
        margin: Margin,
    ) -> Result<String, ScheduleErrors> {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut mistakes = Mistakes::new(file, text);
        for error in &errors {
            mistakes.add(&error.span().unwrap_or(0..0), error.message());
        }
        let mut edits = Vec::new();
        let mut appended = String::new();
        for cost in costs {
            let Some(operation) = self.operations.get(cost.operation) else {
                continue;
            };
            let Some(new) = margin.add_to(cost.worst) else {
                let problem = format!("the execution time of {} is too long", operation.name);
                mistakes.add(&(0..0), problem);
                continue;
            };
            let value = format!("\"{}\"", readable_time(new));
            let remark = remark(cost, margin);
            let names = [&operation.name, &operation.interface, &operation.operation];
            match table_of(table.get_ref(), names) {
                Some(declared) => edits.push(edit(text, declared, &value, &remark)),
                None => {
                    appended += &format!("\n[[operation]]\nname = {:?}\n", operation.name);
                    appended += &format!("wcet = {value} {remark}\n");
                }
            }
        }
        if !mistakes.is_empty() {
            return Err(ScheduleErrors(mistakes.into_errors()));
        }
        let mut text = text.to_owned();
        // From the end, so that the places before it stay.
        edits.sort_by_key(|(place, _): &(Range<usize>, String)| std::cmp::Reverse(place.start));
        for (place, new) in edits {
            text.replace_range(place, &new);
        }
        if !appended.is_empty() && !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(text + &appended)
    }
}

fn remark(cost: &MeasuredCost, margin: Margin) -> String {
    let worst = readable_time(cost.worst);
    let (count, margin) = (cost.executions, margin.0);
    format!("{REMARK}{worst} in {count} executions, and {margin} %")
}

/// Finds the table of an operation, by its name, or by its interface and its name on the wire.
fn table_of<'t, 'a>(top: &'t DeTable<'a>, names: [&String; 3]) -> Option<&'t DeTable<'a>> {
    let DeValue::Array(operations) = top.get("operation")?.get_ref() else {
        return None;
    };
    let mut tables = operations.iter().filter_map(|value| match value.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    });
    let [name, interface, operation] = names;
    tables.find(|table| {
        let is = |key, text: &str| string(table, key).is_some_and(|value| value == text);
        is("name", name) || (is("interface", interface) && is("operation", operation))
    })
}

fn string<'t>(table: &'t DeTable<'_>, key: &str) -> Option<&'t str> {
    match table.get(key)?.get_ref() {
        DeValue::String(text) => Some(text),
        _ => None,
    }
}

/// Returns the place to replace in the text, and the text for it.
fn edit(text: &str, table: &DeTable<'_>, value: &str, remark: &str) -> (Range<usize>, String) {
    if let Some(present) = table.get("wcet") {
        let span = present.span();
        return match free_rest(text, span.end) {
            Some(end) => (span.start..end, format!("{value} {remark}")),
            None => (span, value.to_owned()),
        };
    }
    let names = ["name", "operation", "interface"];
    let after = names
        .iter()
        .find_map(|key| table.get(*key))
        .map(Spanned::span);
    let at = after.map_or(text.len(), |span| span.end);
    match free_rest(text, at) {
        Some(_) => (at..at, format!("\nwcet = {value} {remark}")),
        // Within a line, as in an inline table, or before a comment.
        None if text[at..].trim_start_matches([' ', '\t']).starts_with('#') => {
            let end = text[at..]
                .find('\n')
                .map_or(text.len(), |length| at + length);
            (end..end, format!("\nwcet = {value} {remark}"))
        }
        None => (at..at, format!(", wcet = {value}")),
    }
}

/// Returns the end of the line, if nothing follows in it but an own remark.
fn free_rest(text: &str, from: usize) -> Option<usize> {
    let line = text[from..].split('\n').next().unwrap_or_default();
    let rest = line.trim();
    (rest.is_empty() || rest.starts_with(REMARK)).then(|| from + line.trim_end().len())
}

/// The beginning of the comment beside a measured time.
const REMARK: &str = "# measured: ";

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(text: &str, costs: &[(usize, Time)], margin: u32) -> String {
        let include = "[[operation]]\ninterface = \"IDL:acme.com/Map:1.0\"\n\
                       operation = \"draw\"\nwcet = \"5 ms\"\nperiod = \"1 Hz\"\n";
        let schedule = Schedule::parse("a.toml", text, &mut |_| Ok(include.to_owned()));
        let schedule = schedule.expect("it is sound");
        let costs: Vec<_> = costs
            .iter()
            .map(|&(operation, worst)| MeasuredCost {
                operation,
                worst,
                executions: 7,
            })
            .collect();
        let learnt = schedule.learn("a.toml", text, &costs, Margin(margin));
        let learnt = learnt.expect("it is TOML");
        let again = Schedule::parse("a.toml", &learnt, &mut |_| Ok(include.to_owned()));
        let again = again.expect("it is sound still");
        for cost in costs {
            let new = again.operation(&schedule.operations[cost.operation].name);
            let new = new.map(|number| again.operations[number].cost);
            assert_eq!(new, Margin(margin).add_to(cost.worst), "{learnt}");
        }
        learnt
    }

    #[test]
    fn times_are_replaced_and_the_rest_stays() {
        let text = "# The plan.\n[[operation]]\nwcet = \"1 ms\"  \nname = \"A::x\" # first\n\
                    period = \"20 Hz\"\n\n[[operation]]\nname = \"A::y\"\nwcet = \"2 ms\" # guess\n\
                    period = \"1 Hz\"\n";
        let expected = "# The plan.\n[[operation]]\n\
                        wcet = \"3.6 ms\" # measured: 3 ms in 7 executions, and 20 %  \n\
                        name = \"A::x\" # first\nperiod = \"20 Hz\"\n\n[[operation]]\n\
                        name = \"A::y\"\nwcet = \"4.8 ms\" # guess\nperiod = \"1 Hz\"\n";
        let first = learnt(text, &[(0, 3_000_000), (1, 4_000_000)], 20);
        assert_eq!(first, expected);
        let second = learnt(&first, &[(0, 1_000_000)], 0);
        assert!(second.contains("wcet = \"1 ms\" # measured: 1 ms in 7 executions, and 0 %  \n"));
    }

    #[test]
    fn operations_of_included_files_get_a_table_at_the_end() {
        let text = "include = [\"map.rt.toml\"]\n[[operation]]\nname = \"A::x\"\n\
                    wcet = \"1 ms\"\nperiod = \"20 Hz\"";
        let learnt = learnt(text, &[(1, 1_001)], 20);
        let end = "\n\n[[operation]]\nname = \"Map::draw\"\n\
                   wcet = \"1.202 us\" # measured: 1.001 us in 7 executions, and 20 %\n";
        assert!(learnt.ends_with(end), "{learnt}");
    }

    #[test]
    fn inline_tables_stay_in_their_line() {
        let text = "operation = [{ name = \"A::x\", wcet = \"1 ms\", period = \"1 Hz\" }]\n";
        let expected = "operation = [{ name = \"A::x\", wcet = \"2 ms\", period = \"1 Hz\" }]\n";
        assert_eq!(learnt(text, &[(0, 2_000_000)], 0), expected);
    }
}
