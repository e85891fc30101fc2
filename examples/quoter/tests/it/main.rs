//! The programs of the example, run as its reader does.

mod programs;
mod rio;
