//! Requests to a whole server.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use chronorb::data::{Any, TypeCode, TypeCodeBuf};
use chronorb::prelude::*;
use chronorb_giop::PathProfile;

use super::messages::Messages;
use super::{exchange, orb};
use crate::idl::hostile::{
    Base, Chain, Choice, ChooseError, Flat, Mirror, MirrorServant, MirrorSkeleton, Money,
    TakeError, Text, Tree,
};
use crate::typed::Choices;

/// Sends requests that are mostly well-formed, and then makes a call.
pub fn server_requests(data: &[u8]) {
    let server = &*SERVER;
    let mut messages = Messages {
        choices: Choices::new(data),
    };
    let octets = if messages.choices.rarely(4) {
        messages.choices.rest().to_vec()
    } else {
        messages.of_client(&[&server.key])
    };
    exchange(&server.path, &octets);
    server.check();
}

/// A server, and a client of it.
pub(super) struct Server {
    _server: Orb,
    _client: Orb,
    mirror: Mirror,
    path: PathBuf,
    key: Vec<u8>,
}

static SERVER: LazyLock<Server> = LazyLock::new(Server::new);

impl Server {
    fn new() -> Self {
        let (server, client) = (orb(&[], |_| {}), orb(&[], |_| {}));
        let root = server.root_poa().expect("it opens");
        let object = root
            .serve(MirrorSkeleton::new(Reflection))
            .expect("activated");
        root.manager().activate().expect("active");
        let (path, key) = address(&object);
        let object = client.string_to_object(&server.object_to_string(&object));
        Self {
            mirror: Mirror::unchecked_narrow(&object.expect("a reference")),
            _server: server,
            _client: client,
            path,
            key,
        }
    }

    fn check(&self) {
        assert_eq!(self.mirror.add(20, 22), Ok(42));
    }
}

/// The socket of an object's server, and its key.
pub(super) fn address(object: &Object) -> (PathBuf, Vec<u8>) {
    let profile = &object.ior().profiles[0].data;
    let profile = PathProfile::decode(profile).expect("it is our own");
    (profile.path.into(), profile.object_key)
}

/// A servant that keeps a copy of what it gets, and gives it back.
pub(super) struct Reflection;

impl MirrorServant for Reflection {
    fn add(&self, _: &Call<'_>, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a.wrapping_add(b))
    }

    fn id<'a>(&self, call: &Call<'a>) -> Result<&'a [u8], SystemException> {
        call.slice(call.object_id().as_bytes())
    }

    fn take<'a>(&self, _: &Call<'a>, content: &Any<'a>) -> Result<Any<'a>, TakeError<'a>> {
        let _ = content.to_owned();
        Ok(*content)
    }

    fn kind<'a>(&self, _: &Call<'a>, what: &TypeCode<'a>) -> Result<TypeCode<'a>, SystemException> {
        let _ = TypeCodeBuf::from(what);
        Ok(*what)
    }

    fn grow<'a>(
        &self,
        _: &Call<'a>,
        forest: &'a [Tree<'a>],
    ) -> Result<&'a [Tree<'a>], SystemException> {
        Ok(forest)
    }

    fn lay<'a>(&self, _: &Call<'a>, list: &'a [Flat]) -> Result<&'a [Flat], SystemException> {
        Ok(list)
    }

    fn choose<'a>(&self, _: &Call<'a>, one: &Choice<'a>) -> Result<Choice<'a>, ChooseError<'a>> {
        let _ = one.to_owned();
        Ok(*one)
    }

    fn value(
        &self,
        _: &Call<'_>,
        one: Option<&Arc<dyn Base>>,
    ) -> Result<Option<Arc<dyn Base>>, SystemException> {
        Ok(one.cloned())
    }

    fn link(
        &self,
        _: &Call<'_>,
        one: Option<&Arc<dyn Chain>>,
    ) -> Result<Option<Arc<dyn Chain>>, SystemException> {
        Ok(one.cloned())
    }

    fn r#box(
        &self,
        _: &Call<'_>,
        one: Option<&Arc<Text>>,
    ) -> Result<Option<Arc<Text>>, SystemException> {
        Ok(one.cloned())
    }

    fn reference(
        &self,
        _: &Call<'_>,
        one: Option<&Object>,
    ) -> Result<Option<Object>, SystemException> {
        Ok(one.cloned())
    }

    fn wide<'a>(
        &self,
        _: &Call<'a>,
        one: &'a str,
        other: &mut &'a str,
    ) -> Result<&'a str, SystemException> {
        Ok(std::mem::replace(other, one))
    }

    fn pay(&self, _: &Call<'_>, amount: Money) -> Result<Money, SystemException> {
        Ok(amount)
    }

    fn note<'a>(&self, _: &Call<'a>, content: &Any<'a>) -> Result<(), SystemException> {
        let _ = content.to_owned();
        Ok(())
    }
}
