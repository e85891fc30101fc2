//! Messages, references and URLs: round trips, limits, and recordings of another ORB.

mod connection;
mod end_times;
mod fragments;
mod groups;
mod messages;
mod minors;
mod omniorb;
mod policies;
mod protocols;
mod references;
mod scheduling;
mod ssl;
mod urls;
