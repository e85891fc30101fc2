//! Tests of generated code, compiled and called as users do.

mod apart;
mod asynchronous;
mod book;
mod calls;
mod demux;
mod dynamic;
mod extended;
mod flat;
mod marked;
mod marks;
mod names;
mod notification;
mod owned;
mod pages;
mod recursive;
mod refused;
mod second_names;
mod shapes;
mod support;
mod unions;
mod values;
mod ways;
