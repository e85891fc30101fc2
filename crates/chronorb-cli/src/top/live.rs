//! The live view of `chronorb top`: a table that is redrawn until the user ends it.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic};

use super::rates::OrbView;
use super::screen::{self, Event, Screen};
use super::table::{self, Layout, Line, Look};
use super::{Source, TopError, wants_color};

/// Shows the activity of an ORB until the user ends it, or the ORB ends.
pub(super) fn show(mut source: Source, interval: Duration) -> Result<(), TopError> {
    let screen = Screen::open().map_err(TopError::Terminal)?;
    // Rates are there from the second look on.
    let mut view = OrbView::between(&source.before, &source.before);
    let mut threads = true;
    let has_color = wants_color();
    let mut next = Monotonic::now() + interval.min(FIRST_INTERVAL);
    loop {
        let size = screen::size().unwrap_or(USUAL_SIZE);
        let frame = frame(&view, threads, size, has_color);
        screen.draw(&frame).map_err(TopError::Terminal)?;
        // The size is looked at again before the next report is due.
        let soon = Monotonic::now() + SIZE_PAUSE;
        let deadline = Deadline::at(next.min(soon));
        match screen.wait(&source.client, deadline) {
            Ok(Event::Quit) => return Ok(()),
            Ok(Event::Closed) => return Err(TopError::Ended),
            Ok(Event::Key(b't' | b'T')) => threads = !threads,
            Ok(Event::Key(_) | Event::TimedOut) => {}
            Err(error) => return Err(TopError::Terminal(error)),
        }
        let now = Monotonic::now();
        if now >= next {
            view = source.next()?;
            next = now + interval;
        }
    }
}

/// Returns the lines that fill a screen.
fn frame(
    view: &OrbView,
    threads: bool,
    (width, height): (usize, usize),
    has_color: bool,
) -> Vec<String> {
    let mut lines = table::lines(view, Layout { width, threads });
    let help = if threads {
        "q quits, t hides the threads"
    } else {
        "q quits, t shows the threads"
    };
    let rows = height.saturating_sub(1);
    let mut last = help.to_owned();
    if lines.len() > rows {
        last = format!("{} more lines; {help}", lines.len() - rows);
        lines.truncate(rows);
    }
    lines.push(Line::of(Look::Faint, last));
    lines
        .iter()
        .map(|line| line.paint(width, has_color))
        .collect()
}

/// The longest time until the first rates.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
/// The interval between two readings of the size.
const SIZE_PAUSE: Duration = Duration::from_millis(250);
/// The size of a terminal that does not report it: columns and rows.
const USUAL_SIZE: (usize, usize) = (80, 24);

#[cfg(test)]
mod tests {
    use super::super::rates::tests::{lane, report};
    use super::*;

    #[test]
    fn a_frame_never_has_more_lines_than_the_screen() {
        let lanes: Vec<_> = (0..9).map(|i| lane(&format!("1:{i}"), 10, &[])).collect();
        let report = report(1.0, &lanes);
        let view = OrbView::between(&report, &report);
        for height in [1, 2, 10, 24, 31, 32, 33, 100] {
            let frame = frame(&view, true, (80, height), true);
            assert!(frame.len() <= height, "{height}: {}", frame.len());
        }
        let cut = frame(&view, true, (80, 24), false);
        assert_eq!(cut[23], "11 more lines; q quits, t hides the threads");
        let without = frame(&view, false, (80, 24), false).join("\n");
        assert!(
            !without.contains("more lines") && !without.contains("1:3.0"),
            "{without}"
        );
    }
}
