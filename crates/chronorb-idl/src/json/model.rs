//! The JSON form of models.

use serde::Serialize;

use super::types::{JsonType, JsonValue};
use crate::model::{
    self, Attribute, Case, ConstValue, DefId, DefKind, Definition, Enumerator, Factory, Interface,
    InterfaceOrigin, Member, Model, Operation, Param, ParamMode, Type, ValueType,
};

#[derive(Serialize)]
pub(super) struct Document<'a> {
    format: &'static str,
    generator: String,
    files: Vec<JsonFile>,
    roots: Vec<u32>,
    definitions: Vec<JsonDefinition<'a>>,
}

#[derive(Serialize)]
struct JsonFile {
    path: String,
    /// `false` if only line markers name it.
    read: bool,
}

#[derive(Serialize)]
struct JsonDefinition<'a> {
    id: u32,
    #[serde(flatten)]
    common: Common<'a>,
    scoped_name: &'a [String],
    repository_id: Option<&'a str>,
    parent: Option<u32>,
    in_main_file: bool,
    #[serde(flatten)]
    kind: JsonKind<'a>,
}

/// The common properties of everything that has a name.
#[derive(Serialize)]
struct Common<'a> {
    /// `null` for padding.
    name: Option<&'a str>,
    /// Enumerators have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<JsonLocation>,
    doc: Option<&'a str>,
    annotations: Vec<JsonAnnotation<'a>>,
}

#[derive(Serialize)]
struct JsonLocation {
    file: u32,
    line: u32,
    column: u32,
}

#[derive(Serialize)]
struct JsonAnnotation<'a> {
    name: &'a str,
    params: Vec<JsonArgument<'a>>,
}

#[derive(Serialize)]
struct JsonArgument<'a> {
    name: &'a str,
    value: JsonValue<'a>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum JsonKind<'a> {
    Module {
        members: Vec<u32>,
    },
    Interface {
        origin: &'static str,
        forward_only: bool,
        local: bool,
        #[serde(rename = "abstract")]
        is_abstract: bool,
        bases: Vec<u32>,
        all_bases: Vec<u32>,
        nested: Vec<u32>,
        operations: Vec<JsonOperation<'a>>,
        attributes: Vec<JsonAttribute<'a>>,
        inherited_operations: Vec<InheritedMembers<'a>>,
        inherited_attributes: Vec<InheritedMembers<'a>>,
    },
    Struct {
        base: Option<u32>,
        members: Vec<JsonMember<'a>>,
        nested: Vec<u32>,
    },
    Exception {
        members: Vec<JsonMember<'a>>,
        nested: Vec<u32>,
    },
    Union {
        discriminator: JsonType,
        cases: Vec<JsonCase<'a>>,
        unlabelled: Option<JsonValue<'a>>,
        nested: Vec<u32>,
    },
    Enum {
        enumerators: Vec<JsonEnumerator<'a>>,
        default: u32,
        bit_bound: u8,
    },
    Bitmask {
        flags: Vec<JsonFlag<'a>>,
        bit_bound: u8,
    },
    Bitset {
        base: Option<u32>,
        fields: Vec<JsonField<'a>>,
    },
    Value {
        forward_only: bool,
        #[serde(rename = "abstract")]
        is_abstract: bool,
        custom: bool,
        truncatable: bool,
        event: bool,
        bases: Vec<u32>,
        concrete_base: Option<u32>,
        all_bases: Vec<u32>,
        supports: Vec<u32>,
        nested: Vec<u32>,
        state: Vec<JsonState<'a>>,
        factories: Vec<JsonFactory<'a>>,
        operations: Vec<JsonOperation<'a>>,
        attributes: Vec<JsonAttribute<'a>>,
    },
    ValueBox {
        r#type: JsonType,
        nested: Vec<u32>,
    },
    Native,
    Annotation {
        members: Vec<JsonAnnotationMember<'a>>,
        nested: Vec<u32>,
    },
    Typedef {
        r#type: JsonType,
    },
    Const {
        r#type: JsonType,
        value: JsonValue<'a>,
    },
}

#[derive(Serialize)]
struct JsonOperation<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    wire_name: &'a str,
    oneway: bool,
    /// `null` for `void`.
    result: Option<JsonType>,
    params: Vec<JsonParam<'a>>,
    raises: Vec<u32>,
    context: &'a [String],
}

