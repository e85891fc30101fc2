//! Type codes as constants, which describe the value of an `any`.
//!
//! Each type has its own constant, which refers to those of its parts. Within a cycle a type is
//! written out in the constants of the others, because constants cannot be cyclic.

use chronorb_idl::model::{
    ConstValue, DefId, DefKind, Interface, InterfaceOrigin, Member, Type, ValueType,
};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::codec::Form;
use super::context::{Context, ident, rt};
use super::types::Lifetime;
use crate::recursion::is_written_out;
use crate::shape;

impl Context<'_> {
    /// Returns the runtime's `Typed` for the Rust types of the definition.
    pub(super) fn typed(self, id: DefId) -> TokenStream {
        let rt = rt();
        let type_code = self.definition(id, &[]);
        let view = self.type_named(id, Form::View, Lifetime::Elided);
        let twin = self.generates_twin(id).then(|| {
            let twin = self.type_named(id, Form::Owned, Lifetime::Elided);
            let view = self.type_named(id, Form::View, Lifetime::Static);
            quote! {
                impl #rt::Typed for #twin {
                    const TYPE_CODE: #rt::TypeCode<'static> = <#view as #rt::Typed>::TYPE_CODE;
                }
            }
        });
        quote! {
            impl #rt::Typed for #view {
                const TYPE_CODE: #rt::TypeCode<'static> = #type_code;
            }
            #twin
        }
    }

    /// Returns whether the definition's Rust type has an owned twin.
    pub(super) fn generates_twin(self, id: DefId) -> bool {
        shape::has_twin(self.model, &Type::Named(id)) && !self.options.no_alloc
    }

    /// Returns the runtime's `Typed` for this Rust type of the definition.
    pub(super) fn type_code_of(self, id: DefId, ty: &TokenStream) -> TokenStream {
        let rt = rt();
        let type_code = self.definition(id, &[]);
        quote! {
            impl #rt::Typed for #ty {
                const TYPE_CODE: #rt::TypeCode<'static> = #type_code;
            }
        }
    }

    /// Returns the constant beside a typedef.
    pub(super) fn alias_type_code(self, id: DefId, ty: &Type) -> TokenStream {
        let rt = rt();
        let alias = self.ident(id);
        let doc = format!(" The type code of [`{alias}`].");
        let name = ident(self.names.type_code(id));
        let target = self.type_code(ty, &[]);
        let type_code = self.with_id(id, &quote! { Alias }, &quote! { target: &#target });
        quote! {
            #[doc = #doc]
            pub const #name: #rt::TypeCode<'static> = #type_code;
        }
    }

    /// Returns an expression for the type code of a type within those that are `open`.
    fn type_code(self, ty: &Type, open: &[DefId]) -> TokenStream {
        let rt = rt();
        let kind = match ty {
            Type::Named(id) => return self.named_type_code(*id, open),
            Type::Sequence { element, bound } => {
                let element = self.type_code(element, open);
                let bound = bound_of(*bound);
                quote! { Sequence { element: &#element, bound: #bound } }
            }
            Type::Map { key, value, bound } => {
                let (key, value) = (self.type_code(key, open), self.type_code(value, open));
                let members = quote! {
                    #rt::StructMember { name: "key", type_code: #key },
                    #rt::StructMember { name: "value", type_code: #value },
                };
                let entry =
                    quote! { #rt::TypeCode::Struct { id: "", name: "", members: &[#members] } };
                let bound = bound_of(*bound);
                quote! { Sequence { element: &#entry, bound: #bound } }
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let element = self.type_code(element, open);
                return dimensions.iter().rev().fold(element, |inner, &length| {
                    let length = Literal::u32_unsuffixed(length);
                    quote! { #rt::TypeCode::Array { element: &#inner, length: #length } }
                });
            }
            Type::InlineString { bound } => {
                let bound = Literal::u32_unsuffixed(*bound);
                quote! { String { bound: #bound } }
            }
            Type::NonNil(reference) => return self.type_code(reference, open),
            Type::String { bound } => {
                let bound = bound_of(*bound);
                quote! { String { bound: #bound } }
            }
            Type::WString { bound } => {
                let bound = bound_of(*bound);
                quote! { WString { bound: #bound } }
            }
            Type::Fixed { digits, scale } => {
                let digits = Literal::u8_unsuffixed(*digits);
                let scale = Literal::u8_unsuffixed(*scale);
                quote! { Fixed { digits: #digits, scale: #scale } }
            }
            Type::Object => {
                quote! { ObjRef { id: "IDL:omg.org/CORBA/Object:1.0", name: "Object" } }
            }
            Type::ValueBase => quote! {
                Value {
                    id: "IDL:omg.org/CORBA/ValueBase:1.0",
                    name: "ValueBase",
                    modifier: #rt::ValueModifier::None,
                    base: None,
                    members: &[],
                }
            },
            Type::AbstractBase => quote! {
                AbstractInterface { id: "IDL:omg.org/CORBA/AbstractBase:1.0", name: "AbstractBase" }
            },
            basic => {
                let kind = ident(basic_kind(basic));
                quote! { #kind }
            }
        };
        quote! { #rt::TypeCode::#kind }
    }

    fn named_type_code(self, id: DefId, open: &[DefId]) -> TokenStream {
        let rt = rt();
        if open.contains(&id) {
            let repository_id = &self.model.get(id).repository_id;
            return quote! { #rt::TypeCode::Recursive { id: #repository_id } };
        }
        match &self.model.get(id).kind {
            DefKind::Typedef { ty } if self.leads_into_a_cycle(ty, open) => {
                let target = self.type_code(ty, open);
                self.with_id(id, &quote! { Alias }, &quote! { target: &#target })
            }
            DefKind::Typedef { .. } => self.path_beside(id, self.names.type_code(id)),
            _ if is_written_out(self.model, id) || self.is_in_a_cycle(id, open) => {
                self.definition(id, open)
            }
            DefKind::Value(_) => {
                let path = self.path(id, "");
                quote! { <dyn #path as #rt::Typed>::TYPE_CODE }
            }
            _ => {
                let ty = self.type_named(id, Form::View, Lifetime::Static);
                quote! { <#ty as #rt::Typed>::TYPE_CODE }
            }
        }
    }

    /// Returns an expression for the type code of a definition, written out.
    fn definition(self, id: DefId, open: &[DefId]) -> TokenStream {
        let rt = rt();
        let open = [open, &[id]].concat();
        let open = open.as_slice();
        let members = |members: &mut dyn Iterator<Item = &Member>| {
            let members = members.map(|member| {
                let (name, type_code) = (&member.name, self.member_type_code(member, open));
                quote! { #rt::StructMember { name: #name, type_code: #type_code } }
            });
            quote! { members: &[#(#members),*] }
        };
        match &self.model.get(id).kind {
            DefKind::Struct { .. } => {
                let members = members(&mut shape::parts(self.model, id));
                self.with_id(id, &quote! { Struct }, &members)
            }
            DefKind::Exception { .. } => {
                let members = members(&mut shape::parts(self.model, id));
                self.with_id(id, &quote! { Except }, &members)
            }
            DefKind::Union(union) => {
                let discriminator = self.type_code(&union.discriminator, open);
                let mut default = None;
                let mut members = Vec::new();
                for case in &union.cases {
                    let name = &case.member.name;
                    let type_code = self.member_type_code(&case.member, open);
                    let mut add = |label: i64| {
                        let label = Literal::i64_unsuffixed(label);
                        members.push(quote! {
                            #rt::UnionMember { label: #label, name: #name, type_code: #type_code }
                        });
                    };
                    for label in &case.labels {
                        add(self.label_number(label));
                    }
                    if case.is_default {
                        add(0);
                        default = Some(members.len() - 1);
                    }
                }
                let default = default.map_or_else(
                    || quote! { None },
                    |index| {
                        let index = Literal::usize_unsuffixed(index);
                        quote! { Some(#index) }
                    },
                );
                let rest = quote! {
                    discriminator: &#discriminator,
                    default_index: #default,
                    members: &[#(#members),*]
                };
                self.with_id(id, &quote! { Union }, &rest)
            }
            DefKind::Enum {
                enumerators,
                bit_bound,
                ..
            } => {
                let numbers = enumerators.iter().map(|enumerator| enumerator.value);
                let is_classic = *bit_bound > 16
                    && !shape::is_appendable(self.model, id)
                    && numbers.eq(0..enumerators.len() as u32);
                if !is_classic {
                    // CORBA only has enums whose numbers count from zero.
                    return self.carrier_type_code(id, shape::enum_bits(*bit_bound));
                }
                let names = enumerators.iter().map(|enumerator| &enumerator.name);
                self.with_id(id, &quote! { Enum }, &quote! { members: &[#(#names),*] })
            }
            DefKind::Bitmask { bit_bound, .. } => {
                self.carrier_type_code(id, shape::carrier_bits(*bit_bound))
            }
            DefKind::Bitset { .. } => {
                let bits = shape::bitset_bits(self.model, id);
                self.carrier_type_code(id, shape::carrier_bits(bits))
            }
            DefKind::Interface(interface) => {
                let kind = ident(interface_kind(interface));
                self.with_id(id, &quote! { #kind }, &TokenStream::new())
            }
            DefKind::Value(value) => self.valuetype(id, value, open),
            DefKind::ValueBox { ty, .. } => {
                let target = self.type_code(ty, open);
                self.with_id(id, &quote! { ValueBox }, &quote! { target: &#target })
            }
            DefKind::Native => self.with_id(id, &quote! { Native }, &TokenStream::new()),
            _ => quote! { #rt::TypeCode::Null },
        }
    }

    fn valuetype(self, id: DefId, value: &ValueType, open: &[DefId]) -> TokenStream {
        let rt = rt();
        let kind = if value.event { "Event" } else { "Value" };
        let kind = ident(kind);
        let modifier = ident(match value {
            value if value.custom => "Custom",
            value if value.is_abstract => "Abstract",
            value if value.truncatable => "Truncatable",
            _ => "None",
        });
        let base = value.concrete_base.map_or_else(
            || quote! { None },
            |base| {
                let base = self.named_type_code(base, open);
                quote! { Some(&#base) }
            },
        );
        let members = value.state.iter().map(|state| {
            let name = &state.member.name;
            let type_code = self.member_type_code(&state.member, open);
            let public = state.public;
            quote! {
                #rt::ValueMember { name: #name, type_code: #type_code, is_public: #public }
            }
        });
        let rest = quote! {
            modifier: #rt::ValueModifier::#modifier,
            base: #base,
            members: &[#(#members),*]
        };
        self.with_id(id, &quote! { #kind }, &rest)
    }

    /// Returns the type code of a member. An optional member is encoded like a union with a boolean
    /// discriminator.
    fn member_type_code(self, member: &Member, open: &[DefId]) -> TokenStream {
        let rt = rt();
        let type_code = self.type_code(&member.ty, open);
        if !member.optional {
            return type_code;
        }
        let name = &member.name;
        quote! {
            #rt::TypeCode::Union {
                id: "",
                name: "",
                discriminator: &#rt::TypeCode::Boolean,
                default_index: None,
                members: &[#rt::UnionMember { label: 1, name: #name, type_code: #type_code }],
            }
        }
    }

    fn carrier_type_code(self, id: DefId, bits: u8) -> TokenStream {
        let rt = rt();
        let kind = ident(match bits {
            8 => "Octet",
            16 => "UShort",
            32 => "ULong",
            _ => "ULongLong",
        });
        self.with_id(
            id,
            &quote! { Alias },
            &quote! { target: &#rt::TypeCode::#kind },
        )
    }

    fn with_id(self, id: DefId, kind: &TokenStream, rest: &TokenStream) -> TokenStream {
        let rt = rt();
        let definition = self.model.get(id);
        let (name, id) = (&definition.name, &definition.repository_id);
        quote! { #rt::TypeCode::#kind { id: #id, name: #name, #rest } }
    }

    /// Returns the number of a label in type codes.
    fn label_number(self, label: &ConstValue) -> i64 {
        match label {
            // The bits of an `unsigned long long`.
            ConstValue::Integer(value) => *value as i64,
            ConstValue::Boolean(value) => i64::from(*value),
            ConstValue::Char(value) => i64::from(*value),
            ConstValue::WChar(value) => i64::from(u32::from(*value)),
            ConstValue::Enumerator(id, index) => match &self.model.get(*id).kind {
                DefKind::Enum { enumerators, .. } => enumerators
                    .get(*index as usize)
                    .map_or(0, |enumerator| i64::from(enumerator.value)),
                _ => 0,
            },
            _ => 0,
        }
    }

    fn is_in_a_cycle(self, id: DefId, open: &[DefId]) -> bool {
        let mut open = open.iter();
        open.any(|&open| self.recursion.are_in_one_cycle(open, id))
    }

    /// Returns whether a typedef's target names, behind sequences and arrays, a type in a cycle
    /// with those that are open.
    fn leads_into_a_cycle(self, ty: &Type, open: &[DefId]) -> bool {
        match shape::resolve(self.model, ty) {
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.leads_into_a_cycle(element, open)
            }
            Type::Map { key, value, .. } => {
                self.leads_into_a_cycle(key, open) || self.leads_into_a_cycle(value, open)
            }
            Type::Named(id) => self.is_in_a_cycle(*id, open),
            _ => false,
        }
    }
}

fn interface_kind(interface: &Interface) -> &'static str {
    match interface.origin {
        _ if interface.local => "LocalInterface",
        _ if interface.is_abstract => "AbstractInterface",
        InterfaceOrigin::Component => "Component",
        InterfaceOrigin::Home => "Home",
        _ => "ObjRef",
    }
}

fn bound_of(bound: Option<u32>) -> Literal {
    Literal::u32_unsuffixed(bound.unwrap_or(0))
}

fn basic_kind(ty: &Type) -> &'static str {
    match ty {
        Type::Boolean => "Boolean",
        Type::Octet | Type::Int8 | Type::UInt8 => "Octet",
        Type::Char => "Char",
        Type::WChar => "WChar",
        Type::Short => "Short",
        Type::UShort => "UShort",
        Type::Long => "Long",
        Type::ULong => "ULong",
        Type::LongLong => "LongLong",
        Type::ULongLong => "ULongLong",
        Type::Float => "Float",
        Type::Double => "Double",
        Type::LongDouble => "LongDouble",
        Type::Any => "Any",
        Type::TypeCode => "TypeCode",
        _ => "Null",
    }
}
