#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "programs compare type codes, calls do not"
)]
//! Compares recursive type codes that repeat themselves to different depths.
//!
//! A type code is a tree whose leaves may refer to a type that encloses them, hence a finite
//! automaton of an infinite tree. Two are equal if no path through both leads to different nodes.
//! Pairs of nodes are assumed to be equal until a difference is found (Hopcroft and Karp, 1971), so
//! that the work is almost in proportion to the number of nodes.

use std::collections::BTreeMap;

use super::{TypeCode, UnionMember};

/// Whether both represent the same infinite tree.
pub(super) fn equal(one: &TypeCode<'_>, other: &TypeCode<'_>) -> bool {
    let mut nodes = vec![Node::of(one, None), Node::of(other, None)];
    let mut classes = Classes::default();
    let mut pairs = vec![(0, 1)];
    while let Some((a, b)) = pairs.pop() {
        let (Some(a), Some(b)) = (resolve(&nodes, a), resolve(&nodes, b)) else {
            return false;
        };
        let (one, other) = (nodes[a].type_code, nodes[b].type_code);
        if !classes.join(one, other) {
            continue;
        }
        if !are_alike(one, other) {
            return false;
        }
        for index in 0.. {
            match (part(one, index), part(other, index)) {
                (Some(one), Some(other)) => {
                    nodes.extend([Node::of(one, Some(a)), Node::of(other, Some(b))]);
                    pairs.push((nodes.len() - 2, nodes.len() - 1));
                }
                (None, None) => break,
                _ => return false,
            }
        }
    }
    true
}

/// A type code and the index of the type code that contains it.
struct Node<'t> {
    type_code: &'t TypeCode<'t>,
    outer: Option<usize>,
}

impl<'t> Node<'t> {
    fn of(type_code: &'t TypeCode<'_>, outer: Option<usize>) -> Self {
        Self { type_code, outer }
    }
}

/// Returns the node itself, or the one that it refers to; `None` if there is no such enclosing
/// type.
fn resolve(nodes: &[Node<'_>], index: usize) -> Option<usize> {
    let TypeCode::Recursive { id } = nodes[index].type_code else {
        return Some(index);
    };
    let mut outers = std::iter::successors(nodes[index].outer, |&index| nodes[index].outer);
    outers.find(|&index| nodes[index].type_code.id() == Some(id))
}

/// Classes of type codes that are assumed to be equal, by address: each leads to another one of its
/// class, or is the last.
#[derive(Default)]
struct Classes(BTreeMap<usize, usize>);

impl Classes {
    /// Makes the classes of both one. Returns whether they were two.
    fn join(&mut self, one: &TypeCode<'_>, other: &TypeCode<'_>) -> bool {
        let (one, other) = (self.last(one), self.last(other));
        if one != other {
            self.0.insert(one, other);
        }
        one != other
    }

    fn last(&mut self, type_code: &TypeCode<'_>) -> usize {
        let mut at = std::ptr::from_ref(type_code).addr();
        while let Some(&next) = self.0.get(&at) {
            // Each look halves the way of the next one.
            let after = self.0.get(&next).copied();
            if let Some(after) = after {
                self.0.insert(at, after);
            }
            at = next;
        }
        at
    }
}

/// Whether two type codes are the same but for their parts. The label of a default member has no
/// meaning (CORBA 3.3 part 2, 9.3.5.1), and each ORB writes another one.
pub(super) fn are_alike(one: &TypeCode<'_>, other: &TypeCode<'_>) -> bool {
    use TypeCode::{
        Array, Enum, Event, Except, Fixed, Sequence, String, Struct, Union, Value, WString,
    };
    if (one.kind(), one.id(), one.name()) != (other.kind(), other.id(), other.name()) {
        return false;
    }
    match (one, other) {
        (Struct { members: a, .. }, Struct { members: b, .. })
        | (Except { members: a, .. }, Except { members: b, .. }) => {
            a.iter().map(|a| a.name).eq(b.iter().map(|b| b.name))
        }
        (
            Union {
                default_index: default_a,
                members: a,
                ..
            },
            Union {
                default_index: default_b,
                members: b,
                ..
            },
        ) => {
            let label = |index, member: &UnionMember<'_>| {
                let is_default = *default_a == Some(index);
                (!is_default).then_some(member.label)
            };
            let (a, b) = ((0..).zip(*a), (0..).zip(*b));
            default_a == default_b
                && a.map(|(index, a)| (label(index, a), a.name))
                    .eq(b.map(|(index, b)| (label(index, b), b.name)))
        }
        (Enum { members: a, .. }, Enum { members: b, .. }) => a == b,
        (String { bound: a }, String { bound: b })
        | (WString { bound: a }, WString { bound: b })
        | (Sequence { bound: a, .. }, Sequence { bound: b, .. })
        | (Array { length: a, .. }, Array { length: b, .. }) => a == b,
        (
            Fixed {
                digits: digits_a,
                scale: scale_a,
            },
            Fixed {
                digits: digits_b,
                scale: scale_b,
            },
        ) => digits_a == digits_b && scale_a == scale_b,
        (
            Value {
                modifier: modifier_a,
                members: a,
                ..
            },
            Value {
                modifier: modifier_b,
                members: b,
                ..
            },
        )
        | (
            Event {
                modifier: modifier_a,
                members: a,
                ..
            },
            Event {
                modifier: modifier_b,
                members: b,
                ..
            },
        ) => {
            let (a, b) = (a.iter(), b.iter());
            modifier_a == modifier_b
                && a.map(|a| (a.name, a.is_public))
                    .eq(b.map(|b| (b.name, b.is_public)))
        }
        // All of the others is in the kind, the identifier and the name.
        _ => true,
    }
}

/// The part of that index; `None` behind the last.
pub(super) fn part<'t>(type_code: &TypeCode<'t>, index: usize) -> Option<&'t TypeCode<'t>> {
    match type_code {
        TypeCode::Struct { members, .. } | TypeCode::Except { members, .. } => {
            members.get(index).map(|member| &member.type_code)
        }
        TypeCode::Union {
            discriminator,
            members,
            ..
        } => match index.checked_sub(1) {
            None => Some(discriminator),
            Some(index) => members.get(index).map(|member| &member.type_code),
        },
        TypeCode::Value { base, members, .. } | TypeCode::Event { base, members, .. } => {
            match index.checked_sub(1) {
                None => Some(base.unwrap_or(&TypeCode::Null)),
                Some(index) => members.get(index).map(|member| &member.type_code),
            }
        }
        TypeCode::Sequence { element: part, .. }
        | TypeCode::Array { element: part, .. }
        | TypeCode::Alias { target: part, .. }
        | TypeCode::ValueBox { target: part, .. } => (index == 0).then_some(*part),
        _ => None,
    }
}
