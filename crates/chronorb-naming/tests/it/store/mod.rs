//! The store over a disc that loses what is not synced, at every moment of random histories.

mod damage;
mod disc;
mod files;
mod histories;
mod model;
