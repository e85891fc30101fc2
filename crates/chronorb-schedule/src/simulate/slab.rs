//! Values by an index that is used again.

use std::ops::{Index, IndexMut};

/// Values by their indices.
#[derive(Debug)]
pub(super) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self {
            values: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, value: T) -> usize {
        if let Some(index) = self.free.pop() {
            self.values[index] = Some(value);
            return index;
        }
        self.values.push(Some(value));
        self.values.len() - 1
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<T> {
        let value = self.values.get_mut(index)?.take();
        if value.is_some() {
            self.free.push(index);
        }
        value
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }
}

impl<T> Index<usize> for Slab<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        self.values[index].as_ref().expect("the index is in use")
    }
}

impl<T> IndexMut<usize> for Slab<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.values[index].as_mut().expect("the index is in use")
    }
}
