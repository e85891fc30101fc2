//! The expression by which a skeleton finds an operation's code by its name.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::context::{Context, rt};
use crate::names::Method;
use crate::operation_demux::OperationDemux;
use crate::perfect_hash::{PerfectHash, perfect_hash};

/// The maximum number of operations that are found by comparing their names.
const FEW: usize = 4;

/// Returns an expression that selects the arm, an expression with its comma, of the method whose
/// name is in the variable `operation`.
pub(super) fn demux(
    context: Context<'_>,
    methods: &[&Method<'_>],
    arms: &[TokenStream],
) -> TokenStream {
    let rt = rt();
    let names: Vec<&str> = methods.iter().map(|m| m.wire_name.as_str()).collect();
    let table = match context.options.operation_demux {
        OperationDemux::PerfectHash if names.len() <= FEW => None,
        OperationDemux::PerfectHash => perfect_hash(&names).map(|hash| perfect(&hash, &names)),
        OperationDemux::BinarySearch => Some(sorted(&names)),
        OperationDemux::DynamicHash => Some(quote! {
            ::std::sync::LazyLock<#rt::DynamicHashTable> =
                ::std::sync::LazyLock::new(|| #rt::DynamicHashTable::new(&[#(#names),*]))
        }),
        OperationDemux::LinearSearch => Some(quote! {
            #rt::LinearSearchTable = #rt::LinearSearchTable::new(&[#(#names),*])
        }),
    };
    let Some(table) = table else {
        let names = names
            .iter()
            .map(|name| Literal::byte_string(name.as_bytes()));
        return quote! {
            match operation {
                #(#names => #arms)*
                _ => Err(#rt::bad_operation()),
            }
        };
    };
    let numbers = (0..methods.len()).map(Literal::usize_unsuffixed);
    quote! {
        static OPERATIONS: #table;
        match OPERATIONS.find(operation) {
            #(Some(#numbers) => #arms)*
            _ => Err(#rt::bad_operation()),
        }
    }
}

/// Returns type and value of a perfect hash table, as the functions below do for other tables.
fn perfect(hash: &PerfectHash, names: &[&str]) -> TokenStream {
    let rt = rt();
    let seed = Literal::u64_unsuffixed(hash.seed);
    let displacements = hash.displacements.iter().copied();
    let displacements = displacements.map(Literal::u16_unsuffixed);
    let slots = hash.places(names).into_iter().map(|place| {
        let Some((start, length, number)) = place else {
            return quote! { #rt::OperationTable::EMPTY };
        };
        let start = Literal::u32_unsuffixed(start);
        let [length, number] = [length, number].map(Literal::u16_unsuffixed);
        quote! { (#start, #length, #number) }
    });
    let names = names.concat();
    quote! {
        #rt::OperationTable =
            #rt::OperationTable::new(#seed, &[#(#displacements),*], &[#(#slots),*], #names)
    }
}

fn sorted(names: &[&str]) -> TokenStream {
    let rt = rt();
    let mut operations: Vec<(&str, usize)> = names.iter().copied().zip(0..).collect();
    operations.sort_unstable();
    let operations = operations.iter().map(|&(name, number)| {
        let number = Literal::usize_unsuffixed(number);
        quote! { (#name, #number) }
    });
    quote! { #rt::BinarySearchTable = #rt::BinarySearchTable::new(&[#(#operations),*]) }
}
