//! The signatures of a handle's methods.

use chronorb_idl::model::{DefId, ParamMode};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::codec::Form;
use super::context::{Context, ident, rt, suffixed};
use super::types::Lifetime;
use crate::names::Method;

/// A method of the handle, without its body.
pub(super) struct Signature {
    doc: TokenStream,
    name: Ident,
    /// The name in the handle, where that of an inherited method may be another one.
    pub(super) handle_name: Ident,
    generics: TokenStream,
    params: Vec<TokenStream>,
    /// The names of the parameters.
    pub(super) names: Vec<Ident>,
    output: TokenStream,
}

impl Signature {
    pub(super) fn plain(context: Context<'_>, method: &Method<'_>) -> Self {
        let output = context.output_type(method, Form::Owned, Lifetime::Elided);
        let error = context.error_type(method, Form::Owned, Lifetime::Elided);
        Self {
            doc: context.doc(method.doc, &format!("IDL {}.", method.what)),
            name: method.ident(),
            handle_name: method.ident(),
            generics: TokenStream::new(),
            params: params(context, method, Form::Owned),
            names: method.inputs().map(|p| ident(&p.rust_name)).collect(),
            output: quote! { ::core::result::Result<#output, #error> },
        }
    }

    /// Returns the method as [`Self::plain`] does, for the handle of an interface.
    pub(super) fn plain_of(context: Context<'_>, id: DefId, method: &Method<'_>) -> Self {
        Self {
            handle_name: ident(context.names.in_handle(id, method)),
            ..Self::plain(context, method)
        }
    }

    /// Returns the method whose results borrow from the scope, for the handle of an interface.
    pub(super) fn twin(context: Context<'_>, id: DefId, method: &Method<'_>) -> Self {
        let rt = rt();
        let plain = context.names.in_handle(id, method);
        let doc = if context.has_plain(method) {
            let doc = format!(
                " As [`{plain}`](Self::{plain}), with results that borrow from the scope: \
                 nothing is allocated."
            );
            quote! { #[doc = #doc] }
        } else {
            context.doc(method.doc, &format!("IDL {}.", method.what))
        };
        let scope = method.fresh("scope");
        let inputs = method.inputs().map(|p| ident(&p.rust_name));
        let output = context.output_type(method, Form::View, Lifetime::S);
        let error = context.error_type(method, Form::View, Lifetime::S);
        Self {
            doc,
            name: suffixed(&method.ident(), "_in"),
            handle_name: suffixed(&ident(plain), "_in"),
            generics: quote! { <'s> },
            params: [quote! { #scope: &'s mut #rt::Scope }]
                .into_iter()
                .chain(params(context, method, Form::View))
                .collect(),
            names: [scope].into_iter().chain(inputs).collect(),
            output: quote! { ::core::result::Result<#output, #error> },
        }
    }

    /// Returns the method of the handle.
    pub(super) fn method(&self, body: &TokenStream) -> TokenStream {
        let Self {
            doc,
            handle_name: name,
            generics,
            params,
            output,
            ..
        } = self;
        quote! {
            #doc
            pub fn #name #generics(&self, #(#params),*) -> #output { #body }
        }
    }

    /// Returns the method as a required one of a trait.
    pub(super) fn declaration(&self) -> TokenStream {
        let Self {
            doc,
            name,
            params,
            output,
            ..
        } = self;
        quote! {
            #doc
            fn #name(&self, #(#params),*) -> #output;
        }
    }

    /// Returns the method as a provided one of a trait, which calls the method of the type itself.
    pub(super) fn forwarding(&self) -> TokenStream {
        let Self {
            name,
            handle_name,
            params,
            names,
            output,
            ..
        } = self;
        quote! {
            fn #name(&self, #(#params),*) -> #output { Self::#handle_name(self, #(#names),*) }
        }
    }

    pub(super) fn function(&self, object: &Ident, body: &TokenStream) -> TokenStream {
        let rt = rt();
        let name = self.function_name();
        let Self {
            generics,
            params,
            output,
            ..
        } = self;
        quote! {
            pub(crate) fn #name #generics(#object: &#rt::Object, #(#params),*) -> #output { #body }
        }
    }

    pub(super) fn call(&self, base: &TokenStream) -> TokenStream {
        let name = self.function_name();
        let names = &self.names;
        quote! { #base::#name(&self.object, #(#names),*) }
    }

    /// Returns the name of the function. No name from the IDL begins like this.
    pub(super) fn function_name(&self) -> Ident {
        format_ident!("__{}", self.name)
    }
}

fn params(context: Context<'_>, method: &Method<'_>, form: Form) -> Vec<TokenStream> {
    let params = method.inputs().map(|param| {
        let name = ident(&param.rust_name);
        let ty = if param.mode == ParamMode::In {
            context.parameter(param.ty, Lifetime::Elided)
        } else {
            let ty = context.output(param.ty, form, Lifetime::S);
            quote! { &mut #ty }
        };
        quote! { #name: #ty }
    });
    params.collect()
}
