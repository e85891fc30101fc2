//! Unions: enums with data, and owned twins of those that borrow.

use chronorb_idl::model::{ConstValue, DefId, Member, Type, Union};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::applied::Additions;
use super::codec::{Form, ValueExpr};
use super::context::{Context, ident, rt, suffixed};
use super::structs::as_view;
use super::types::Lifetime;
use crate::{names, shape};

pub(super) fn union(context: Context<'_>, id: DefId, union: &Union) -> TokenStream {
    let cases = union.cases.iter().map(|case| {
        let labels = case.labels.iter();
        let labels = labels.map(|label| context.label(union, label)).collect();
        Case {
            variant: ident(&names::variant(&case.member.name, &case.member.annotations)),
            member: &case.member,
            labels,
            is_default: case.is_default,
        }
    });
    let generator = Generator {
        context,
        id,
        union,
        name: context.ident(id),
        cases: cases.collect(),
        other: names::implicit_default(context.model, union).map(|name| ident(&name)),
        variable: shape::is_variable(context.model, &Type::Named(id)),
        has_twin: context.generates_twin(id),
    };
    let view = generator.view();
    let twin = generator.has_twin.then(|| generator.twin());
    let type_code = context.typed(id);
    quote! { #view #twin #type_code }
}

struct Generator<'g> {
    context: Context<'g>,
    id: DefId,
    union: &'g Union,
    name: Ident,
    cases: Vec<Case<'g>>,
    /// The variant for discriminators that select no member.
    other: Option<Ident>,
    /// Whether it borrows.
    variable: bool,
    /// Whether there is an owned twin.
    has_twin: bool,
}

struct Case<'g> {
    variant: Ident,
    member: &'g Member,
    /// The labels, each an expression and a pattern.
    labels: Vec<TokenStream>,
    is_default: bool,
}

