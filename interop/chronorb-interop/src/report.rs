//! Counting of checks, with one line of output for each.

use std::fmt::Display;

use crate::Failure;

/// The checks so far. Lines go to standard output, in the form of the Test Anything Protocol.
#[derive(Debug, Default)]
pub struct Report {
    passed: usize,
    failed: usize,
}

impl Report {
    /// Prints the closing line. Returns whether nothing failed.
    pub fn finish(&self) -> bool {
        println!("{} passed, {} failed", self.passed, self.failed);
        self.failed == 0
    }

    /// Prints the heading of the checks that follow.
    pub(crate) fn group(&self, name: &str) {
        println!("# {name}");
    }

    /// Reports the result of a check, with the reason of a failure.
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

    /// Reports a skipped check, which counts as passed.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        self.passed += 1;
        let number = self.passed + self.failed;
        println!("ok {number} - {name} # SKIP {reason}");
    }

    /// Runs a check. `body` returns whether it passed; an error is a failure.
    pub(crate) fn check(&mut self, name: &str, body: impl FnOnce() -> Result<bool, Failure>) {
        match body() {
            Ok(passed) => self.ok(passed, name, ""),
            Err(error) => self.ok(false, name, &error.to_string()),
        }
    }

    /// Sends `v`, and `w` as the inout argument, and checks the three values that come back.
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

    /// Reports whether the result, the `out` and the `inout` argument of one echo are right.
    pub(crate) fn echoed<E: Display>(&mut self, name: &str, echoed: Result<[bool; 3], E>) {
        let (echoed, detail) = match echoed {
            Ok(echoed) => (echoed, String::new()),
            Err(error) => ([false; 3], error.to_string()),
        };
        for (right, way) in echoed.into_iter().zip(["result", "out", "inout"]) {
            self.ok(right, &format!("{name} {way}"), &detail);
        }
    }

    /// Reports whether the call fails with an exception for which `is_right` holds.
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
