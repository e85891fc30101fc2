//! Filters compiled to flat programs, and the interests that routing goes by.

use std::time::Duration;

use crate::error::{Limits, SubscriptionError};
use crate::event::{ANY_SOURCE, ANY_TYPE, Header};
use crate::filter::{Filter, TimerKind, firings_per_second, leaf_passes};

/// The rules of correlation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rules {
    /// Every child of a disjunction is asked. A delivery resets the conjunction that made it.
    #[default]
    Corrected,
    /// The rules of TAO's channel. The first child that accepts an event ends the search, and a
    /// delivery resets all conjunctions and deadlines of the consumer. A set has the events of a
    /// nested conjunction where that was complete. Of several filters beside each other the first
    /// one counts.
    Tao,
}

/// A filter as a flat program: the nodes of the tree in prefix order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub(crate) nodes: Box<[Node]>,
    /// The number of children of each conjunction.
    pub(crate) cells: Box<[CellShape]>,
    pub(crate) timers: Box<[TimerNode]>,
    pub(crate) rules: Rules,
}

/// A node, and the index after its subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) operation: Operation,
    pub(crate) end: usize,
    pub(crate) is_stateless: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Leaf {
        source: i32,
        event_type: i32,
    },
    Everything,
    Masked {
        source_mask: i32,
        type_mask: i32,
        source_value: i32,
        type_value: i32,
    },
    Bits {
        source_mask: i32,
        type_mask: i32,
    },
    Negation,
    /// A group without children.
    Nothing,
    All,
    Any,
    Conjunction {
        cell: usize,
    },
    Timer {
        /// A deadline that ends the conjunction whose child it is.
        ends_conjunction: bool,
    },
}

/// The size of a conjunction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellShape {
    pub(crate) children: usize,
    /// The children that must have delivered.
    pub(crate) required: usize,
    /// The most events that a set of it has.
    pub(crate) events: usize,
}

/// A timer of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimerNode {
    pub(crate) node: usize,
    pub(crate) kind: TimerKind,
    pub(crate) nanos: u64,
    /// The conjunction whose deliveries restart a deadline. Without one, every delivery does.
    pub(crate) cell: Option<usize>,
}

/// Events that a program may react to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Exact(i32, i32),
    Type(i32),
    Source(i32),
    /// Events with these values below the masks.
    Values {
        masks: [i32; 2],
        values: [i32; 2],
    },
    /// Events with at least one bit of each mask.
    Bits {
        masks: [i32; 2],
    },
    All,
}

impl Interest {
    /// Whether it is that of a leaf: in a source, a type or both.
    pub(crate) fn is_leaf(&self) -> bool {
        matches!(self, Self::Exact(..) | Self::Type(_) | Self::Source(_))
    }

    /// A measure of how many events it includes.
    fn width(&self) -> usize {
        match self {
            Self::Exact(..) | Self::Type(_) | Self::Source(_) => 0,
            Self::Values { .. } | Self::Bits { .. } => 1,
            Self::All => 2,
        }
    }
}

impl Program {
    /// Checks and compiles a filter.
    ///
    /// # Errors
    /// See [`SubscriptionError`].
    pub fn compile(
        filter: &Filter,
        rules: Rules,
        limits: &Limits,
    ) -> Result<Self, SubscriptionError> {
        let mut compiler = Compiler {
            nodes: Vec::new(),
            cells: Vec::new(),
            timers: Vec::new(),
            rules,
            limits,
        };
        compiler.compile(filter, 1, None)?;
        compiler.check_rate()?;
        Ok(Self {
            nodes: compiler.nodes.into(),
            cells: compiler.cells.into(),
            timers: compiler.timers.into(),
            rules,
        })
    }

    /// The sources and types of the events that the program may react to, as leaves: zero is any.
    /// Each stands once, in ascending order. A program of timers alone has none.
    pub fn leaves(&self) -> Vec<(i32, i32)> {
        let leaf = |interest| match interest {
            Interest::Exact(source, event_type) => (source, event_type),
            Interest::Type(event_type) => (ANY_SOURCE, event_type),
            Interest::Source(source) => (source, ANY_TYPE),
            Interest::Values { .. } | Interest::Bits { .. } | Interest::All => {
                (ANY_SOURCE, ANY_TYPE)
            }
        };
        let mut leaves: Vec<_> = self.interests().into_iter().map(leaf).collect();
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }

    /// Whether the program keeps nothing between events: it has no groups and no timers.
    /// [`accepts`](Self::accepts) is all that it does then.
    pub fn is_stateless(&self) -> bool {
        self.nodes[0].is_stateless
    }

    /// The number of nodes, which bounds the work that one event can cause.
    #[inline]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the program has timers.
    pub fn has_timers(&self) -> bool {
        !self.timers.is_empty()
    }

