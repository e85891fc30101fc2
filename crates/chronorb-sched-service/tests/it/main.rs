//! Tests of the scheduling service, as its clients see it.

mod anomalies;
mod assignment;
mod interface;
mod quotas;
mod support;
