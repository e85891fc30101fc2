//! The typed object reference: what clients call.

use chronorb_idl::model::{DefId, Interface, ParamMode, Type};
use proc_macro2::TokenStream;
use quote::quote;

use super::codec::{Form, Place};
use super::context::{Context, ident, rt, suffixed};
use super::types::Lifetime;
use crate::names::Method;
use crate::shape;

pub(super) fn handle(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let rt = rt();
    let doc = context.doc_of(id);
    let name = context.ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let methods = context.names.all_methods(id, interface);
    let methods = methods.iter().map(|method| self::methods(context, method));
    let bases = interface.all_bases.iter().map(|&base| {
        let base = context.path(base, "");
        quote! {
            impl ::core::convert::From<#name> for #base {
                fn from(derived: #name) -> Self {
                    #rt::Interface::from_object(#rt::Interface::into_object(derived))
                }
            }
        }
    });
    quote! {
        #doc
        #[derive(Clone, Debug, PartialEq)]
        pub struct #name {
            object: #rt::Object,
        }

        impl #name {
            #[doc = " The repository identifier."]
            pub const REPOSITORY_ID: &'static str = #repository_id;

            #[doc = " The object as one of this interface; `None` if it is of another. It may have to be asked."]
            pub fn narrow(
                object: &#rt::Object,
            ) -> ::core::result::Result<::core::option::Option<Self>, #rt::SystemException> {
                #rt::narrow(object)
            }

            #[doc = " The object as one of this interface, without asking it."]
            pub fn unchecked_narrow(object: &#rt::Object) -> Self {
                Self { object: ::core::clone::Clone::clone(object) }
            }

            #[doc = " The untyped reference."]
            pub fn as_object(&self) -> &#rt::Object {
                &self.object
            }

            #(#methods)*
        }

        impl #rt::Interface for #name {
            const REPOSITORY_ID: &'static str = #repository_id;

            fn from_object(object: #rt::Object) -> Self {
                Self { object }
            }

            fn as_object(&self) -> &#rt::Object {
                &self.object
            }

            fn into_object(self) -> #rt::Object {
                self.object
            }
        }

        impl #rt::Reference for #name {
            fn encode_reference(
                this: ::core::option::Option<&Self>,
                e: &mut #rt::Encoder<'_>,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                #rt::Reference::encode_reference(this.map(|this| &this.object), e)
            }

            fn decode_reference(
                d: &mut #rt::Decoder<'_>,
            ) -> ::core::result::Result<::core::option::Option<Self>, #rt::CdrError> {
                let object: ::core::option::Option<#rt::Object> =
                    #rt::Reference::decode_reference(d)?;
                Ok(object.map(|object| Self { object }))
            }
        }

        #(#bases)*
    }
}

