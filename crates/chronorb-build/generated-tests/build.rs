//! Compiles the IDL.

use std::path::Path;
use std::{env, fs};

use chronorb_build::{BuildError, OperationDemux, configure};

fn main() -> Result<(), BuildError> {
    configure().include("idl").compile(&[
        "idl/base.idl",
        "idl/marks.idl",
        "idl/types.idl",
        "idl/names.idl",
        "idl/shapes.idl",
        "idl/queue.idl",
        "idl/feed.idl",
        "idl/values.idl",
        "idl/unions.idl",
        "idl/recursive.idl",
        "idl/apart.idl",
        "idl/dynamic.idl",
        "idl/extended.idl",
        "idl/components.idl",
        "idl/marked.idl",
        "idl/notification.idl",
        "idl/pages.idl",
    ])?;

    // Cargo would show its warnings in each build.
    println!("cargo::rerun-if-changed=idl/second_names.idl");
    configure()
        .emit_rerun_if_changed(false)
        .compile(&["idl/second_names.idl"])?;

    let out_dir = env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?;
    for (name, strategy) in [
        ("binary_search", OperationDemux::BinarySearch),
        ("dynamic_hash", OperationDemux::DynamicHash),
        ("linear_search", OperationDemux::LinearSearch),
    ] {
        let dir = Path::new(&out_dir).join(name);
        // If that fails, the file cannot be written either, and that error names its path.
        let _ = fs::create_dir_all(&dir);
        configure()
            .out_dir(dir)
            .operation_demux(strategy)
            .compile(&["idl/shapes.idl"])?;
    }

    // Two of the files have one name.
    let dir = Path::new(&out_dir).join("shared");
    let _ = fs::create_dir_all(&dir);
    configure()
        .out_dir(dir)
        .shared("crate::shared")
        .compile(&["idl/shared/m.idl", "idl/shared/y/types.idl"])?;

    let dir = Path::new(&out_dir).join("owned");
    let _ = fs::create_dir_all(&dir);
    configure()
        .include("idl")
        .out_dir(dir)
        .owned_servants(true)
        .compile(&[
            "idl/types.idl",
            "idl/names.idl",
            "idl/shapes.idl",
            "idl/values.idl",
            "idl/unions.idl",
            "idl/marks.idl",
            "idl/queue.idl",
            "idl/recursive.idl",
            "idl/apart.idl",
            "idl/dynamic.idl",
            "idl/extended.idl",
            "idl/marked.idl",
            "idl/notification.idl",
            "idl/components.idl",
            "idl/pages.idl",
        ])?;

    let dir = Path::new(&out_dir).join("asynchronous");
    let _ = fs::create_dir_all(&dir);
    configure().include("idl").out_dir(dir).ami(true).compile(&[
        "idl/types.idl",
        "idl/names.idl",
        "idl/shapes.idl",
    ])
}
