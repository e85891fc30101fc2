//! Scratch.
fn main() {
    let mut options = chronorb_idl::Options::default();
    let mut files = Vec::new();
    for a in std::env::args().skip(1) {
        if let Some(d) = a.strip_prefix("-I") {
            options.include_dirs.push(d.into());
        } else {
            files.push(a);
        }
    }
    for f in files {
        match chronorb_idl::compile(f.as_ref(), &options) {
            Ok(c) => {
                println!("{f}: ok, {} definitions", c.model.definitions.len());
                print!("{}", c.warnings.render(false));
                if std::env::var_os("IDS").is_some() {
                    for (i, d) in c.model.iter() {
                        println!("  {} {} {}", i.0, d.scoped_name.join("::"), d.repository_id);
                    }
                }
                if std::env::var_os("DUMP").is_some() {
                    println!("{:#?}", c.model);
                }
            }
            Err(e) => println!("{f}: failed\n{e}"),
        }
    }
}