#[derive(Serialize)]
struct JsonParam<'a> {
    name: &'a str,
    mode: &'static str,
    r#type: JsonType,
    annotations: Vec<JsonAnnotation<'a>>,
}

#[derive(Serialize)]
struct JsonAttribute<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    wire_getter: String,
    /// `null` where it is read-only.
    wire_setter: Option<String>,
    readonly: bool,
    r#type: JsonType,
    get_raises: Vec<u32>,
    set_raises: Vec<u32>,
}

#[derive(Serialize)]
struct InheritedMembers<'a> {
    from: u32,
    name: &'a str,
}

#[derive(Serialize)]
struct JsonMember<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    optional: bool,
    r#type: JsonType,
}

#[derive(Serialize)]
struct JsonCase<'a> {
    labels: Vec<JsonValue<'a>>,
    default: bool,
    member: JsonMember<'a>,
}

#[derive(Serialize)]
struct JsonEnumerator<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    value: u32,
}

#[derive(Serialize)]
struct JsonFlag<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    position: u8,
}

#[derive(Serialize)]
struct JsonField<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    position: u8,
    bits: u8,
    r#type: JsonType,
}

#[derive(Serialize)]
struct JsonState<'a> {
    public: bool,
    member: JsonMember<'a>,
}

#[derive(Serialize)]
struct JsonFactory<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    params: Vec<JsonParam<'a>>,
    raises: Vec<u32>,
}

#[derive(Serialize)]
struct JsonAnnotationMember<'a> {
    name: &'a str,
    /// `null` for `any`.
    r#type: Option<JsonType>,
    default: Option<JsonValue<'a>>,
}

impl<'a> Document<'a> {
    pub(super) fn new(model: &'a Model) -> Self {
        let file = |read| {
            move |path: &std::path::PathBuf| JsonFile {
                path: path.display().to_string(),
                read,
            }
        };
        let files = model.files.iter().map(file(true));
        let writer = Writer { model };
        Self {
            format: super::MODEL_FORMAT,
            generator: format!("chronorb {}", env!("CARGO_PKG_VERSION")),
            files: files
                .chain(model.line_files.iter().map(file(false)))
                .collect(),
            roots: ids(&model.roots),
            definitions: model
                .iter()
                .map(|(id, d)| writer.definition(id, d))
                .collect(),
        }
    }
}

fn ids(ids: &[DefId]) -> Vec<u32> {
    ids.iter().map(|id| id.0).collect()
}

/// Converts parts of a model to their JSON form.
#[derive(Clone, Copy)]
struct Writer<'a> {
    model: &'a Model,
}

impl<'a> Writer<'a> {
    fn definition(self, id: DefId, definition: &'a Definition) -> JsonDefinition<'a> {
        let repository_id = definition.repository_id.as_str();
        JsonDefinition {
            id: id.0,
            common: self.common(
                &definition.name,
                &definition.location,
                definition.doc.as_deref(),
                &definition.annotations,
            ),
            scoped_name: &definition.scoped_name,
            repository_id: (!repository_id.is_empty()).then_some(repository_id),
            parent: definition.parent.map(|id| id.0),
            in_main_file: definition.in_main_file,
            kind: self.kind(&definition.kind),
        }
    }

    fn common(
        self,
        name: &'a str,
        location: &model::Location,
        doc: Option<&'a str>,
        annotations: &'a [model::Annotation],
    ) -> Common<'a> {
        Common {
            name: Some(name),
            location: Some(JsonLocation {
                file: location.file,
                line: location.line,
                column: location.column,
            }),
            doc,
            annotations: self.annotations(annotations),
        }
    }

    fn annotations(self, annotations: &'a [model::Annotation]) -> Vec<JsonAnnotation<'a>> {
        let argument = |(name, value): &'a (String, ConstValue)| JsonArgument {
            name,
            value: JsonValue::new(self.model, value),
        };
        annotations
            .iter()
            .map(|annotation| JsonAnnotation {
                name: &annotation.name,
                params: annotation.params.iter().map(argument).collect(),
            })
            .collect()
    }

