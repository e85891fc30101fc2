//! Names as text, and the data files of omniNames.

use chronorb_giop::IorError;
use chronorb_naming::{
    Change, ExportSummary, ImportCause, ImportError, Limits, NameTextError, Target, Tree,
    export_text, import_omninames, import_text,
};
use chronorb_rt::Monotonic;

const OBJECT: &str = "IOR:000000000000000d49444c3a4563686f3a312e30000000000000000100000000\
                      0000000400010203";
const NIL: &str = "IOR:0100000001000000000000000000000000";

fn export(tree: &Tree) -> (String, ExportSummary) {
    let mut text = Vec::new();
    let summary = export_text(tree, &mut text).expect("memory");
    (String::from_utf8(text).expect("UTF-8"), summary)
}

fn import(text: &str) -> Result<Tree, ImportError> {
    import_text(text, Limits::default(), 1)
}

#[test]
fn a_text_that_was_imported_is_exported_unchanged() {
    let text = format!(
        "# Names of a chronorb name server\n\
         context plant\n\
         context ü.ber\n\
         context plant/line\\.1.area\n\
         context far {OBJECT}\n\
         context up =/\n\
         context plant/self =plant\n\
         object plant/line\\.1.area/%20%25\\/.%0a {OBJECT}\n\
         object plant/line\\.1.area/leased {OBJECT} lease=60\n\
         object plant/line\\.1.area/local =ü.ber\n\
         object plant/line\\.1.area/nil {NIL}\n"
    );
    let tree = import(&text).expect("a text");
    let (again, summary) = export(&tree);
    assert_eq!(again, text);
    let expected = ExportSummary {
        bindings: 10,
        omitted: 0,
        orphans: 0,
    };
    assert_eq!(summary, expected);
    // Comments, empty lines and the ends of lines of other systems do not matter.
    let other = text.replace('\n', "\r\n\n# a comment\n");
    assert_eq!(export(&import(&other).expect("a text")).0, text);
}

#[test]
fn numbers_of_contexts_begin_where_they_should() {
    let tree = import_text("context a\n", Limits::default(), 70).expect("a text");
    let created = tree.changes().next();
    assert_eq!(created, Some(Change::CreateContext { context: 70 }));
}

#[test]
fn contexts_without_a_name_are_counted() {
    let mut tree = import("context a\ncontext a/b\ncontext gone\n").expect("a text");
    let now = Monotonic::now();
    let of_a = |context, id: &str| Change::Unbind {
        context,
        id: id.into(),
        kind: Vec::new(),
    };
    tree.apply(&of_a(0, "a"), now).expect("it is bound");
    tree.apply(&Change::DestroyContext { context: 3 }, now)
        .expect("it is empty");
    let (text, summary) = export(&tree);
    let expected = ExportSummary {
        bindings: 0,
        omitted: 1,
        orphans: 2,
    };
    assert_eq!(summary, expected);
    assert!(
        text.contains("\n# omitted, no text for it: gone\n"),
        "{text}"
    );
    assert!(text.ends_with("\n# omitted, no name from the root: 2 contexts\n"));
}

#[test]
fn names_of_64_components_are_exported_and_longer_ones_are_not() {
    let mut tree = import("context c\n").expect("a text");
    let now = Monotonic::now();
    for number in 2..=70 {
        let binding = chronorb_naming::Binding {
            kind: chronorb_naming::BindingKind::Context,
            target: Target::Context(number),
            lease: None,
        };
        let changes = [
            Change::CreateContext { context: number },
            Change::Bind {
                context: number - 1,
                id: b"c".to_vec(),
                kind: Vec::new(),
                binding,
            },
        ];
        for change in &changes {
            tree.apply(change, now).expect("it is possible");
        }
    }
    let (text, summary) = export(&tree);
    assert_eq!(
        (summary.bindings, summary.omitted, summary.orphans),
        (64, 1, 6)
    );
    let again = import(&text).expect("what was exported");
    assert_eq!(export(&again).1.bindings, 64);
}

