//! An object store for tests and benchmarks: five dialects, slow by choice, faulty by choice.
//!
//! [`Service`] answers requests in memory, in virtual time if tokio's clock is paused. [`serve`]
//! puts it on a port of this machine. Nothing of it is for production: whoever can reach the port
//! reads everything.
#![forbid(unsafe_code)]

mod body;
mod dialect;
mod fault;
mod objects;
mod options;
mod serve;
mod service;
mod uploads;

pub use dialect::Dialect;
pub use fault::{Fault, Faults};
pub use objects::Objects;
pub use options::{Options, USAGE};
pub use serve::{Serving, serve};
pub use service::{Counts, Service, Speed};
pub use uploads::PendingUpload;
