//! The features of IDL that not all compilers have.

use crate::codes;

/// A feature that this compiler has and others do not.
#[derive(Debug)]
pub(crate) struct Feature {
    pub(crate) code: &'static str,
    /// Names the feature; the message.
    pub(crate) message: &'static str,
    /// The treatment by other compilers.
    pub(crate) note: &'static str,
    pub(crate) hint: &'static str,
}

macro_rules! features {
    ($($name:ident: $code:ident, $message:literal, $note:expr, $hint:literal;)*) => {
        $(pub(crate) const $name: Feature = Feature {
            code: codes::$code,
            message: $message,
            note: $note,
            hint: $hint,
        };)*
    };
}

const BOTH: &str = "omniidl 4.3 and JacORB 3.9 refuse it";
const OMNIIDL: &str = "omniidl 4.3 refuses it";
const JACORB: &str = "JacORB 3.9 refuses it";

features! {
    BITS: IDL4_TYPE,
        "a bit set or bit mask is a type of IDL 4",
        BOTH,
        "use an unsigned integer with constants for its bits";
    MAP: IDL4_TYPE,
        "a map is a type of IDL 4",
        BOTH,
        "use a sequence of structs with a key and a value";
    SIZED_INTEGER: IDL4_TYPE,
        "an integer type of IDL 4",
        BOTH,
        "`octet`, `short`, `long`, `long long` and their unsigned forms are older";
    STRUCT_INHERITANCE: IDL4_TYPE,
        "a struct with a base is a type of IDL 4",
        BOTH,
        "make the base a member";
    EMPTY_STRUCT: IDL4_TYPE,
        "a struct without members is a type of IDL 4",
        BOTH,
        "give it a member";
    DISCRIMINATOR: IDL4_TYPE,
        "a discriminator of this type is new in IDL 4",
        BOTH,
        "use a `char` or an integer type";
    ENUMERATOR_IN_ITS_ENUM: IDL4_TYPE,
        "an enumerator by the name of its enum is new in IDL 4",
        BOTH,
        "leave out the name of the enum";
    ANNOTATION: ANNOTATED,
        "an annotation is new in IDL 4",
        BOTH,
        "hide it from other compilers: `#ifdef __CHRONORB_IDL__`";
    TEMPLATE: TEMPLATES,
        "template modules are new in IDL 3.5",
        BOTH,
        "write the modules that the instances stand for";
    COMPONENT: CORBA_COMPONENTS,
        "components, homes, events and ports are new in CORBA 3",
        BOTH,
        "write the interfaces and value types that they stand for";
    IMPORT: CORBA3_DECLARATION,
        "`import` is new in CORBA 3",
        BOTH,
        "include the file that defines the name";
    TYPE_ID: CORBA3_DECLARATION,
        "`typeid` and `typeprefix` are new in CORBA 3",
        OMNIIDL,
        "use `#pragma ID` and `#pragma prefix`";
    ATTRIBUTE_RAISES: CORBA3_DECLARATION,
        "an attribute that raises exceptions is new in CORBA 3",
        OMNIIDL,
        "use operations";
    FORWARD_DECLARATION: FORWARD_CONSTRUCTED,
        "a declared struct or union is new in CORBA 3",
        "omniidl 4.3 refuses a type that contains a sequence of it, where that type is used \
         before the definition",
        "use an anonymous sequence in the type itself";
    ANONYMOUS_PARAMETER: ANONYMOUS_PASSED,
        "a parameter, result or attribute of an anonymous type",
        BOTH,
        "give the type a name with `typedef`";
    ANONYMOUS_MEMBER: ANONYMOUS_TYPE,
        "an anonymous type",
        "CORBA 2.4 deprecated it; some mappings to languages give it no name that programs can \
         use",
        "give the type a name with `typedef`";
    NESTED_TYPE: ANONYMOUS_TYPE,
        "a type that is defined inside of another one",
        "mappings to languages differ in the scope of its name",
        "define it before";
    WIDE: OPTIONAL_TYPE,
        "a wide character or string",
        "ORBs of CORBA 2.0 and peers that speak GIOP 1.0 have none",
        "use `char` and `string`, whose code set is negotiated";
    LONG_DOUBLE: OPTIONAL_TYPE,
        "a `long double`",
        "Java and some C++ compilers have no such type",
        "use `double`";
    FIXED: OPTIONAL_TYPE,
        "a decimal type",
        "some mappings to languages have none",
        "use a scaled integer";
    FIXED_LITERAL: OPTIONAL_TYPE,
        "a decimal constant",
        "JacORB 3.9 refuses those below 1, and expressions",
        "use a string or a scaled integer";
    NATIVE: NATIVE_TYPE,
        "a native type",
        "each mapping to a language has to know it",
        "use it in the IDL of an ORB only";
    NATIVE_RAISED: NATIVE_TYPE,
        "a native type that is raised",
        BOTH,
        "define an exception";
    CONTEXT: CONTEXT_CLAUSE,
        "a context clause",
        "many mappings to languages ignore it",
        "use a parameter";
    KEYWORD_OF_IDL_4: RESERVED_LATER,
        "IDL 4 reserves this word",
        "compilers of IDL 4 refuse it as a name",
        "rename it, or write it with a leading `_`";
    LONG_NAME: LONG_IDENTIFIER,
        "a name of more than 240 characters",
        "compilers that write a file for each type append to the name, and a file has at most \
         255",
        "shorten it";
    NO_PREFIX: WITHOUT_PREFIX,
        "a definition without a prefix of its repository identifier",
        "others may define the same identifier",
        "write `#pragma prefix \"example.org\"` before it";
    COMPLEMENT: CONSTANT_EXPRESSION,
        "a complement in a constant",
        "omniidl 4.3 refuses it where the type is unsigned, or narrower than 64 bits",
        "write the value";
    LEAST_INTEGER: CONSTANT_EXPRESSION,
        "the least value of an integer type",
        OMNIIDL,
        "no constant of this value is portable";
    MIXED_EXPRESSION: CONSTANT_EXPRESSION,
        "an expression of an integer and a floating-point number",
        OMNIIDL,
        "write `2.0` for `2`";
    JOINED_STRINGS: CONSTANT_EXPRESSION,
        "string literals that are joined",
        "JacORB 3.9 refuses some of them",
        "write one literal";
    DIRECTIVE_IDENT: PREPROCESSING,
        "the directives `#ident` and `#sccs` are not standard",
        BOTH,
        "use a comment";
    DIRECTIVE: PREPROCESSING,
        "not every preprocessor has this directive",
        JACORB,
        "leave it out";
    LINE_DIRECTIVE: PREPROCESSING,
        "a line directive or line marker",
        JACORB,
        "compile the file that was preprocessed";
    INCLUDE_BY_MACRO: PREPROCESSING,
        "an include by a macro",
        JACORB,
        "name the file";
    MACRO: PREPROCESSING,
        "a macro with parameters",
        JACORB,
        "write what it stands for";
    VARIADIC_MACRO: PREPROCESSING,
        "a macro with a variable number of parameters",
        BOTH,
        "write what it stands for";
    CONDITION: PREPROCESSING,
        "a condition with more than `defined`",
        JACORB,
        "use `#ifdef`";
    CHARACTER_IN_CONDITION: PREPROCESSING,
        "a character in a condition",
        "for omniidl 4.3 its value is 0; JacORB 3.9 refuses it",
        "write its number";
    QUOTE_IN_SKIPPED_TEXT: PREPROCESSING,
        "text without its closing quote, which is skipped",
        OMNIIDL,
        "close the quote, or use a comment";
    LINE_CONTINUATION: PREPROCESSING,
        "a line that is continued in the next one",
        "JacORB 3.9 refuses it outside of macros; omniidl 4.3 does where the line ends with CR LF",
        "write one line";
    TWO_BRACKETS: CLOSING_BRACKETS,
        "two closing brackets without a blank",
        BOTH,
        "write `> >`";
    HIDDEN_NAME: HIDES_INHERITED,
        "a name that hides an inherited one",
        "omniidl 4.3 refuses its use where both are inherited",
        "rename it";
    SUPPORTED_TWICE: HIDES_INHERITED,
        "bases that support different interfaces",
        "omniidl 4.3 refuses it, even where one interface is derived from the other",
        "support one interface";
    CORBA_NAME: PREDEFINED_NAME,
        "a name of the module `CORBA` without the file that defines it",
        BOTH,
        "write `#include <orb.idl>` before it";
    TYPE_CODE: PREDEFINED_NAME,
        "a type code without the file that defines it",
        JACORB,
        "write `#include <orb.idl>` before it";
    BYTE_ORDER_MARK: ENCODING,
        "a byte order mark",
        "omniidl 4.3 finds no definitions in the file",
        "save the file without it";
    STRING_BEYOND_ASCII: ENCODING,
        "a string with other characters than those of ASCII",
        "compilers differ in the encoding of files",
        "write escapes";
    CHARACTER_BEYOND_ASCII: ENCODING,
        "a character that is not in ASCII",
        BOTH,
        "write an escape";
}
