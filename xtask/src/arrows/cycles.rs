//! Strongly connected components, by Tarjan's algorithm.

use std::collections::BTreeMap;

use super::Arrows;

/// The cycles: sets of modules of which each reaches each, the largest first.
pub(super) fn of(arrows: &Arrows) -> Vec<Vec<&str>> {
    let mut search = Search {
        arrows,
        index: BTreeMap::new(),
        stack: Vec::new(),
        found: Vec::new(),
    };
    for module in arrows.keys() {
        if !search.index.contains_key(module.as_str()) {
            search.visit(module);
        }
    }
    let mut found = search.found;
    found.retain(|cycle| cycle.len() > 1);
    found.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
    found
}

struct Search<'a> {
    arrows: &'a Arrows,
    /// The order of visits; `None` once the module's cycle is known.
    index: BTreeMap<&'a str, Option<usize>>,
    stack: Vec<&'a str>,
    found: Vec<Vec<&'a str>>,
}

impl<'a> Search<'a> {
    /// Returns the lowest index that `module` reaches.
    fn visit(&mut self, module: &'a str) -> usize {
        let own = self.index.len();
        self.index.insert(module, Some(own));
        let depth = self.stack.len();
        self.stack.push(module);
        let mut lowest = own;
        for to in self.arrows.get(module).into_iter().flatten() {
            lowest = lowest.min(match self.index.get(to.as_str()) {
                None => self.visit(to),
                Some(Some(index)) => *index,
                Some(None) => continue,
            });
        }
        if lowest == own {
            let mut cycle = self.stack.split_off(depth);
            for module in &cycle {
                self.index.insert(module, None);
            }
            cycle.sort_unstable();
            self.found.push(cycle);
        }
        lowest
    }
}
