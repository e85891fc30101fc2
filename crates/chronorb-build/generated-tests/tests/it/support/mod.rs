//! A servant with all operations, and its reference from a client's point of view.

use std::ops::Deref;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use chronorb::Skeleton;
use chronorb::config::{Collocation, OrbConfig};
use chronorb::data::{Char, LongDouble};
use chronorb::prelude::*;
use chronorb_generated_tests::types::house::{
    BaseServant, Blob, Busy, CheckedError, Codes, Color, Curves, FailingObjectError,
    FailingServant, FirstError, FourOut, Kitchen, KitchenServant, KitchenSkeleton, Level, Listener,
    ListenerServant, ManyOut, Matrix, Node, NodeBuf, NodesError, NotFound, Numbered, Plain,
    SecondError, SetFailingObjectError, SmallBlob, ThirdError, Tree, TreeBuf, TreesError, WCode,
    WIDE_PI, Wides, base,
};

/// An ORB that serves a kitchen, and the client's reference to it.
pub(crate) struct ServedKitchen {
    orbs: Vec<Orb>,
    kitchen: Kitchen,
}

impl ServedKitchen {
    /// Returns, one after the other, a kitchen of another ORB, and one of the client's own ORB for
    /// each kind of collocated call. The last is one of another ORB with owned results.
    pub(crate) fn in_each_way() -> impl Iterator<Item = Self> {
        let own = [
            Collocation::Off,
            Collocation::ThroughPoa,
            Collocation::Direct,
        ];
        let own = own.into_iter().map(|collocation| {
            eprintln!("calls within one ORB: {collocation:?}");
            Self::by(
                vec![orb(collocation)],
                KitchenSkeleton::new(Chef::default()),
            )
        });
        let pair = || vec![orb(Collocation::Off), orb(Collocation::Off)];
        let other = [()].into_iter().map(move |()| {
            eprintln!("calls from one ORB to another");
            Self::by(pair(), KitchenSkeleton::new(Chef::default()))
        });
        let owned = [()].into_iter().map(move |()| {
            eprintln!("calls of a servant with owned results");
            Self::by(pair(), crate::owned::kitchen())
        });
        other.chain(own).chain(owned)
    }

    /// Creates the kitchen. The first ORB serves, the last calls.
    fn by(orbs: Vec<Orb>, skeleton: impl Skeleton) -> Self {
        let (server, client) = (&orbs[0], &orbs[orbs.len() - 1]);
        let root = server.root_poa().expect("a root POA");
        let object = root.serve(skeleton).expect("served");
        root.manager().activate().expect("active");
        let object = client
            .string_to_object(&server.object_to_string(&object))
            .expect("a reference");
        let kitchen = Kitchen::narrow(&object).expect("asked").expect("a kitchen");
        Self { orbs, kitchen }
    }
}

impl Deref for ServedKitchen {
    type Target = Kitchen;

    fn deref(&self) -> &Kitchen {
        &self.kitchen
    }
}

impl Drop for ServedKitchen {
    fn drop(&mut self) {
        for orb in self.orbs.iter().rev() {
            orb.shutdown(true).expect("shut down");
        }
    }
}

/// Creates an ORB that serves with one thread, and thus in the order of the requests.
fn orb(collocation: Collocation) -> Orb {
    let mut args = [
        "-ORBListenEndpoints",
        "iiop://127.0.0.1:0",
        "-ORBThreads",
        "1",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut config = OrbConfig::read(&mut args).expect("the options are correct");
    config.collocation = collocation;
    Orb::with_config(config).expect("an ORB")
}

/// A servant that mostly returns its arguments.
#[derive(Default)]
struct Chef {
    level: AtomicI32,
    heard: AtomicU32,
}

impl BaseServant for Chef {
    fn label<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("label")
    }

    fn height(&self, _: &Call<'_>) -> Result<i32, SystemException> {
        Ok(self.level.load(Ordering::Relaxed))
    }

    fn set_height(&self, _: &Call<'_>, value: i32) -> Result<(), SystemException> {
        self.level.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn checked<'a>(
        &self,
        _: &Call<'a>,
        p: base::Pairs<'a>,
    ) -> Result<base::Pairs<'a>, CheckedError> {
        if p.is_empty() {
            return Err(base::Inner { n: 3 }.into());
        }
        Ok(p)
    }
}

