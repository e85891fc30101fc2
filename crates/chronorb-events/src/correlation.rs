//! The state that a subscription keeps between events, and the decision on the next event.

use std::mem;

use crate::event::Event;
use crate::octets::OctetAccount;
use crate::program::{Operation, Program, Rules, has_bits};

/// A position in the order of arrival at a lane.
pub(crate) type Arrival = u64;

/// An event as it is offered to a program.
pub(crate) struct Offer<'a, B> {
    pub(crate) event: &'a Event<B>,
    pub(crate) arrival: Arrival,
    /// The node of the timer whose event it is.
    pub(crate) timer: Option<usize>,
    /// The time in nanoseconds.
    pub(crate) now: u64,
}

/// The state of one subscription.
#[derive(Debug)]
pub(crate) struct State<B> {
    cells: Vec<Cell<B>>,
    keeper: Keeper<B>,
    /// The time of the last delivery, or of the subscription.
    delivered: u64,
}

/// The account of the events that conjunctions keep.
#[derive(Debug)]
struct Keeper<B> {
    account: OctetAccount<B>,
    /// The most events at once that were refused since the present offer began. An event that
    /// several conjunctions refuse is lost once.
    refused: usize,
}

/// The state of a conjunction.
#[derive(Debug)]
struct Cell<B> {
    has_delivered: Vec<bool>,
    missing: usize,
    events: Vec<Event<B>>,
    arrivals: Vec<Arrival>,
    /// The octets of the events.
    octets: usize,
    /// The time of the last delivery, or of the subscription.
    restarted: u64,
}

impl<B> Default for Cell<B> {
    fn default() -> Self {
        Self {
            has_delivered: Vec::new(),
            missing: 0,
            events: Vec::new(),
            arrivals: Vec::new(),
            octets: 0,
            restarted: 0,
        }
    }
}

impl<B: Clone> Cell<B> {
    fn clear(&mut self, required: usize, now: u64) {
        self.has_delivered.fill(false);
        self.missing = required;
        self.events.clear();
        self.arrivals.clear();
        self.restarted = now;
    }

    /// Adds the events of a child at their places in the order of arrival. With the rules of TAO,
    /// they follow those of the children that delivered before.
    fn add(&mut self, events: &[Event<B>], arrivals: &[Arrival], rules: Rules) {
        for (event, arrival) in events.iter().zip(arrivals) {
            let at = match rules {
                Rules::Corrected => self.arrivals.partition_point(|before| before <= arrival),
                Rules::Tao => self.arrivals.len(),
            };
            self.events.insert(at, event.clone());
            self.arrivals.insert(at, *arrival);
        }
    }
}

impl<B> Keeper<B> {
    /// Takes the octets of events for a conjunction. `None` where they are refused.
    fn take(&mut self, events: &[Event<B>]) -> Option<usize> {
        let octets = events.iter().map(|event| self.account.octets(event));
        let octets = octets.fold(0, usize::saturating_add);
        if self.account.take(octets) {
            return Some(octets);
        }
        // The groups of a closed account are gone, and so are their events.
        if !self.account.is_closed() {
            self.refused = self.refused.max(events.len());
        }
        None
    }
}

/// Takes the sets of events that a node delivers.
type Emit<'a, B> = &'a mut dyn FnMut(&mut Keeper<B>, &[Event<B>], &[Arrival]);

impl<B: Clone> State<B> {
    /// The state of a new subscription. Later changes allocate nothing.
    pub(crate) fn new(program: &Program, now: u64, account: OctetAccount<B>) -> Self {
        let cell = |shape: &crate::program::CellShape| Cell {
            has_delivered: vec![false; shape.children],
            missing: shape.required,
            events: Vec::with_capacity(shape.events),
            arrivals: Vec::with_capacity(shape.events),
            octets: 0,
            restarted: now,
        };
        Self {
            cells: program.cells.iter().map(cell).collect(),
            keeper: Keeper {
                account,
                refused: 0,
            },
            delivered: now,
        }
    }

    /// The time from which a deadline counts.
    pub(crate) fn restarted(&self, cell: Option<usize>) -> u64 {
        cell.map_or(self.delivered, |cell| self.cells[cell].restarted)
    }

    /// Lets all deadlines begin anew.
    pub(crate) fn restart(&mut self, now: u64) {
        self.delivered = now;
        for cell in &mut self.cells {
            cell.restarted = now;
        }
    }

    /// Clears the conjunctions, which keep nothing from now on.
    pub(crate) fn close(&mut self, program: &Program) {
        for (cell, shape) in self.cells.iter_mut().zip(&program.cells) {
            cell.octets = 0;
            cell.clear(shape.required, cell.restarted);
        }
        self.keeper.account.close();
    }

