//! Tests of the example's programs, run as its reader does.

mod programs;
mod rio;
