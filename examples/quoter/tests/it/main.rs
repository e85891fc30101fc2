//! The programs of the example, run as its reader does, and the excerpts of the book.

mod adapters;
mod book;
mod cpp;
mod programs;
mod rio;
mod support;
mod tls;
