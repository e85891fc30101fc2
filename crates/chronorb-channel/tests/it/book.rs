//! The example of the book.

use std::error::Error;
use std::time::Duration;

use chronorb_rt::{Deadline, Gate, Scheduling};

use crate::support::PATIENCE;

#[derive(Clone, Default)]
struct Sample(u32);

const CONTROL: Scheduling = Scheduling::OTHER;
const DISPLAY: Scheduling = Scheduling::OTHER;
const RADAR: i32 = 7;
const PLOT: i32 = 20;

static STEERED: Gate = Gate::new(0);
static DRAWN: Gate = Gate::new(0);

fn steer(sample: &Sample) {
    STEERED.set(sample.0);
}

fn draw(set: &[chronorb_channel::Event<Sample>]) {
    DRAWN.set(set[0].body.0);
}

#[test]
fn a_radar_is_steered_and_drawn() -> Result<(), Box<dyn Error>> {
    let sample = Sample(3);

    use chronorb_channel::{Channel, Event, Filter, Lane, Overflow};

    let channel = Channel::<Sample>::builder()
        .lane(Lane::new("control").scheduling(CONTROL))
        .lane(Lane::new("display").scheduling(DISPLAY))
        .start()?;

    let control = channel
        .subscribe(Filter::event(RADAR, PLOT))
        .call_on(0, |set: &[Event<Sample>]| steer(&set[0].body))?;
    let display = channel
        .subscribe(Filter::of_type(PLOT) | Filter::silence(Duration::from_millis(500)))
        .queue(16, Overflow::LatestByKey)
        .call_on(1, |set: &[Event<Sample>]| draw(set))?;

    let radar = channel.supplier(RADAR);
    radar.push(PLOT, sample);

    let deadline = Deadline::after(PATIENCE);
    assert_eq!(STEERED.wait_while(0, deadline), 3);
    assert_ne!(DRAWN.wait_while(0, deadline), 0);
    drop((control, display));
    Ok(())
}