    fn kind(self, kind: &'a DefKind) -> JsonKind<'a> {
        match kind {
            DefKind::Module { members } => JsonKind::Module {
                members: ids(members),
            },
            DefKind::Interface(interface) => self.interface(interface),
            DefKind::Struct {
                base,
                members,
                nested,
            } => JsonKind::Struct {
                base: base.map(|id| id.0),
                members: self.members(members),
                nested: ids(nested),
            },
            DefKind::Exception { members, nested } => JsonKind::Exception {
                members: self.members(members),
                nested: ids(nested),
            },
            DefKind::Union(union) => JsonKind::Union {
                discriminator: self.ty(&union.discriminator),
                cases: union.cases.iter().map(|case| self.case(case)).collect(),
                unlabelled: union.unlabelled.as_ref().map(|value| self.value(value)),
                nested: ids(&union.nested),
            },
            DefKind::Enum {
                enumerators,
                default,
                bit_bound,
            } => JsonKind::Enum {
                enumerators: enumerators.iter().map(|e| self.enumerator(e)).collect(),
                default: *default,
                bit_bound: *bit_bound,
            },
            DefKind::Bitmask { flags, bit_bound } => JsonKind::Bitmask {
                flags: flags.iter().map(|flag| self.flag(flag)).collect(),
                bit_bound: *bit_bound,
            },
            DefKind::Bitset { base, fields } => JsonKind::Bitset {
                base: base.map(|id| id.0),
                fields: fields.iter().map(|field| self.field(field)).collect(),
            },
            DefKind::Value(value) => self.value_type(value),
            DefKind::ValueBox { ty, nested } => JsonKind::ValueBox {
                r#type: self.ty(ty),
                nested: ids(nested),
            },
            DefKind::Native => JsonKind::Native,
            DefKind::Annotation { members, nested } => JsonKind::Annotation {
                members: members
                    .iter()
                    .map(|member| JsonAnnotationMember {
                        name: &member.name,
                        r#type: member.ty.as_ref().map(|ty| self.ty(ty)),
                        default: member.default.as_ref().map(|value| self.value(value)),
                    })
                    .collect(),
                nested: ids(nested),
            },
            DefKind::Typedef { ty } => JsonKind::Typedef {
                r#type: self.ty(ty),
            },
            DefKind::Const { ty, value } => JsonKind::Const {
                r#type: self.ty(ty),
                value: self.value(value),
            },
        }
    }

    fn interface(self, interface: &'a Interface) -> JsonKind<'a> {
        let bases =
            interface
                .all_bases
                .iter()
                .filter_map(|&base| match &self.model.get(base).kind {
                    DefKind::Interface(interface) => Some((base, interface)),
                    _ => None,
                });
        let mut inherited_operations = Vec::new();
        let mut inherited_attributes = Vec::new();
        for (base, interface) in bases {
            let inherited = |name: &'a String| InheritedMembers { from: base.0, name };
            let operations = interface.operations.iter();
            inherited_operations.extend(operations.map(|operation| inherited(&operation.name)));
            let attributes = interface.attributes.iter();
            inherited_attributes.extend(attributes.map(|attribute| inherited(&attribute.name)));
        }
        JsonKind::Interface {
            origin: match interface.origin {
                InterfaceOrigin::Interface => "interface",
                InterfaceOrigin::Component => "component",
                InterfaceOrigin::Home => "home",
                InterfaceOrigin::HomeExplicit => "home_explicit",
                InterfaceOrigin::HomeImplicit => "home_implicit",
                InterfaceOrigin::Implied => "implied",
            },
            forward_only: interface.forward_only,
            local: interface.local,
            is_abstract: interface.is_abstract,
            bases: ids(&interface.bases),
            all_bases: ids(&interface.all_bases),
            nested: ids(&interface.nested),
            operations: self.operations(&interface.operations),
            attributes: self.attributes(&interface.attributes),
            inherited_operations,
            inherited_attributes,
        }
    }

    fn value_type(self, value: &'a ValueType) -> JsonKind<'a> {
        let state = value.state.iter().map(|state| JsonState {
            public: state.public,
            member: self.member(&state.member),
        });
        JsonKind::Value {
            forward_only: value.forward_only,
            is_abstract: value.is_abstract,
            custom: value.custom,
            truncatable: value.truncatable,
            event: value.event,
            bases: ids(&value.bases),
            concrete_base: value.concrete_base.map(|id| id.0),
            all_bases: ids(&value.all_bases),
            supports: ids(&value.supports),
            nested: ids(&value.nested),
            state: state.collect(),
            factories: value.factories.iter().map(|f| self.factory(f)).collect(),
            operations: self.operations(&value.operations),
            attributes: self.attributes(&value.attributes),
        }
    }

    fn operations(self, operations: &'a [Operation]) -> Vec<JsonOperation<'a>> {
        operations
            .iter()
            .map(|operation| JsonOperation {
                common: self.common(
                    &operation.name,
                    &operation.location,
                    operation.doc.as_deref(),
                    &operation.annotations,
                ),
                wire_name: &operation.name,
                oneway: operation.oneway,
                result: operation.result.as_ref().map(|ty| self.ty(ty)),
                params: self.params(&operation.params),
                raises: ids(&operation.raises),
                context: &operation.context,
            })
            .collect()
    }

    fn params(self, params: &'a [Param]) -> Vec<JsonParam<'a>> {
        params
            .iter()
            .map(|param| JsonParam {
                name: &param.name,
                mode: match param.mode {
                    ParamMode::In => "in",
                    ParamMode::Out => "out",
                    ParamMode::InOut => "inout",
                },
                r#type: self.ty(&param.ty),
                annotations: self.annotations(&param.annotations),
            })
            .collect()
    }

    fn attributes(self, attributes: &'a [Attribute]) -> Vec<JsonAttribute<'a>> {
        attributes
            .iter()
            .map(|attribute| JsonAttribute {
                common: self.common(
                    &attribute.name,
                    &attribute.location,
                    attribute.doc.as_deref(),
                    &attribute.annotations,
                ),
                wire_getter: format!("_get_{}", attribute.name),
                wire_setter: (!attribute.readonly).then(|| format!("_set_{}", attribute.name)),
                readonly: attribute.readonly,
                r#type: self.ty(&attribute.ty),
                get_raises: ids(&attribute.get_raises),
                set_raises: ids(&attribute.set_raises),
            })
            .collect()
    }

    fn factory(self, factory: &'a Factory) -> JsonFactory<'a> {
        JsonFactory {
            common: self.common(
                &factory.name,
                &factory.location,
                factory.doc.as_deref(),
                &factory.annotations,
            ),
            params: self.params(&factory.params),
            raises: ids(&factory.raises),
        }
    }

    fn members(self, members: &'a [Member]) -> Vec<JsonMember<'a>> {
        members.iter().map(|member| self.member(member)).collect()
    }

    fn member(self, member: &'a Member) -> JsonMember<'a> {
        JsonMember {
            common: self.common(
                &member.name,
                &member.location,
                member.doc.as_deref(),
                &member.annotations,
            ),
            optional: member.optional,
            r#type: self.ty(&member.ty),
        }
    }

    fn case(self, case: &'a Case) -> JsonCase<'a> {
        JsonCase {
            labels: case.labels.iter().map(|label| self.value(label)).collect(),
            default: case.is_default,
            member: self.member(&case.member),
        }
    }

    fn enumerator(self, enumerator: &'a Enumerator) -> JsonEnumerator<'a> {
        JsonEnumerator {
            common: Common {
                name: Some(&enumerator.name),
                location: None,
                doc: enumerator.doc.as_deref(),
                annotations: self.annotations(&enumerator.annotations),
            },
            value: enumerator.value,
        }
    }

    fn flag(self, flag: &'a model::BitFlag) -> JsonFlag<'a> {
        JsonFlag {
            common: self.common(
                &flag.name,
                &flag.location,
                flag.doc.as_deref(),
                &flag.annotations,
            ),
            position: flag.position,
        }
    }

    fn field(self, field: &'a model::BitField) -> JsonField<'a> {
        let mut common = self.common(
            "",
            &field.location,
            field.doc.as_deref(),
            &field.annotations,
        );
        common.name = field.name.as_deref();
        JsonField {
            common,
            position: field.position,
            bits: field.bits,
            r#type: self.ty(&field.ty),
        }
    }

    fn ty(self, ty: &Type) -> JsonType {
        JsonType::new(self.model, ty)
    }

    fn value(self, value: &'a ConstValue) -> JsonValue<'a> {
        JsonValue::new(self.model, value)
    }
}