    /// Whether a program [without state](Self::is_stateless) delivers an event.
    pub fn accepts(&self, header: &Header) -> bool {
        self.passes(0, header)
    }

    /// Whether the subtree at a node, which has no state, accepts an event.
    pub(crate) fn passes(&self, at: usize, header: &Header) -> bool {
        match self.nodes[at].operation {
            Operation::Leaf { source, event_type } => leaf_passes(source, event_type, header),
            Operation::Everything => true,
            Operation::Masked {
                source_mask,
                type_mask,
                source_value,
                type_value,
            } => {
                header.source & source_mask == source_value
                    && header.event_type & type_mask == type_value
            }
            Operation::Bits {
                source_mask,
                type_mask,
            } => has_bits(source_mask, type_mask, header) && self.passes(at + 1, header),
            Operation::Negation => !self.passes(at + 1, header),
            Operation::All => self.children(at).all(|child| self.passes(child, header)),
            Operation::Any => self.children(at).any(|child| self.passes(child, header)),
            Operation::Nothing | Operation::Conjunction { .. } | Operation::Timer { .. } => false,
        }
    }

    /// The children of a node.
    pub(crate) fn children(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.nodes[at].end;
        let mut child = at + 1;
        std::iter::from_fn(move || {
            let this = (child < end).then_some(child)?;
            child = self.nodes[this].end;
            Some(this)
        })
    }

    /// The events that the program may react to. Others leave it and its state as they are.
    pub(crate) fn interests(&self) -> Vec<Interest> {
        self.interests_of(0, false)
    }

    /// The events to which the subtree at a node may react, or if negated those that it may reject.
    fn interests_of(&self, at: usize, is_negated: bool) -> Vec<Interest> {
        let of_children = || {
            self.children(at)
                .map(|at| self.interests_of(at, is_negated))
        };
        let one = |interest| vec![interest];
        match self.nodes[at].operation {
            Operation::Leaf { source, event_type } => match (source, event_type) {
                (ANY_SOURCE, ANY_TYPE) if is_negated => Vec::new(),
                (ANY_SOURCE, ANY_TYPE) => one(Interest::All),
                _ if is_negated => one(Interest::All),
                (ANY_SOURCE, event_type) => one(Interest::Type(event_type)),
                (source, ANY_TYPE) => one(Interest::Source(source)),
                (source, event_type) => one(Interest::Exact(source, event_type)),
            },
            Operation::Everything if is_negated => Vec::new(),
            Operation::Everything => one(Interest::All),
            Operation::Masked { .. } if is_negated => one(Interest::All),
            Operation::Masked {
                source_mask,
                type_mask,
                source_value,
                type_value,
            } => one(Interest::Values {
                masks: [source_mask, type_mask],
                values: [source_value, type_value],
            }),
            // An event without the bits is rejected, and so is one that the child rejects.
            Operation::Bits {
                source_mask,
                type_mask,
            } if is_negated => {
                let without = |masks| Interest::Values {
                    masks,
                    values: [0, 0],
                };
                let mut interests = self.interests_of(at + 1, true);
                interests.extend([[source_mask, 0], [0, type_mask]].map(without));
                interests
            }
            // An event must pass both the masks and the child.
            Operation::Bits {
                source_mask,
                type_mask,
            } => {
                let masks = [source_mask, type_mask];
                let own = one(Interest::Bits { masks });
                narrowest([self.interests_of(at + 1, false), own])
            }
            Operation::Negation => self.interests_of(at + 1, !is_negated),
            // An event must pass every child, or be rejected by each.
            Operation::All if !is_negated => narrowest(of_children()),
            Operation::Any if is_negated => narrowest(of_children()),
            Operation::All | Operation::Any | Operation::Conjunction { .. } => {
                of_children().flatten().collect()
            }
            Operation::Nothing if is_negated => one(Interest::All),
            Operation::Nothing | Operation::Timer { .. } => Vec::new(),
        }
    }
}

/// The most selective ones: the first among those of the same measure.
fn narrowest(all: impl IntoIterator<Item = Vec<Interest>>) -> Vec<Interest> {
    let narrowest = all.into_iter().min_by_key(|interests| {
        let width = interests.iter().map(Interest::width).max();
        (width, interests.len())
    });
    narrowest.unwrap_or_default()
}

/// Whether an event has at least one bit of each mask.
#[inline]
pub(crate) fn has_bits(source_mask: i32, type_mask: i32, header: &Header) -> bool {
    header.source & source_mask != 0 && header.event_type & type_mask != 0
}

struct Compiler<'a> {
    nodes: Vec<Node>,
    cells: Vec<CellShape>,
    timers: Vec<TimerNode>,
    rules: Rules,
    limits: &'a Limits,
}

