//! The tree against a naive model: a list of bindings.

use super::*;

/// A binding of the model, and the end of its lease.
type Row = (u64, (String, String), Binding, Option<u64>);

#[derive(Default)]
struct Model {
    contexts: Vec<u64>,
    rows: Vec<Row>,
}

impl Model {
    fn find(&self, context: u64, part: &(String, String), now: u64) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|(c, p, _, end)| *c == context && p == part && end.is_none_or(|end| now < end))
    }

    fn remove(&mut self, context: u64, part: &(String, String)) {
        self.rows.retain(|(c, p, ..)| (*c, p) != (context, part));
    }

    /// The outcome of a look-up, as text.
    fn resolve(&self, start: u64, name: &[(String, String)], now: u64) -> String {
        let mut context = start;
        for (i, part) in name.iter().enumerate() {
            let left = name.len() - i;
            if !self.contexts.contains(&context) {
                return if i == 0 {
                    "no context".to_owned()
                } else {
                    format!("destroyed, left {left}")
                };
            }
            let Some((_, _, binding, _)) = self.find(context, part, now) else {
                return format!("missing, left {left}");
            };
            if left == 1 {
                return format!("{:?}", binding.target);
            }
            match (&binding.kind, &binding.target) {
                (BindingKind::Object, _) => return format!("no context, left {left}"),
                (_, Target::Context(next)) => context = *next,
                (_, Target::Reference(_)) => return format!("elsewhere, left {}", left - 1),
            }
        }
        "empty".to_owned()
    }
}

fn resolve(tree: &Tree, start: u64, name: &[NameComponent<'_>], now: Monotonic) -> String {
    let found = tree.walk(start, name, now).and_then(|place| match place {
        Place::Here(context, last) => {
            let target = tree.resolve(context, last, now)?;
            Ok(format!("{target:?}"))
        }
        Place::Elsewhere(_, rest) => Ok(format!("elsewhere, left {}", rest.len())),
    });
    found.unwrap_or_else(|error| match error {
        TreeError::InvalidName => "empty".to_owned(),
        TreeError::NoContext => "no context".to_owned(),
        TreeError::NotFound(NotFoundReason::MissingNode, rest) => {
            format!("missing, left {}", rest.len())
        }
        TreeError::NotFound(_, rest) => format!("no context, left {}", rest.len()),
        TreeError::Destroyed(_, rest) => format!("destroyed, left {}", rest.len()),
        other => format!("{other:?}"),
    })
}

fn part(random: &mut fastrand::Rng) -> (String, String) {
    let one = |random: &mut fastrand::Rng| ["", "a", "b", "ab"][random.usize(..4)].to_owned();
    (one(random), one(random))
}

fn view(name: &[(String, String)]) -> Vec<NameComponent<'_>> {
    name.iter()
        .map(|(id, kind)| NameComponent { id, kind })
        .collect()
}