impl ListenerServant for Chef {
    fn notify<'a>(&self, _: &Call<'a>, what: &'a str, how: &Level) -> Result<(), SystemException> {
        if what == "x" && how.qty == 3 {
            self.heard.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn heard(&self, _: &Call<'_>) -> Result<u32, SystemException> {
        Ok(self.heard.load(Ordering::Relaxed))
    }

    fn favourite_node<'a>(&self, call: &Call<'a>) -> Result<Node<'a>, SystemException> {
        Ok(call.keep(node()).as_view_in(call.arena())?)
    }

    fn set_favourite_node<'a>(
        &self,
        _: &Call<'a>,
        value: &Node<'a>,
    ) -> Result<(), SystemException> {
        if value.to_owned() == node() {
            Ok(())
        } else {
            Err(SystemException::no(SystemExceptionKind::BadParam, 0))
        }
    }
}

impl FailingServant for Chef {
    fn first(&self, _: &Call<'_>) -> Result<(), FirstError> {
        Err(Busy.into())
    }

    fn second(&self, _: &Call<'_>) -> Result<(), SecondError> {
        Err(Numbered { number: 5 }.into())
    }

    fn third<'a>(&self, _: &Call<'a>, what: &'a str) -> Result<(), ThirdError<'a>> {
        let place = Level { px: 1.0, qty: 2 };
        Err(NotFound {
            what: if what == "nul" { "\0" } else { what },
            r#where: place,
        }
        .into())
    }
}

impl KitchenServant for Chef {
    fn fixed_parts(
        &self,
        _: &Call<'_>,
        a: &Plain,
        b: &mut Plain,
    ) -> Result<(Plain, Plain), SystemException> {
        Ok((*a, std::mem::replace(b, *a)))
    }

    fn nodes<'a>(
        &self,
        _: &Call<'a>,
        a: &Node<'a>,
        b: &mut Node<'a>,
    ) -> Result<(Node<'a>, Node<'a>), NodesError<'a>> {
        if b.name == "missing" {
            let place = Level::default();
            return Err(NotFound {
                what: b.name,
                r#where: place,
            }
            .into());
        }
        Ok((*a, std::mem::replace(b, *a)))
    }

    fn trees<'a>(
        &self,
        _: &Call<'a>,
        a: &Tree<'a>,
        b: &mut Tree<'a>,
    ) -> Result<(Tree<'a>, Tree<'a>), TreesError<'a>> {
        Ok((*a, std::mem::replace(b, *a)))
    }

    fn many<'a>(
        &self,
        _: &Call<'a>,
        a: &'a str,
        e: &mut &'a str,
    ) -> Result<ManyOut<'a>, SystemException> {
        Ok(ManyOut {
            result: "result",
            b: std::mem::replace(e, a),
            c: 9,
            d: [[1.0, 2.0]; 3],
        })
    }

    fn four(&self, _: &Call<'_>) -> Result<FourOut, SystemException> {
        Ok(FourOut {
            result: 1,
            x: 2,
            y: 3,
            z: 4,
        })
    }

    fn references(
        &self,
        _: &Call<'_>,
        a: Option<&Listener>,
        b: &mut Option<Listener>,
        d: Option<&Object>,
    ) -> Result<(Option<Listener>, Option<Listener>), SystemException> {
        if d.is_none() {
            return Err(SystemException::no(SystemExceptionKind::BadParam, 0));
        }
        Ok((b.take(), a.cloned()))
    }

    fn arrays<'a>(
        &self,
        _: &Call<'a>,
        a: &Matrix,
        b: &mut Matrix,
        d: &Curves<'a>,
    ) -> Result<(Matrix, Curves<'a>), SystemException> {
        Ok((std::mem::replace(b, *a), *d))
    }

    fn bounded<'a>(
        &self,
        _: &Call<'a>,
        a: Codes<'a>,
        b: &mut Codes<'a>,
        c: WCode<'a>,
        d: &mut WCode<'a>,
    ) -> Result<Codes<'a>, SystemException> {
        *d = c;
        Ok(std::mem::replace(b, a))
    }

    fn enums(
        &self,
        _: &Call<'_>,
        a: Color,
        b: &mut Color,
    ) -> Result<(Color, Color), SystemException> {
        Ok((std::mem::replace(b, a), Color::Blue))
    }

    fn octets<'a>(
        &self,
        _: &Call<'a>,
        a: Blob<'a>,
        b: &mut SmallBlob<'a>,
    ) -> Result<(Blob<'a>, Blob<'a>), SystemException> {
        Ok((std::mem::replace(b, &a[..a.len().min(4)]), a))
    }

    fn wide<'a>(
        &self,
        call: &Call<'a>,
        a: &'a str,
        b: &mut &'a str,
    ) -> Result<(&'a str, Wides<'a>), SystemException> {
        let lines = call.slice(&[a, b])?;
        Ok((std::mem::replace(b, a), lines))
    }

    fn characters(
        &self,
        _: &Call<'_>,
        a: char,
        b: &mut Char,
        d: &mut bool,
    ) -> Result<(char, LongDouble), SystemException> {
        b.0 += 1;
        *d = !*d;
        Ok((a, WIDE_PI))
    }

    fn sequences<'a>(
        &self,
        call: &Call<'a>,
        a: &mut &'a [&'a str],
        b: &mut &'a [Node<'a>],
    ) -> Result<&'a [Node<'a>], SystemException> {
        *a = call.slice(&["x", "y"])?;
        Ok(std::mem::take(b))
    }

    fn at_most_four<'a>(&self, _: &Call<'a>, a: &'a str) -> Result<&'a str, SystemException> {
        Ok(if a == "long" { "longer" } else { a })
    }

    fn peer(&self, _: &Call<'_>) -> Result<Option<Listener>, SystemException> {
        Ok(None)
    }

    fn other(&self, call: &Call<'_>) -> Result<Option<Kitchen>, SystemException> {
        let object = call.poa().id_to_reference(call.object_id());
        let object =
            object.map_err(|_| SystemException::no(SystemExceptionKind::ObjectNotExist, 0))?;
        Ok(Some(Kitchen::unchecked_narrow(&object)))
    }

    fn set_other(&self, _: &Call<'_>, value: Option<&Kitchen>) -> Result<(), SystemException> {
        value
            .map(|_| ())
            .ok_or_else(|| SystemException::no(SystemExceptionKind::BadParam, 0))
    }

    fn failing_object(&self, _: &Call<'_>) -> Result<Option<Object>, FailingObjectError> {
        Err(Busy.into())
    }

    fn set_failing_object<'a>(
        &self,
        _: &Call<'a>,
        _: Option<&Object>,
    ) -> Result<(), SetFailingObjectError<'a>> {
        Err(Numbered { number: 3 }.into())
    }
}

