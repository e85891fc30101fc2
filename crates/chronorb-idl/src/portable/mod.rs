//! Warnings of IDL that this compiler accepts and others refuse, for [`Options::portable`].
//!
//! The preprocessor and the checks record what only they see; [`check`] finds the rest in the
//! syntax tree, the tokens and the texts. The first place of each feature in a file is reported.
//!
//! [`Options::portable`]: crate::Options::portable

mod features;

use std::collections::HashSet;
use std::rc::Rc;

use crate::ast::{
    AttributeDef, BinaryOp, CaseLabel, Event, Expr, ExprKind, Ident, Item, MemberDef, Meta,
    OperationDef, ParamDef, Port, ScopedName, StructDef, TemplateArg, TypeKind, TypeSpec, UnaryOp,
    UnionDef,
};
use crate::diagnostics::Sink;
use crate::lexer::TokenKind;
use crate::model::Type;
use crate::preprocessor::Stream;
use crate::source::Sources;
use crate::span::Span;

pub(crate) use features::*;

/// Records the features of a file and of all that it includes.
pub(crate) fn check(sources: &Sources, stream: &Stream, items: &[Item], sink: &mut Sink) {
    if !sink.is_portable() {
        return;
    }
    texts(sources, sink);
    tokens(stream, sink);
    let mut walk = Walk {
        sink,
        defines_corba: false,
        declared: HashSet::new(),
        enums: HashSet::new(),
        natives: HashSet::new(),
        prefixes: vec![false],
        has_type_prefix: items
            .iter()
            .any(|item| matches!(item, Item::TypePrefix { .. })),
    };
    for item in items {
        walk.prefix(item);
        walk.item(item);
    }
}

/// Features of the texts before they are cut into tokens.
fn texts(sources: &Sources, sink: &mut Sink) {
    for (number, file) in (0..).zip(sources.files()) {
        let at = |start: usize, length: usize| Span {
            file: number,
            start: start as u32,
            end: (start + length) as u32,
        };
        if file.text.starts_with('\u{feff}') {
            sink.unportable(&BYTE_ORDER_MARK, at(0, '\u{feff}'.len_utf8()));
        }
        let mut ends = ["\\\n", "\\\r\n"].into_iter();
        if let Some(start) = ends.find_map(|end| file.text.find(end)) {
            sink.unportable(&LINE_CONTINUATION, at(start, 1));
        }
    }
}

fn tokens(stream: &Stream, sink: &mut Sink) {
    for pair in stream.tokens.windows(2) {
        let [one, two] = pair else { continue };
        match (&one.kind, &two.kind) {
            (TokenKind::Str { .. }, TokenKind::Str { .. }) => {
                sink.unportable(&JOINED_STRINGS, two.span);
            }
            (TokenKind::Str { text, .. }, _) if !text.is_ascii() => {
                sink.unportable(&STRING_BEYOND_ASCII, one.span);
            }
            (TokenKind::Char { text, .. }, _) if !text.is_ascii() => {
                sink.unportable(&CHARACTER_BEYOND_ASCII, one.span);
            }
            _ => {}
        }
    }
}

struct Walk<'a> {
    sink: &'a mut Sink,
    /// Whether the module `CORBA` was defined before.
    defines_corba: bool,
    /// All names that were defined before.
    declared: HashSet<Rc<str>>,
    /// The names of enums.
    enums: HashSet<Rc<str>>,
    /// The names of native types.
    natives: HashSet<Rc<str>>,
    /// Whether there is a prefix, for each file that is open.
    prefixes: Vec<bool>,
    has_type_prefix: bool,
}

/// The greatest length of a name to which compilers can append something in the name of a file.
const MAX_NAME: usize = 240;

/// The words that IDL 4.2 reserves and CORBA 3 does not.
const KEYWORDS_OF_IDL_4: [&str; 20] = [
    "alias",
    "bitfield",
    "bitmask",
    "bitset",
    "connector",
    "int16",
    "int32",
    "int64",
    "int8",
    "manages",
    "map",
    "mirrorport",
    "port",
    "porttype",
    "typename",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "annotation",
];