/// The plain method, and where a result borrows its twin `_in`.
fn methods(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let doc = context.doc(method.doc, &format!("IDL {}.", method.what));
    let rt = rt();
    let name = method.ident();
    let params = params(context, method, Form::Owned);
    let output = context.output_type(method, Form::Owned, Lifetime::Elided);
    let error = context.error_type(method, Form::Owned, Lifetime::Elided);
    let scope = method.fresh("scope");
    let takes_owned = method
        .params
        .iter()
        .any(|param| param.mode == ParamMode::InOut && shape::has_twin(context.model, param.ty));
    let body = if method.oneway {
        oneway(context, method)
    } else if method.has_twin(context.model) && !takes_owned {
        let body = through_twin(context, method);
        quote! { #rt::Scope::with(|#scope| #body) }
    } else {
        let body = invocation(context, method, Form::Owned);
        quote! { #rt::Scope::with(|#scope| #body) }
    };
    let twin = (!method.oneway && method.has_twin(context.model)).then(|| twin(context, method));
    quote! {
        #doc
        pub fn #name(&self, #(#params),*) -> ::core::result::Result<#output, #error> {
            #body
        }

        #twin
    }
}

/// The method whose results borrow from the scope.
fn twin(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let rt = rt();
    let plain = &method.rust_name;
    let doc = format!(
        " As [`{plain}`](Self::{plain}), with results that borrow from the scope: \
         nothing is allocated."
    );
    let name = suffixed(&method.ident(), "_in");
    let scope = method.fresh("scope");
    let params = params(context, method, Form::View);
    let output = context.output_type(method, Form::View, Lifetime::S);
    let error = context.error_type(method, Form::View, Lifetime::S);
    let body = invocation(context, method, Form::View);
    quote! {
        #[doc = #doc]
        pub fn #name<'s>(
            &self,
            #scope: &'s mut #rt::Scope,
            #(#params),*
        ) -> ::core::result::Result<#output, #error> {
            #body
        }
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

fn oneway(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let rt = rt();
    let wire_name = &method.wire_name;
    let arguments = arguments(context, method, Form::Owned);
    quote! {
        self.object.invoke_oneway(&#rt::Operation::oneway(#wire_name), #arguments)
    }
}

/// Calls the twin, and copies what comes back.
fn through_twin(context: Context<'_>, method: &Method<'_>) -> TokenStream {
    let twin = suffixed(&method.ident(), "_in");
    let scope = method.fresh("scope");
    let arguments = method.inputs().map(|param| ident(&param.rust_name));
    let map_error = context
        .has_variable_error(method)
        .then(|| quote! { .map_err(|error| error.to_owned()) });
    let names = method.value_idents();
    let values: Vec<_> = names.iter().map(|name| quote! { #name }).collect();
    let pattern = context.output_expression(method, Form::View, &values);
    let types = method.values();
    let owned: Vec<_> = types
        .iter()
        .zip(&values)
        .map(|((_, ty), value)| context.result(ty, value, Form::Owned))
        .collect();
    let owned = context.output_expression(method, Form::Owned, &owned);
    quote! {
        {
            let #pattern = self.#twin(#scope, #(#arguments),*)#map_error?;
            Ok(#owned)
        }
    }
}

/// Sends the request, and decodes the reply into results of the form.
fn invocation(context: Context<'_>, method: &Method<'_>, form: Form) -> TokenStream {
    let rt = rt();
    let d = method.fresh("d");
    let scope = method.fresh("scope");
    let wire_name = &method.wire_name;
    let arguments = arguments(context, method, form);
    let lifetime = match form {
        Form::View => Lifetime::S,
        Form::Owned => Lifetime::Elided,
    };

    let result = method.values();
    let result = result.first().filter(|_| method.result.is_some());
    let outputs = method.params.iter().filter(|p| p.mode != ParamMode::In);
    let outputs: Vec<(&str, &Type)> = result
        .copied()
        .into_iter()
        .chain(outputs.map(|p| (p.rust_name.as_str(), p.ty)))
        .collect();
    // An inout has the name of the place that it goes to, so it waits in a
    // variable of another: all is decoded before any of them changes.
    let inouts: Vec<_> = method
        .params
        .iter()
        .filter(|param| param.mode == ParamMode::InOut)
        .collect();
    let is_inout = |name: &str| inouts.iter().any(|param| param.rust_name == name);
    let local = |name: &str| {
        if is_inout(name) {
            method.fresh(&format!("new_{name}"))
        } else {
            ident(name)
        }
    };
    let decoded = outputs.iter().map(|(name, ty)| {
        let name = local(name);
        let decode = context.decode_value(ty, &d);
        let ty = context.value(ty, lifetime);
        quote! { let #name: #ty = #decode.map_err(#rt::reply_error)?; }
    });
    let assigned = inouts.iter().map(|param| {
        let place = ident(&param.rust_name);
        let new = local(&param.rust_name);
        let value = context.result(param.ty, &quote! { #new }, form);
        quote! { *#place = #value; }
    });
    let values: Vec<_> = method
        .values()
        .iter()
        .map(|(name, ty)| {
            let name = ident(name);
            context.result(ty, &quote! { #name }, form)
        })
        .collect();
    let value = context.output_expression(method, form, &values);
    let exceptions = exceptions(context, method, form);
    quote! {
        match self.object.invoke(#scope, &#rt::Operation::twoway(#wire_name), #arguments)? {
            #rt::Reply::Normal(mut #d) => {
                let #d = &mut #d;
                #(#decoded)*
                #(#assigned)*
                Ok(#value)
            }
            #exceptions
        }
    }
}

/// The arm for user exceptions.
fn exceptions(context: Context<'_>, method: &Method<'_>, form: Form) -> TokenStream {
    let rt = rt();
    if method.error.is_none() {
        return quote! {
            #rt::Reply::UserException(_, _) => Err(#rt::unknown_user_exception()),
        };
    }
    let error = context.error_path(method, form);
    let arms = context.arms(method);
    let arms = arms.iter().map(|arm| {
        let name = &arm.name;
        let path = context.path(arm.exception, "");
        let ty = Type::Named(arm.exception);
        let view = context.view(&ty, Lifetime::Elided);
        let value = context.result(&ty, &quote! { exception }, form);
        quote! {
            #path::REPOSITORY_ID => {
                let exception: #view = #rt::Cdr::decode(&mut d).map_err(#rt::reply_error)?;
                Err(#error::#name(#value))
            }
        }
    });
    quote! {
        #rt::Reply::UserException(id, mut d) => match id {
            #(#arms)*
            _ => Err(::core::convert::From::from(#rt::unknown_user_exception())),
        },
    }
}

/// The closure that encodes the arguments.
fn arguments(context: Context<'_>, method: &Method<'_>, form: Form) -> TokenStream {
    let rt = rt();
    let e = method.fresh("e");
    let arguments = method.inputs().map(|param| {
        let name = ident(&param.rust_name);
        if param.mode == ParamMode::InOut {
            let is_reference = shape::is_reference(context.model, param.ty);
            let form = if is_reference { Form::Owned } else { form };
            let place = Place::reference(quote! { #name });
            let encode = context.encode(param.ty, &place, form, &e);
            return quote! { let #name = &*#name; #encode };
        }
        let place = if context.is_by_reference(param.ty) {
            Place::reference(quote! { #name })
        } else {
            Place::value(quote! { #name })
        };
        context.encode(param.ty, &place, Form::View, &e)
    });
    quote! {
        &|#e: &mut #rt::Encoder<'_>| {
            #(#arguments)*
            Ok(())
        }
    }
}

impl Context<'_> {
    /// A decoded value in the form that a method returns it in; a reference is
    /// owned as decoded.
    fn result(self, ty: &Type, value: &TokenStream, form: Form) -> TokenStream {
        if form == Form::Owned && shape::has_twin(self.model, ty) {
            self.to_owned(ty, &Place::value(value.clone()))
        } else {
            value.clone()
        }
    }
}
