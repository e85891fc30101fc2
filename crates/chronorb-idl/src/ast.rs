//! The syntax tree: the text's structure, with names not yet resolved.

use std::rc::Rc;

use crate::decimal::Decimal;
use crate::model::InterfaceOrigin;
use crate::span::Span;

/// A correctly parsed part of the text, in order.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Module(Module),
    Interface(InterfaceDef),
    InterfaceForward(InterfaceHead),
    Struct(StructDef),
    StructForward(Meta, Ident),
    Union(UnionDef),
    UnionForward(Meta, Ident),
    Native(Meta, Ident),
    Bitmask(BitmaskDef),
    Bitset(BitsetDef),
    Annotation(AnnotationDef),
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
    Finder(FactoryDef),
    Component(ComponentDef),
    Home(HomeDef),
    Port(Port),
    PortType(Rc<PortTypeDef>),
    PortTypeForward(Ident),
    Template(Rc<TemplateModule>),
    Instance(Instance),
    /// `alias` of an instance in a template module.
    Alias(Instance),
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
    Event(Event),
}

/// An event of the preprocessor between two tokens.
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
    /// Whether it was written with a leading `_`.
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
    /// Returns the name when it is a single identifier.
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

/// The annotations and documentation before a definition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meta {
    pub(crate) doc: Option<Rc<str>>,
    pub(crate) annotations: Vec<AnnotationUse>,
}

#[derive(Clone, Debug)]
pub(crate) struct AnnotationUse {
    pub(crate) name: ScopedName,
    pub(crate) params: Vec<AnnotationParam>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct AnnotationParam {
    /// `None` for the only parameter, written without its name.
    pub(crate) name: Option<Ident>,
    pub(crate) value: Expr,
}

/// `@annotation name { … }`
#[derive(Clone, Debug)]
pub(crate) struct AnnotationDef {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    /// Types and constants inside it.
    pub(crate) items: Vec<Item>,
    pub(crate) members: Vec<AnnotationMemberDef>,
}

#[derive(Clone, Debug)]
pub(crate) struct AnnotationMemberDef {
    pub(crate) ty: TypeSpec,
    pub(crate) name: Ident,
    pub(crate) default: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) struct InterfaceHead {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) local: bool,
    pub(crate) is_abstract: bool,
    pub(crate) origin: InterfaceOrigin,
}

#[derive(Clone, Debug)]
pub(crate) struct InterfaceDef {
    pub(crate) head: InterfaceHead,
    pub(crate) bases: Vec<ScopedName>,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) struct Import {
    /// A name, or a repository identifier.
    pub(crate) what: Result<ScopedName, Rc<str>>,
    pub(crate) span: Span,
}

/// The head of a value type or event type.
#[derive(Clone, Debug)]
pub(crate) struct ValueHead {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) is_abstract: bool,
    /// The place of `custom`.
    pub(crate) custom: Option<Span>,
    /// `eventtype`
    pub(crate) event: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ValueDef {
    pub(crate) head: ValueHead,
    /// The place of `truncatable`.
    pub(crate) truncatable: Option<Span>,
    pub(crate) bases: Vec<ScopedName>,
    pub(crate) supports: Vec<ScopedName>,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) struct ValueBox {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) ty: TypeSpec,
}

/// State members of a value type that are declared together.
#[derive(Clone, Debug)]
pub(crate) struct StateDef {
    pub(crate) public: bool,
    /// The place of `public` or `private`.
    pub(crate) keyword: Span,
    pub(crate) member: MemberDef,
}

/// An initialiser of a value type, or a factory or finder of a home.
#[derive(Clone, Debug)]
pub(crate) struct FactoryDef {
    pub(crate) meta: Meta,
    /// The place of `factory` or `finder`.
    pub(crate) keyword: Span,
    pub(crate) name: Ident,
    pub(crate) params: Vec<ParamDef>,
    pub(crate) raises: Vec<ScopedName>,
}

/// A component or connector.
#[derive(Clone, Debug)]
pub(crate) struct ComponentDef {
    pub(crate) head: InterfaceHead,
    pub(crate) connector: bool,
    pub(crate) base: Option<ScopedName>,
    pub(crate) supports: Vec<ScopedName>,
    /// The ports and attributes.
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) struct HomeDef {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) base: Option<ScopedName>,
    pub(crate) supports: Vec<ScopedName>,
    /// The component.
    pub(crate) manages: ScopedName,
    pub(crate) primary_key: Option<ScopedName>,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) meta: Meta,
    pub(crate) kind: PortKind,
    pub(crate) ty: InterfaceRef,
    pub(crate) name: Ident,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PortKind {
    Provides,
    Uses,
    UsesMultiple,
    Emits,
    Publishes,
    Consumes,
    /// The ports of a port type.
    Port,
    /// The ports of a port type with their directions reversed.
    MirrorPort,
}

