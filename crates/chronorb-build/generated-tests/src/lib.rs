//! What `chronorb-build` makes of IDL files that use all of the language, under the
//! strictest lints; `tests` call it.

#![warn(
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    missing_docs,
    single_use_lifetimes,
    unused_lifetimes
)]

/// What another crate builds on.
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

/// Inheritance by two ways, types inside types, and interfaces without anything.
pub mod shapes {
    chronorb::include_idl!("shapes");
}

/// What the book's chapter on asynchronous calls shows.
pub mod feed {
    chronorb::include_idl!("feed");
}

/// What can be called asynchronously.
pub mod queue {
    chronorb::include_idl!("queue");
}

/// All of the above, where everything can be called asynchronously.
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

/// The same shapes, whose skeletons find operations in other ways.
pub mod shapes_by {
    /// By a search among sorted names.
    pub mod binary_search {
        chronorb::include_idl!("binary_search/shapes");
    }

    /// By a hash table that is made when the program runs.
    pub mod dynamic_hash {
        chronorb::include_idl!("dynamic_hash/shapes");
    }

    /// By a search among all names.
    pub mod linear_search {
        chronorb::include_idl!("linear_search/shapes");
    }
}

/// Unions of every discriminator.
pub mod unions {
    chronorb::include_idl!("unions");
}

/// Types that hold themselves.
pub mod recursive {
    chronorb::include_idl!("recursive");
}

/// `any`, `TypeCode` and `fixed`.
pub mod dynamic {
    chronorb::include_idl!("dynamic");
}

/// What IDL 4 adds to the language.
pub mod extended {
    chronorb::include_idl!("extended");
}

/// Components, homes and events as their equivalent interfaces, and instances of template modules.
pub mod components {
    chronorb::include_idl!("components");
}

/// Bits, and what annotations make of types.
pub mod marked {
    chronorb::include_idl!("marked");
}

/// Consumers and suppliers of the notification service, as the OMG has them.
pub mod notification {
    chronorb::include_idl!("notification");
}

/// The definitions that pages of the book show.
pub mod pages {
    chronorb::include_idl!("pages");
}