impl Compiler<'_> {
    /// Compiles a subtree, which may be a child of a conjunction. Returns the most events that one
    /// delivery of it has.
    fn compile(
        &mut self,
        filter: &Filter,
        depth: usize,
        conjunction: Option<usize>,
    ) -> Result<usize, SubscriptionError> {
        if depth > self.limits.depth {
            let limit = self.limits.depth;
            return Err(SubscriptionError::TooDeep { limit });
        }
        if self.nodes.len() == self.limits.nodes {
            let limit = self.limits.nodes;
            return Err(SubscriptionError::TooLarge { limit });
        }
        let at = self.nodes.len();
        let operation = self.operation(filter, conjunction)?;
        self.nodes.push(Node {
            operation,
            end: at + 1,
            is_stateless: true,
        });
        let parent = match operation {
            Operation::Conjunction { cell } => Some(cell),
            _ => None,
        };
        let (mut sum, mut longest) = (0, 1);
        let mut is_stateless = !matches!(
            operation,
            Operation::Conjunction { .. } | Operation::Timer { .. }
        );
        let children = filter.children();
        for child in children {
            let child_at = self.nodes.len();
            let events = self.compile(child, depth + 1, parent)?;
            sum += events;
            longest = longest.max(events);
            is_stateless &= self.nodes[child_at].is_stateless;
        }
        let needs_stateless = matches!(operation, Operation::Negation | Operation::All);
        if needs_stateless && !is_stateless {
            return Err(SubscriptionError::StatefulOperand);
        }
        let end = self.nodes.len();
        let node = &mut self.nodes[at];
        node.end = end;
        node.is_stateless = is_stateless;
        let Operation::Conjunction { cell } = operation else {
            return Ok(longest);
        };
        let is_required = |child: &&Filter| self.rules == Rules::Tao || !is_deadline(child);
        self.cells[cell] = CellShape {
            children: children.len(),
            required: children.iter().filter(is_required).count(),
            events: sum,
        };
        Ok(sum)
    }

    fn operation(
        &mut self,
        filter: &Filter,
        conjunction: Option<usize>,
    ) -> Result<Operation, SubscriptionError> {
        Ok(match filter {
            Filter::Leaf { source, event_type } => Operation::Leaf {
                source: *source,
                event_type: *event_type,
            },
            Filter::Everything => Operation::Everything,
            Filter::Masked {
                source_mask,
                type_mask,
                source_value,
                type_value,
            } => Operation::Masked {
                source_mask: *source_mask,
                type_mask: *type_mask,
                source_value: *source_value,
                type_value: *type_value,
            },
            Filter::Bits {
                source_mask,
                type_mask,
                ..
            } => Operation::Bits {
                source_mask: *source_mask,
                type_mask: *type_mask,
            },
            Filter::Negation(_) => Operation::Negation,
            Filter::All(children) | Filter::Any(children) | Filter::Conjunction(children)
                if children.is_empty() =>
            {
                Operation::Nothing
            }
            Filter::All(_) => Operation::All,
            Filter::Any(_) => Operation::Any,
            Filter::Conjunction(_) => {
                self.cells.push(CellShape {
                    children: 0,
                    required: 0,
                    events: 0,
                });
                let cell = self.cells.len() - 1;
                Operation::Conjunction { cell }
            }
            Filter::Timer { kind, time } => self.timer(*kind, *time, conjunction)?,
        })
    }

    fn timer(
        &mut self,
        kind: TimerKind,
        time: Duration,
        conjunction: Option<usize>,
    ) -> Result<Operation, SubscriptionError> {
        let (least, greatest) = (self.limits.least_time, self.limits.greatest_time);
        let nanos = u64::try_from(time.as_nanos()).ok();
        let nanos = nanos.filter(|_| (least..=greatest).contains(&time));
        let nanos = nanos.ok_or(SubscriptionError::BadTime {
            time,
            least,
            greatest,
        })?;
        let ends_conjunction =
            kind == TimerKind::Deadline && conjunction.is_some() && self.rules == Rules::Corrected;
        self.timers.push(TimerNode {
            node: self.nodes.len(),
            kind,
            nanos,
            cell: conjunction.filter(|_| ends_conjunction),
        });
        Ok(Operation::Timer { ends_conjunction })
    }
}

impl Compiler<'_> {
    fn check_rate(&self) -> Result<(), SubscriptionError> {
        let repeated = |timer: &&TimerNode| timer.kind != TimerKind::Once;
        let periods = self.timers.iter().filter(repeated);
        let rate = firings_per_second(periods.map(|timer| timer.nanos.into()));
        let limit = self.limits.firings_per_second;
        if rate > limit {
            return Err(SubscriptionError::TooFrequent { rate, limit });
        }
        Ok(())
    }
}

fn is_deadline(filter: &Filter) -> bool {
    let deadline = TimerKind::Deadline;
    matches!(filter, Filter::Timer { kind, .. } if *kind == deadline)
}
