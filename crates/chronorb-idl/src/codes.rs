//! The codes of the diagnostics. A code keeps its meaning from version to version.
//!
//! `E00xx` files and preprocessor, `E01xx` syntax, `E02xx` names, `E03xx` inheritance,
//! `E04xx` types, `E05xx` constants, `E06xx` operations and attributes, `E07xx`
//! repository identifiers, `E08xx` limits, `W0xxx` warnings.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $code;)*
    };
}

codes! {
    /// A file cannot be read.
    UNREADABLE = "E0001";
    /// An included file stands in none of the searched places.
    INCLUDE_NOT_FOUND = "E0002";
    /// A file includes itself without end, directly or through others.
    INCLUDE_CYCLE = "E0003";
    /// Bytes that are not UTF-8 outside of a comment.
    NOT_UTF8 = "E0004";
    /// A character that begins no token.
    UNKNOWN_CHARACTER = "E0005";
    /// A comment without its `*/`.
    UNTERMINATED_COMMENT = "E0006";
    /// A string or character literal without its closing quote.
    UNTERMINATED_LITERAL = "E0007";
    /// A `#if` without its `#endif`.
    UNTERMINATED_IF = "E0008";
    /// `#elif`, `#else` or `#endif` without a `#if` before it.
    STRAY_CONDITIONAL = "E0009";
    /// A directive that does not exist.
    UNKNOWN_DIRECTIVE = "E0010";
    /// A directive with wrong or missing arguments.
    BAD_DIRECTIVE = "E0011";
    /// A `#if` expression that has no value.
    BAD_CONDITION = "E0012";
    /// A macro defined twice, differently.
    MACRO_REDEFINED = "E0013";
    /// A macro called with the wrong number of arguments, or without its closing parenthesis.
    BAD_MACRO_CALL = "E0014";
    /// A `#error` directive.
    ERROR_DIRECTIVE = "E0015";

    /// Something else was expected here.
    SYNTAX = "E0100";
    /// A semicolon is missing.
    MISSING_SEMICOLON = "E0101";
    /// A keyword stands where an identifier is expected.
    KEYWORD_AS_NAME = "E0102";
    /// A parameter without `in`, `out` or `inout`.
    MISSING_DIRECTION = "E0103";
    /// A brace without its counterpart.
    UNCLOSED_BRACE = "E0104";
    /// A malformed number, character or string literal.
    BAD_LITERAL = "E0105";
    /// A name that does not begin with a letter.
    BAD_NAME = "E0106";

    /// A name that is not defined.
    UNDEFINED = "E0200";
    /// A name defined twice in one scope.
    DUPLICATE = "E0201";
    /// A name that differs from its definition in case only.
    WRONG_CASE = "E0202";
    /// A name that was used in this scope with another meaning before.
    REDEFINED_AFTER_USE = "E0205";
    /// A name inherited from several bases.
    AMBIGUOUS = "E0206";
    /// A qualified name whose first part is no scope.
    NOT_A_SCOPE = "E0207";
    /// Declarations of one interface or struct that contradict each other.
    DECLARATION_MISMATCH = "E0208";
    /// A struct that is declared but never defined.
    NEVER_DEFINED = "E0209";
    /// An import of a name that no file defines, or that cannot be imported.
    BAD_IMPORT = "E0230";
    /// An instance of a name that is no template module.
    NOT_A_TEMPLATE = "E0231";
    /// Arguments that do not fit the parameters of a template module.
    TEMPLATE_ARGUMENT = "E0232";

    /// A base that is not an interface.
    BASE_NOT_INTERFACE = "E0300";
    /// A base that is declared only.
    BASE_INCOMPLETE = "E0301";
    /// An interface that inherits from itself.
    BASE_ITSELF = "E0302";
    /// A base listed twice.
    BASE_DUPLICATE = "E0303";
    /// Two bases have an operation or attribute of the same name.
    BASE_AMBIGUOUS = "E0304";
    /// An inherited operation or attribute declared again.
    REDEFINED_MEMBER = "E0305";
    /// Local, abstract and plain interfaces that may not inherit from each other.
    BASE_KIND = "E0306";
    /// A base of a value type that is not a value type.
    BASE_NOT_VALUE = "E0320";
    /// A base with state, or a supported interface that is not abstract, that is not the first one.
    BASE_NOT_FIRST = "E0321";
    /// `truncatable` where a value cannot be truncated: in front of no base with state, or with
    /// `custom`.
    TRUNCATABLE = "E0322";
    /// Supported interfaces of a value type and its bases of which none is derived from the others.
    SUPPORTS_CLASH = "E0323";
    /// State members or initialisers in an abstract value type.
    ABSTRACT_STATE = "E0324";
    /// A base of a component, connector or home that is none.
    BASE_NOT_COMPONENT = "E0325";
    /// A base of a struct that is not a struct, or of a bit set that is not a bit set.
    BASE_NOT_STRUCT = "E0340";

    /// A name that is not a type where a type is expected.
    NOT_A_TYPE = "E0400";
    /// An exception used as a type.
    EXCEPTION_AS_TYPE = "E0401";
    /// A type that is declared but not yet defined.
    INCOMPLETE_TYPE = "E0402";
    /// A struct that contains itself.
    RECURSIVE_STRUCT = "E0403";
    /// Two members of one struct or exception with the same name.
    DUPLICATE_MEMBER = "E0404";
    /// An array length that is 0, negative or too large.
    BAD_ARRAY_LENGTH = "E0405";
    /// A bound of a sequence or string that is 0, negative or too large.
    BAD_BOUND = "E0406";
    /// `void` where a type is expected.
    VOID_AS_TYPE = "E0408";
    /// Two enumerators of one enum with the same name.
    DUPLICATE_ENUMERATOR = "E0409";
    /// A type that the discriminator of a union cannot have.
    BAD_DISCRIMINATOR = "E0420";
    /// A label of a union given twice.
    DUPLICATE_LABEL = "E0421";
    /// A decimal type without digits, or with more than it can have.
    BAD_FIXED = "E0423";
    /// A boxed value type with a value type in it.
    BOXED_VALUE = "E0430";
    /// A value of an enumerator that does not fit, or that another one has.
    BAD_ENUM_VALUE = "E0424";
    /// A number of bits that is 0 or too large.
    BAD_BIT_BOUND = "E0425";
    /// The position of a flag that does not exist in its bit mask, or that another one has.
    BAD_POSITION = "E0426";
    /// A bit set of more than 64 bits, or a field whose type does not hold its bits.
    BAD_BITS = "E0427";
    /// A parameter of an annotation that is unknown, missing, or given twice.
    ANNOTATION_PARAM = "E0440";
    /// Annotations that contradict each other.
    BAD_ANNOTATION = "E0441";
    /// An annotation before a type that it is not for.
    BAD_MARK = "E0449";

    /// A value outside the range of its type.
    OUT_OF_RANGE = "E0500";
    /// A division by zero.
    DIVISION_BY_ZERO = "E0501";
    /// An operand or value of the wrong type.
    WRONG_TYPE = "E0502";
    /// A name that is not a constant in an expression.
    NOT_A_CONSTANT = "E0503";
    /// A type that a constant cannot have.
    BAD_CONST_TYPE = "E0504";
    /// A shift by less than 0 or more than 63.
    BAD_SHIFT = "E0505";

    /// An operation or attribute declared twice in one interface.
    OVERLOADED = "E0600";
    /// Two parameters of one operation with the same name.
    DUPLICATE_PARAM = "E0601";
    /// A name in a `raises` list that is not an exception.
    RAISES_NOT_EXCEPTION = "E0602";
    /// A oneway operation with a result.
    ONEWAY_RESULT = "E0604";
    /// A oneway operation with an out or inout parameter.
    ONEWAY_OUT = "E0605";
    /// A oneway operation that raises exceptions.
    ONEWAY_RAISES = "E0606";
    /// A parameter of an initialiser that is not `in`.
    FACTORY_PARAM = "E0630";
    /// A local type where a value leaves the process.
    LOCAL_TYPE = "E0631";
    /// A port of a type that such a port cannot have.
    PORT_TYPE = "E0632";
    /// Two ports or attributes of one component with the same name.
    DUPLICATE_PORT = "E0633";
    /// A home whose component or primary key does not fit.
    BAD_HOME = "E0634";
    /// A malformed name in a `context` clause.
    BAD_CONTEXT = "E0640";

    /// Two definitions with the same repository identifier.
    ID_CONFLICT = "E0700";
    /// A definition that is given a second, different repository identifier.
    ID_CHANGED = "E0701";
    /// A malformed repository identifier, prefix or version.
    BAD_ID = "E0702";

    /// A file larger than 16 MiB.
    FILE_TOO_LARGE = "E0800";
    /// Includes nested deeper than 100.
    INCLUDE_DEPTH = "E0801";
    /// More than 64 MiB or 10 000 files, counted with repetition.
    TOO_MUCH_INPUT = "E0802";
    /// Macros that expand to more than a million tokens, or nest too deeply.
    MACRO_LIMIT = "E0803";
    /// Definitions, types or expressions nested deeper than 200.
    NESTING = "E0804";
    /// More than four million tokens.
    TOO_MANY_TOKENS = "E0805";
    /// An interface with more than 250 bases.
    TOO_MANY_BASES = "E0806";
    /// An identifier longer than 255 characters.
    NAME_TOO_LONG = "E0808";
    /// A model of more than 256 MiB.
    MODEL_TOO_LARGE = "E0809";
    /// Template modules that expand to more than 100 000 definitions, or port types to as many
    /// ports.
    TEMPLATE_LIMIT = "E0830";
    /// A string longer than 1 MiB, or all strings together longer than 16 MiB.
    STRING_TOO_LONG = "E0807";


    /// A `#warning` directive.
    WARNING_DIRECTIVE = "W0001";
    /// A pragma that this compiler does not know.
    UNKNOWN_PRAGMA = "W0002";
    /// An interface that is declared but never defined.
    FORWARD_ONLY = "W0003";
    /// An annotation that has no effect where it stands.
    ANNOTATION_IGNORED = "W0004";
    /// A decimal constant with more digits behind the point than its type.
    DIGITS_LOST = "W0010";
    /// An annotation that is neither standard nor declared.
    UNKNOWN_ANNOTATION = "W0011";
    /// An identifier that differs from a keyword that CORBA 3 added in case only.
    YOUNGER_KEYWORD = "W0012";
    /// `default:` in a union whose other labels name every value; the label has no effect.
    USELESS_DEFAULT = "W0013";
    /// An exception listed twice in one `raises` clause.
    RAISES_DUPLICATE = "W0014";
    /// An integer as the value of a floating-point constant.
    INTEGER_AS_FLOAT = "W0015";
    /// A number without the suffix `d` as the value of a decimal constant.
    DECIMAL_SUFFIX = "W0016";
    /// A member or parameter `_x` beside `x`.
    ESCAPED_BESIDE_PLAIN = "W0017";
    /// A name that differs in case only from another one of its scope, from the scope's own name,
    /// or from a name that is used or inherited there.
    CASE_COLLISION = "W0018";
    /// An identifier that differs from a keyword of CORBA 2 in case only.
    KEYWORD_COLLISION = "W0019";
    /// A keyword that CORBA 3 added, as a name.
    YOUNGER_KEYWORD_AS_NAME = "W0020";
    /// A module without definitions.
    EMPTY_MODULE = "W0021";
    /// A definition in an included file without the prefix of its declaration.
    INCLUDED_WITHOUT_PREFIX = "W0022";
    /// `typeprefix` before the module, interface or value type that it names.
    EARLY_TYPE_PREFIX = "W0023";

    /// A type that is new in IDL 4.
    IDL4_TYPE = "W0030";
    /// An annotation.
    ANNOTATED = "W0031";
    /// A template module, or an instance.
    TEMPLATES = "W0032";
    /// A component, home, event type, port type or connector.
    CORBA_COMPONENTS = "W0033";
    /// A declaration that is new in CORBA 3: an import, an identifier, an attribute that raises.
    CORBA3_DECLARATION = "W0034";
    /// A declared struct or union.
    FORWARD_CONSTRUCTED = "W0035";
    /// An anonymous type of a parameter, result or attribute.
    ANONYMOUS_PASSED = "W0036";
    /// An anonymous or nested type of a member or element.
    ANONYMOUS_TYPE = "W0037";
    /// A type that not all mappings have: wide characters, `long double`, `fixed`.
    OPTIONAL_TYPE = "W0038";
    /// A native type.
    NATIVE_TYPE = "W0039";
    /// A context clause.
    CONTEXT_CLAUSE = "W0040";
    /// A name that IDL 4 reserves.
    RESERVED_LATER = "W0041";
    /// A name longer than 240 characters.
    LONG_IDENTIFIER = "W0042";
    /// A definition without a prefix of its repository identifier.
    WITHOUT_PREFIX = "W0043";
    /// A constant that other compilers cannot evaluate.
    CONSTANT_EXPRESSION = "W0044";
    /// A feature that not all preprocessors have.
    PREPROCESSING = "W0045";
    /// `>>` at the end of a type in a type.
    CLOSING_BRACKETS = "W0046";
    /// A name that hides an inherited one, or bases that support different interfaces.
    HIDES_INHERITED = "W0047";
    /// A name of the module `CORBA` without `#include <orb.idl>`.
    PREDEFINED_NAME = "W0048";
    /// A byte order mark, or characters outside of ASCII in a literal.
    ENCODING = "W0049";
}

/// The warnings about IDL that the standard forbids and other compilers accept. They are errors
/// with [`Options::strict`](crate::Options::strict).
pub const LENIENT: &[&str] = &[
    USELESS_DEFAULT,
    RAISES_DUPLICATE,
    INTEGER_AS_FLOAT,
    DECIMAL_SUFFIX,
    ESCAPED_BESIDE_PLAIN,
    CASE_COLLISION,
    KEYWORD_COLLISION,
    YOUNGER_KEYWORD_AS_NAME,
    EMPTY_MODULE,
    INCLUDED_WITHOUT_PREFIX,
    EARLY_TYPE_PREFIX,
];
