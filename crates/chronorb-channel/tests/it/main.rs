//! The channel as applications see it. Lanes are stepped in virtual time, unless a test is about
//! threads.

mod book;
mod cases;
mod ends;
mod octets;
mod order;
mod overflow;
mod ready;
mod replace;
mod support;
mod threads;
mod turns;
mod work;
