//! chronorb's side of `idl/groups.idl`.

use std::sync::mpsc::Sender;

use chronorb::prelude::*;

use idl::*;

/// The definitions of `idl/groups.idl`.
pub mod idl {
    chronorb::include_idl!("groups");

    pub use self::groups::*;
}

/// A member of a multicast group that forwards each message that it receives.
#[derive(Debug)]
pub struct TellingMember {
    tell: Sender<Heard>,
}

/// A message that a member received.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Heard {
    /// A text, and octets.
    Told(String, Vec<u8>),
    /// The request to end.
    Leave,
}

impl TellingMember {
    /// Creates a member that forwards all messages to `tell`.
    #[must_use]
    pub const fn new(tell: Sender<Heard>) -> Self {
        Self { tell }
    }
}

impl MemberServant for TellingMember {
    fn tell(&self, _: &Call<'_>, text: &str, data: &[u8]) -> Result<(), SystemException> {
        // The receiver may have ended.
        let _ = self.tell.send(Heard::Told(text.to_owned(), data.to_vec()));
        Ok(())
    }

    fn leave(&self, _: &Call<'_>) -> Result<(), SystemException> {
        let _ = self.tell.send(Heard::Leave);
        Ok(())
    }

    fn ask<'a>(&self, call: &Call<'a>, text: &'a str) -> Result<&'a str, SystemException> {
        let backwards: String = text.chars().rev().collect();
        Ok(call.arena().keep(backwards))
    }

    fn relay<'a>(
        &self,
        call: &Call<'a>,
        other: Option<&Member>,
        text: &'a str,
    ) -> Result<&'a str, SystemException> {
        let nil = SystemException::no(SystemExceptionKind::BadParam, 0);
        let answer = other.ok_or(nil)?.ask(text)?;
        Ok(call.arena().keep(answer))
    }

    fn sum(&self, _: &Call<'_>, data: &[u8]) -> Result<i64, SystemException> {
        Ok(data.iter().copied().map(i64::from).sum())
    }
}
