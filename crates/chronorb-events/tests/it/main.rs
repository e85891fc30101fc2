//! Tests of the event channel's core: the conformance cases, and scripts beside a model.

mod cases;
mod entries;
mod model;
mod properties;
mod queue;
mod routes;
mod support;
mod text;
