//! The model in the format of `interop/omniidl/listing.py`.

use chronorb_idl::model::{
    Attribute, Case, ConstValue, DefId, DefKind, Definition, Factory, Member, Model, Operation,
    Param, ParamMode, StateMember, Type,
};

/// Returns one line for each part of the model, in no particular order.
pub(crate) fn of(model: &Model) -> Vec<String> {
    let mut lines = Vec::new();
    for (_, definition) in model.iter() {
        Listing { model, definition }.write(&mut lines);
    }
    lines
}

struct Listing<'a> {
    model: &'a Model,
    definition: &'a Definition,
}

impl Listing<'_> {
    fn write(&self, lines: &mut Vec<String>) {
        let name = self.definition.scoped_name.join("::");
        let head = format!("{name} {}", self.definition.repository_id);
        match &self.definition.kind {
            DefKind::Module { .. } => lines.push(format!("module {name}")),
            DefKind::Const { ty, value } => lines.push(format!(
                "const {head} {} {}",
                self.constant_type(ty),
                self.value(ty, value)
            )),
            DefKind::Typedef { ty } => lines.push(format!("typedef {head} {}", self.ty(ty))),
            DefKind::Struct { members, .. } => {
                lines.push(format!("struct {head}"));
                self.members(lines, &name, members);
            }
            DefKind::Exception { members, .. } => {
                lines.push(format!("exception {head}"));
                self.members(lines, &name, members);
            }
            DefKind::Union(union) => {
                lines.push(format!("union {head} {}", self.ty(&union.discriminator)));
                for (position, case) in union.cases.iter().enumerate() {
                    lines.push(self.case(&union.discriminator, &name, position, case));
                }
            }
            DefKind::Enum { enumerators, .. } => {
                let names: Vec<&str> = enumerators.iter().map(|one| one.name.as_str()).collect();
                lines.push(format!("enum {head} {}", names.join(" ")));
            }
            DefKind::Native => lines.push(format!("native {head}")),
            DefKind::Interface(interface) if interface.forward_only => {
                lines.push(format!("forward {head}"));
            }
            DefKind::Interface(interface) => {
                let local = if interface.local { "local " } else { "" };
                let is_abstract = if interface.is_abstract {
                    "abstract "
                } else {
                    ""
                };
                let bases = self.names(" : ", &interface.bases);
                lines.push(format!("{local}{is_abstract}interface {head}{bases}"));
                self.operations(lines, &name, &interface.operations);
                self.attributes(lines, &name, &interface.attributes);
            }
            DefKind::ValueBox { ty, .. } => lines.push(format!("box {head} {}", self.ty(ty))),
            DefKind::Value(value) if value.forward_only => lines.push(format!("forward {head}")),
            DefKind::Value(value) => {
                let is_abstract = if value.is_abstract { "abstract " } else { "" };
                let custom = if value.custom { "custom " } else { "" };
                let truncatable = if value.truncatable {
                    " truncatable"
                } else {
                    ""
                };
                let bases = self.names(" : ", &value.bases);
                let supports = self.names(" supports ", &value.supports);
                lines.push(format!(
                    "{is_abstract}{custom}value {head}{truncatable}{bases}{supports}"
                ));
                self.operations(lines, &name, &value.operations);
                self.attributes(lines, &name, &value.attributes);
                self.state(lines, &name, &value.state);
                self.factories(lines, &name, &value.factories);
            }
            other => panic!("omniidl has no such thing: {other:?}"),
        }
    }

    fn members(&self, lines: &mut Vec<String>, scope: &str, members: &[Member]) {
        for (position, member) in members.iter().enumerate() {
            let ty = self.ty(&member.ty);
            lines.push(format!("member {scope} {position} {ty} {}", member.name));
        }
    }

    fn case(&self, discriminator: &Type, scope: &str, position: usize, case: &Case) -> String {
        let mut labels: Vec<String> = case
            .labels
            .iter()
            .map(|label| self.value(discriminator, label))
            .collect();
        labels.extend(case.is_default.then(|| "default".to_owned()));
        labels.sort();
        let (labels, ty) = (labels.join(" "), self.ty(&case.member.ty));
        format!(
            "case {scope} {position} {labels}: {ty} {}",
            case.member.name
        )
    }

    fn operations(&self, lines: &mut Vec<String>, scope: &str, operations: &[Operation]) {
        for (position, each) in operations.iter().enumerate() {
            let oneway = if each.oneway { "oneway " } else { "" };
            let result = each
                .result
                .as_ref()
                .map_or_else(|| "void".to_owned(), |ty| self.ty(ty));
            let context: String = each
                .context
                .iter()
                .map(|name| format!(" context {name}"))
                .collect();
            lines.push(format!(
                "{oneway}operation {scope} {position} {result} {}({}){}{context}",
                each.name,
                self.params(&each.params),
                self.raises(&each.raises),
            ));
        }
    }

    fn attributes(&self, lines: &mut Vec<String>, scope: &str, attributes: &[Attribute]) {
        for (position, each) in attributes.iter().enumerate() {
            let readonly = if each.readonly { "readonly " } else { "" };
            let ty = self.ty(&each.ty);
            lines.push(format!(
                "{readonly}attribute {scope} {position} {ty} {}",
                each.name
            ));
        }
    }

    fn state(&self, lines: &mut Vec<String>, scope: &str, state: &[StateMember]) {
        for (position, each) in state.iter().enumerate() {
            let access = if each.public { "public" } else { "private" };
            let (ty, name) = (self.ty(&each.member.ty), &each.member.name);
            lines.push(format!("state {scope} {position} {access} {ty} {name}"));
        }
    }

    fn factories(&self, lines: &mut Vec<String>, scope: &str, factories: &[Factory]) {
        for (position, each) in factories.iter().enumerate() {
            lines.push(format!(
                "factory {scope} {position} {}({}){}",
                each.name,
                self.params(&each.params),
                self.raises(&each.raises)
            ));
        }
    }

    fn params(&self, params: &[Param]) -> String {
        let params = params.iter().map(|param| {
            let mode = match param.mode {
                ParamMode::In => "in",
                ParamMode::Out => "out",
                ParamMode::InOut => "inout",
            };
            format!("{mode} {} {}", self.ty(&param.ty), param.name)
        });
        params.collect::<Vec<_>>().join(", ")
    }

    fn raises(&self, raises: &[DefId]) -> String {
        let mut names: Vec<String> = raises.iter().map(|&id| self.name(id)).collect();
        names.sort();
        if names.is_empty() {
            return String::new();
        }
        format!(" raises {}", names.join(", "))
    }

    fn names(&self, before: &str, ids: &[DefId]) -> String {
        if ids.is_empty() {
            return String::new();
        }
        let names: Vec<String> = ids.iter().map(|&id| self.name(id)).collect();
        format!("{before}{}", names.join(", "))
    }

    fn name(&self, id: DefId) -> String {
        self.model.get(id).scoped_name.join("::")
    }

    fn constant_type(&self, ty: &Type) -> String {
        match ty {
            // omniidl does not say how many digits a constant has.
            Type::Fixed { .. } => "fixed".to_owned(),
            _ => self.ty(ty),
        }
    }

    fn ty(&self, ty: &Type) -> String {
        let basic = match ty {
            Type::Boolean => "boolean",
            Type::Octet => "octet",
            Type::Char => "char",
            Type::WChar => "wchar",
            Type::Short => "short",
            Type::UShort => "unsigned short",
            Type::Long => "long",
            Type::ULong => "unsigned long",
            Type::LongLong => "long long",
            Type::ULongLong => "unsigned long long",
            Type::Float => "float",
            Type::Double => "double",
            Type::LongDouble => "long double",
            Type::Any => "any",
            Type::TypeCode => "TypeCode",
            Type::Object => "Object",
            Type::ValueBase => "ValueBase",
            Type::AbstractBase => "AbstractBase",
            Type::String { bound: None } => "string",
            Type::WString { bound: None } => "wstring",
            Type::String { bound: Some(bound) } => return format!("string<{bound}>"),
            Type::WString { bound: Some(bound) } => return format!("wstring<{bound}>"),
            Type::Sequence { element, bound } => {
                let bound = bound.map_or(String::new(), |bound| format!(", {bound}"));
                return format!("sequence<{}{bound}>", self.ty(element));
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let lengths: String = dimensions
                    .iter()
                    .map(|length| format!("[{length}]"))
                    .collect();
                return format!("{}{lengths}", self.ty(element));
            }
            Type::Fixed { digits, scale } => return format!("fixed<{digits}, {scale}>"),
            Type::Named(id) => return self.name(*id),
            other => panic!("omniidl has no such type: {other:?}"),
        };
        basic.to_owned()
    }

    fn value(&self, ty: &Type, value: &ConstValue) -> String {
        let codes = |text: &mut dyn Iterator<Item = u32>| {
            let codes: Vec<String> = text.map(|code| code.to_string()).collect();
            codes.join(".")
        };
        match value {
            ConstValue::Integer(value) => value.to_string(),
            ConstValue::Float(value) if matches!(ty, Type::Float) => {
                format!("{:08x}", (*value as f32).to_bits())
            }
            ConstValue::Float(value) => format!("{:016x}", value.to_bits()),
            ConstValue::Boolean(true) => "TRUE".to_owned(),
            ConstValue::Boolean(false) => "FALSE".to_owned(),
            ConstValue::Char(code) => code.to_string(),
            ConstValue::WChar(char) => u32::from(*char).to_string(),
            ConstValue::String(text) => codes(&mut text.chars().map(u32::from)),
            ConstValue::WString(text) => codes(&mut text.encode_utf16().map(u32::from)),
            ConstValue::Fixed {
                unscaled, scale, ..
            } => decimal(*unscaled, usize::from(*scale)),
            ConstValue::Enumerator(id, index) => {
                let definition = self.model.get(*id);
                let DefKind::Enum { enumerators, .. } = &definition.kind else {
                    panic!("{value:?} is of no enum");
                };
                let mut path = definition.scoped_name.clone();
                path.pop();
                path.push(enumerators[*index as usize].name.clone());
                path.join("::")
            }
            other => panic!("omniidl has no such value: {other:?}"),
        }
    }
}

/// Formats a number as omniidl does: without zeros at either end, but with one before the point.
fn decimal(unscaled: i128, scale: usize) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}
