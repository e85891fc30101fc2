//! The semantics of the naming service (Naming Service 1.3, chapter 2), a test for each rule.

use chronorb::prelude::*;
use chronorb_naming::NameServer;
use chronorb_naming::idl::cos_naming::naming_context::{NotFoundBuf, NotFoundReason};
use chronorb_naming::idl::cos_naming::{
    BindErrorBuf, BindingType, DestroyError, NameBuf, NameComponent, NameComponentBuf,
    NamingContext, NamingContextExt, RebindErrorBuf, ToNameError, ToStringError, ToUrlError,
};

use crate::support::{Fixture, n};

fn fixture() -> Fixture {
    Fixture::new(NameServer::new())
}

fn not_found(why: NotFoundReason, rest: &[&str]) -> NotFoundBuf {
    let component = |id: &&str| NameComponentBuf {
        id: (*id).to_owned(),
        kind: String::new(),
    };
    NotFoundBuf {
        why,
        rest_of_name: rest.iter().map(component).collect(),
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(
    result: Result<T, RebindErrorBuf>,
    why: NotFoundReason,
    rest: &[&str],
) {
    match result {
        Err(RebindErrorBuf::NotFound(error)) => assert_eq!(error, not_found(why, rest)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_root_is_a_context_with_names_in_text_form_under_the_plain_key() {
    let f = fixture();
    let listening = f.server.listening();
    let address = listening.endpoints[0].endpoint.replace("iiop://", "iiop:");
    let url = format!("corbaloc:{address}/NameService");
    let root = f.client.string_to_object(&url).unwrap();
    let root = NamingContextExt::unchecked_narrow(&root);
    for id in [
        "IDL:omg.org/CosNaming/NamingContext:1.0",
        "IDL:omg.org/CosNaming/NamingContextExt:1.0",
        "IDL:ChronorbNaming/LeasingContext:1.0",
    ] {
        assert!(root.as_object().is_a(id).unwrap(), "{id}");
    }
    let initial = f.server.resolve_initial_references("NameService").unwrap();
    assert!(initial.is_equivalent(f.service.root()));
}

#[test]
fn both_parts_of_a_component_are_compared() {
    let f = fixture();
    let root = f.root();
    let names = [
        ("a", ""),
        ("a", "k"),
        ("", "a"),
        ("", ""),
        ("A", ""),
        ("ak", ""),
    ];
    for (i, (id, kind)) in names.into_iter().enumerate() {
        let object = f.object(i as u16);
        root.bind(&[NameComponent { id, kind }], Some(&object))
            .unwrap();
    }
    for (i, (id, kind)) in names.into_iter().enumerate() {
        let found = root.resolve(&[NameComponent { id, kind }]).unwrap();
        assert_eq!(found, Some(f.object(i as u16)), "{id}.{kind}");
    }
}

#[test]
fn an_empty_name_is_invalid_in_every_operation() {
    let f = fixture();
    let (root, object, context) = (f.root(), f.object(0), f.context());
    let is_bind = |r| matches!(r, Err(BindErrorBuf::InvalidName(_)));
    let is_rebind = |r| matches!(r, Err(RebindErrorBuf::InvalidName(_)));
    assert!(is_bind(root.bind(&[], Some(&object))));
    assert!(is_rebind(root.rebind(&[], Some(&object))));
    assert!(is_bind(root.bind_context(&[], Some(&context))));
    assert!(is_rebind(root.rebind_context(&[], Some(&context))));
    assert!(is_rebind(root.resolve(&[]).map(drop)));
    assert!(is_rebind(root.unbind(&[])));
    assert!(is_bind(root.bind_new_context(&[]).map(drop)));
    assert_eq!(
        root.to_string(&[]),
        Err(ToStringError::InvalidName(Default::default()))
    );
    let found = root.resolve_str("").map_err(|error| format!("{error:?}"));
    assert!(found.unwrap_err().contains("InvalidName"));
}

#[test]
fn names_lead_through_contexts() {
    let f = fixture();
    let root = f.root();
    let a = root.bind_new_context(&n(["a"])).unwrap().unwrap();
    let b = root.bind_new_context(&n(["a", "b"])).unwrap().unwrap();
    root.bind(&n(["a", "b", "c"]), Some(&f.object(1))).unwrap();
    assert_eq!(a.resolve(&n(["b", "c"])).unwrap(), Some(f.object(1)));
    assert_eq!(b.resolve(&n(["c"])).unwrap(), Some(f.object(1)));
    assert_eq!(root.resolve_str("a/b/c").unwrap(), Some(f.object(1)));
    let found = root.resolve(&n(["a", "b"])).unwrap().unwrap();
    assert!(found.is_equivalent(b.as_object()));
    root.rebind(&n(["a", "b", "c"]), Some(&f.object(2)))
        .unwrap();
    root.unbind(&n(["a", "b", "c"])).unwrap();
    refused(b.resolve(&n(["c"])), NotFoundReason::MissingNode, &["c"]);
}

#[test]
fn a_taken_name_cannot_be_bound() {
    let f = fixture();
    let root = f.root();
    let context = root.bind_new_context(&n(["context"])).unwrap();
    root.bind(&n(["object"]), Some(&f.object(0))).unwrap();
    for id in ["object", "context"] {
        let taken = |r| matches!(r, Err(BindErrorBuf::AlreadyBound(_)));
        assert!(taken(root.bind(&n([id]), Some(&f.object(1)))), "{id}");
        assert!(taken(root.bind_context(&n([id]), context.as_ref())), "{id}");
        assert!(taken(root.bind_new_context(&n([id])).map(drop)), "{id}");
    }
    // `bind_new_context` is atomic, so the refused ones left no context.
    assert_eq!(f.service.context_count(), 2);
    assert_eq!(root.resolve(&n(["object"])).unwrap(), Some(f.object(0)));
}

#[test]
fn a_binding_is_replaced_by_one_of_its_kind_only() {
    let f = fixture();
    let root = f.root();
    root.rebind(&n(["object"]), Some(&f.object(0))).unwrap();
    root.rebind(&n(["object"]), Some(&f.object(1))).unwrap();
    assert_eq!(root.resolve(&n(["object"])).unwrap(), Some(f.object(1)));
    let (first, second) = (f.context(), f.context());
    root.rebind_context(&n(["context"]), Some(&first)).unwrap();
    root.rebind_context(&n(["context"]), Some(&second)).unwrap();
    let found = root.resolve(&n(["context"])).unwrap().unwrap();
    assert!(found.is_equivalent(second.as_object()));
    let replaced = root.rebind(&n(["context"]), Some(&f.object(2)));
    refused(replaced, NotFoundReason::NotObject, &["context"]);
    let replaced = root.rebind_context(&n(["object"]), Some(&first));
    refused(replaced, NotFoundReason::NotContext, &["object"]);
}

#[test]
fn nil_is_an_object_but_no_context() {
    let f = fixture();
    let root = f.root();
    root.bind(&n(["nil"]), None).unwrap();
    assert_eq!(root.resolve(&n(["nil"])).unwrap(), None);
    let is_nil = |kind| kind == SystemExceptionKind::BadParam;
    match root.bind_context(&n(["c"]), None) {
        Err(BindErrorBuf::System(exception)) => assert!(is_nil(exception.kind)),
        other => panic!("{other:?}"),
    }
    match root.rebind_context(&n(["c"]), None) {
        Err(RebindErrorBuf::System(exception)) => assert!(is_nil(exception.kind)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_do_not_lead_through_a_context_that_is_bound_as_an_object() {
    let f = fixture();
    let (root, context) = (f.root(), f.context());
    context.bind(&n(["x"]), Some(&f.object(0))).unwrap();
    root.bind(&n(["a"]), Some(context.as_object())).unwrap();
    let found = root.resolve(&n(["a"])).unwrap().unwrap();
    assert!(found.is_equivalent(context.as_object()));
    refused(
        root.resolve(&n(["a", "x"])),
        NotFoundReason::NotContext,
        &["a", "x"],
    );
    refused(
        root.unbind(&n(["a", "x"])),
        NotFoundReason::NotContext,
        &["a", "x"],
    );
}

#[test]
fn the_rest_of_the_name_begins_with_the_component_that_failed() {
    let f = fixture();
    let root = f.root();
    root.bind_new_context(&n(["a"])).unwrap();
    root.bind(&n(["a", "o"]), None).unwrap();
    use NotFoundReason::{MissingNode, NotContext};
    refused(
        root.resolve(&n(["x", "y", "z"])),
        MissingNode,
        &["x", "y", "z"],
    );
    refused(root.resolve(&n(["a", "y", "z"])), MissingNode, &["y", "z"]);
    refused(root.resolve(&n(["a", "z"])), MissingNode, &["z"]);
    refused(root.resolve(&n(["a", "o", "z"])), NotContext, &["o", "z"]);
    refused(root.unbind(&n(["a", "z"])), MissingNode, &["z"]);
    refused(root.rebind(&n(["x", "z"]), None), MissingNode, &["x", "z"]);
    match root.bind(&n(["a", "o", "z"]), None) {
        Err(BindErrorBuf::NotFound(error)) => {
            assert_eq!(error, not_found(NotContext, &["o", "z"]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_context_is_destroyed_when_it_is_empty_and_not_by_unbinding() {
    let f = fixture();
    let root = f.root();
    let a = root.bind_new_context(&n(["a"])).unwrap().unwrap();
    a.bind(&n(["x"]), None).unwrap();
    root.unbind(&n(["a"])).unwrap();
    assert_eq!(a.resolve(&n(["x"])).unwrap(), None);
    assert!(matches!(a.destroy(), Err(DestroyError::NotEmpty(_))));
    a.unbind(&n(["x"])).unwrap();
    root.bind_context(&n(["a"]), Some(&a)).unwrap();
    a.destroy().unwrap();
    match a.resolve(&n(["x"])) {
        Err(RebindErrorBuf::System(exception)) => {
            assert_eq!(exception.kind, SystemExceptionKind::ObjectNotExist);
        }
        other => panic!("{other:?}"),
    }
    assert!(a.as_object().non_existent().unwrap());
    // The binding is left, and leads nowhere.
    match root.resolve(&n(["a", "x"])) {
        Err(RebindErrorBuf::CannotProceed(error)) => {
            assert_eq!(
                error.rest_of_name,
                not_found(NotFoundReason::default(), &["x"]).rest_of_name
            );
            assert!(error.cxt.unwrap().as_object().is_equivalent(a.as_object()));
        }
        other => panic!("{other:?}"),
    }
    root.unbind(&n(["a"])).unwrap();
}

#[test]
fn the_root_is_never_destroyed() {
    let f = fixture();
    match f.root().destroy() {
        Err(DestroyError::System(exception)) => {
            assert_eq!(exception.kind, SystemExceptionKind::NoPermission);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn contexts_may_form_a_circle() {
    let f = fixture();
    let root = f.root();
    let a = root.bind_new_context(&n(["a"])).unwrap().unwrap();
    let up = NamingContext::unchecked_narrow(root.as_object());
    a.bind_context(&n(["up"]), Some(&up)).unwrap();
    root.bind(&n(["x"]), Some(&f.object(0))).unwrap();
    let name = n(["a", "up", "a", "up", "x"]);
    assert_eq!(root.resolve(&name).unwrap(), Some(f.object(0)));
}

/// A context with bindings `0` to `9`, of which `0` is a context.
fn ten(f: &Fixture) -> NamingContextExt {
    let root = f.root();
    root.bind_new_context(&n(["0"])).unwrap();
    for id in ["9", "8", "7", "6", "5", "4", "3", "2", "1"] {
        root.bind(&n([id]), None).unwrap();
    }
    root
}

fn ids(list: &[chronorb_naming::idl::cos_naming::BindingBuf]) -> String {
    list.iter()
        .map(|binding| &*binding.binding_name[0].id)
        .collect()
}

#[test]
fn a_listing_that_fits_has_no_iterator() {
    let f = fixture();
    let root = ten(&f);
    for how_many in [10, 11, u32::MAX] {
        let (list, iterator) = root.list(how_many).unwrap();
        assert_eq!(ids(&list), "0123456789");
        assert_eq!(iterator, None);
        assert_eq!(list[0].binding_type, BindingType::Ncontext);
        assert_eq!(list[1].binding_type, BindingType::Nobject);
    }
}

#[test]
fn an_iterator_has_the_bindings_that_are_left() {
    let f = fixture();
    let root = ten(&f);
    let (list, iterator) = root.list(4).unwrap();
    assert_eq!(ids(&list), "0123");
    let iterator = iterator.unwrap();
    let (more, one) = iterator.next_one().unwrap();
    assert_eq!((more, ids(&[one]).as_str()), (true, "4"));
    let (more, some) = iterator.next_n(3).unwrap();
    assert_eq!((more, ids(&some).as_str()), (true, "567"));
    let (more, some) = iterator.next_n(3).unwrap();
    assert_eq!((more, ids(&some).as_str()), (true, "89"));
    for _ in 0..2 {
        let (more, some) = iterator.next_n(3).unwrap();
        assert!(!more && some.is_empty());
        let (more, one) = iterator.next_one().unwrap();
        assert!(!more && one.binding_name.is_empty());
    }
    iterator.destroy().unwrap();
    let gone = iterator.next_one().unwrap_err();
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    assert!(iterator.as_object().non_existent().unwrap());
}

#[test]
fn a_listing_of_nothing_has_an_iterator() {
    let f = fixture();
    let (list, iterator) = ten(&f).list(0).unwrap();
    assert!(list.is_empty());
    let iterator = iterator.unwrap();
    let refused = iterator.next_n(0).unwrap_err();
    assert_eq!(refused.kind, SystemExceptionKind::BadParam);
    assert_eq!(ids(&iterator.next_n(99).unwrap().1), "0123456789");
}

#[test]
fn a_listing_neither_repeats_nor_misses_bindings_that_stay() {
    let f = fixture();
    let root = ten(&f);
    let (list, iterator) = root.list(3).unwrap();
    assert_eq!(ids(&list), "012");
    for id in ["2", "3"] {
        root.unbind(&n([id])).unwrap();
    }
    for id in ["00", "2", "55"] {
        root.bind(&n([id]), None).unwrap();
    }
    let (_, rest) = iterator.unwrap().next_n(99).unwrap();
    assert_eq!(ids(&rest), "45556789");
}

#[test]
fn texts_are_converted_to_names_and_back() {
    let f = fixture();
    let root = f.root();
    let table: &[(&str, &[(&str, &str)])] = &[
        ("a", &[("a", "")]),
        (".k", &[("", "k")]),
        (".", &[("", "")]),
        (r"a\/\.\\.k/b", &[(r"a/.\", "k"), ("b", "")]),
    ];
    for (text, components) in table {
        let component = |(id, kind): &(&str, &str)| NameComponentBuf {
            id: (*id).to_owned(),
            kind: (*kind).to_owned(),
        };
        let name: NameBuf = components.iter().map(component).collect();
        assert_eq!(root.to_name(text).unwrap(), name);
        let view: Vec<_> = name.iter().map(NameComponentBuf::as_view).collect();
        assert_eq!(root.to_string(&view).unwrap(), *text);
    }
    for text in ["", "a.", "a//b", "/a", "a/", "a.b.c", r"a\b"] {
        assert!(
            matches!(root.to_name(text), Err(ToNameError::InvalidName(_))),
            "{text}"
        );
    }
}

#[test]
fn urls_are_made_of_an_address_and_a_name() {
    let f = fixture();
    let root = f.root();
    let url = root.to_url(":host:9/Names", r"a\.b.c/d e").unwrap();
    assert_eq!(url, "corbaname::host:9/Names#a%5c.b.c/d%20e");
    for address in ["", "host", ":h:x"] {
        let refused = root.to_url(address, "a");
        assert!(
            matches!(refused, Err(ToUrlError::InvalidAddress(_))),
            "{address}"
        );
    }
    assert!(matches!(
        root.to_url(":h", "a//b"),
        Err(ToUrlError::InvalidName(_))
    ));
}
