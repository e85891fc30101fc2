//! The syntax tree: what was written, names not yet resolved.

use std::rc::Rc;

use crate::decimal::Decimal;
use crate::source::Span;

/// A correctly parsed part of the text, in order.
#[derive(Debug)]
pub(crate) enum Item {
    Module(Module),
    Interface(InterfaceDef),
    InterfaceForward(InterfaceHead),
    Struct(StructDef),
    StructForward(Meta, Ident),
    Union(UnionDef),
    UnionForward(Meta, Ident),
    Native(Meta, Ident),
    Exception(StructDef),
    Enum(EnumDef),
    Typedef(Typedef),
    Const(ConstDef),
    Operation(OperationDef),
    Attribute(AttributeDef),
    Value(ValueDef),
    ValueForward(ValueHead),
    ValueBox(ValueBox),
    State(StateDef),
    Factory(FactoryDef),
    Import(Import),
    TypeId {
        name: ScopedName,
        id: Rc<str>,
        span: Span,
    },
    TypePrefix {
        name: ScopedName,
        prefix: Rc<str>,
        span: Span,
    },
    /// A definition that was refused or could not be parsed: its name is known, nothing else.
    Refused(Ident),
    Event(Event),
}

/// What the preprocessor saw between two tokens.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// An included file begins.
    FileEnter,
    /// An included file ends.
    FileLeave,
    /// `#pragma prefix`
    Prefix { prefix: Rc<str>, span: Span },
    /// `#pragma ID`
    Id {
        name: ScopedName,
        id: Rc<str>,
        span: Span,
    },
    /// `#pragma version`
    Version {
        name: ScopedName,
        version: Rc<str>,
        span: Span,
    },
}

/// An identifier without its escape.
#[derive(Clone, Debug)]
pub(crate) struct Ident {
    pub(crate) name: Rc<str>,
    pub(crate) span: Span,
    /// It was written with a leading `_`.
    pub(crate) escaped: bool,
}

impl Ident {
    pub(crate) fn new(written: &Rc<str>, span: Span) -> Self {
        match written.strip_prefix('_') {
            Some(name) if !name.is_empty() => Self {
                name: name.into(),
                span,
                escaped: true,
            },
            _ => Self {
                name: Rc::clone(written),
                span,
                escaped: false,
            },
        }
    }
}

/// `A::B` or `::A::B`; `parts` is never empty.
#[derive(Clone, Debug)]
pub(crate) struct ScopedName {
    pub(crate) absolute: bool,
    pub(crate) parts: Vec<Ident>,
    pub(crate) span: Span,
}

impl ScopedName {
    /// The name when it is a single identifier.
    pub(crate) fn single(&self) -> Option<&Ident> {
        match self.parts.as_slice() {
            [part] if !self.absolute => Some(part),
            _ => None,
        }
    }
}

impl std::fmt::Display for ScopedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 || self.absolute {
                f.write_str("::")?;
            }
            f.write_str(&part.name)?;
        }
        Ok(())
    }
}

/// What may stand before anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meta {
    pub(crate) doc: Option<Rc<str>>,
    pub(crate) annotations: Vec<Annotation>,
}

#[derive(Clone, Debug)]
pub(crate) struct Annotation {
    pub(crate) name: String,
    pub(crate) params: Vec<(Rc<str>, Expr)>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) items: Vec<Item>,
}

#[derive(Debug)]
pub(crate) struct InterfaceHead {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) local: bool,
    pub(crate) is_abstract: bool,
}

#[derive(Debug)]
pub(crate) struct InterfaceDef {
    pub(crate) head: InterfaceHead,
    pub(crate) bases: Vec<ScopedName>,
    pub(crate) items: Vec<Item>,
}

#[derive(Debug)]
pub(crate) struct Import {
    /// A name, or a repository identifier.
    pub(crate) what: Result<ScopedName, Rc<str>>,
    pub(crate) span: Span,
}

/// The beginning of a value type or event type.
#[derive(Debug)]
pub(crate) struct ValueHead {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) is_abstract: bool,
    /// Where `custom` stands.
    pub(crate) custom: Option<Span>,
    /// `eventtype`
    pub(crate) event: bool,
}

#[derive(Debug)]
pub(crate) struct ValueDef {
    pub(crate) head: ValueHead,
    /// Where `truncatable` stands.
    pub(crate) truncatable: Option<Span>,
    pub(crate) bases: Vec<ScopedName>,
    pub(crate) supports: Vec<ScopedName>,
    pub(crate) items: Vec<Item>,
}

