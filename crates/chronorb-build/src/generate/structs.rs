//! Structs and exceptions: the view, and an owned twin if it borrows.

use chronorb_idl::model::{DefId, DefKind, Member, Type};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::applied::Additions;
use super::codec::{Form, ValueExpr};
use super::context::{Context, rt, suffixed};
use super::flat;
use super::members::name_of;
use super::types::Lifetime;
use crate::names::sentence;
use crate::{ranges, shape};

/// The parts of a struct or exception.
struct Structure<'m> {
    id: DefId,
    name: Ident,
    /// The members, those of its bases first.
    members: Vec<&'m Member>,
    /// Whether it borrows.
    variable: bool,
    /// Whether there is an owned twin.
    has_twin: bool,
}

pub(super) fn structure(context: Context<'_>, id: DefId) -> TokenStream {
    let structure = Structure::new(context, id);
    let is_flat = shape::is_flat(context.model, &Type::Named(id));
    let slices = is_flat.then(flat::slices);
    let items = structure.items(context, slices);
    let flat = is_flat.then(|| flat::structure(context, &structure.name, &structure.members));
    let bases = structure.conversions_to_bases(context);
    quote! { #items #flat #bases }
}

/// Returns a struct that is also an error.
pub(super) fn exception(context: Context<'_>, id: DefId) -> TokenStream {
    let rt = rt();
    let structure = Structure::new(context, id);
    let items = structure.items(context, None);
    let name = &structure.name;
    let view = context.type_named(id, Form::View, Lifetime::Elided);
    let twin = structure.has_twin.then(|| suffixed(name, "Buf"));
    let errors = [Some(view.clone()), twin.map(|twin| quote! { #twin })]
        .into_iter()
        .flatten()
        .map(|ty| structure.error(context, &ty));
    let repository_id = &context.model.get(id).repository_id;
    quote! {
        #items
        #(#errors)*
        impl #rt::UserException for #view {
            const REPOSITORY_ID: &'static str = #repository_id;
        }
    }
}

impl<'m> Structure<'m> {
    fn new(context: Context<'m>, id: DefId) -> Self {
        Self {
            id,
            name: context.ident(id),
            members: shape::members(context.model, id).unwrap_or_default(),
            variable: shape::is_variable(context.model, &Type::Named(id)),
            has_twin: context.generates_twin(id),
        }
    }

    /// Returns the view, and the owned twin if there is one.
    fn items(&self, context: Context<'_>, slices: Option<TokenStream>) -> TokenStream {
        let view = self.view(context, slices);
        let twin = self.has_twin.then(|| self.twin(context));
        let type_code = context.typed(self.id);
        quote! { #view #twin #type_code }
    }

    /// Returns `Display`, which writes words followed by the members, and `Error`.
    fn error(&self, context: Context<'_>, ty: &TokenStream) -> TokenStream {
        let mut format = sentence(&context.model.get(self.id).name);
        let fields: Vec<_> = self.members.iter().map(|member| name_of(member)).collect();
        if !fields.is_empty() {
            let parts: Vec<_> = self
                .members
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

    /// Returns the struct that both sides use, with its encoding. `slices` are further members of
    /// `Cdr` for many values.
    fn view(&self, context: Context<'_>, slices: Option<TokenStream>) -> TokenStream {
        let rt = rt();
        let Additions {
            before,
            after,
            derives,
        } = context.applied(self.id);
        let doc = context.doc_of(self.id);
        let name = &self.name;
        let repository_id = &context.model.get(self.id).repository_id;
        let generics = self.variable.then(|| quote! { <'a> });
        let (derived, default) = self.default(context, Form::View);
        let body = self.fields(context, Form::View);
        let to_owned = self.has_twin.then(|| self.to_owned(context));
        let codec = self.codec(context, slices);
        let inherent_generics = self.variable.then(|| quote! { <'_> });
        quote! {
            #before
            #doc
            #[derive(Clone, Copy, Debug, #derived PartialEq #(, #derives)*)]
            pub struct #name #generics #body
            #after

            impl #name #inherent_generics {
                #[doc = " The repository identifier."]
                pub const REPOSITORY_ID: &'static str = #repository_id;

                #to_owned
            }

            #default

            impl<'a> #rt::Cdr<'a> for #name #generics #codec
        }
    }

    /// Returns the body of the implementation of `Cdr`.
    fn codec(&self, context: Context<'_>, slices: Option<TokenStream>) -> TokenStream {
        let rt = rt();
        let e = format_ident!("e");
        let d = format_ident!("d");
        let size = shape::min_size(context.model, &Type::Named(self.id));
        let size = Literal::u64_unsuffixed(size);
        let encode = self.encode(context, Form::View);
        let names = self.members.iter().map(|member| name_of(member));
        let decode = self.members.iter();
        let decode = decode.map(|member| context.decode_member(member, &d));
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
                    Ok(Self { #(#names: #decode),* })
                }

                #slices
            }
        }
    }

    /// Returns the owned twin.
    fn twin(&self, context: Context<'_>) -> TokenStream {
        let rt = rt();
        let view = &self.name;
        let name = suffixed(view, "Buf");
        let doc = format!(" The owned twin of [`{view}`].");
        let repository_id = &context.model.get(self.id).repository_id;
        let Additions { derives, .. } = context.applied(self.id);
        let (derived, default) = self.default(context, Form::Owned);
        let body = self.fields(context, Form::Owned);
        let names: Vec<_> = self.members.iter().map(|member| name_of(member)).collect();
        let views = self.members.iter().zip(&names).map(|(member, name)| {
            context.member_as_view(member, &ValueExpr::value(quote! { self.#name }))
        });
        let as_view = as_view(
            view,
            shape::needs_arena(context.model, &Type::Named(self.id)),
            &quote! { #view { #(#names: #views),* } },
        );
        let encode = self.encode(context, Form::Owned);
        quote! {
            #[doc = #doc]
            #[derive(Clone, Debug, #derived PartialEq #(, #derives)*)]
            pub struct #name #body

            impl #name {
                #[doc = " The repository identifier."]
                pub const REPOSITORY_ID: &'static str = #repository_id;

                #as_view

                #[doc = " Encodes the value like its view."]
                #[doc = ""]
                #[doc = " # Errors"]
                #[doc = ""]
                #[doc = " An error of the encoder: a bound that is exceeded, or a full frame."]
                pub fn encode(
                    &self,
                    e: &mut #rt::Encoder<'_>,
                ) -> ::core::result::Result<(), #rt::CdrError> {
                    #encode
                    Ok(())
                }
            }

            #default
        }
    }

    fn to_owned(&self, context: Context<'_>) -> TokenStream {
        let twin = suffixed(&self.name, "Buf");
        let doc = format!(" Returns a copy that owns its contents, see [`{twin}`].");
        let names: Vec<_> = self.members.iter().map(|member| name_of(member)).collect();
        let values = self.members.iter().zip(&names).map(|(member, name)| {
            context.member_to_owned(member, &ValueExpr::value(quote! { self.#name }))
        });
        quote! {
            #[doc = #doc]
            pub fn to_owned(&self) -> #twin {
                #twin { #(#names: #values),* }
            }
        }
    }

    fn encode(&self, context: Context<'_>, form: Form) -> TokenStream {
        let e = format_ident!("e");
        let members = self.members.iter();
        members
            .map(|member| {
                let name = name_of(member);
                let place = ValueExpr::value(quote! { self.#name });
                context.encode_member(member, &place, form, &e)
            })
            .collect()
    }

    /// Returns the fields in braces; for no members the semicolon of a unit struct.
    fn fields(&self, context: Context<'_>, form: Form) -> TokenStream {
        if self.members.is_empty() {
            return quote! { ; };
        }
        let fields = self.members.iter().map(|member| {
            let doc = context.doc_of_member(member);
            let name = name_of(member);
            let ty = context.member_type(member, form, Lifetime::A);
            quote! { #doc pub #name: #ty }
        });
        quote! { { #(#fields),* } }
    }

    /// Returns `Default` if all members have one: as a derive, or as an item.
    fn default(
        &self,
        context: Context<'_>,
        form: Form,
    ) -> (Option<TokenStream>, Option<TokenStream>) {
        let mut members = self.members.iter();
        if !members.all(|member| shape::member_has_default(context.model, member)) {
            return (None, None);
        }
        let mut members = self.members.iter();
        if !members.any(|member| ranges::default_of(context.model, member).is_some()) {
            return (Some(quote! { Default, }), None);
        }
        let ty = context.type_named(self.id, form, Lifetime::Elided);
        let names = self.members.iter().map(|member| name_of(member));
        let values = self.members.iter();
        let values = values.map(|member| context.member_default(member, form));
        let item = quote! {
            impl ::core::default::Default for #ty {
                fn default() -> Self {
                    Self { #(#names: #values),* }
                }
            }
        };
        (None, Some(item))
    }

    /// Returns the conversions to its bases.
    fn conversions_to_bases(&self, context: Context<'_>) -> TokenStream {
        let mut items = TokenStream::new();
        let mut next = self.id;
        while let DefKind::Struct {
            base: Some(base), ..
        } = context.model.get(next).kind
        {
            next = base;
            let members = shape::members(context.model, base).unwrap_or_default();
            let names: Vec<_> = members.iter().map(|member| name_of(member)).collect();
            let path = context.path(base, "");
            let from = context.type_named(self.id, Form::View, Lifetime::A);
            let to = context.type_named(base, Form::View, Lifetime::A);
            items.extend(quote! {
                impl<'a> ::core::convert::From<&#from> for #to {
                    fn from(derived: &#from) -> Self {
                        #path { #(#names: derived.#names),* }
                    }
                }
            });
            if !self.has_twin {
                continue;
            }
            let from = context.type_named(self.id, Form::Owned, Lifetime::A);
            let to = context.type_named(base, Form::Owned, Lifetime::A);
            // A base that does not borrow is the same in both forms.
            items.extend(quote! {
                impl ::core::convert::From<#from> for #to {
                    fn from(derived: #from) -> Self {
                        Self { #(#names: derived.#names),* }
                    }
                }
            });
        }
        items
    }
}

/// Returns the methods of a twin that return its view; `view` is the expression.
pub(super) fn as_view(name: &Ident, needs_arena: bool, view: &TokenStream) -> TokenStream {
    let rt = rt();
    if needs_arena {
        let doc =
            " Returns the view of it. Sequences whose elements borrow are put into the arena.";
        return quote! {
            #[doc = #doc]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = ""]
            #[doc = " `ArenaFull` if there is no room for them."]
            pub fn as_view_in<'a>(
                &'a self,
                arena: &'a #rt::Arena,
            ) -> ::core::result::Result<#name<'a>, #rt::CdrError> {
                Ok(#view)
            }
        };
    }
    quote! {
        #[doc = " Returns the view of it."]
        pub fn as_view(&self) -> #name<'_> {
            #view
        }

        #[doc = " Returns the view of it. The arena is not used, and there is no error."]
        pub fn as_view_in<'a>(
            &'a self,
            _arena: &'a #rt::Arena,
        ) -> ::core::result::Result<#name<'a>, #rt::CdrError> {
            Ok(self.as_view())
        }
    }
}
