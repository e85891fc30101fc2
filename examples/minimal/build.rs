//! Compiles the IDL, and has the linker pack the table of relocations.

fn main() -> Result<(), chronorb_build::BuildError> {
    // Bitmaps instead of 24 octets for each relocation; glibc reads them since 2.36.
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    chronorb_build::compile("idl/powers.idl")
}
