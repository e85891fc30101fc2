//! A kitchen whose results are owned, with the behaviour of the borrowing one.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use chronorb::data::{Char, LongDouble};
use chronorb::prelude::*;
use chronorb_generated_tests::owned::types::house::{
    BaseOwnedServant, Blob, BlobBuf, Busy, CheckedError, Codes, CodesBuf, Color, Curves, CurvesBuf,
    FailingObjectError, FailingOwnedServant, FirstError, FourOut, Kitchen, KitchenOwnedServant,
    KitchenSkeleton, Level, Listener, ListenerOwnedServant, ManyOutBuf, Matrix, Node, NodeBuf,
    NodesErrorBuf, NotFoundBuf, Numbered, Plain, SecondError, SetFailingObjectErrorBuf,
    SmallBlobBuf, ThirdErrorBuf, Tree, TreeBuf, TreesErrorBuf, WCode, WCodeBuf, WIDE_PI, WidesBuf,
    base,
};

/// The result of a method without exceptions of its own.
type Returns<T> = Result<T, SystemException>;

/// Returns the skeleton of a servant that mostly returns its arguments.
pub(crate) fn kitchen() -> KitchenSkeleton<impl KitchenOwnedServant> {
    KitchenSkeleton::new(Chef::default())
}

#[derive(Default)]
pub(super) struct Chef {
    level: AtomicI32,
    heard: AtomicU32,
}

fn bad_param() -> SystemException {
    SystemException::no(SystemExceptionKind::BadParam, 0)
}

