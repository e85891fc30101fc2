//! Value types: a trait, the struct with the state, the factory of its values, and a complete value
//! for types that consist of their state only.

mod factory;
mod state;

use chronorb_idl::model::{DefId, DefKind, Member, ValueType};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::codec::{Form, ValueExpr};
use super::context::{Context, ident, rt, suffixed};
use super::interface::types_of_methods;
use super::local::declarations;
use super::types::Lifetime;
use crate::names::{Method, snake};
use crate::shape;

pub(super) fn value_type(context: Context<'_>, id: DefId, value: &ValueType) -> TokenStream {
    let definition = definition(context, id, value);
    let value_type = implementation(context, id, value);
    let types = types_of_methods(context, context.names.own_methods(id));
    let rest = has_state(value).then(|| {
        let state = state::state(context, id, value);
        let factory = factory::factory(context, id, value);
        let plain = is_only_state(context, id).then(|| plain(context, id));
        let of_factories = types_of_methods(context, context.names.factories(id));
        quote! { #state #factory #plain #of_factories }
    });
    quote! { #definition #value_type #types #rest }
}

/// Returns the trait, and the items named after it.
fn definition(context: Context<'_>, id: DefId, value: &ValueType) -> TokenStream {
    let rt = rt();
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let bases = value.bases.iter().map(|&base| context.path(base, ""));
    let supported = value
        .supports
        .iter()
        .filter(|id| is_abstract(context, **id));
    let supported = supported.map(|&id| context.path(id, ""));
    let supers: Vec<_> = bases.chain(supported).collect();
    let methods = declarations(
        context,
        supported_methods(context, id, value)
            .into_iter()
            .chain(context.names.own_methods(id)),
    );
    let state = has_state(value).then(|| {
        let (state, accessor) = (suffixed(&name, "State"), context.state_accessor(id));
        quote! {
            #[doc = " Returns the state."]
            fn #accessor(&self) -> &#state;
        }
    });
    let marshal = value.custom.then(|| {
        quote! {
            #[doc = " Writes the value; the factory's `unmarshal` reads it."]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = ""]
            #[doc = " An error of the encoder."]
            fn marshal(
                &self,
                output: &mut #rt::DataOutput<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError>;
        }
    });
    let register = has_state(value).then(|| factory::register(context, id, value));
    quote! {
        #doc
        pub trait #name: #(#supers +)* #rt::Value { #state #methods #marshal }

        impl dyn #name {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;

            #[doc = " Returns the value as one of this type; `None` if it is of another."]
            pub fn narrow<V: #rt::ValueType + ?Sized>(
                value: &::std::sync::Arc<V>,
            ) -> ::core::option::Option<::std::sync::Arc<Self>> {
                #rt::narrow_value(&V::into_value(value.clone()))
            }

            #register
        }

        #[doc = " Returns whether both have the same Rust type and the same state."]
        impl ::core::cmp::PartialEq for dyn #name {
            fn eq(&self, other: &Self) -> bool {
                #rt::Value::equals(self, other)
            }
        }
    }
}