impl Case<'_> {
    /// Returns the label if it is the only one, so that a value need not keep it.
    fn only_label(&self) -> Option<&TokenStream> {
        match self.labels.as_slice() {
            [label] if !self.is_default => Some(label),
            _ => None,
        }
    }

    /// Returns a pattern that binds the member as `value`, and the kept label as `discriminator`.
    fn pattern(&self) -> TokenStream {
        let variant = &self.variant;
        match self.only_label() {
            Some(_) => quote! { Self::#variant(value) },
            None => quote! { Self::#variant { discriminator, value } },
        }
    }

    /// Returns an expression of the variant.
    fn of(
        &self,
        name: &TokenStream,
        discriminator: &TokenStream,
        value: &TokenStream,
    ) -> TokenStream {
        let variant = &self.variant;
        match self.only_label() {
            Some(_) => quote! { #name::#variant(#value) },
            None => quote! {
                #name::#variant { discriminator: #discriminator, value: #value }
            },
        }
    }
}

impl Generator<'_> {
    fn view(&self) -> TokenStream {
        let rt = rt();
        let context = self.context;
        let Additions {
            before,
            after,
            derives,
        } = context.applied(self.id);
        let doc = context.doc_of(self.id);
        let name = &self.name;
        let repository_id = &context.model.get(self.id).repository_id;
        let generics = self.variable.then(|| quote! { <'a> });
        let inherent_generics = self.variable.then(|| quote! { <'_> });
        let variants = self.variants(Form::View);
        let discriminator = self.discriminator();
        let to_owned = self.has_twin.then(|| self.to_owned());
        let default = self.default(Form::View);
        let size = shape::min_size(context.model, &Type::Named(self.id));
        let size = Literal::u64_unsuffixed(size);
        let encode = self.encode(Form::View);
        let decode = self.decode();
        quote! {
            #before
            #doc
            #[derive(Clone, Copy, Debug, PartialEq #(, #derives)*)]
            pub enum #name #generics { #variants }
            #after

            impl #name #inherent_generics {
                #[doc = " The repository identifier."]
                pub const REPOSITORY_ID: &'static str = #repository_id;

                #discriminator
                #to_owned
            }

            #default

            impl<'a> #rt::Cdr<'a> for #name #generics {
                const MIN_SIZE: usize = #size;

                fn encode(
                    &self,
                    e: &mut #rt::Encoder<'_>,
                ) -> ::core::result::Result<(), #rt::CdrError> {
                    #encode
                    Ok(())
                }

                fn decode(
                    d: &mut #rt::Decoder<'a>,
                ) -> ::core::result::Result<Self, #rt::CdrError> {
                    #decode
                }
            }
        }
    }

    fn twin(&self) -> TokenStream {
        let rt = rt();
        let context = self.context;
        let view = &self.name;
        let name = suffixed(view, "Buf");
        let doc = format!(" The owned twin of [`{view}`].");
        let repository_id = &context.model.get(self.id).repository_id;
        let Additions { derives, .. } = context.applied(self.id);
        let variants = self.variants(Form::Owned);
        let discriminator = self.discriminator();
        let default = self.default(Form::Owned);
        let encode = self.encode(Form::Owned);
        let arms = self.arms(&quote! { #view }, |member, place| {
            context.member_as_view(member, place)
        });
        let as_view = as_view(
            view,
            shape::needs_arena(context.model, &Type::Named(self.id)),
            &quote! { match self { #arms } },
        );
        let error_doc =
            " An error of the encoder: a discriminator of another member, a bound that is";
        quote! {
            #[doc = #doc]
            #[derive(Clone, Debug, PartialEq #(, #derives)*)]
            pub enum #name { #variants }

            impl #name {
                #[doc = " The repository identifier."]
                pub const REPOSITORY_ID: &'static str = #repository_id;

                #discriminator
                #as_view

                #[doc = " Encodes the value like its view."]
                #[doc = ""]
                #[doc = " # Errors"]
                #[doc = ""]
                #[doc = #error_doc]
                #[doc = " exceeded, or a full frame."]
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

    fn variants(&self, form: Form) -> TokenStream {
        let context = self.context;
        let discriminator = self.discriminator_type();
        let variants = self.cases.iter().map(|case| {
            let doc = context.doc_of_member(case.member);
            let variant = &case.variant;
            let ty = context.member_type(case.member, form, Lifetime::A);
            match case.only_label() {
                Some(_) => quote! { #doc #variant(#ty), },
                None => quote! {
                    #doc
                    #variant {
                        #[doc = " The label."]
                        discriminator: #discriminator,
                        #[doc = " The member."]
                        value: #ty,
                    },
                },
            }
        });
        let other = self.other.iter().map(|other| {
            quote! {
                #[doc = " No member: a discriminator that no label names."]
                #other(#discriminator),
            }
        });
        quote! { #(#variants)* #(#other)* }
    }

    fn discriminator(&self) -> TokenStream {
        let ty = self.discriminator_type();
        let arms = self.cases.iter().map(|case| {
            let variant = &case.variant;
            match case.only_label() {
                Some(label) => quote! { Self::#variant(_) => #label, },
                None => quote! { Self::#variant { discriminator, .. } => *discriminator, },
            }
        });
        let other = self.other.iter();
        let other = other.map(|other| quote! { Self::#other(discriminator) => *discriminator, });
        quote! {
            #[doc = " Returns the label that selects the member."]
            pub fn discriminator(&self) -> #ty {
                match self { #(#arms)* #(#other)* }
            }
        }
    }

    fn to_owned(&self) -> TokenStream {
        let context = self.context;
        let twin = suffixed(&self.name, "Buf");
        let doc = format!(" Returns a copy that owns its contents, see [`{twin}`].");
        let arms = self.arms(&quote! { #twin }, |member, place| {
            context.member_to_owned(member, place)
        });
        quote! {
            #[doc = #doc]
            pub fn to_owned(&self) -> #twin {
                match self { #arms }
            }
        }
    }

    /// Returns arms that convert the variants of another enum with the same variants.
    fn arms(
        &self,
        target: &TokenStream,
        value: impl Fn(&Member, &ValueExpr) -> TokenStream,
    ) -> TokenStream {
        let arms = self.cases.iter().map(|case| {
            let pattern = case.pattern();
            let value = value(case.member, &ValueExpr::reference(quote! { value }));
            let made = case.of(target, &quote! { *discriminator }, &value);
            quote! { #pattern => #made, }
        });
        let other = self.other.iter();
        let other = other.map(|other| quote! { Self::#other(other) => #target::#other(*other), });
        quote! { #(#arms)* #(#other)* }
    }

    /// Returns the first member with its default, as C++ programs expect it.
    fn default(&self, form: Form) -> Option<TokenStream> {
        let context = self.context;
        let case = self.cases.first()?;
        if !shape::member_has_default(context.model, case.member) {
            return None;
        }
        let unlabelled = self.union.unlabelled.iter();
        let unlabelled = unlabelled.map(|value| context.label(self.union, value));
        let discriminator = case.labels.iter().cloned().chain(unlabelled).next()?;
        let value = context.member_default(case.member, form);
        let value = case.of(&quote! { Self }, &discriminator, &value);
        let ty = context.type_named(self.id, form, Lifetime::Elided);
        Some(quote! {
            impl ::core::default::Default for #ty {
                fn default() -> Self {
                    #value
                }
            }
        })
    }

    fn encode(&self, form: Form) -> TokenStream {
        let rt = rt();
        let context = self.context;
        let e = format_ident!("e");
        let discriminator_type = &self.union.discriminator;
        let kept = ValueExpr::reference(quote! { discriminator });
        let kept = context.encode(discriminator_type, &kept, Form::View, &e);
        let refuse = quote! { return Err(#rt::CdrError::InvalidDiscriminator); };
        let arms = self.cases.iter().map(|case| {
            let pattern = case.pattern();
            let discriminator = match case.only_label() {
                Some(label) => {
                    let label = ValueExpr::value(label.clone());
                    context.encode(discriminator_type, &label, Form::View, &e)
                }
                None => {
                    let check = self.check(case, &refuse);
                    quote! { #check #kept }
                }
            };
            let place = ValueExpr::reference(quote! { value });
            let value = context.encode_member(case.member, &place, form, &e);
            quote! { #pattern => { #discriminator #value } }
        });
        let other = self.other.iter().map(|other| {
            let labels = self.cases.iter().flat_map(|case| &case.labels);
            quote! {
                Self::#other(discriminator) => {
                    if ::core::matches!(*discriminator, #(#labels)|*) { #refuse }
                    #kept
                }
            }
        });
        quote! { match self { #(#arms)* #(#other)* } }
    }

    /// Returns a statement that refuses a kept discriminator that is not one of the case.
    fn check(&self, case: &Case<'_>, refuse: &TokenStream) -> Option<TokenStream> {
        if !case.is_default {
            let labels = &case.labels;
            return Some(quote! {
                if !::core::matches!(*discriminator, #(#labels)|*) { #refuse }
            });
        }
        let others = self.cases.iter().filter(|other| !other.is_default);
        let labels: Vec<_> = others.flat_map(|other| &other.labels).collect();
        (!labels.is_empty()).then(|| {
            quote! { if ::core::matches!(*discriminator, #(#labels)|*) { #refuse } }
        })
    }

    fn decode(&self) -> TokenStream {
        let rt = rt();
        let context = self.context;
        let d = format_ident!("d");
        let ty = self.discriminator_type();
        let discriminator = context.decode(&self.union.discriminator, &d);
        let made = |case: &Case<'_>| {
            let value = context.decode_member(case.member, &d);
            case.of(&quote! { Self }, &quote! { discriminator }, &value)
        };
        let labelled = self.cases.iter().filter(|case| !case.is_default);
        let labelled = labelled.map(|case| {
            let (labels, value) = (&case.labels, made(case));
            quote! { #(#labels)|* => #value, }
        });
        let default = self.cases.iter().find(|case| case.is_default).map(made);
        let other = self.other.iter();
        let other = other
            .map(|other| quote! { Self::#other(discriminator) })
            .next();
        let rest = default
            .or(other)
            .unwrap_or_else(|| quote! { return Err(#rt::CdrError::InvalidDiscriminator) });
        quote! {
            let discriminator: #ty = #discriminator?;
            Ok(match discriminator {
                #(#labelled)*
                _ => #rest,
            })
        }
    }

    fn discriminator_type(&self) -> TokenStream {
        self.context.view(&self.union.discriminator, Lifetime::A)
    }
}

impl Context<'_> {
    /// Returns a label as an expression, which is a pattern too.
    fn label(self, union: &Union, label: &ConstValue) -> TokenStream {
        let ty = shape::resolve(self.model, &union.discriminator);
        self.literal(ty, label)
    }
}
