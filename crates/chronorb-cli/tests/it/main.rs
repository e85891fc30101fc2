//! The command, run as users do.

mod book;
mod command_line;
mod demo;
mod doctor;
mod generated;
mod idl;
mod idl_example;
mod idl_model;
mod ior;
mod laboratory;
mod ns;
mod ns_activation;
mod ns_copy;
mod ns_serve;
mod ns_units;
mod operators_day;
mod peer;
mod reports;
mod rio;
mod rio_plan;
mod sched;
mod sched_learn;
mod sched_serve;
mod support;
mod top;
mod whitebox;
