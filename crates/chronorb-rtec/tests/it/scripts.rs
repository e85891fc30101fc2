//! Random subscriptions and scripts in virtual time: on every dispatching and over every transport
//! of this suite, each consumer gets what the reference model delivers to it.

use std::time::Duration;

use chronorb_events::{Filter, Header, TimerKind};
use chronorb_rtec::Rules;
use fastrand::Rng;

use crate::model::Model;
use crate::support::{Fixture, MS, Set, TestConsumer, everywhere_by};

/// The scripts for each channel.
const SCRIPTS: u64 = 6;
/// The steps of a script.
const STEPS: usize = 40;

fn number(random: &mut Rng) -> i32 {
    random.choice([0, 1, 2, 3, 16, 17, 20]).unwrap_or(0)
}

fn children(random: &mut Rng, depth: u32, child: fn(&mut Rng, u32) -> Filter) -> Vec<Filter> {
    let count = random.usize(1..4);
    (0..count).map(|_| child(random, depth - 1)).collect()
}

fn bits(random: &mut Rng, then: Filter) -> Filter {
    Filter::Bits {
        source_mask: number(random),
        type_mask: number(random),
        then: Box::new(then),
    }
}

fn stateless(random: &mut Rng, depth: u32) -> Filter {
    let kinds = if depth == 0 { 6 } else { 10 };
    match random.u32(..kinds) {
        0 => Filter::Everything,
        1 => {
            let (source_mask, type_mask) = (number(random), number(random));
            Filter::Masked {
                source_mask,
                type_mask,
                source_value: number(random) & source_mask,
                type_value: number(random) & type_mask,
            }
        }
        2..6 => Filter::event(number(random), number(random)),
        6 => !stateless(random, depth - 1),
        7 => Filter::All(children(random, depth, stateless)),
        8 => Filter::Any(children(random, depth, stateless)),
        _ => {
            let then = stateless(random, depth - 1);
            bits(random, then)
        }
    }
}

fn filter(random: &mut Rng, depth: u32) -> Filter {
    let kinds = if depth == 0 { 4 } else { 8 };
    match random.u32(..kinds) {
        0..3 => stateless(random, 2),
        3 => {
            let kinds = [TimerKind::Once, TimerKind::Interval, TimerKind::Deadline];
            // No two of the times have a multiple in common within a script.
            let millis = random.choice([331, 701, 1103]).unwrap_or(331);
            Filter::Timer {
                kind: random.choice(kinds).unwrap_or(TimerKind::Once),
                time: Duration::from_millis(millis),
            }
        }
        4 | 5 => Filter::Conjunction(children(random, depth, filter)),
        6 => Filter::Any(children(random, depth, filter)),
        _ => {
            let then = filter(random, depth - 1);
            bits(random, then)
        }
    }
}

/// A script that runs on a channel and on the model.
struct Script<'f> {
    f: &'f Fixture,
    model: Model,
    now: u64,
    /// The consumers by name. Those that have left are kept with what they got.
    consumers: Vec<Result<TestConsumer, Vec<Set>>>,
}

impl Script<'_> {
    fn subscribe(&mut self, filter: &Filter) {
        let name = self.consumers.len();
        self.model.subscribe(name, filter, self.now);
        self.consumers.push(Ok(self.f.subscribe(filter)));
    }

    fn unsubscribe(&mut self, name: usize) {
        self.model.unsubscribe(name);
        if let Some(Ok(consumer)) = self.consumers.get(name) {
            let sets = self.f.sets(consumer);
            consumer.proxy.disconnect_push_supplier().unwrap();
            self.consumers[name] = Err(sets);
        }
    }

    fn suspend(&mut self, name: usize) {
        self.model.suspend(name);
        if let Some(Ok(consumer)) = self.consumers.get(name) {
            consumer.proxy.suspend_connection().unwrap();
        }
    }

    fn resume(&mut self, name: usize) {
        self.model.resume(name, self.now);
        if let Some(Ok(consumer)) = self.consumers.get(name) {
            consumer.proxy.resume_connection().unwrap();
        }
    }

    /// Compares what each consumer got.
    fn finish(mut self, seed: u64) {
        assert!(
            !self.model.delivered.is_empty(),
            "the script {seed} is empty"
        );
        for name in 0..self.consumers.len() {
            self.unsubscribe(name);
        }
        for (name, sets) in self.consumers.into_iter().enumerate() {
            let of_model = self.model.delivered.iter().filter(|(to, _)| *to == name);
            let expected: Vec<_> = of_model.map(|(_, set)| set.clone()).collect();
            let sets = sets.err().unwrap_or_default();
            assert_eq!(sets, expected, "consumer {name} of the script {seed}");
        }
    }
}

#[test]
fn each_consumer_gets_what_the_model_delivers() {
    everywhere_by(|f, rules: Rules| {
        let supplier = f.supplier(&[(0, 0)]);
        let mut now = 0;
        for seed in 0..SCRIPTS {
            let random = &mut Rng::with_seed(seed);
            let mut script = Script {
                f: &f,
                model: Model::new(rules),
                now,
                consumers: Vec::new(),
            };
            for _ in 0..random.usize(1..5) {
                script.subscribe(&filter(random, 3));
            }
            for _ in 0..STEPS {
                let name = random.usize(..8);
                match random.u32(..17) {
                    0..8 => {
                        let (source, event_type) = (number(random), number(random));
                        f.push(&supplier, &[(source, event_type)]);
                        let header = Header {
                            source,
                            event_type,
                            ..Header::default()
                        };
                        script.model.push(header, script.now);
                    }
                    8..12 => {
                        script.now += random.u64(100..900) * MS;
                        f.run_until(script.now);
                        script.model.run_until(script.now);
                    }
                    12 | 13 => script.subscribe(&filter(random, 3)),
                    14 => script.unsubscribe(name),
                    15 => script.suspend(name),
                    _ => script.resume(name),
                }
            }
            now = script.now;
            script.finish(seed);
        }
    });
}
