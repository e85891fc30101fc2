//! Equality and equivalence of type codes.

use std::hash::{Hash, Hasher};

use super::{TypeCode, unrolled};

/// Equal if they are the same including names, repository identifiers and aliases. The label of the
/// default member of a union has no meaning, and is not compared.
impl PartialEq for TypeCode<'_> {
    fn eq(&self, other: &Self) -> bool {
        let same = || {
            for index in 0.. {
                match (unrolled::part(self, index), unrolled::part(other, index)) {
                    (Some(part), Some(of_other)) if part == of_other => {}
                    (None, None) => return true,
                    _ => return false,
                }
            }
            false
        };
        unrolled::are_alike(self, other) && same()
    }
}

impl Eq for TypeCode<'_> {}

/// Hashes less than `==` compares: the kinds, identifiers and names of the type and its parts.
impl Hash for TypeCode<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind(), self.id(), self.name()).hash(state);
        let parts = (0..).map_while(|index| unrolled::part(self, index));
        parts.for_each(|part| part.hash(state));
    }
}

/// Comparisons, as CORBA 3.3 part 1, clause 8.11.1 has them.
impl TypeCode<'_> {
    /// Whether both are the same including names, repository identifiers and aliases. A recursive
    /// type code is the same as one in which the type is repeated within itself once or more, as
    /// some ORBs send it. `==` distinguishes these two forms.
    pub fn equal(&self, other: &TypeCode<'_>) -> bool {
        self == other || unrolled::equal(self, other)
    }

    /// Whether values of one type can be used as values of the other (`TypeCode::equivalent`).
    ///
    /// Aliases and names are ignored. If both types have repository ids that are not empty,
    /// the ids are compared; otherwise the members are.
    pub fn equivalent(&self, other: &TypeCode<'_>) -> bool {
        let (this, other) = (self.unaliased(), other.unaliased());
        if let (Some(id), Some(other_id)) = (this.id(), other.id())
            && !id.is_empty()
            && !other_id.is_empty()
        {
            let of_one_kind = this.kind() == other.kind();
            return id == other_id && (of_one_kind || this.is_recursive() || other.is_recursive());
        }
        this.alike(other)
    }

    fn is_recursive(&self) -> bool {
        matches!(self, Self::Recursive { .. })
    }

    /// As `equivalent`, but by the members alone.
    fn alike(&self, other: &TypeCode<'_>) -> bool {
        use TypeCode::{
            Array, Enum, Event, Except, Fixed, Sequence, String, Struct, Union, Value, ValueBox,
            WString,
        };
        match (self, other) {
            (Struct { members: a, .. }, Struct { members: b, .. })
            | (Except { members: a, .. }, Except { members: b, .. }) => {
                all(a, b, |a, b| a.type_code.equivalent(&b.type_code))
            }
            (
                Union {
                    discriminator: a,
                    default_index: default_a,
                    members: members_a,
                    ..
                },
                Union {
                    discriminator: b,
                    default_index: default_b,
                    members: members_b,
                    ..
                },
            ) => {
                let mut index = 0;
                a.equivalent(b)
                    && default_a == default_b
                    && all(members_a, members_b, |a, b| {
                        let is_default = *default_a == Some(index);
                        index += 1;
                        (is_default || a.label == b.label) && a.type_code.equivalent(&b.type_code)
                    })
            }
            (Enum { members: a, .. }, Enum { members: b, .. }) => a.len() == b.len(),
            (String { bound: a }, String { bound: b })
            | (WString { bound: a }, WString { bound: b }) => a == b,
            (
                Fixed {
                    digits: a,
                    scale: c,
                },
                Fixed {
                    digits: b,
                    scale: d,
                },
            ) => a == b && c == d,
            (
                Sequence {
                    element: a,
                    bound: m,
                },
                Sequence {
                    element: b,
                    bound: n,
                },
            )
            | (
                Array {
                    element: a,
                    length: m,
                },
                Array {
                    element: b,
                    length: n,
                },
            ) => m == n && a.equivalent(b),
            (
                Value {
                    modifier: a,
                    base: base_a,
                    members: members_a,
                    ..
                },
                Value {
                    modifier: b,
                    base: base_b,
                    members: members_b,
                    ..
                },
            )
            | (
                Event {
                    modifier: a,
                    base: base_a,
                    members: members_a,
                    ..
                },
                Event {
                    modifier: b,
                    base: base_b,
                    members: members_b,
                    ..
                },
            ) => {
                let same_base = match (base_a, base_b) {
                    (Some(a), Some(b)) => a.equivalent(b),
                    (None, None) => true,
                    _ => false,
                };
                a == b
                    && same_base
                    && all(members_a, members_b, |a, b| {
                        a.is_public == b.is_public && a.type_code.equivalent(&b.type_code)
                    })
            }
            (ValueBox { target: a, .. }, ValueBox { target: b, .. }) => a.equivalent(b),
            _ => self.kind() == other.kind(),
        }
    }
}

fn all<A, B>(a: &[A], b: &[B], mut same: impl FnMut(&A, &B) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}