/// One random operation on the last component of a name in some context.
fn step(tree: &mut Tree, model: &mut Model, random: &mut fastrand::Rng, seconds: u64) {
    let now = Monotonic::from_nanos(seconds * 1_000_000_000);
    let context = *random.choice(&model.contexts).unwrap_or(&ROOT);
    let key = part(random);
    let component = NameComponent {
        id: &key.0,
        kind: &key.1,
    };
    match random.u32(..10) {
        0..=4 => {
            let is_context = random.bool();
            let target = if random.u32(..4) > 0 {
                Target::Context(random.u64(..12))
            } else {
                Target::Reference(Arc::from([random.u8(..3)]))
            };
            let time_to_live = random.u32(1..9);
            let lease = random.bool().then(|| tree.new_lease(time_to_live));
            let kind = if is_context {
                BindingKind::Context
            } else {
                BindingKind::Object
            };
            let binding = Binding {
                kind,
                target,
                lease,
            };
            let replace = random.bool();
            let planned = tree.bind(context, &component, binding.clone(), replace, now);
            let expected = match model.find(context, &key, seconds) {
                None => Ok(()),
                Some(_) if !replace => Err(TreeError::AlreadyBound),
                Some((_, _, before, _)) if before.kind == kind => Ok(()),
                Some((_, _, before, _)) => {
                    let why = match before.kind {
                        BindingKind::Object => NotFoundReason::NotContext,
                        BindingKind::Context => NotFoundReason::NotObject,
                    };
                    Err(TreeError::NotFound(why, std::slice::from_ref(&component)))
                }
            };
            assert_eq!(planned.as_ref().map(drop), expected.as_ref().copied());
            if let Ok(change) = planned {
                tree.apply(&change, now).unwrap();
                let end = lease.map(|lease| seconds + u64::from(lease.time_to_live));
                model.remove(context, &key);
                model.rows.push((context, key.clone(), binding, end));
            }
        }
        5 => {
            let planned = tree.unbind(context, &component, now);
            let exists = model.find(context, &key, seconds).is_some();
            assert_eq!(planned.is_ok(), exists);
            if let Ok(change) = planned {
                tree.apply(&change, now).unwrap();
                model.remove(context, &key);
            }
        }
        6 => {
            let (created, change) = tree.create_context().unwrap();
            assert!(!model.contexts.contains(&created));
            tree.apply(&change, now).unwrap();
            model.contexts.push(created);
        }
        7 => {
            let rows = model.rows.iter();
            let mut alive =
                rows.filter(|(c, _, _, end)| *c == context && end.is_none_or(|end| seconds < end));
            let is_empty = alive.next().is_none();
            let planned = tree.destroy(context, now);
            assert_eq!(planned.is_ok(), is_empty && context != ROOT);
            for change in planned.unwrap_or_default() {
                tree.apply(&change, now).unwrap();
                model.contexts.retain(|c| *c != context);
                model.rows.retain(|(c, ..)| *c != context);
            }
        }
        8 => {
            let found = model.find(context, &key, seconds);
            let lease = found.and_then(|(_, _, binding, _)| binding.lease);
            let id = lease.map_or(0, |lease| lease.id);
            let renewed = tree.renew(context, &component, id, now);
            assert_eq!(renewed.is_ok(), lease.is_some());
            for (c, p, binding, end) in &mut model.rows {
                if (*c, &*p) == (context, &key) && renewed.is_ok() {
                    *end = binding.lease.map(|l| seconds + u64::from(l.time_to_live));
                }
            }
        }
        _ => {
            for change in tree.ended(usize::MAX, now) {
                tree.apply(&change, now).unwrap();
            }
            model
                .rows
                .retain(|row| row.3.is_none_or(|end| seconds < end));
            let in_tree: usize = tree.contexts.values().map(|c| c.bindings.len()).sum();
            assert_eq!(in_tree, model.rows.len());
            let octets = |(_, (id, kind), binding, _): &Row| {
                binding_octets(&join(id.as_bytes(), kind.as_bytes()), &binding.target)
            };
            assert_eq!(tree.octets, model.rows.iter().map(octets).sum::<u64>());
            let leased = model.rows.iter().filter(|row| row.3.is_some());
            assert_eq!(tree.ends.len(), leased.count());
        }
    }
}

#[test]
fn random_histories_have_the_results_of_a_naive_model() {
    for seed in 0..300 {
        let random = &mut fastrand::Rng::with_seed(seed);
        let mut tree = Tree::new(1);
        let mut model = Model::default();
        model.contexts.push(ROOT);
        let mut seconds = 0;
        for _ in 0..120 {
            seconds += random.u64(..3);
            step(&mut tree, &mut model, random, seconds);
            let now = Monotonic::from_nanos(seconds * 1_000_000_000);
            let name: Vec<_> = (0..random.usize(..4)).map(|_| part(random)).collect();
            let start = random.u64(..12);
            let expected = if name.is_empty() {
                "empty".to_owned()
            } else {
                model.resolve(start, &name, seconds)
            };
            assert_eq!(
                resolve(&tree, start, &view(&name), now),
                expected,
                "seed {seed}"
            );
        }
        assert_same_after_replay(&tree, seconds);
    }
}

