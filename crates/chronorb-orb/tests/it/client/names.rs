//! `corbaname:` with a naming context by hand, whose answers depend on the name.

use chronorb_cdr::Decoder;
use chronorb_giop::{IiopProfile, SystemExceptionKind as Kind, minor};
use chronorb_orb::codegen::v1::{bad_operation, reply_error};
use chronorb_orb::{Call, Object, Orb, ReplyWriter, ResolveError, Skeleton, SystemException};

use crate::support::{add, orb, orb_with, served};

const CONTEXT: &str = "IDL:omg.org/CosNaming/NamingContext";

/// A context in which `probe.object/deep` is bound, and other names are errors.
struct Context {
    bound: Object,
}

impl Skeleton for Context {
    fn repository_id(&self) -> &'static str {
        "IDL:omg.org/CosNaming/NamingContext:1.0"
    }

    fn is_a(&self, id: &str) -> bool {
        id == self.repository_id()
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        if operation != b"resolve" {
            return Err(bad_operation());
        }
        let mut name = Vec::new();
        for _ in 0..d.read_len(8)? {
            name.push((d.read_str()?.to_owned(), d.read_str()?.to_owned()));
        }
        let reason = match &*name[0].0 {
            "probe" => {
                assert_eq!(name, [("probe", "object"), ("deep/er", "")].map(owned));
                let e = reply.normal()?;
                return Object::encode_reference(Some(&self.bound), e).map_err(reply_error);
            }
            "nil" => {
                let e = reply.normal()?;
                return Object::encode_reference(None, e).map_err(reply_error);
            }
            "denied" => return Err(SystemException::no(Kind::NoPermission, 7)),
            "invalid" => {
                reply.user_exception(&format!("{CONTEXT}/InvalidName:1.0"))?;
                return Ok(());
            }
            "elsewhere" => {
                let e = reply.user_exception(&format!("{CONTEXT}/CannotProceed:1.0"))?;
                Object::encode_reference(Some(&self.bound), e).map_err(reply_error)?;
                e.write_len(1).map_err(reply_error)?;
                e.write_str(&name[0].0).map_err(reply_error)?;
                return e.write_str("").map_err(reply_error);
            }
            "missing" => 0,
            "object" => 1,
            _ => 2,
        };
        let rest = &name[name.len() - 1..];
        let e = reply.user_exception(&format!("{CONTEXT}/NotFound:1.0"))?;
        e.write_u32(reason).map_err(reply_error)?;
        e.write_len(rest.len()).map_err(reply_error)?;
        for (id, kind) in rest {
            e.write_str(id).map_err(reply_error)?;
            e.write_str(kind).map_err(reply_error)?;
        }
        Ok(())
    }
}

fn owned((id, kind): (&str, &str)) -> (String, String) {
    (id.to_owned(), kind.to_owned())
}

/// A server with the context under the key `NameService`, and its address.
fn naming(bound: &Object) -> (Orb, String) {
    let server = orb();
    let root = server.root_poa().expect("the endpoint opens");
    let bound = server.ior_to_object(bound.ior().clone());
    let bound = bound.expect("it is not nil");
    let context = root.serve(Context { bound }).expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    server
        .register_initial_reference("NameService", &context)
        .expect("the name is free");
    let profile = IiopProfile::decode(&context.ior().profiles[0].data);
    let port = profile.expect("our own").port;
    (server, format!("127.0.0.1:{port}"))
}

#[test]
fn a_name_leads_to_the_object() {
    let s = served();
    let (server, address) = naming(&s.object);
    let name = "probe.object/deep%5c/er";
    let url = format!("corbaname::1.2@{address}#{name}");
    let probe = s.client.string_to_object(&url).expect("it is bound");
    assert_eq!(probe, s.object);
    assert_eq!(add(&probe, 1, 2), Ok(3));
    // Without a name it is the context itself.
    let context = format!("corbaname::{address}");
    let context = s.client.string_to_object(&context).expect("an address");
    assert_eq!(context.is_a(&format!("{CONTEXT}:1.0")), Ok(true));

    // By initial references of the client.
    let context = format!("corbaloc::{address}/NameService");
    let references = [
        ("NameService", context),
        ("Probe", format!("corbaname:rir:#{name}")),
    ];
    let client = orb_with(|config| {
        config.init_refs = references
            .map(|(name, url)| (name.to_owned(), url))
            .to_vec();
        config.default_init_ref = Some("corbaname:rir:#probe.object".to_owned());
    });
    for name in ["Probe", "deep\\/er"] {
        let probe = client.resolve_initial_references(name).expect(name);
        assert_eq!(add(&probe, 2, 2), Ok(4), "{name}");
    }
    client.shutdown(true).expect("no servant calls");

    let client = orb_with(|config| {
        config.default_init_ref = Some(format!("corbaname::{address}#missing"));
    });
    let missing = client.resolve_initial_references("Radar");
    let Err(ResolveError::Unusable(cause)) = missing else {
        panic!("the error has no source");
    };
    assert!(
        cause
            .cause()
            .contains("id \"Radar\" kind \"\", is not bound")
    );
    client.shutdown(true).expect("no servant calls");
    server.shutdown(true).expect("no servant calls");
}

#[test]
fn a_failure_names_the_component_and_the_server() {
    let s = served();
    let (server, address) = naming(&s.object);
    let other = minor::STRING_TO_OBJECT;
    let of_scheme = minor::BAD_SCHEME_SPECIFIC;
    let rows: &[(&str, Kind, u32, &str)] = &[
        (
            "missing/b.k",
            Kind::BadParam,
            other,
            "component 2 of 2, id \"b\" kind \"k\", is not bound",
        ),
        (
            "object/b",
            Kind::BadParam,
            other,
            "is bound to an object that is no context",
        ),
        (
            "other",
            Kind::BadParam,
            other,
            "component 1 of 1, id \"other\"",
        ),
        (
            "elsewhere/b",
            Kind::BadParam,
            other,
            "cannot be resolved by this server",
        ),
        ("invalid", Kind::BadParam, of_scheme, "invalid"),
        ("nil", Kind::InvObjref, 0, "nil reference"),
        ("denied", Kind::NoPermission, 7, ""),
    ];
    for (name, kind, minor, part) in rows {
        let url = format!("corbaname::{address}#{name}");
        let exception = s.client.string_to_object(&url).expect_err(name);
        assert_eq!((exception.kind, exception.minor), (*kind, *minor), "{name}");
        if !part.is_empty() {
            let failure = s.client.last_failure().expect(name);
            assert_eq!(failure.exception(), exception, "{name}");
            let cause = failure.cause();
            assert!(cause.contains(part), "{name}: {cause}");
            assert!(cause.contains(&address), "{name}: {cause}");
        }
    }
    server.shutdown(true).expect("no servant calls");
    // The exception of the call itself is passed on.
    let url = format!("corbaname::{address}#probe");
    let exception = orb().string_to_object(&url).expect_err("no server");
    assert_eq!(exception.kind, Kind::Transient);
}
