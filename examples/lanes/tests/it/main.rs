//! What the example and the book say is so.

mod book;
mod programs;
mod rights;
