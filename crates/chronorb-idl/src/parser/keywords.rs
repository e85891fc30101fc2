//! The reserved words of IDL.

/// The keywords of CORBA 3 IDL. Later ones (`map`, `port`, `int32`, …) are recognised by their
/// position, because existing files use them as names.
pub(crate) const KEYWORDS: [&str; 64] = [
    "FALSE",
    "Object",
    "TRUE",
    "ValueBase",
    "abstract",
    "any",
    "attribute",
    "boolean",
    "case",
    "char",
    "component",
    "const",
    "consumes",
    "context",
    "custom",
    "default",
    "double",
    "emits",
    "enum",
    "eventtype",
    "exception",
    "factory",
    "finder",
    "fixed",
    "float",
    "getraises",
    "home",
    "import",
    "in",
    "inout",
    "interface",
    "local",
    "long",
    "module",
    "multiple",
    "native",
    "octet",
    "oneway",
    "out",
    "primarykey",
    "private",
    "provides",
    "public",
    "publishes",
    "raises",
    "readonly",
    "sequence",
    "setraises",
    "short",
    "string",
    "struct",
    "supports",
    "switch",
    "truncatable",
    "typedef",
    "typeid",
    "typeprefix",
    "union",
    "unsigned",
    "uses",
    "valuetype",
    "void",
    "wchar",
    "wstring",
];

/// Returns whether this is exactly a keyword.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// The keywords that CORBA 3 added to those of CORBA 2.3. Older files use them as names with
/// capitals, as `EventType`.
const YOUNGER: [&str; 16] = [
    "component",
    "consumes",
    "emits",
    "eventtype",
    "finder",
    "getraises",
    "home",
    "import",
    "multiple",
    "primarykey",
    "provides",
    "publishes",
    "setraises",
    "typeid",
    "typeprefix",
    "uses",
];

/// Returns whether CORBA 3 added this keyword.
pub(crate) fn is_younger(keyword: &str) -> bool {
    YOUNGER.contains(&keyword)
}

/// Returns the keyword that differs from the word in case only.
pub(crate) fn keyword_ignoring_case(word: &str) -> Option<&'static str> {
    KEYWORDS
        .into_iter()
        .find(|keyword| keyword.eq_ignore_ascii_case(word))
}
