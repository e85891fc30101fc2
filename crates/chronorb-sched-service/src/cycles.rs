//! Cycles of a graph of calls: its strongly connected components.

/// Finds the cycles among `count` nodes: the components with more than one node, and nodes with an
/// edge to themselves. The order is that of the algorithm (Tarjan 1972), without recursion.
pub(crate) fn find_cycles(count: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); count];
    for (from, to) in edges {
        next[*from].push(*to);
    }
    let mut search = Search {
        next: &next,
        order: vec![None; count],
        low: vec![0; count],
        is_open: vec![false; count],
        open: Vec::new(),
        visited: 0,
        cycles: Vec::new(),
    };
    for node in 0..count {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.cycles
}

struct Search<'a> {
    next: &'a [Vec<usize>],
    order: Vec<Option<usize>>,
    low: Vec<usize>,
    is_open: Vec<bool>,
    open: Vec<usize>,
    visited: usize,
    cycles: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, root: usize) {
        let mut path = vec![(root, 0)];
        self.enter(root);
        while let Some((node, edge)) = path.last_mut() {
            let node = *node;
            if let Some(to) = self.next[node].get(*edge).copied() {
                *edge += 1;
                match self.order[to] {
                    None => {
                        self.enter(to);
                        path.push((to, 0));
                    }
                    Some(order) if self.is_open[to] => self.low[node] = self.low[node].min(order),
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                self.low[*parent] = self.low[*parent].min(self.low[node]);
            }
            if self.order[node] == Some(self.low[node]) {
                self.close(node);
            }
        }
    }

    fn enter(&mut self, node: usize) {
        self.order[node] = Some(self.visited);
        self.low[node] = self.visited;
        self.visited += 1;
        self.is_open[node] = true;
        self.open.push(node);
    }

    /// Takes the component whose first node is `node`.
    fn close(&mut self, node: usize) {
        let start = self.open.iter().rposition(|it| *it == node).unwrap_or(0);
        let component = self.open.split_off(start);
        for member in &component {
            self.is_open[*member] = false;
        }
        if component.len() > 1 || self.next[node].contains(&node) {
            self.cycles.push(component);
        }
    }
}