/// The integer types of IDL 4, which are names in earlier versions.
const SIZED: [&str; 8] = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
];

impl Walk<'_> {
    /// Follows the prefixes of repository identifiers, and records a definition without one.
    fn prefix(&mut self, item: &Item) {
        match item {
            Item::Event(Event::FileEnter) => self.prefixes.push(false),
            Item::Event(Event::FileLeave) => {
                self.prefixes.pop();
            }
            Item::Event(Event::Prefix { .. }) => {
                if let Some(prefix) = self.prefixes.last_mut() {
                    *prefix = true;
                }
            }
            Item::Event(_) | Item::Import(_) | Item::TypeId { .. } | Item::TypePrefix { .. } => {}
            _ => {
                let is_there = self.prefixes.last() == Some(&true) || self.has_type_prefix;
                if let Some(name) = name_of(item).filter(|_| !is_there) {
                    self.sink.unportable(&NO_PREFIX, name.span);
                }
            }
        }
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        if let Some(name) = name_of(item) {
            self.type_name(name);
        }
        match item {
            Item::Module(module) => {
                self.meta(&module.meta);
                self.defines_corba |= *module.name.name == *"CORBA";
                self.items(&module.items);
            }
            Item::Interface(interface) => {
                self.meta(&interface.head.meta);
                self.scoped_names(&interface.bases);
                self.items(&interface.items);
            }
            Item::InterfaceForward(head) => self.meta(&head.meta),
            Item::Struct(definition) => self.structure(definition, true),
            Item::Exception(definition) => self.structure(definition, false),
            Item::StructForward(meta, name) | Item::UnionForward(meta, name) => {
                self.meta(meta);
                self.sink.unportable(&FORWARD_DECLARATION, name.span);
            }
            Item::Union(definition) => self.union(definition),
            Item::Native(meta, name) => {
                self.meta(meta);
                self.natives.insert(Rc::clone(&name.name));
                self.sink.unportable(&NATIVE, name.span);
            }
            Item::Bitmask(definition) => self.sink.unportable(&BITS, definition.name.span),
            Item::Bitset(definition) => self.sink.unportable(&BITS, definition.name.span),
            Item::Annotation(declaration) => {
                self.sink.unportable(&ANNOTATION, declaration.name.span);
            }
            Item::Enum(definition) => self.enumeration(definition),
            Item::Typedef(definition) => {
                self.meta(&definition.meta);
                self.type_spec(&definition.ty);
                for declarator in &definition.declarators {
                    self.type_name(&declarator.name);
                    self.expressions(&declarator.dimensions);
                }
            }
            Item::Const(definition) => {
                self.meta(&definition.meta);
                self.type_spec(&definition.ty);
                self.expression(&definition.value);
            }
            Item::Operation(operation) => self.operation(operation),
            Item::Attribute(attribute) => self.attribute(attribute),
            Item::Value(value) => {
                self.meta(&value.head.meta);
                if value.head.event {
                    self.sink.unportable(&COMPONENT, value.head.name.span);
                }
                self.scoped_names(&value.bases);
                self.scoped_names(&value.supports);
                self.items(&value.items);
            }
            Item::ValueForward(head) => {
                self.meta(&head.meta);
                if head.event {
                    self.sink.unportable(&COMPONENT, head.name.span);
                }
            }
            Item::ValueBox(value) => {
                self.meta(&value.meta);
                self.type_spec(&value.ty);
            }
            Item::State(state) => self.member(&state.member),
            Item::Factory(factory) | Item::Finder(factory) => {
                self.meta(&factory.meta);
                self.params(&factory.params);
                self.raises(&factory.raises);
            }
            Item::Component(component) => {
                self.meta(&component.head.meta);
                self.sink.unportable(&COMPONENT, component.head.name.span);
                self.items(&component.items);
            }
            Item::Home(home) => {
                self.meta(&home.meta);
                self.sink.unportable(&COMPONENT, home.name.span);
                self.items(&home.items);
            }
            Item::Port(Port { meta, name, .. }) => {
                self.meta(meta);
                self.name(name);
            }
            Item::PortType(port_type) => {
                self.sink.unportable(&COMPONENT, port_type.name.span);
                self.items(&port_type.items);
            }
            Item::PortTypeForward(name) => self.sink.unportable(&COMPONENT, name.span),
            Item::Template(module) => {
                self.sink.unportable(&TEMPLATE, module.name.span);
                self.items(&module.items);
            }
            Item::Instance(instance) | Item::Alias(instance) => {
                self.meta(&instance.meta);
                self.sink.unportable(&TEMPLATE, instance.span);
                for arg in &instance.args {
                    match arg {
                        TemplateArg::Name(name) => self.scoped_name(name),
                        TemplateArg::Type(ty) => self.type_spec(ty),
                        TemplateArg::Value(value) => self.expression(value),
                    }
                }
            }
            Item::Import(import) => self.sink.unportable(&IMPORT, import.span),
            Item::TypeId { span, .. } | Item::TypePrefix { span, .. } => {
                self.sink.unportable(&TYPE_ID, *span);
            }
            Item::Event(_) => {}
        }
    }

    fn meta(&mut self, meta: &Meta) {
        for annotation in &meta.annotations {
            self.sink.unportable(&ANNOTATION, annotation.span);
        }
    }

    /// Records features of a name that is defined.
    fn name(&mut self, name: &Ident) {
        let mut keywords = KEYWORDS_OF_IDL_4.into_iter();
        if !name.escaped && keywords.any(|keyword| name.name.eq_ignore_ascii_case(keyword)) {
            self.sink.unportable(&KEYWORD_OF_IDL_4, name.span);
        }
    }

    fn type_name(&mut self, name: &Ident) {
        self.name(name);
        self.declared.insert(Rc::clone(&name.name));
        if name.name.len() > MAX_NAME {
            self.sink.unportable(&LONG_NAME, name.span);
        }
    }

    fn structure(&mut self, definition: &StructDef, may_be_empty: bool) {
        self.meta(&definition.meta);
        if let Some(base) = &definition.base {
            self.sink.unportable(&STRUCT_INHERITANCE, base.span);
        }
        if may_be_empty && definition.members.is_empty() && definition.base.is_none() {
            self.sink.unportable(&EMPTY_STRUCT, definition.name.span);
        }
        for member in &definition.members {
            self.member(member);
        }
    }

    fn union(&mut self, definition: &UnionDef) {
        self.meta(&definition.meta);
        for annotation in &definition.discriminator_annotations {
            self.sink.unportable(&ANNOTATION, annotation.span);
        }
        let discriminator = &definition.discriminator;
        if let TypeKind::Basic(Type::Octet | Type::WChar) = discriminator.kind {
            self.sink.unportable(&DISCRIMINATOR, discriminator.span);
        }
        if let TypeKind::Enum(definition) = &discriminator.kind {
            self.enumeration(definition);
        } else {
            self.type_spec(discriminator);
        }
        for case in &definition.cases {
            for label in &case.labels {
                if let CaseLabel::Value(value) = label {
                    self.expression(value);
                }
            }
            self.member(&case.member);
        }
    }

    fn enumeration(&mut self, definition: &crate::ast::EnumDef) {
        self.meta(&definition.meta);
        self.enums.insert(Rc::clone(&definition.name.name));
        for (meta, name) in &definition.enumerators {
            self.meta(meta);
            self.name(name);
        }
    }

    fn member(&mut self, member: &MemberDef) {
        self.meta(&member.meta);
        self.type_spec(&member.ty);
        let is_anonymous = matches!(
            member.ty.kind,
            TypeKind::Sequence { .. }
                | TypeKind::Fixed(_)
                | TypeKind::String { bound: Some(_), .. }
        );
        if is_anonymous {
            self.sink.unportable(&ANONYMOUS_MEMBER, member.ty.span);
        }
        for declarator in &member.declarators {
            self.name(&declarator.name);
            self.expressions(&declarator.dimensions);
            if !declarator.dimensions.is_empty() {
                self.sink
                    .unportable(&ANONYMOUS_MEMBER, declarator.name.span);
            }
        }
    }

    fn operation(&mut self, operation: &OperationDef) {
        self.meta(&operation.meta);
        if let Some(result) = &operation.result {
            self.passed(result);
        }
        self.params(&operation.params);
        self.raises(&operation.raises);
        if let Some((_, span)) = operation.context.first() {
            self.sink.unportable(&CONTEXT, *span);
        }
    }

    fn attribute(&mut self, attribute: &AttributeDef) {
        self.meta(&attribute.meta);
        self.passed(&attribute.ty);
        for name in &attribute.names {
            self.name(name);
        }
        let mut raises = attribute.get_raises.iter().chain(&attribute.set_raises);
        if let Some(first) = raises.next() {
            self.sink.unportable(&ATTRIBUTE_RAISES, first.span);
        }
        self.raises(&attribute.get_raises);
        self.raises(&attribute.set_raises);
    }

    fn params(&mut self, params: &[ParamDef]) {
        for param in params {
            self.meta(&param.meta);
            self.passed(&param.ty);
            self.name(&param.name);
        }
    }

    /// Records features of the type of a parameter, result or attribute.
    fn passed(&mut self, ty: &TypeSpec) {
        if let TypeKind::Sequence { .. } | TypeKind::Map { .. } | TypeKind::Fixed(_) = ty.kind {
            self.sink.unportable(&ANONYMOUS_PARAMETER, ty.span);
        }
        self.type_spec(ty);
    }

    fn raises(&mut self, names: &[ScopedName]) {
        for name in names {
            let last = name.parts.last();
            if last.is_some_and(|last| self.natives.contains(&last.name)) {
                self.sink.unportable(&NATIVE_RAISED, name.span);
            }
            self.scoped_name(name);
        }
    }

    fn type_spec(&mut self, ty: &TypeSpec) {
        for annotation in &ty.annotations {
            self.sink.unportable(&ANNOTATION, annotation.span);
        }
        match &ty.kind {
            TypeKind::Basic(Type::WChar) => self.sink.unportable(&WIDE, ty.span),
            TypeKind::Basic(Type::LongDouble) => self.sink.unportable(&LONG_DOUBLE, ty.span),
            TypeKind::Basic(_) | TypeKind::Void => {}
            TypeKind::String { wide, bound } => {
                if *wide {
                    self.sink.unportable(&WIDE, ty.span);
                }
                self.expressions(bound);
            }
            TypeKind::Sequence { element, bound } => {
                self.element(ty, element);
                self.expressions(bound);
            }
            TypeKind::Map { key, value, bound } => {
                self.sink.unportable(&MAP, ty.span);
                self.element(ty, key);
                self.element(ty, value);
                self.expressions(bound);
            }
            TypeKind::Fixed(size) => {
                self.sink.unportable(&FIXED, ty.span);
                if let Some(size) = size {
                    self.expression(&size.0);
                    self.expression(&size.1);
                }
            }
            TypeKind::Named(name) => {
                let sized = |name: &&Ident| SIZED.contains(&&*name.name);
                let single = name.single().filter(sized);
                if single.is_some_and(|name| !self.declared.contains(&name.name)) {
                    self.sink.unportable(&SIZED_INTEGER, name.span);
                }
                self.scoped_name(name);
            }
            TypeKind::Struct(definition) => {
                self.sink.unportable(&NESTED_TYPE, definition.name.span);
                self.structure(definition, true);
            }
            TypeKind::Union(definition) => {
                self.sink.unportable(&NESTED_TYPE, definition.name.span);
                self.union(definition);
            }
            TypeKind::Enum(definition) => {
                self.sink.unportable(&NESTED_TYPE, definition.name.span);
                self.enumeration(definition);
            }
        }
    }

    /// Records features of the type of elements.
    fn element(&mut self, outer: &TypeSpec, element: &TypeSpec) {
        self.type_spec(element);
        let is_anonymous = matches!(
            element.kind,
            TypeKind::Sequence { .. } | TypeKind::Map { .. } | TypeKind::Fixed(_)
        );
        if is_anonymous {
            self.sink.unportable(&ANONYMOUS_MEMBER, element.span);
        }
        let closes = matches!(
            element.kind,
            TypeKind::String { bound: Some(_), .. } | TypeKind::Fixed(Some(_))
        );
        let (inner, outer) = (element.span, outer.span);
        if (is_anonymous || closes) && inner.file == outer.file && inner.end + 1 == outer.end {
            self.sink.unportable(&TWO_BRACKETS, inner);
        }
    }

    fn scoped_names(&mut self, names: &[ScopedName]) {
        for name in names {
            self.scoped_name(name);
        }
    }

    fn scoped_name(&mut self, name: &ScopedName) {
        let [first, .., last] = name.parts.as_slice() else {
            return;
        };
        if *first.name == *"CORBA" && !self.defines_corba {
            let feature = if *last.name == *"TypeCode" {
                &TYPE_CODE
            } else {
                &CORBA_NAME
            };
            self.sink.unportable(feature, name.span);
        }
    }

    fn expressions<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr>) {
        for expression in expressions {
            self.expression(expression);
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match &expression.kind {
            ExprKind::Name(name) => {
                self.scoped_name(name);
                if let [.., scope, _] = name.parts.as_slice()
                    && self.enums.contains(&scope.name)
                {
                    self.sink.unportable(&ENUMERATOR_IN_ITS_ENUM, name.span);
                }
            }
            ExprKind::Fixed(_) => self.sink.unportable(&FIXED_LITERAL, expression.span),
            ExprKind::Unary(UnaryOp::Not, operand) => {
                self.sink.unportable(&COMPLEMENT, expression.span);
                self.expression(operand);
            }
            ExprKind::Unary(operator, operand) => {
                let least = matches!(operand.kind, ExprKind::Integer(n) if is_least(n));
                if *operator == UnaryOp::Minus && least {
                    self.sink.unportable(&LEAST_INTEGER, expression.span);
                }
                self.expression(operand);
            }
            ExprKind::Binary(operator, _, left, right) => {
                let is_shift = matches!(operator, BinaryOp::Left | BinaryOp::Right);
                if !is_shift
                    && (is_float(left) && is_integer(right) || is_integer(left) && is_float(right))
                {
                    self.sink.unportable(&MIXED_EXPRESSION, expression.span);
                }
                self.expression(left);
                self.expression(right);
            }
            _ => {}
        }
    }
}

