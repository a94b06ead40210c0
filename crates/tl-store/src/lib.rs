#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod address;
mod ahead;
mod answer;
mod background;
mod bucket;
mod cause;
mod clients;
mod connections;
mod counters;
mod engine;
#[cfg(feature = "fuzzing")]
mod fuzzing;
mod gate;
mod hub;
mod list;
mod net;
mod object;
mod options;
mod pace;
mod parts;
mod pending;
mod profile;
mod put;
mod read;
mod redirect;
mod store;
mod transfer;
mod tries;
mod upload;
mod version;
mod web;

#[cfg(test)]
mod tests;

pub use counters::StoreStats;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use fuzzing::http_response;
pub use options::{OptionError, StoreOptions};
pub use pending::PendingUpload;
pub use store::RemoteStores;