/// The type of a port.
#[derive(Clone, Debug)]
pub(crate) enum InterfaceRef {
    /// `Object`
    Object,
    Named(ScopedName),
}

#[derive(Clone, Debug)]
pub(crate) struct PortTypeDef {
    pub(crate) name: Ident,
    /// The ports and attributes.
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) struct TemplateModule {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) params: Vec<TemplateParam>,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) struct TemplateParam {
    pub(crate) kind: TemplateParamKind,
    pub(crate) name: Ident,
}

#[derive(Clone, Debug)]
pub(crate) enum TemplateParamKind {
    Typename,
    Interface,
    Value,
    Event,
    Struct,
    Union,
    Exception,
    Enum,
    Sequence,
    /// `sequence<T>`, of a parameter before.
    SequenceOf(ScopedName),
    Const(TypeSpec),
}

/// `module M<A, B> Name`
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) meta: Meta,
    pub(crate) template: ScopedName,
    pub(crate) args: Vec<TemplateArg>,
    pub(crate) name: Ident,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum TemplateArg {
    /// A type or a constant: the parameter says which.
    Name(ScopedName),
    Type(TypeSpec),
    Value(Expr),
}

/// A struct or an exception.
#[derive(Clone, Debug)]
pub(crate) struct StructDef {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) base: Option<ScopedName>,
    pub(crate) members: Vec<MemberDef>,
}

#[derive(Clone, Debug)]
pub(crate) struct UnionDef {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) discriminator: TypeSpec,
    pub(crate) discriminator_annotations: Vec<AnnotationUse>,
    pub(crate) cases: Vec<CaseDef>,
}

#[derive(Clone, Debug)]
pub(crate) struct CaseDef {
    pub(crate) labels: Vec<CaseLabel>,
    /// Has one declarator.
    pub(crate) member: MemberDef,
}

#[derive(Clone, Debug)]
pub(crate) enum CaseLabel {
    Value(Expr),
    Default(Span),
}

#[derive(Clone, Debug)]
pub(crate) struct MemberDef {
    pub(crate) meta: Meta,
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

#[derive(Clone, Debug)]
pub(crate) struct Declarator {
    pub(crate) name: Ident,
    pub(crate) dimensions: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct EnumDef {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) enumerators: Vec<(Meta, Ident)>,
}

#[derive(Clone, Debug)]
pub(crate) struct BitmaskDef {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) flags: Vec<(Meta, Ident)>,
}

#[derive(Clone, Debug)]
pub(crate) struct BitsetDef {
    pub(crate) meta: Meta,
    pub(crate) name: Ident,
    pub(crate) base: Option<ScopedName>,
    pub(crate) fields: Vec<BitFieldDef>,
}

/// `bitfield<bits, type> name;`
#[derive(Clone, Debug)]
pub(crate) struct BitFieldDef {
    pub(crate) meta: Meta,
    pub(crate) span: Span,
    pub(crate) bits: Expr,
    pub(crate) ty: Option<TypeSpec>,
    /// None for padding.
    pub(crate) names: Vec<Ident>,
}

#[derive(Clone, Debug)]
pub(crate) struct Typedef {
    pub(crate) meta: Meta,
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

#[derive(Clone, Debug)]
pub(crate) struct ConstDef {
    pub(crate) meta: Meta,
    pub(crate) ty: TypeSpec,
    pub(crate) name: Ident,
    pub(crate) value: Expr,
}

#[derive(Clone, Debug)]
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

#[derive(Clone, Debug)]
pub(crate) struct ParamDef {
    pub(crate) meta: Meta,
    pub(crate) mode: crate::model::ParamMode,
    pub(crate) mode_span: Span,
    pub(crate) ty: TypeSpec,
    pub(crate) name: Ident,
}

#[derive(Clone, Debug)]
pub(crate) struct AttributeDef {
    pub(crate) meta: Meta,
    pub(crate) readonly: bool,
    pub(crate) ty: TypeSpec,
    pub(crate) names: Vec<Ident>,
    pub(crate) get_raises: Vec<ScopedName>,
    pub(crate) set_raises: Vec<ScopedName>,
}

#[derive(Clone, Debug)]
pub(crate) struct TypeSpec {
    pub(crate) annotations: Vec<AnnotationUse>,
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

impl TypeSpec {
    /// Returns a type without annotations.
    pub(crate) fn new(kind: TypeKind, span: Span) -> Self {
        Self {
            annotations: Vec::new(),
            kind,
            span,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum TypeKind {
    /// A basic type.
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