#[test]
fn a_line_that_cannot_be_imported_is_named_with_its_cause() {
    let name = ImportCause::Name;
    let table = [
        ("objekt a IOR:00", ImportCause::Word("objekt".into())),
        (" object a", ImportCause::Word(String::new())),
        ("object", ImportCause::Form("a name")),
        ("object ", name(NameTextError::Empty)),
        ("object a//b IOR:00", name(NameTextError::EmptyComponent)),
        ("object a.b.c IOR:00", name(NameTextError::SecondDot)),
        ("object a%2", ImportCause::Escape),
        ("object %ff =/", ImportCause::Escape),
        ("object %00 =/", ImportCause::Form("a name without NUL")),
        (
            "object a",
            ImportCause::Form("IOR:… or =NAME, and perhaps lease=SECONDS"),
        ),
        (
            "object a =/ lease=60 more",
            ImportCause::Form("IOR:… or =NAME, and perhaps lease=SECONDS"),
        ),
        (
            "object a IOR:0",
            ImportCause::Reference(IorError::OddDigits),
        ),
        ("object a nil", ImportCause::Reference(IorError::NoPrefix)),
        (&format!("context a {NIL}"), ImportCause::Nil),
        ("object a =/ lease=0", ImportCause::TimeToLive),
        ("object a =/ lease=x", ImportCause::TimeToLive),
        ("object a =nowhere", ImportCause::NoContext),
        ("object a =object", ImportCause::NoContext),
        ("object nowhere/a =/", ImportCause::NoContext),
        ("object object/a =/", ImportCause::NoContext),
        ("object far/a =/", ImportCause::Elsewhere),
        ("context known", ImportCause::AlreadyBound),
        (
            &format!("object {} =/", "x".repeat(1_025)),
            ImportCause::Limit,
        ),
        (
            &format!("object {}a =/", "known/".repeat(64)),
            ImportCause::Limit,
        ),
    ];
    for (line, cause) in table {
        let text = format!("context known\nobject object {OBJECT}\ncontext far {OBJECT}\n{line}\n");
        let error = import(&text).expect_err(line);
        assert_eq!(error, ImportError { line: 4, cause }, "{line}");
        assert!(error.to_string().starts_with("line 4: "));
    }
}

/// Files of omniNames 4.2.5: the changes as they were made, and the state after a restart.
#[test]
fn data_files_of_omninames_are_imported() {
    let object = "IOR:010000001200000049444c3a44656d6f2f4563686f3a312e3000000001000000000000002000\
                  0000010102000a0000003132372e302e302e31006712040000006563686f00000000";
    let far = "IOR:010000002800000049444c3a6f6d672e6f72672f436f734e616d696e672f4e616d696e67436f6e7\
               46578743a312e3000010000000000000028000000010102000a0000003139322e302e322e3100f90a0b\
               0000004e616d65536572766963650000000000";
    let expected = format!(
        "# Names of a chronorb name server\n\
         context a\n\
         context a/b.dir\n\
         object . {object}\n\
         object .k {object}\n\
         object b\\\\s {object}\n\
         context far {far}\n\
         object n%0a%20l {object}\n\
         object per%25cent {object}\n\
         object sp%20ace\\.x.k {object}\n\
         context a/self =a\n\
         object a/b.dir/echo.obj {object}\n"
    );
    let files = [
        &include_bytes!("../data/omninames.log")[..],
        include_bytes!("../data/omninames.checkpoint"),
    ];
    for file in files {
        let tree = import_omninames(file, Limits::default(), 1).expect("a data file");
        assert_eq!(export(&tree).0, expected);
    }
}

#[test]
fn malformed_data_files_are_refused_with_the_line() {
    let key = "01020304050607080900000a";
    let table = [
        ("port x\n", ImportCause::Form("port PORT")),
        ("port\n", ImportCause::Form("one field")),
        ("create\n", ImportCause::Form("one context")),
        (
            "create 0\n",
            ImportCause::Form("a key of hexadecimal digits"),
        ),
        (
            "create 0g\n",
            ImportCause::Form("a key of hexadecimal digits"),
        ),
        ("create 4e\n", ImportCause::ContextExists),
        ("destroy 4e\n", ImportCause::Indestructible),
        (&format!("destroy {key}\n"), ImportCause::NoContext),
        (
            "bind 4e a b nobject\n",
            ImportCause::Form("bind CONTEXT ID KIND TYPE REFERENCE"),
        ),
        (
            "bind 4e a b object IOR:00\n",
            ImportCause::Form("nobject or ncontext"),
        ),
        ("bind 4e a b nobject IOR:\n", {
            let malformed = "IOR:".parse::<chronorb_giop::Ior>().expect_err("no octets");
            ImportCause::Reference(malformed)
        }),
        (&format!("bind 4e a b ncontext {NIL}\n"), ImportCause::Nil),
        ("unbind 4e a b\n", ImportCause::NoContext),
        ("unbind 4e a\n", ImportCause::Form("unbind CONTEXT ID KIND")),
        ("bind 4e a\\x b nobject IOR:00\n", ImportCause::Escape),
        ("\n", ImportCause::Word(String::new())),
        ("create", ImportCause::Unfinished),
    ];
    for (line, cause) in table {
        let data = format!("port 2809\ncreate 4e\n{line}");
        let error = import_omninames(data.as_bytes(), Limits::default(), 1);
        assert_eq!(
            error.map(drop),
            Err(ImportError { line: 3, cause }),
            "{line}"
        );
    }
    let bound_twice =
        format!("create 4e\nbind 4e \u{e9} k nobject {NIL}\nbind 4e \u{e9} k nobject {OBJECT}\n");
    // The file is in ISO 8859-1.
    let latin: Vec<u8> = bound_twice.chars().map(|c| c as u8).collect();
    let tree = import_omninames(&latin, Limits::default(), 1).expect("a data file");
    assert!(export(&tree).0.ends_with(&format!("object é.k {OBJECT}\n")));
}