/// Returns the runtime's description of the type.
fn implementation(context: Context<'_>, id: DefId, value: &ValueType) -> TokenStream {
    let rt = rt();
    let name = context.ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let truncatable = truncatable_bases(context, value);
    let custom = value.custom;
    let accessor = context.state_accessor(id);
    let (encode, is_same) = if value.custom {
        let is_same = quote! { self.#accessor() == other.#accessor() };
        (quote! { self.marshal(e) }, is_same)
    } else if has_state(value) {
        let is_same = quote! { self.#accessor() == other.#accessor() };
        (quote! { self.#accessor().encode(e) }, is_same)
    } else {
        (
            quote! { Ok(()) },
            quote! { ::core::ptr::addr_eq(self, other) },
        )
    };
    let bases = value.bases.iter().map(|&base| context.path(base, ""));
    let supported = supported_abstracts(context, value);
    let supported = supported.iter().map(|&id| context.path(id, ""));
    let known = context.model.iter().filter(|(other, definition)| {
        let is_derived = match &definition.kind {
            DefKind::Value(other) => other.all_bases.contains(&id),
            _ => false,
        };
        (*other == id || is_derived) && is_only_state(context, *other)
    });
    let known = known.map(|(other, definition)| {
        let repository_id = &definition.repository_id;
        let path = context.path(other, "Value");
        quote! { #repository_id => Some(#path::__read), }
    });
    let by_arc = by_arc(&quote! { dyn #name });
    let type_code = context.type_code_of(id, &quote! { dyn #name });
    quote! {
        impl #rt::ValueType for dyn #name {
            const INFO: &'static #rt::ValueInfo = &#rt::ValueInfo {
                repository_id: #repository_id,
                truncatable_to: &[#(#truncatable),*],
                custom: #custom,
            };

            fn encode_state(
                &self,
                e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                #encode
            }

            fn offer(this: ::std::sync::Arc<Self>, to: &mut #rt::Narrow<'_>) {
                #(<dyn #bases as #rt::ValueType>::offer(this.clone(), to);)*
                #(to.offer::<dyn #supported>(this.clone());)*
                to.offer(this);
            }

            fn has_state_of(&self, other: &Self) -> bool {
                #is_same
            }

            fn into_value(this: ::std::sync::Arc<Self>) -> ::std::sync::Arc<dyn #rt::Value> {
                this
            }

            fn known(repository_id: &str) -> ::core::option::Option<#rt::ReadState> {
                match repository_id {
                    #(#known)*
                    _ => None,
                }
            }
        }

        #by_arc
        #type_code
    }
}

/// Returns the value of a type that is only state.
fn plain(context: Context<'_>, id: DefId) -> TokenStream {
    let rt = rt();
    let name = context.ident(id);
    let (state, value) = (suffixed(&name, "State"), suffixed(&name, "Value"));
    let doc = format!(" A value of the type [`{name}`], which is nothing but its state.");
    let default = state::has_default(context, id).then(|| quote! { Default, });
    let mut place = quote! { self.0 };
    let mut implementations = TokenStream::new();
    let mut next = Some(id);
    while let Some(id) = next {
        let DefKind::Value(of) = &context.model.get(id).kind else {
            break;
        };
        let (path, state) = (context.path(id, ""), context.path(id, "State"));
        let accessor = context.state_accessor(id);
        implementations.extend(quote! {
            impl #path for #value {
                fn #accessor(&self) -> &#state {
                    &#place
                }
            }
        });
        let base = state::base_field(context, id);
        place = quote! { #place.#base };
        next = of.concrete_base;
    }
    let abstracts = abstract_bases(context, id);
    let abstracts = abstracts.iter().map(|&id| context.path(id, ""));
    let register_doc =
        " Registers the type, so that values can be read where a base in another IDL file";
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug, #default PartialEq)]
        pub struct #value(pub #state);

        impl #value {
            #[doc = #register_doc]
            #[doc = " or any value (`ValueBase`) is expected."]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = ""]
            #[doc = " An error if a factory was registered before."]
            pub fn register() -> ::core::result::Result<(), #rt::DuplicateRegistration> {
                #rt::register_value_factory(<dyn #name>::REPOSITORY_ID, Self::__read)
            }

            #[doc(hidden)]
            pub fn __read<'a>(
                d: &mut #rt::Decoder<'a>,
            ) -> ::core::result::Result<::std::sync::Arc<dyn #rt::Value>, #rt::CdrError> {
                Ok(::std::sync::Arc::new(Self(#state::decode(d)?)))
            }
        }

        impl ::core::convert::From<#state> for ::std::sync::Arc<dyn #name> {
            fn from(state: #state) -> Self {
                ::std::sync::Arc::new(#value(state))
            }
        }

        #implementations
        #(impl #abstracts for #value {})*
        #rt::impl_value!(#value as #name);
    }
}

/// Returns the implementations by which an `Arc` of it can take the place of a reference.
pub(super) fn by_arc(ty: &TokenStream) -> TokenStream {
    let rt = rt();
    quote! {
        impl #rt::ByArc for #ty {
            const MIN_SIZE: usize = 4;

            fn encode_arc(
                this: ::core::option::Option<&::std::sync::Arc<Self>>,
                e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                e.write_value(this)
            }

            fn decode_arc(
                d: &mut #rt::Decoder<'_>,
            ) -> ::core::result::Result<
                ::core::option::Option<::std::sync::Arc<Self>>,
                #rt::CdrError,
            > {
                d.read_value()
            }
        }
    }
}

/// Returns whether it has values other than those of derived types.
fn has_state(value: &ValueType) -> bool {
    !value.is_abstract && !value.forward_only
}

/// Returns whether its values need no code of the program.
fn is_only_state(context: Context<'_>, id: DefId) -> bool {
    let DefKind::Value(value) = &context.model.get(id).kind else {
        return false;
    };
    let is_plain = |value: &ValueType| {
        value.operations.is_empty()
            && value.attributes.is_empty()
            && value.supports.is_empty()
            && !value.custom
            && !value.forward_only
    };
    let mut bases = value.all_bases.iter();
    has_state(value)
        && is_plain(value)
        && bases.all(|&base| match &context.model.get(base).kind {
            DefKind::Value(base) => is_plain(base),
            _ => false,
        })
}

/// Returns the repository identifiers of the bases to which a value may be truncated.
fn truncatable_bases<'m>(context: Context<'m>, value: &'m ValueType) -> Vec<&'m str> {
    let mut ids = Vec::new();
    let mut value = value;
    while value.truncatable
        && let Some(base) = value.concrete_base
        && let DefKind::Value(next) = &context.model.get(base).kind
    {
        ids.push(context.model.get(base).repository_id.as_str());
        value = next;
    }
    ids
}

fn abstract_bases(context: Context<'_>, id: DefId) -> Vec<DefId> {
    let DefKind::Value(value) = &context.model.get(id).kind else {
        return Vec::new();
    };
    let mut bases = value.all_bases.clone();
    bases.retain(|&base| match &context.model.get(base).kind {
        DefKind::Value(base) => !has_state(base),
        _ => false,
    });
    bases
}

fn is_abstract(context: Context<'_>, interface: DefId) -> bool {
    match &context.model.get(interface).kind {
        DefKind::Interface(interface) => interface.is_abstract,
        _ => false,
    }
}

/// Returns the abstract interfaces that it supports, with their bases.
fn supported_abstracts(context: Context<'_>, value: &ValueType) -> Vec<DefId> {
    let mut all = supported(context, value);
    all.retain(|&id| is_abstract(context, id));
    all
}

/// Returns the interfaces of its own list, each with its bases.
fn supported(context: Context<'_>, value: &ValueType) -> Vec<DefId> {
    let mut all = Vec::new();
    for &id in &value.supports {
        if let DefKind::Interface(interface) = &context.model.get(id).kind {
            for &id in interface.all_bases.iter().chain([&id]) {
                if !all.contains(&id) {
                    all.push(id);
                }
            }
        }
    }
    all
}

/// Returns the methods of the interfaces that it supports, except for abstract ones, those that
/// have no trait to inherit, and those that a base supports.
fn supported_methods<'g>(
    context: Context<'g>,
    id: DefId,
    value: &ValueType,
) -> Vec<&'g Method<'g>> {
    let mut inherited = Vec::new();
    for &base in &value.all_bases {
        if let DefKind::Value(base) = &context.model.get(base).kind {
            inherited.extend(supported(context, base));
        }
    }
    debug_assert!(!value.all_bases.contains(&id));
    let own = supported(context, value).into_iter();
    own.filter(|&id| !is_abstract(context, id) && !inherited.contains(&id))
        .flat_map(|id| context.names.own_methods(id))
        .collect()
}

impl Context<'_> {
    /// Returns the method of a value type's trait that returns the state.
    fn state_accessor(self, id: DefId) -> Ident {
        let name = snake(self.names.name(id));
        format_ident!(
            "{}_state",
            ident(&name).to_string().trim_start_matches("r#")
        )
    }

    /// Returns an expression for the owned value that the decoder `d` reads, which returns an error
    /// with `?`.
    pub(super) fn decode_owned(self, ty: &chronorb_idl::model::Type, d: &Ident) -> TokenStream {
        let rt = rt();
        if shape::is_reference(self.model, ty) {
            return quote! { #rt::Reference::decode_reference(#d)? };
        }
        let decode = self.decode(ty, d);
        let view = self.view(ty, Lifetime::A);
        let owned = self.to_owned(ty, &ValueExpr::value(quote! { view }));
        quote! {
            {
                let view: #view = #decode?;
                #owned
            }
        }
    }

    /// Returns the same for a member.
    fn decode_member_owned(self, member: &Member, d: &Ident) -> TokenStream {
        if !member.optional && shape::is_reference(self.model, &member.ty) {
            return self.decode_owned(&member.ty, d);
        }
        let decode = self.decode_member(member, d);
        let view = self.member_type(member, Form::View, Lifetime::A);
        let owned = self.member_to_owned(member, &ValueExpr::value(quote! { view }));
        quote! {
            {
                let view: #view = #decode;
                #owned
            }
        }
    }
}
