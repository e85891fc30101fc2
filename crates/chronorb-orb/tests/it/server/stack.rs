//! Messages with unlimited nesting of types: neither a server nor a client overflows its stack.

use std::process::{Child, Command, Stdio};
use std::thread;

use chronorb_cdr::{Any, Cdr, Decoder};
use chronorb_orb::codegen::v1::{bad_operation, reply_error};
use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{Priority, Threadpool};
use chronorb_orb::{
    Call, Object, Orb, ReplyWriter, Skeleton, SystemException, SystemExceptionKind,
};

use crate::support::descriptors::spawn;
use crate::support::{call, name_of, orb};

/// The words of an any in the byte order of its message, beginning at a multiple of 8.
type Hostile = Vec<u32>;

const ALIAS: u32 = 21;
const INDIRECTION: u32 = u32::MAX;
const ANY: u32 = 11;

/// Returns the type code of an unnamed alias of this type code.
fn alias(of: &[u32]) -> Vec<u32> {
    let length = 4 * (of.len() as u32 + 5);
    // Big-endian parameters: an empty identifier and an empty name.
    let head = [ALIAS, length, 0, 1_u32.to_be(), 0, 1_u32.to_be(), 0];
    head.into_iter()
        .chain(of.iter().map(|word| word.to_be()))
        .collect()
}

/// Returns an alias of itself: 40 octets.
fn alias_of_itself() -> Hostile {
    alias(&[INDIRECTION, (-32_i32).cast_unsigned()])
}

/// Returns anys within each other, each behind some names.
fn nested_anys() -> Hostile {
    let mut words = Vec::new();
    for _ in 0..60 {
        words.extend(alias(&[ANY]));
    }
    words.push(0);
    words
}

/// A servant that accepts an any, or returns a hostile one.
struct Mirror;

impl Skeleton for Mirror {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Mirror:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            b"take" => {
                d.align(8)?;
                Any::decode(d)?;
                reply.normal().map(drop)
            }
            b"give" => {
                let words: &[u32] = d.read_seq()?;
                let e = reply.normal()?;
                e.align(8)
                    .and_then(|()| words.iter().try_for_each(|word| e.write_u32(*word)))
                    .map_err(reply_error)
            }
            _ => Err(bad_operation()),
        }
    }
}

/// Returns a server whose threads have stacks of this size, and its object from a client's point of
/// view.
fn serve(stack_size: usize) -> (Orb, Orb, Object) {
    let (server, client) = (orb(), orb());
    let priority = Priority::new(0).expect("not negative");
    let pool = server.rt().create_threadpool(&Threadpool {
        stack_size,
        ..Threadpool::new(priority, 1)
    });
    let root = server.root_poa().expect("it opens");
    let policies = [Policy::Threadpool(pool.expect("a pool"))];
    let poa = root.create_poa("small", Some(root.manager()), &policies);
    let object = poa.expect("made").serve(Mirror).expect("activated");
    root.manager().activate().expect("active");
    let object = client.string_to_object(&server.object_to_string(&object));
    (server, client, object.expect("a reference"))
}

fn take(object: &Object, hostile: &Hostile) -> Result<(), SystemException> {
    let write = |e: &mut chronorb_cdr::Encoder<'_>| {
        e.align(8)?;
        hostile.iter().try_for_each(|word| e.write_u32(*word))
    };
    call(object, "take", &write, |_| Ok(()))
}

fn give(object: &Object, hostile: &Hostile) -> Result<(), SystemException> {
    call(object, "give", &|e| e.write_seq(hostile), |d| {
        d.align(8)?;
        Any::decode(d).map(drop)
    })
}

/// Returns the hostile anys, with the exceptions that refuse them.
fn hostile_anys() -> [(Hostile, SystemExceptionKind); 2] {
    [
        (alias_of_itself(), SystemExceptionKind::BadTypecode),
        (nested_anys(), SystemExceptionKind::Marshal),
    ]
}

/// Asserts that a call is refused on a small stack. Larger ones have room for some of it.
fn assert_refused(outcome: Result<(), SystemException>, kind: SystemExceptionKind, stack: usize) {
    match outcome {
        Ok(()) => assert!(stack > 64 << 10, "{kind}"),
        Err(exception) => assert_eq!(exception.kind, kind),
    }
}

/// Set for the copy of this program that runs one of these tests alone: a thread may get a larger
/// stack that a thread of another test has left to the C library.
const ALONE: &str = "CHRONORB_TEST_SMALL_STACKS_ALONE";

/// Runs this test alone in a copy of this program, and returns whether the caller is that copy.
fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().expect("it is known"));
    again
        .args(["--exact", test])
        .env(ALONE, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = spawn(&mut again).and_then(Child::wait_with_output);
    let output = output.expect("the test starts itself");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("test result: ok. 1 passed"), "{said}");
    false
}

#[test]
fn a_server_on_small_stacks_survives_types_without_an_end() {
    if !is_alone(name_of(
        a_server_on_small_stacks_survives_types_without_an_end,
    )) {
        return;
    }
    for stack_size in [64 << 10, 256 << 10] {
        let (_server, _client, object) = serve(stack_size);
        for (hostile, kind) in hostile_anys() {
            assert_refused(take(&object, &hostile), kind, stack_size);
        }
        assert_eq!(take(&object, &vec![0]), Ok(()), "it goes on");
    }
}

#[test]
fn a_client_on_small_stacks_survives_them_too() {
    if !is_alone(name_of(a_client_on_small_stacks_survives_them_too)) {
        return;
    }
    for stack_size in [64 << 10, 256 << 10, 2 << 20] {
        let caller = thread::Builder::new().stack_size(stack_size);
        let caller = caller.spawn(move || {
            let (_server, _client, object) = serve(256 << 10);
            for (hostile, kind) in hostile_anys() {
                assert_refused(give(&object, &hostile), kind, stack_size);
            }
            assert_eq!(give(&object, &vec![0]), Ok(()), "it goes on");
        });
        caller.expect("started").join().expect("it returned");
    }
}
