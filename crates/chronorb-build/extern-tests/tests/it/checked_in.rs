//! Comparison of the checked-in code with the compiler's output.

use std::fs;
use std::path::Path;

use chronorb_build::configure;

#[test]
fn the_files_in_the_repository_are_as_the_compiler_writes_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = tempfile::tempdir().expect("a directory");
    configure()
        .out_dir(out.path())
        .emit_rerun_if_changed(false)
        .include(root.join("../generated-tests/idl"))
        .extern_path("base.idl", "::chronorb_generated_tests::base")
        .file_per_module(true)
        .compile(&[root.join("idl/town.idl")])
        .expect("compiled");
    for file in ["town.rs", "town/town.rs", "town/country.rs"] {
        let written = fs::read_to_string(out.path().join(file)).expect("written");
        let place = root.join("src").join(file);
        if std::env::var_os("UPDATE_CHECKED_IN").is_some() {
            fs::create_dir_all(place.parent().expect("a directory")).expect("made");
            fs::write(&place, &written).expect("written");
        }
        let kept = fs::read_to_string(&place).unwrap_or_default();
        assert!(
            kept == written,
            "{file} is not what the compiler writes; run this test with UPDATE_CHECKED_IN=1"
        );
    }
}