/// Returns whether minus this is the least value of `long` or `long long`.
fn is_least(number: i128) -> bool {
    number == 1 << 31 || number == 1 << 63
}

fn is_float(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Float(_) => true,
        ExprKind::Unary(_, operand) => is_float(operand),
        ExprKind::Binary(_, _, left, right) => is_float(left) || is_float(right),
        _ => false,
    }
}

fn is_integer(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Integer(_) => true,
        ExprKind::Unary(_, operand) => is_integer(operand),
        ExprKind::Binary(_, _, left, right) => is_integer(left) && is_integer(right),
        _ => false,
    }
}

/// Returns the name of a definition that is a type, a module, a constant or an operation.
fn name_of(item: &Item) -> Option<&Ident> {
    Some(match item {
        Item::Module(module) => &module.name,
        Item::Interface(interface) => &interface.head.name,
        Item::InterfaceForward(head) => &head.name,
        Item::Struct(definition) | Item::Exception(definition) => &definition.name,
        Item::StructForward(_, name) | Item::UnionForward(_, name) | Item::Native(_, name) => name,
        Item::Union(definition) => &definition.name,
        Item::Bitmask(definition) => &definition.name,
        Item::Bitset(definition) => &definition.name,
        Item::Enum(definition) => &definition.name,
        Item::Typedef(definition) => &definition.declarators.first()?.name,
        Item::Const(definition) => &definition.name,
        Item::Operation(operation) => &operation.name,
        Item::Value(value) => &value.head.name,
        Item::ValueForward(head) => &head.name,
        Item::ValueBox(value) => &value.name,
        Item::Component(component) => &component.head.name,
        Item::Home(home) => &home.name,
        Item::PortType(port_type) => &port_type.name,
        Item::Template(module) => &module.name,
        Item::Instance(instance) => &instance.name,
        _ => return None,
    })
}
