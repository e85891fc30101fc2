fn main() {
    let p = std::env::args().nth(1).unwrap();
    let c = chronorb_idl::compile(std::path::Path::new(&p), &chronorb_idl::Options::default())
        .unwrap_or_else(|e| panic!("{e}"));
    println!(
        "{}",
        chronorb_build::generate(&c.model, &Default::default()).unwrap_or_else(|e| panic!("{e}"))
    );
}
