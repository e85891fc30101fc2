//! Recursive definitions, which contain themselves directly or through others.

use chronorb_idl::model::{DefId, DefKind, Model, Type};

use crate::shape;

/// The definitions of a model by the cycles to which they belong.
#[derive(Debug)]
pub(crate) struct Recursion {
    /// The number of each definition's cycle; 0 for those in none.
    cycles: Vec<u32>,
}

impl Recursion {
    /// Finds all cycles in linear time.
    pub(crate) fn new(model: &Model) -> Self {
        let count = model.definitions.len();
        let mut search = Search {
            model,
            visits: vec![None; count],
            open: Vec::new(),
            cycles: vec![0; count],
            found: 0,
        };
        for (id, _) in model.iter() {
            search.from(id);
        }
        Self {
            cycles: search.cycles,
        }
    }

    /// Returns whether each of the two contains the other.
    pub(crate) fn are_in_one_cycle(&self, a: DefId, b: DefId) -> bool {
        let (a, b) = (self.cycles[a.0 as usize], self.cycles[b.0 as usize]);
        a != 0 && a == b
    }

    /// Returns whether the definition's type code has at most `limit` types. In it, the types of a
    /// cycle are written out.
    pub(crate) fn unfolds_within(&self, model: &Model, id: DefId, limit: u32) -> bool {
        let mut left = limit;
        self.unfold(model, id, &mut Vec::new(), &mut left)
    }

    fn unfold(&self, model: &Model, id: DefId, open: &mut Vec<DefId>, left: &mut u32) -> bool {
        if *left == 0 || open.len() > MAX_DEPTH {
            return false;
        }
        *left -= 1;
        open.push(id);
        let mut written_out = held_by(model, id)
            .into_iter()
            .filter(|held| !open.contains(held))
            .filter(|&held| is_written_out(model, held) || self.are_in_one_cycle(id, held))
            .collect::<Vec<_>>()
            .into_iter();
        let fits = written_out.all(|held| self.unfold(model, held, open, left));
        open.pop();
        fits
    }
}

/// Returns whether the type codes of others always contain all of it, because no Rust type has it.
pub(crate) fn is_written_out(model: &Model, id: DefId) -> bool {
    match &model.get(id).kind {
        DefKind::Interface(interface) => interface.local || interface.is_abstract,
        _ => shape::is_local(model, &Type::Named(id)),
    }
}

const MAX_DEPTH: usize = 100;

/// Tarjan's search for strongly connected components, with an explicit stack: a chain of types may
/// be longer than the thread's stack is deep.
struct Search<'m> {
    model: &'m Model,
    visits: Vec<Option<Visit>>,
    /// Visited definitions without a component.
    open: Vec<DefId>,
    cycles: Vec<u32>,
    found: u32,
}

#[derive(Clone, Copy)]
struct Visit {
    order: u32,
    /// The earliest reachable definition.
    least: u32,
    is_open: bool,
}

impl Search<'_> {
    fn from(&mut self, root: DefId) {
        let mut order = 0;
        let mut path: Vec<(DefId, Vec<DefId>)> = Vec::new();
        let mut next = Some(root);
        loop {
            if let Some(id) = next.take()
                && self.visits[id.0 as usize].is_none()
            {
                self.visits[id.0 as usize] = Some(Visit {
                    order,
                    least: order,
                    is_open: true,
                });
                order += 1;
                self.open.push(id);
                path.push((id, held_by(self.model, id)));
            }
            let Some((id, rest)) = path.last_mut() else {
                return;
            };
            let id = *id;
            if let Some(held) = rest.pop() {
                match self.visits[held.0 as usize] {
                    None => next = Some(held),
                    Some(visit) if visit.is_open => self.reach(id, visit.order),
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            let Some(visit) = self.visits[id.0 as usize] else {
                continue;
            };
            if let Some((holder, _)) = path.last() {
                self.reach(*holder, visit.least);
            }
            if visit.least == visit.order {
                self.close(id);
            }
        }
    }

    fn reach(&mut self, id: DefId, order: u32) {
        if let Some(visit) = &mut self.visits[id.0 as usize] {
            visit.least = visit.least.min(order);
        }
    }

    /// Closes the component of `id` and all definitions that were opened after it.
    fn close(&mut self, id: DefId) {
        let start = self.open.iter().rposition(|&open| open == id);
        let component = self.open.split_off(start.unwrap_or_default());
        let is_cycle = component.len() > 1 || held_by(self.model, id).contains(&id);
        self.found += u32::from(is_cycle);
        for id in component {
            if let Some(visit) = &mut self.visits[id.0 as usize] {
                visit.is_open = false;
            }
            if is_cycle {
                self.cycles[id.0 as usize] = self.found;
            }
        }
    }
}

/// Returns the definitions whose values are part of those of `id`.
fn held_by(model: &Model, id: DefId) -> Vec<DefId> {
    let mut held = Vec::new();
    for part in shape::parts(model, id) {
        name_of(model, &part.ty, &mut held);
    }
    match &model.get(id).kind {
        DefKind::Value(value) => {
            held.extend(value.concrete_base);
            for state in &value.state {
                name_of(model, &state.member.ty, &mut held);
            }
        }
        DefKind::ValueBox { ty, .. } => name_of(model, ty, &mut held),
        _ => {}
    }
    held
}

fn name_of(model: &Model, ty: &Type, held: &mut Vec<DefId>) {
    match shape::resolve(model, ty) {
        Type::Sequence { element, .. } | Type::Array { element, .. } => {
            name_of(model, element, held);
        }
        Type::Map { key, value, .. } => {
            name_of(model, key, held);
            name_of(model, value, held);
        }
        Type::Named(id) => held.push(*id),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(idl: &str) -> Model {
        chronorb_idl::compile_text("x.idl", idl, &chronorb_idl::Options::default())
            .unwrap_or_else(|failure| panic!("{failure}"))
            .model
    }

    fn id(model: &Model, name: &str) -> DefId {
        let named = model.iter().find(|(_, definition)| definition.name == name);
        named.expect("a definition").0
    }

    #[test]
    fn types_that_hold_each_other_are_in_one_cycle() {
        let model = model(
            "struct Node; typedef sequence<Node> Nodes;
             union Edge switch (boolean) { case TRUE: Nodes ends[2]; };
             struct Node { sequence<Edge> edges; };
             struct Graph { Nodes all; };
             struct Tree { sequence<Tree> children; };",
        );
        let recursion = Recursion::new(&model);
        let together = |a, b| recursion.are_in_one_cycle(id(&model, a), id(&model, b));
        assert!(together("Node", "Edge") && together("Node", "Node"));
        assert!(together("Tree", "Tree") && !together("Tree", "Node"));
        assert!(!together("Graph", "Graph") && !together("Graph", "Node"));
    }

    #[test]
    fn a_long_chain_of_types_needs_no_deep_stack() {
        let structs = (1..20_000).map(|n| format!("struct t{n} {{ sequence<t{}> a; }};", n - 1));
        let idl = "struct t0 { long a; };".to_owned() + &structs.collect::<String>();
        let model = model(&idl);
        let (first, last) = (id(&model, "t0"), id(&model, "t19999"));
        assert!(!Recursion::new(&model).are_in_one_cycle(first, last));
    }
}
