//! Tests of the statements of the example and the book.

mod book;
mod programs;
mod rights;