/// Returns the node of the tests.
fn node() -> NodeBuf {
    let strings = |items: &[&str]| items.iter().map(ToString::to_string).collect();
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

impl BaseOwnedServant for Chef {
    fn label(&self, _: &Call<'_>) -> Returns<String> {
        Ok("label".to_owned())
    }

    fn height(&self, _: &Call<'_>) -> Returns<i32> {
        Ok(self.level.load(Ordering::Relaxed))
    }

    fn set_height(&self, _: &Call<'_>, value: i32) -> Returns<()> {
        self.level.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn checked(&self, _: &Call<'_>, p: base::Pairs<'_>) -> Result<base::PairsBuf, CheckedError> {
        if p.is_empty() {
            return Err(base::Inner { n: 3 }.into());
        }
        Ok(p.to_vec())
    }
}

impl ListenerOwnedServant for Chef {
    fn notify(&self, _: &Call<'_>, what: &str, how: &Level) -> Returns<()> {
        if what == "x" && how.qty == 3 {
            self.heard.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn heard(&self, _: &Call<'_>) -> Returns<u32> {
        Ok(self.heard.load(Ordering::Relaxed))
    }

    fn favourite_node(&self, _: &Call<'_>) -> Returns<NodeBuf> {
        Ok(node())
    }

    fn set_favourite_node(&self, _: &Call<'_>, value: &Node<'_>) -> Returns<()> {
        if value.to_owned() == node() {
            Ok(())
        } else {
            Err(bad_param())
        }
    }
}

impl FailingOwnedServant for Chef {
    fn first(&self, _: &Call<'_>) -> Result<(), FirstError> {
        Err(Busy.into())
    }

    fn second(&self, _: &Call<'_>) -> Result<(), SecondError> {
        Err(Numbered { number: 5 }.into())
    }

    fn third(&self, _: &Call<'_>, what: &str) -> Result<(), ThirdErrorBuf> {
        let what = if what == "nul" { "\0" } else { what }.to_owned();
        let r#where = Level { px: 1.0, qty: 2 };
        Err(NotFoundBuf { what, r#where }.into())
    }
}

impl KitchenOwnedServant for Chef {
    fn fixed_parts(&self, _: &Call<'_>, a: &Plain, b: &mut Plain) -> Returns<(Plain, Plain)> {
        Ok((*a, std::mem::replace(b, *a)))
    }

    fn nodes(
        &self,
        _: &Call<'_>,
        a: &Node<'_>,
        b: &mut NodeBuf,
    ) -> Result<(NodeBuf, NodeBuf), NodesErrorBuf> {
        if b.name == "missing" {
            // What the servant does to an inout parameter before it fails is not sent.
            let what = std::mem::take(&mut b.name);
            let r#where = Level::default();
            return Err(NotFoundBuf { what, r#where }.into());
        }
        Ok((a.to_owned(), std::mem::replace(b, a.to_owned())))
    }

    fn trees(
        &self,
        _: &Call<'_>,
        a: &Tree<'_>,
        b: &mut TreeBuf,
    ) -> Result<(TreeBuf, TreeBuf), TreesErrorBuf> {
        Ok((a.to_owned(), std::mem::replace(b, a.to_owned())))
    }

    fn many(&self, _: &Call<'_>, a: &str, e: &mut String) -> Returns<ManyOutBuf> {
        Ok(ManyOutBuf {
            result: "result".to_owned(),
            b: std::mem::replace(e, a.to_owned()),
            c: 9,
            d: [[1.0, 2.0]; 3],
        })
    }

    fn four(&self, _: &Call<'_>) -> Returns<FourOut> {
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
    ) -> Returns<(Option<Listener>, Option<Listener>)> {
        d.ok_or_else(bad_param)?;
        Ok((b.take(), a.cloned()))
    }

    fn arrays(
        &self,
        _: &Call<'_>,
        a: &Matrix,
        b: &mut Matrix,
        d: &Curves<'_>,
    ) -> Returns<(Matrix, CurvesBuf)> {
        Ok((std::mem::replace(b, *a), d.map(<[f64]>::to_vec)))
    }

    fn bounded(
        &self,
        _: &Call<'_>,
        a: Codes<'_>,
        b: &mut CodesBuf,
        c: WCode<'_>,
        d: &mut WCodeBuf,
    ) -> Returns<CodesBuf> {
        c.clone_into(d);
        let a = a.iter().map(ToString::to_string).collect();
        Ok(std::mem::replace(b, a))
    }

    fn enums(&self, _: &Call<'_>, a: Color, b: &mut Color) -> Returns<(Color, Color)> {
        Ok((std::mem::replace(b, a), Color::Blue))
    }

    fn octets(
        &self,
        _: &Call<'_>,
        a: Blob<'_>,
        b: &mut SmallBlobBuf,
    ) -> Returns<(BlobBuf, BlobBuf)> {
        let first = a[..a.len().min(4)].to_vec();
        Ok((std::mem::replace(b, first), a.to_vec()))
    }

    fn wide(&self, _: &Call<'_>, a: &str, b: &mut String) -> Returns<(String, WidesBuf)> {
        let lines = vec![a.to_owned(), b.clone()];
        Ok((std::mem::replace(b, a.to_owned()), lines))
    }

    fn characters(
        &self,
        _: &Call<'_>,
        a: char,
        b: &mut Char,
        d: &mut bool,
    ) -> Returns<(char, LongDouble)> {
        b.0 += 1;
        *d = !*d;
        Ok((a, WIDE_PI))
    }

    fn sequences(
        &self,
        _: &Call<'_>,
        a: &mut Vec<String>,
        b: &mut Vec<NodeBuf>,
    ) -> Returns<Vec<NodeBuf>> {
        *a = vec!["x".to_owned(), "y".to_owned()];
        Ok(std::mem::take(b))
    }

    fn at_most_four(&self, _: &Call<'_>, a: &str) -> Returns<String> {
        Ok(if a == "long" { "longer" } else { a }.to_owned())
    }

    fn peer(&self, _: &Call<'_>) -> Returns<Option<Listener>> {
        Ok(None)
    }

    fn other(&self, call: &Call<'_>) -> Returns<Option<Kitchen>> {
        let object = call.poa().id_to_reference(call.object_id());
        let object = object.map_err(|_| bad_param())?;
        Ok(Some(Kitchen::unchecked_narrow(&object)))
    }

    fn set_other(&self, _: &Call<'_>, value: Option<&Kitchen>) -> Returns<()> {
        value.map(|_| ()).ok_or_else(bad_param)
    }

    fn failing_object(&self, _: &Call<'_>) -> Result<Option<Object>, FailingObjectError> {
        Err(Busy.into())
    }

    fn set_failing_object(
        &self,
        _: &Call<'_>,
        _: Option<&Object>,
    ) -> Result<(), SetFailingObjectErrorBuf> {
        Err(Numbered { number: 3 }.into())
    }
}
