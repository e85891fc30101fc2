//! Rounds in which several systems take turns.

use crate::error::LabError;
use crate::progress::Progress;

/// Has every system take its turn in every cell in each round.
///
/// The order of the systems rotates, so that none always follows the same one.
pub(crate) fn take_turns<S, C: Copy>(
    title: &str,
    rounds: u32,
    cells: &[C],
    systems: &mut [S],
    mut turn: impl FnMut(u32, C, &mut S) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let progress = Progress::start(title, u64::from(rounds) * cells.len() as u64);
    for round in 1..=rounds {
        if !systems.is_empty() {
            systems.rotate_left(1);
        }
        for cell in cells {
            for system in &mut *systems {
                turn(round, *cell, system)?;
            }
            progress.advance(1);
        }
    }
    Ok(())
}
