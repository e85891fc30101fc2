//! An ordered set whose copies share what is equal.

use std::sync::Arc;

/// The most elements of a node.
const MOST: usize = 32;
/// Neighbours with at most this number of elements together become one node, so that the depth
/// stays logarithmic whatever is removed.
const MERGED: usize = MOST / 2;

/// A persistent ordered set, as a B+ tree.
///
/// A copy takes one step, and a change afterwards copies the nodes on one path only.
#[derive(Clone, Debug)]
pub(super) struct Sequence<T>(Option<Arc<Node<T>>>);

#[derive(Clone, Debug)]
enum Node<T> {
    Leaf(Vec<T>),
    Inner(Vec<Child<T>>),
}

#[derive(Clone, Debug)]
struct Child<T> {
    /// The last element below.
    last: T,
    node: Arc<Node<T>>,
}

/// The elements of a sequence after some element, in order.
#[derive(Debug)]
pub(super) struct Cursor<'a, T> {
    root: Option<&'a Node<T>>,
    /// The rest of the present leaf. Empty only at the end.
    leaf: &'a [T],
}

impl<T> Default for Sequence<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Sequence<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The elements from the first one.
    #[inline]
    pub(super) fn cursor(&self) -> Cursor<'_, T> {
        let Some(root) = self.0.as_deref() else {
            return Cursor::default();
        };
        Cursor {
            root: Some(root),
            leaf: root.first_leaf(),
        }
    }
}

impl<T: Clone + Ord> Sequence<T> {
    /// Adds an element, unless it is there.
    pub(super) fn insert(&mut self, item: T) {
        let Some(root) = &mut self.0 else {
            self.0 = Some(Arc::new(Node::Leaf(vec![item])));
            return;
        };
        if let Some(right) = Node::insert(root, item) {
            let children = [root.clone(), right].into_iter().filter_map(Child::of);
            *root = Arc::new(Node::Inner(children.collect()));
        }
    }

    /// Removes an element, if it is there.
    pub(super) fn remove(&mut self, item: &T) {
        let Some(root) = &mut self.0 else {
            return;
        };
        Node::remove(root, item);
        while let Node::Inner(children) = &**root
            && let [only] = children.as_slice()
        {
            *root = only.node.clone();
        }
        if root.len() == 0 {
            self.0 = None;
        }
    }
}

impl<T> Node<T> {
    /// The number of elements or children.
    fn len(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Inner(children) => children.len(),
        }
    }

    fn last(&self) -> Option<&T> {
        match self {
            Self::Leaf(items) => items.last(),
            Self::Inner(children) => children.last().map(|child| &child.last),
        }
    }

    fn first_leaf(&self) -> &[T] {
        let mut node = self;
        loop {
            match node {
                Self::Leaf(items) => return items,
                Self::Inner(children) => match children.first() {
                    Some(child) => node = &child.node,
                    None => return &[],
                },
            }
        }
    }
}

impl<T: Ord> Node<T> {
    /// The elements of a leaf that follow an element.
    fn leaf_after(&self, item: &T) -> &[T] {
        let mut node = self;
        loop {
            match node {
                Self::Leaf(items) => {
                    let at = items.partition_point(|other| other <= item);
                    return &items[at..];
                }
                Self::Inner(children) => {
                    let at = children.partition_point(|child| child.last <= *item);
                    match children.get(at) {
                        Some(child) => node = &child.node,
                        None => return &[],
                    }
                }
            }
        }
    }
}

impl<T: Clone + Ord> Node<T> {
    /// Adds an element. Returns the right half of a node that has become too large.
    fn insert(this: &mut Arc<Self>, item: T) -> Option<Arc<Self>> {
        match Arc::make_mut(this) {
            Self::Leaf(items) => {
                let at = items.binary_search(&item).err()?;
                items.insert(at, item);
                let right = split(items)?;
                Some(Arc::new(Self::Leaf(right)))
            }
            Self::Inner(children) => {
                let at = children.partition_point(|child| child.last < item);
                let at = at.min(children.len() - 1);
                let right = Self::insert(&mut children[at].node, item);
                children[at].renew();
                let right = right.and_then(Child::of)?;
                children.insert(at + 1, right);
                let right = split(children)?;
                Some(Arc::new(Self::Inner(right)))
            }
        }
    }

    fn remove(this: &mut Arc<Self>, item: &T) {
        match Arc::make_mut(this) {
            Self::Leaf(items) => {
                if let Ok(at) = items.binary_search(item) {
                    items.remove(at);
                }
            }
            Self::Inner(children) => {
                let at = children.partition_point(|child| child.last < *item);
                let Some(child) = children.get_mut(at) else {
                    return;
                };
                Self::remove(&mut child.node, item);
                if child.node.len() == 0 {
                    children.remove(at);
                    return;
                }
                child.renew();
                // A removal makes one node smaller, so only its own neighbours can have to merge.
                Self::merge(children, at);
                if at > 0 {
                    Self::merge(children, at - 1);
                }
            }
        }
    }

