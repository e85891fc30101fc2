//! Structs and exceptions: the view, and for one that borrows the owned twin.

use chronorb_idl::model::{DefId, Member};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::codec::{Form, Place};
use super::context::{Context, ident, rt, suffixed};
use super::flat;
use super::types::Lifetime;
use crate::names::{sentence, snake};
use crate::shape;

pub(super) fn structure(context: Context<'_>, id: DefId, members: &[Member]) -> TokenStream {
    let is_flat = shape::is_flat_struct(context.model, members);
    let slices = is_flat.then(flat::slices);
    let view = view(context, id, members, slices);
    if is_flat {
        let flat = flat::structure(context, id, members);
        return quote! { #view #flat };
    }
    with_twin(context, id, members, view)
}

/// Whether there is an owned twin.
fn has_twin(context: Context<'_>, members: &[Member]) -> bool {
    shape::is_variable_struct(context.model, members) && !context.options.no_alloc
}

/// The view, and the owned twin if there is one.
fn with_twin(
    context: Context<'_>,
    id: DefId,
    members: &[Member],
    view: TokenStream,
) -> TokenStream {
    if !has_twin(context, members) {
        return view;
    }
    let twin = twin(context, id, members);
    quote! { #view #twin }
}

/// A struct that is also an error.
pub(super) fn exception(context: Context<'_>, id: DefId, members: &[Member]) -> TokenStream {
    let rt = rt();
    let structure = with_twin(context, id, members, view(context, id, members, None));
    let name = context.ident(id);
    let view = if shape::is_variable_struct(context.model, members) {
        quote! { #name<'_> }
    } else {
        quote! { #name }
    };
    let twin = has_twin(context, members).then(|| suffixed(&name, "Buf"));
    let errors = [Some(view.clone()), twin.map(|twin| quote! { #twin })]
        .into_iter()
        .flatten()
        .map(|ty| error(context, id, members, &ty));
    let repository_id = &context.model.get(id).repository_id;
    quote! {
        #structure
        #(#errors)*
        impl #rt::UserException for #view {
            const REPOSITORY_ID: &'static str = #repository_id;
        }
    }
}

/// `Display`, as words with the members behind them, and `Error`.
fn error(context: Context<'_>, id: DefId, members: &[Member], ty: &TokenStream) -> TokenStream {
    let mut format = sentence(&context.model.get(id).name);
    let fields: Vec<_> = members.iter().map(name_of).collect();
    if !fields.is_empty() {
        let parts: Vec<_> = members
            .iter()
            .map(|member| format!("{}: {{:?}}", member.name))
            .collect();
        format = format!("{format} ({})", parts.join(", "));
    }
    quote! {
        impl ::core::fmt::Display for #ty {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::write!(f, #format #(, self.#fields)*)
            }
        }

        impl ::std::error::Error for #ty {}
    }
}

/// The struct that both sides use, with its encoding; `slices` is what that of many adds to it.
fn view(
    context: Context<'_>,
    id: DefId,
    members: &[Member],
    slices: Option<TokenStream>,
) -> TokenStream {
    let rt = rt();
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let variable = shape::is_variable_struct(context.model, members);
    let generics = variable.then(|| quote! { <'a> });
    let default = default_of(context, members);
    let types = members
        .iter()
        .map(|member| context.view(&member.ty, Lifetime::A));
    let body = fields(context, members, types);
    let to_owned = has_twin(context, members).then(|| to_owned(context, &name, members));
    let codec = codec(context, members, slices);
    let inherent_generics = variable.then(|| quote! { <'_> });
    quote! {
        #doc
        #[derive(Clone, Copy, Debug, #default PartialEq)]
        pub struct #name #generics #body

        impl #name #inherent_generics {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;

            #to_owned
        }

        impl<'a> #rt::Cdr<'a> for #name #generics #codec
    }
}

/// The body of the implementation of `Cdr`.
fn codec(context: Context<'_>, members: &[Member], slices: Option<TokenStream>) -> TokenStream {
    let rt = rt();
    let e = format_ident!("e");
    let d = format_ident!("d");
    let size = Literal::u64_unsuffixed(shape::min_size_of_struct(context.model, members));
    let encode = encode_members(context, members, Form::View);
    let names = members.iter().map(name_of);
    let decode = members.iter().map(|member| context.decode(&member.ty, &d));
    quote! {
        {
            const MIN_SIZE: usize = #size;

            fn encode(
                &self,
                #e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                #encode
                Ok(())
            }

            fn decode(
                #d: &mut #rt::Decoder<'a>,
            ) -> ::core::result::Result<Self, #rt::CdrError> {
                Ok(Self { #(#names: #decode?),* })
            }

            #slices
        }
    }
}

/// The owned twin of a struct that borrows.
fn twin(context: Context<'_>, id: DefId, members: &[Member]) -> TokenStream {
    let rt = rt();
    let view = context.ident(id);
    let name = suffixed(&view, "Buf");
    let doc = format!(" The owned twin of [`{view}`].");
    let repository_id = &context.model.get(id).repository_id;
    let default = default_of(context, members);
    let types = members.iter().map(|member| context.owned(&member.ty));
    let body = fields(context, members, types);
    let names: Vec<_> = members.iter().map(name_of).collect();
    let views: Vec<_> = members
        .iter()
        .zip(&names)
        .map(|(member, name)| context.as_view(&member.ty, &Place::value(quote! { self.#name })))
        .collect();
    let needs_arena = members
        .iter()
        .any(|member| shape::needs_arena(context.model, &member.ty));
    let as_view = if needs_arena {
        quote! {
            #[doc = " The view of it. Sequences whose elements borrow are put into the arena."]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = ""]
            #[doc = " `ArenaFull` if there is no room for them."]
            pub fn as_view_in<'a>(
                &'a self,
                arena: &'a #rt::Arena,
            ) -> ::core::result::Result<#view<'a>, #rt::CdrError> {
                Ok(#view { #(#names: #views),* })
            }
        }
    } else {
        quote! {
            #[doc = " The view of it."]
            pub fn as_view(&self) -> #view<'_> {
                #view { #(#names: #views),* }
            }

            #[doc = " The view of it; the arena is not needed, and there is no error."]
            pub fn as_view_in<'a>(
                &'a self,
                _arena: &'a #rt::Arena,
            ) -> ::core::result::Result<#view<'a>, #rt::CdrError> {
                Ok(self.as_view())
            }
        }
    };
    let encode = encode_members(context, members, Form::Owned);
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug, #default PartialEq)]
        pub struct #name #body

        impl #name {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;

            #as_view

            #[doc = " Encodes it as its view is encoded."]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = ""]
            #[doc = " What the encoder refuses: a bound that is exceeded, a full frame."]
            pub fn encode(
                &self,
                e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                #encode
                Ok(())
            }
        }
    }
}

fn to_owned(context: Context<'_>, name: &Ident, members: &[Member]) -> TokenStream {
    let twin = suffixed(name, "Buf");
    let doc = format!(" A copy that owns what it holds, see [`{twin}`].");
    let names: Vec<_> = members.iter().map(name_of).collect();
    let values = members
        .iter()
        .zip(&names)
        .map(|(member, name)| context.to_owned(&member.ty, &Place::value(quote! { self.#name })));
    quote! {
        #[doc = #doc]
        pub fn to_owned(&self) -> #twin {
            #twin { #(#names: #values),* }
        }
    }
}

fn encode_members(context: Context<'_>, members: &[Member], form: Form) -> TokenStream {
    let e = format_ident!("e");
    members
        .iter()
        .map(|member| {
            let name = name_of(member);
            let place = Place::value(quote! { self.#name });
            context.encode(&member.ty, &place, form, &e)
        })
        .collect()
}

/// The fields in braces; for no members the semicolon of a unit struct.
fn fields(
    context: Context<'_>,
    members: &[Member],
    types: impl Iterator<Item = TokenStream>,
) -> TokenStream {
    if members.is_empty() {
        return quote! { ; };
    }
    let fields = members.iter().zip(types).map(|(member, ty)| {
        let fallback = format!("IDL member `{}`.", member.name);
        let doc = context.doc(member.doc.as_deref(), &fallback);
        let name = name_of(member);
        quote! { #doc pub #name: #ty }
    });
    quote! { { #(#fields),* } }
}

/// `Default,` where all members have one.
fn default_of(context: Context<'_>, members: &[Member]) -> Option<TokenStream> {
    members
        .iter()
        .all(|member| shape::has_default(context.model, &member.ty))
        .then(|| quote! { Default, })
}

pub(super) fn name_of(member: &Member) -> Ident {
    let renamed = crate::names::rename(&member.annotations);
    ident(&renamed.unwrap_or_else(|| snake(&member.name)))
}
