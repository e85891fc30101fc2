//! The typed object reference (handle), by which clients call.

use chronorb_idl::model::{DefId, Interface, ParamMode, Type};
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::codec::{Form, ValueExpr};
use super::context::{Context, ident, rt};
use super::direct::{direct, new_name};
use super::signature::Signature;
use super::types::Lifetime;
use crate::names::{Method, MethodParam};
use crate::shape;

pub(super) fn handle(context: Context<'_>, id: DefId, interface: &Interface) -> TokenStream {
    let rt = rt();
    let doc = context.doc_of(id);
    let name = context.handle_ident(id);
    let repository_id = &context.model.get(id).repository_id;
    let methods = context.names.all_methods(id, interface);
    let methods = methods
        .iter()
        .map(|method| self::methods(context, id, method));
    let type_code = context.type_code_of(id, &quote! { #name });
    let bases = interface.all_bases.iter().map(|&base| {
        let base = context.handle_path(base);
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

            #[doc = " Returns the object as one of this interface; `None` if it is of another."]
            #[doc = " This may need a call to the object."]
            pub fn narrow(
                object: &#rt::Object,
            ) -> ::core::result::Result<::core::option::Option<Self>, #rt::SystemException> {
                #rt::narrow(object)
            }

            #[doc = " Returns the object as one of this interface, without a check."]
            pub fn unchecked_narrow(object: &#rt::Object) -> Self {
                Self { object: ::core::clone::Clone::clone(object) }
            }

            #[doc = " Returns the untyped reference."]
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

        #type_code

        #(#bases)*
    }
}

/// Returns the plain method, and its twin `_in` if a result borrows.
///
/// The code for a base's operations is only in the base, in functions that take the object. The
/// derived handles call those too.
fn methods(context: Context<'_>, id: DefId, method: &Method<'_>) -> TokenStream {
    let plain = context
        .has_plain(method)
        .then(|| Signature::plain_of(context, id, method));
    let twin = context
        .has_borrowing(method)
        .then(|| Signature::twin(context, id, method));
    let home = if context.has_derived(method.interface) && !context.is_external(method.interface) {
        Home::Function
    } else {
        Home::Handle
    };
    let plain_body = || plain_body(context, id, method, home);
    let twin_body = || invocation(context, method, home, Form::View);
    if home == Home::Handle {
        let plain = plain.map(|plain| plain.method(&plain_body()));
        let twin = twin.map(|twin| twin.method(&twin_body()));
        return quote! { #plain #twin };
    }

    let base = context.handle_path(method.interface);
    let methods = [plain.as_ref(), twin.as_ref()].into_iter().flatten();
    let methods = methods.map(|signature| signature.method(&signature.call(&base)));
    let functions = (method.interface == id).then(|| {
        let object = method.fresh("object");
        let plain = plain
            .as_ref()
            .map(|plain| plain.function(&object, &plain_body()));
        let twin = twin
            .as_ref()
            .map(|twin| twin.function(&object, &twin_body()));
        quote! { #plain #twin }
    });
    quote! { #(#methods)* #functions }
}

/// The place of a method's code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Home {
    /// In a method of the handle.
    Handle,
    /// In a function of the handle, whose first parameter is the object.
    Function,
}

impl Home {
    fn object(self, method: &Method<'_>) -> TokenStream {
        match self {
            Self::Handle => quote! { self.object },
            Self::Function => {
                let object = method.fresh("object");
                quote! { #object }
            }
        }
    }
}

/// Returns the plain method's body.
fn plain_body(context: Context<'_>, id: DefId, method: &Method<'_>, home: Home) -> TokenStream {
    if method.oneway {
        return oneway(context, method, home);
    }
    let rt = rt();
    let scope = method.fresh("scope");
    let takes_owned = method
        .inouts()
        .any(|param| shape::has_twin(context.model, param.ty));
    let direct = direct(context, method, &home.object(method));
    let marshalled = if method.has_twin(context.model) && !takes_owned {
        through_twin(context, id, method, home)
    } else {
        invocation(context, method, home, Form::Owned)
    };
    quote! {
        #rt::Scope::with(|#scope| {
            #direct
            #marshalled
        })
    }
}

fn oneway(context: Context<'_>, method: &Method<'_>, home: Home) -> TokenStream {
    let rt = rt();
    let object = home.object(method);
    let wire_name = &method.wire_name;
    let arguments = arguments(context, method, Form::Owned);
    quote! {
        #object.invoke_oneway(&#rt::Operation::oneway(#wire_name), #arguments)
    }
}

/// Returns a body that calls the twin and copies the results.
fn through_twin(context: Context<'_>, id: DefId, method: &Method<'_>, home: Home) -> TokenStream {
    let twin = Signature::twin(context, id, method);
    let arguments = &twin.names;
    let call = match home {
        Home::Handle => {
            let name = &twin.handle_name;
            quote! { self.#name(#(#arguments),*) }
        }
        Home::Function => {
            let (name, object) = (twin.function_name(), home.object(method));
            quote! { Self::#name(#object, #(#arguments),*) }
        }
    };
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
        let #pattern = #call #map_error?;
        Ok(#owned)
    }
}

/// Returns an expression that sends the request, and decodes the reply into results of the form.
fn invocation(context: Context<'_>, method: &Method<'_>, home: Home, form: Form) -> TokenStream {
    let rt = rt();
    let d = method.fresh("d");
    let scope = method.fresh("scope");
    let object = home.object(method);
    let wire_name = &method.wire_name;
    let arguments = arguments(context, method, form);
    let lifetime = match form {
        Form::View => Lifetime::S,
        Form::Owned => Lifetime::Elided,
    };

    // An inout has the name of its destination, so its new value is kept in a variable with another
    // name: all values are decoded before any inout changes.
    let local = |name: &str| {
        let inout = method.inouts().find(|param| param.rust_name == name);
        inout.map_or_else(|| ident(name), |param| new_name(method, param))
    };
    let outputs = method.outputs();
    let decoded = outputs.iter().map(|(name, ty)| {
        let name = local(name);
        let decode = context.decode_value(ty, &d);
        let ty = context.value(ty, lifetime);
        quote! { let #name: #ty = #decode.map_err(#rt::reply_error)?; }
    });
    let assigned = method.inouts().map(|param| {
        let place = ident(&param.rust_name);
        let new = new_name(method, param);
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
        match #object.invoke(#scope, &#rt::Operation::twoway(#wire_name), #arguments)? {
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

/// Returns the arm for user exceptions.
pub(super) fn exceptions(context: Context<'_>, method: &Method<'_>, form: Form) -> TokenStream {
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

/// Returns the closure that encodes the arguments.
fn arguments(context: Context<'_>, method: &Method<'_>, form: Form) -> TokenStream {
    let rt = rt();
    let e = method.fresh("e");
    let arguments = method
        .inputs()
        .map(|param| encode_input(context, param, form, &e));
    quote! {
        &|#e: &mut #rt::Encoder<'_>| {
            #(#arguments)*
            Ok(())
        }
    }
}

/// Returns a statement that encodes an argument into `e`. An inout is a place of the form.
pub(super) fn encode_input(
    context: Context<'_>,
    param: &MethodParam<'_>,
    form: Form,
    e: &Ident,
) -> TokenStream {
    let name = ident(&param.rust_name);
    if let Some(clause) = param.clause {
        let rt = rt();
        return quote! { #rt::encode_context(#name, &[#(#clause),*], #e)?; };
    }
    if param.mode == ParamMode::InOut {
        let is_reference = shape::is_reference(context.model, param.ty);
        let form = if is_reference { Form::Owned } else { form };
        let place = ValueExpr::reference(quote! { #name });
        let encode = context.encode(param.ty, &place, form, e);
        return quote! { let #name = &*#name; #encode };
    }
    let place = if context.is_by_reference(param.ty) {
        ValueExpr::reference(quote! { #name })
    } else {
        ValueExpr::value(quote! { #name })
    };
    context.encode(param.ty, &place, Form::View, e)
}

impl Context<'_> {
    /// Returns whether another interface is derived from this one.
    fn has_derived(self, id: DefId) -> bool {
        self.bases.contains(&id)
    }

    /// Returns a view in the form in which a method returns it. A reference is owned already.
    pub(super) fn result(self, ty: &Type, value: &TokenStream, form: Form) -> TokenStream {
        if form == Form::Owned && shape::has_twin(self.model, ty) {
            self.to_owned(ty, &ValueExpr::value(value.clone()))
        } else {
            value.clone()
        }
    }
}