pub(crate) fn fixed() -> Plain {
    Plain {
        a: true,
        b: 255,
        c: Char(b'c'),
        d: '\u{20ac}',
        e: i16::MIN,
        f: u16::MAX,
        g: i32::MIN,
        h: u32::MAX,
        i: i64::MIN,
        j: u64::MAX,
        k: -1.5,
        l: f64::MAX,
        m: WIDE_PI,
        n: Color::Blue,
        o: Level { px: 0.25, qty: -4 },
        p: [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        q: [Color::DarkGreen; 40],
    }
}

pub(crate) fn node() -> NodeBuf {
    let strings = |items: &[&str]| {
        items
            .iter()
            .map(|&item| item.into())
            .collect::<Vec<String>>()
    };
    NodeBuf {
        name: "name".to_owned(),
        wide: "wide \u{1f600}".to_owned(),
        short_code: "12345678".to_owned(),
        values: vec![1.0, 2.0],
        names: strings(&["a", "", "c"]),
        few: strings(&["x"]),
        lines: strings(&["one", "zw\u{f6}lf"]),
        colors: vec![Color::Red, Color::Blue],
        levels: vec![Level { px: 1.0, qty: 2 }],
        data: vec![1, 2, 3],
        little: vec![4],
        pair: ["p".to_owned(), "q".to_owned()],
        grid: [["1", "2", "3"], ["4", "5", "6"]].map(|row| row.map(str::to_owned)),
        both: [vec![1.0], vec![]],
        anything: None,
        r#type: 3,
        self_: true,
    }
}

pub(crate) fn tree(listener: &Listener) -> TreeBuf {
    TreeBuf {
        root: node(),
        children: vec![node(), node()],
        deep: vec![vec![], vec![node()]],
        two: [node(), node()],
        one: Some(listener.clone()),
        many: vec![None, Some(listener.clone())],
        some: [Some(listener.clone()), None],
    }
}