/// The changes of a tree make an equal one.
fn assert_same_after_replay(tree: &Tree, seconds: u64) {
    let now = Monotonic::from_nanos(seconds * 1_000_000_000);
    let mut copy = Tree::new(1);
    for change in tree.changes() {
        copy.apply(&change, now).unwrap();
    }
    assert!(copy.changes().eq(tree.changes()));
}

#[test]
fn pages_are_in_order_and_complete() {
    let mut tree = Tree::new(1);
    let now = Monotonic::from_nanos(0);
    let mut names: Vec<_> = ["b", "a", "ab", "", "a\u{1}"]
        .into_iter()
        .flat_map(|id| ["", "k", "\u{1}"].map(|kind| (id, kind)))
        .collect();
    for (id, kind) in &names {
        let component = NameComponent { id, kind };
        let binding = Binding {
            kind: BindingKind::Object,
            target: Target::Context(ROOT),
            lease: None,
        };
        let change = tree.bind(ROOT, &component, binding, false, now).unwrap();
        tree.apply(&change, now).unwrap();
    }
    names.sort_unstable();
    for size in 1..=16 {
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let (page, has_others) = tree.page(ROOT, after.as_deref(), size, now);
            assert_eq!(page.len(), size.min(names.len() - seen.len()));
            after = page.last().map(|entry| entry.key.clone());
            seen.extend(page);
            assert_eq!(has_others, seen.len() < names.len());
            if !has_others {
                break;
            }
        }
        let seen: Vec<_> = seen.iter().map(|entry| entry.component()).collect();
        let seen: Vec<_> = seen.iter().map(|c| (c.id, c.kind)).collect();
        assert_eq!(seen, names);
    }
}

#[test]
fn a_change_that_does_not_fit_is_refused() {
    let mut tree = Tree::new(1);
    let now = Monotonic::from_nanos(0);
    let bind = |context, id: &[u8]| Change::Bind {
        context,
        id: id.to_vec(),
        kind: Vec::new(),
        binding: Binding {
            kind: BindingKind::Object,
            target: Target::Context(ROOT),
            lease: None,
        },
    };
    let unbind = |context| Change::Unbind {
        context,
        id: b"a".to_vec(),
        kind: Vec::new(),
    };
    let table = [
        (bind(7, b"a"), ChangeError::NoContext(7)),
        (bind(ROOT, b"a\0"), ChangeError::Nul(ROOT)),
        (unbind(7), ChangeError::NoContext(7)),
        (unbind(ROOT), ChangeError::NotBound(ROOT)),
        (
            Change::CreateContext { context: ROOT },
            ChangeError::ContextExists(ROOT),
        ),
        (
            Change::DestroyContext { context: 7 },
            ChangeError::NoContext(7),
        ),
        (
            Change::DestroyContext { context: ROOT },
            ChangeError::Indestructible(ROOT),
        ),
    ];
    for (change, error) in table {
        assert_eq!(tree.apply(&change, now), Err(error), "{change:?}");
        assert_eq!(tree.changes().count(), 0);
    }
    // Numbers above those that a change has used are given next.
    tree.apply(&Change::CreateContext { context: 40 }, now)
        .unwrap();
    assert_eq!(tree.create_context().unwrap().0, 41);
}

#[test]
fn pages_of_changes_are_the_changes() {
    let mut tree = Tree::new(1);
    let now = Monotonic::now();
    for context in [3, 4, 9] {
        tree.apply(&Change::CreateContext { context }, now).unwrap();
    }
    for (context, count) in [(ROOT, 5), (4, 2), (9, 3)] {
        for number in 0..count {
            let bound = Change::Bind {
                context,
                id: vec![b'a' + number],
                kind: Vec::new(),
                binding: Binding {
                    kind: BindingKind::Object,
                    target: Target::Context(9),
                    lease: None,
                },
            };
            tree.apply(&bound, now).unwrap();
        }
    }
    for how_many in 1..12 {
        let mut position = ChangePosition::START;
        let mut changes = Vec::new();
        while position != ChangePosition::End {
            let page = tree.changes_from(&mut position, how_many);
            assert!(page.len() <= how_many);
            changes.extend(page);
        }
        assert!(
            changes.iter().eq(&tree.changes().collect::<Vec<_>>()),
            "{how_many}"
        );
    }
}