#[derive(Debug)]
pub(crate) struct ValueBox {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) ty: TypeSpec,
}

/// State members of a value type that are declared together.
#[derive(Debug)]
pub(crate) struct StateDef {
    pub(crate) public: bool,
    /// Where `public` or `private` stands.
    pub(crate) keyword: Span,
    pub(crate) member: MemberDef,
}

/// An initialiser of a value type, or a factory or finder of a home.
#[derive(Debug)]
pub(crate) struct FactoryDef {
    pub(crate) meta: Meta,
    /// Where `factory` or `finder` stands.
    pub(crate) keyword: Span,
    pub(crate) name: Ident,
    pub(crate) params: Vec<ParamDef>,
    pub(crate) raises: Vec<ScopedName>,
}

/// A struct or an exception.
#[derive(Debug)]
pub(crate) struct StructDef {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) base: Option<ScopedName>,
    pub(crate) members: Vec<MemberDef>,
}

#[derive(Debug)]
pub(crate) struct UnionDef {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) discriminator: TypeSpec,
    pub(crate) discriminator_annotations: Vec<Annotation>,
    pub(crate) cases: Vec<CaseDef>,
}

#[derive(Debug)]
pub(crate) struct CaseDef {
    pub(crate) labels: Vec<Label>,
    /// Has one declarator.
    pub(crate) member: MemberDef,
}

#[derive(Debug)]
pub(crate) enum Label {
    Value(Expr),
    Default(Span),
}

#[derive(Debug)]
pub(crate) struct MemberDef {
    pub(crate) meta: Meta,
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

#[derive(Debug)]
pub(crate) struct Declarator {
    pub(crate) name: Ident,
    pub(crate) dimensions: Vec<Expr>,
}

#[derive(Debug)]
pub(crate) struct EnumDef {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) enumerators: Vec<(Meta, Ident)>,
}

#[derive(Debug)]
pub(crate) struct Typedef {
    pub(crate) meta: Meta,
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

#[derive(Debug)]
pub(crate) struct ConstDef {
    pub(crate) meta: Meta,
    pub(crate) ty: TypeSpec,
    pub(crate) name: Ident,
    pub(crate) value: Expr,
}

#[derive(Debug)]
pub(crate) struct OperationDef {
    pub(crate) meta: Meta,
    pub(crate) oneway: Option<Span>,
    /// `None` for `void`.
    pub(crate) result: Option<TypeSpec>,
    pub(crate) name: Ident,
    pub(crate) params: Vec<ParamDef>,
    pub(crate) raises: Vec<ScopedName>,
    pub(crate) context: Vec<(Rc<str>, Span)>,
}

#[derive(Debug)]
pub(crate) struct ParamDef {
    pub(crate) meta: Meta,
    pub(crate) mode: crate::model::ParamMode,
    pub(crate) mode_span: Span,
    pub(crate) ty: TypeSpec,
    pub(crate) name: Ident,
}

#[derive(Debug)]
pub(crate) struct AttributeDef {
    pub(crate) meta: Meta,
    pub(crate) readonly: bool,
    pub(crate) ty: TypeSpec,
    pub(crate) names: Vec<Ident>,
    pub(crate) get_raises: Vec<ScopedName>,
    pub(crate) set_raises: Vec<ScopedName>,
}

#[derive(Debug)]
pub(crate) struct TypeSpec {
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum TypeKind {
    /// A type that its keywords say completely.
    Basic(crate::model::Type),
    String {
        wide: bool,
        bound: Option<Expr>,
    },
    Sequence {
        element: Box<TypeSpec>,
        bound: Option<Expr>,
    },
    Map {
        key: Box<TypeSpec>,
        value: Box<TypeSpec>,
        bound: Option<Expr>,
    },
    /// Digits and scale; only constants may leave them out.
    Fixed(Option<Box<(Expr, Expr)>>),
    Named(ScopedName),
    Struct(Box<StructDef>),
    Union(Box<UnionDef>),
    Enum(Box<EnumDef>),
    /// `void` where it is not allowed.
    Void,
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// The height of the tree, which the parser bounds.
    pub(crate) depth: u16,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Integer(i128),
    Float(f64),
    Fixed(Decimal),
    Boolean(bool),
    Char(u8),
    WChar(char),
    String(Rc<str>),
    WString(Rc<str>),
    Name(ScopedName),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Span, Box<Expr>, Box<Expr>),
    /// A literal that was reported already.
    Bad,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum UnaryOp {
    Minus,
    Plus,
    Not,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BinaryOp {
    Or,
    Xor,
    And,
    Left,
    Right,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}