    /// Makes one node of a child and the next one, if they are small.
    fn merge(children: &mut Vec<Child<T>>, at: usize) {
        let Some([left, right]) = children
            .get_mut(at..)
            .and_then(|rest| rest.first_chunk_mut())
        else {
            return;
        };
        if left.node.len() + right.node.len() > MERGED {
            return;
        }
        match (Arc::make_mut(&mut left.node), &*right.node) {
            (Self::Leaf(items), Self::Leaf(more)) => items.extend_from_slice(more),
            (Self::Inner(inner), Self::Inner(more)) => inner.extend_from_slice(more),
            _ => unreachable!("all leaves have the same depth"),
        }
        left.renew();
        children.remove(at + 1);
    }
}

impl<T: Clone> Child<T> {
    /// A child, unless it is empty.
    fn of(node: Arc<Node<T>>) -> Option<Self> {
        let last = node.last()?.clone();
        Some(Self { last, node })
    }

    fn renew(&mut self) {
        if let Some(last) = self.node.last() {
            self.last = last.clone();
        }
    }
}

/// Splits the right half off, if there are too many elements.
fn split<E>(elements: &mut Vec<E>) -> Option<Vec<E>> {
    (elements.len() > MOST).then(|| elements.split_off(MOST / 2))
}

impl<T> Default for Cursor<'_, T> {
    fn default() -> Self {
        Self {
            root: None,
            leaf: &[],
        }
    }
}

impl<'a, T: Ord> Cursor<'a, T> {
    /// The next element, which stays the next one.
    #[inline]
    pub(super) fn peek(&self) -> Option<&'a T> {
        self.leaf.first()
    }

    /// Passes the next element.
    #[inline]
    pub(super) fn advance(&mut self) {
        let Some((first, rest)) = self.leaf.split_first() else {
            return;
        };
        self.leaf = rest;
        if rest.is_empty()
            && let Some(root @ Node::Inner(_)) = self.root
        {
            self.leaf = root.leaf_after(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn elements(sequence: &Sequence<u16>) -> Vec<u16> {
        let mut cursor = sequence.cursor();
        let mut elements = Vec::new();
        while let Some(element) = cursor.peek() {
            elements.push(*element);
            cursor.advance();
        }
        elements
    }

    /// The depth, after a check of the sizes of all nodes.
    fn checked_depth(node: &Node<u16>) -> usize {
        assert!((1..=MOST).contains(&node.len()));
        let Node::Inner(children) = node else {
            return 1;
        };
        for pair in children.windows(2) {
            assert!(pair[0].node.len() + pair[1].node.len() > MERGED);
        }
        let depths = children.iter().map(|child| checked_depth(&child.node));
        let depths: BTreeSet<_> = depths.collect();
        assert_eq!(depths.len(), 1, "all leaves have the same depth");
        depths.into_iter().next().unwrap_or_default() + 1
    }

    proptest! {
        #[test]
        fn a_sequence_is_an_ordered_set(
            changes in prop::collection::vec((any::<bool>(), 0_u16..600), 0..2000),
        ) {
            let mut sequence = Sequence::default();
            let mut model = BTreeSet::new();
            let mut copies = Vec::new();
            for (number, (is_added, element)) in changes.into_iter().enumerate() {
                if is_added {
                    sequence.insert(element);
                    model.insert(element);
                } else {
                    sequence.remove(&element);
                    model.remove(&element);
                }
                if number % 100 == 0 {
                    copies.push((sequence.clone(), model.clone()));
                }
            }
            copies.push((sequence, model));
            for (copy, model) in copies {
                prop_assert_eq!(elements(&copy), model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(copy.is_empty(), model.is_empty());
                if let Some(root) = &copy.0 {
                    prop_assert!(checked_depth(root) <= 4);
                }
            }
        }
    }

    #[test]
    fn a_queue_of_elements_stays_flat() {
        let mut sequence = Sequence::default();
        for element in 0..20_000_u16 {
            sequence.insert(element);
            if element >= 100 {
                sequence.remove(&(element - 100));
            }
        }
        assert_eq!(elements(&sequence), (19_900..20_000).collect::<Vec<_>>());
        assert!(checked_depth(sequence.0.as_ref().expect("it has elements")) <= 2);
        for element in 19_900..20_000 {
            sequence.remove(&element);
        }
        assert!(sequence.is_empty());
    }
}
