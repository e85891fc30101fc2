//! Counts checks and prints one line for each.

use std::fmt::Display;

use crate::Failure;

/// The checks so far. Lines go to standard output, in the form of the Test Anything Protocol.
#[derive(Debug, Default)]
pub struct Report {
    passed: usize,
    failed: usize,
}

impl Report {
    /// Prints the closing line; true if nothing failed.
    pub fn finish(&self) -> bool {
        println!("{} passed, {} failed", self.passed, self.failed);
        self.failed == 0
    }

    /// Heads the checks that follow.
    pub(crate) fn group(&self, name: &str) {
        println!("# {name}");
    }

    /// A check is over; the detail says why it failed.
    pub(crate) fn ok(&mut self, passed: bool, name: &str, detail: &str) {
        *(if passed {
            &mut self.passed
        } else {
            &mut self.failed
        }) += 1;
        let number = self.passed + self.failed;
        match (passed, detail) {
            (true, _) => println!("ok {number} - {name}"),
            (false, "") => println!("not ok {number} - {name}"),
            (false, detail) => println!("not ok {number} - {name} ({detail})"),
        }
    }

    /// A check that is not made counts as passed.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        self.passed += 1;
        let number = self.passed + self.failed;
        println!("ok {number} - {name} # SKIP {reason}");
    }

    /// `body` returns whether the check passed; an error is a failure.
    pub(crate) fn check(&mut self, name: &str, body: impl FnOnce() -> Result<bool, Failure>) {
        match body() {
            Ok(passed) => self.ok(passed, name, ""),
            Err(error) => self.ok(false, name, &error.to_string()),
        }
    }

    /// Sends `v`, and `w` where the argument goes both ways, and checks the three ways back.
    pub(crate) fn echo<T, E>(
        &mut self,
        name: &str,
        v: T,
        w: T,
        call: impl FnOnce(&T, &mut T) -> Result<(T, T), E>,
    ) where
        T: Clone + PartialEq,
        E: Display,
    {
        let mut io = w.clone();
        let echoed = call(&v, &mut io);
        self.echoed(
            name,
            echoed.map(|(result, o)| [result == v, o == w, io == v]),
        );
    }

    /// Whether the result, the `out` and the `inout` argument of one echo are what they have to be.
    pub(crate) fn echoed<E: Display>(&mut self, name: &str, echoed: Result<[bool; 3], E>) {
        let (echoed, detail) = match echoed {
            Ok(echoed) => (echoed, String::new()),
            Err(error) => ([false; 3], error.to_string()),
        };
        for (right, way) in echoed.into_iter().zip(["result", "out", "inout"]) {
            self.ok(right, &format!("{name} {way}"), &detail);
        }
    }

    /// The call is expected to fail with an exception for which `is_right` holds.
    pub(crate) fn raises<T, E: Display>(
        &mut self,
        name: &str,
        outcome: Result<T, E>,
        is_right: impl FnOnce(&E) -> bool,
    ) {
        match outcome {
            Ok(_) => self.ok(false, name, "nothing was raised"),
            Err(exception) => self.ok(is_right(&exception), name, &exception.to_string()),
        }
    }
}