    /// Offers an event to the program and gives each set that it delivers to `deliver`. Returns the
    /// number of events that conjunctions could not keep.
    pub(crate) fn offer(
        &mut self,
        program: &Program,
        offer: &Offer<'_, B>,
        deliver: &mut dyn FnMut(&[Event<B>]),
    ) -> usize {
        if offer.timer.is_none() && program.is_stateless() {
            if program.passes(0, &offer.event.header) {
                deliver(std::slice::from_ref(offer.event));
                self.delivered = offer.now;
            }
            return 0;
        }
        let mut has_delivered = false;
        let (cells, keeper) = (&mut self.cells, &mut self.keeper);
        offer_to(program, 0, offer, cells, keeper, &mut |_, events, _| {
            deliver(events);
            has_delivered = true;
        });
        if has_delivered {
            self.delivered = offer.now;
        }
        if has_delivered && program.rules == Rules::Tao {
            for (cell, shape) in cells.iter_mut().zip(&program.cells) {
                keeper.account.give_back(mem::take(&mut cell.octets));
                cell.clear(shape.required, offer.now);
            }
        }
        mem::take(&mut keeper.refused)
    }
}

/// Offers an event to the subtree at a node. Returns whether the subtree delivered or kept it.
fn offer_to<B: Clone>(
    program: &Program,
    at: usize,
    offer: &Offer<'_, B>,
    cells: &mut [Cell<B>],
    keeper: &mut Keeper<B>,
    emit: Emit<'_, B>,
) -> bool {
    let header = &offer.event.header;
    let accept = |keeper: &mut Keeper<B>, emit: Emit<'_, B>| {
        let arrival = std::slice::from_ref(&offer.arrival);
        emit(keeper, std::slice::from_ref(offer.event), arrival);
        true
    };
    match program.nodes[at].operation {
        Operation::Timer { .. } => offer.timer == Some(at) && accept(keeper, emit),
        Operation::Conjunction { cell } => {
            offer_to_conjunction(program, at, cell, offer, cells, keeper, emit)
        }
        _ if program.nodes[at].is_stateless => {
            offer.timer.is_none() && program.passes(at, header) && accept(keeper, emit)
        }
        // A timer's event has no source, so a mask would never let it pass.
        Operation::Bits {
            source_mask,
            type_mask,
        } => {
            let passes = offer.timer.is_some() || has_bits(source_mask, type_mask, header);
            passes && offer_to(program, at + 1, offer, cells, keeper, emit)
        }
        // Only disjunctions are left: negations and logical ands have no state.
        _ => offer_to_disjunction(program, at, offer, cells, keeper, emit),
    }
}

fn offer_to_disjunction<B: Clone>(
    program: &Program,
    at: usize,
    offer: &Offer<'_, B>,
    cells: &mut [Cell<B>],
    keeper: &mut Keeper<B>,
    emit: Emit<'_, B>,
) -> bool {
    let mut is_delivered_alone = false;
    let mut is_accepted = false;
    for child in program.children(at) {
        let each: Emit<'_, B> = &mut |keeper, events, arrivals| {
            let is_alone = arrivals == [offer.arrival];
            if !(is_alone && is_delivered_alone) {
                emit(keeper, events, arrivals);
            }
            is_delivered_alone |= is_alone;
        };
        is_accepted |= offer_to(program, child, offer, cells, keeper, each);
        if is_accepted && program.rules == Rules::Tao {
            break;
        }
    }
    is_accepted
}

fn offer_to_conjunction<B: Clone>(
    program: &Program,
    at: usize,
    index: usize,
    offer: &Offer<'_, B>,
    cells: &mut [Cell<B>],
    keeper: &mut Keeper<B>,
    emit: Emit<'_, B>,
) -> bool {
    let is_tao = program.rules == Rules::Tao;
    // The children may have cells too, so this one is taken out while they are asked.
    let mut cell = mem::take(&mut cells[index]);
    let mut is_accepted = false;
    let mut is_complete = false;
    for (number, child) in program.children(at).enumerate() {
        if cell.has_delivered[number] && !is_tao {
            continue;
        }
        let had_delivered = cell.has_delivered[number];
        let mut has_delivered = had_delivered;
        let ends = Operation::Timer {
            ends_conjunction: true,
        };
        let ends = program.nodes[child].operation == ends;
        // The events that complete the set are delivered at once, and not kept.
        let completes = ends || cell.missing == 1;
        let keep: Emit<'_, B> = &mut |keeper, events, arrivals| {
            // Of several sets of a child the first counts.
            if has_delivered {
                return;
            }
            let octets = if completes {
                Some(0)
            } else {
                keeper.take(events)
            };
            if let Some(octets) = octets {
                cell.octets += octets;
                cell.add(events, arrivals, program.rules);
                has_delivered = true;
            }
        };
        is_accepted = offer_to(program, child, offer, cells, keeper, keep);
        if has_delivered && !had_delivered {
            cell.has_delivered[number] = true;
            is_complete = completes;
            cell.missing -= usize::from(!ends);
        }
        if is_accepted {
            break;
        }
    }
    if is_complete {
        // A conjunction around this one may take them.
        keeper.account.give_back(mem::take(&mut cell.octets));
        emit(keeper, &cell.events, &cell.arrivals);
        cell.clear(program.cells[index].required, offer.now);
    }
    cells[index] = cell;
    is_accepted
}
