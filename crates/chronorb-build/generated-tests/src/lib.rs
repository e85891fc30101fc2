//! The output of `chronorb-build` for IDL files that use the whole language, under the strictest
//! lints; `tests` call it.

#![warn(
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    missing_docs,
    single_use_lifetimes,
    unused_lifetimes
)]

/// The definitions that another crate builds on.
pub mod base {
    chronorb::include_idl!("base");
}

/// Annotations that choose other types.
pub mod marks {
    chronorb::include_idl!("marks");
}

/// All types and parameter modes.
pub mod types {
    chronorb::include_idl!("types");
}

/// Value types, value boxes, abstract and local interfaces.
pub mod values {
    chronorb::include_idl!("values");
}

/// Names that are keywords of Rust, or those of its library.
pub mod names {
    chronorb::include_idl!("names");
}

/// Names that become one in Rust.
pub mod second_names {
    chronorb::include_idl!("second_names");
}

/// A module for each file, two of which have one name.
pub mod shared {
    include!(concat!(env!("OUT_DIR"), "/shared/mod.rs"));
}

/// Inheritance by two ways, types inside types, and interfaces without anything.
pub mod shapes {
    chronorb::include_idl!("shapes");
}

/// The examples of the book's chapter on asynchronous calls.
pub mod feed {
    chronorb::include_idl!("feed");
}

/// Operations with asynchronous calls.
pub mod queue {
    chronorb::include_idl!("queue");
}

/// All of the above with asynchronous calls of everything.
pub mod asynchronous {
    /// All types and parameter modes.
    pub mod types {
        chronorb::include_idl!("asynchronous/types");
    }

    /// Names that are keywords of Rust, or those of its library.
    pub mod names {
        chronorb::include_idl!("asynchronous/names");
    }

    /// Inheritance by two ways.
    pub mod shapes {
        chronorb::include_idl!("asynchronous/shapes");
    }
}

/// The same definitions with a trait for servants whose results are owned.
pub mod owned {
    /// All types and parameter modes.
    pub mod types {
        chronorb::include_idl!("owned/types");
    }

    /// Names that are keywords of Rust, or those of its library.
    pub mod names {
        chronorb::include_idl!("owned/names");
    }

    /// Inheritance by two ways.
    pub mod shapes {
        chronorb::include_idl!("owned/shapes");
    }

    /// Value types, value boxes, abstract and local interfaces.
    pub mod values {
        chronorb::include_idl!("owned/values");
    }

    /// Unions of every discriminator.
    pub mod unions {
        chronorb::include_idl!("owned/unions");
    }

    /// Annotations that choose other types.
    pub mod marks {
        chronorb::include_idl!("owned/marks");
    }

    /// Operations with asynchronous calls.
    pub mod queue {
        chronorb::include_idl!("owned/queue");
    }

    /// Recursive types.
    pub mod recursive {
        chronorb::include_idl!("owned/recursive");
    }

    /// `any`, `TypeCode` and `fixed`.
    pub mod dynamic {
        chronorb::include_idl!("owned/dynamic");
    }

    /// Additions of IDL 4 to the language.
    pub mod extended {
        chronorb::include_idl!("owned/extended");
    }

    /// Bits, and the effects of annotations on types.
    pub mod marked {
        chronorb::include_idl!("owned/marked");
    }

    /// Consumers and suppliers of the OMG's notification service.
    pub mod notification {
        chronorb::include_idl!("owned/notification");
    }

    /// Equivalent interfaces of components.
    pub mod components {
        chronorb::include_idl!("owned/components");
    }

    /// The definitions that pages of the book show.
    pub mod pages {
        chronorb::include_idl!("owned/pages");
    }
}

/// The same shapes with other operation lookups in their skeletons.
pub mod shapes_by {
    /// A binary search in sorted names.
    pub mod binary_search {
        chronorb::include_idl!("binary_search/shapes");
    }

    /// A hash table that is created at run time.
    pub mod dynamic_hash {
        chronorb::include_idl!("dynamic_hash/shapes");
    }

    /// A linear search.
    pub mod linear_search {
        chronorb::include_idl!("linear_search/shapes");
    }
}

/// Unions of every discriminator.
pub mod unions {
    chronorb::include_idl!("unions");
}

/// Types that hold themselves by `@external`.
pub mod apart {
    chronorb::include_idl!("apart");
}

/// Recursive types.
pub mod recursive {
    chronorb::include_idl!("recursive");
}

/// `any`, `TypeCode` and `fixed`.
pub mod dynamic {
    chronorb::include_idl!("dynamic");
}

/// Additions of IDL 4 to the language.
pub mod extended {
    chronorb::include_idl!("extended");
}

/// Components, homes and events as their equivalent interfaces, and instances of template modules.
pub mod components {
    chronorb::include_idl!("components");
}

/// Bits, and the effects of annotations on types.
pub mod marked {
    chronorb::include_idl!("marked");
}

/// Consumers and suppliers of the OMG's notification service.
pub mod notification {
    chronorb::include_idl!("notification");
}

/// The definitions that pages of the book show.
pub mod pages {
    chronorb::include_idl!("pages");
}
