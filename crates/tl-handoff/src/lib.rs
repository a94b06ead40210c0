#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

#[cfg(all(feature = "loom", feature = "shuttle"))]
compile_error!("the features `loom` and `shuttle` exclude each other: both replace the same types");

pub mod permits;
pub mod pool;
pub mod recent;
pub mod ring;
pub mod slab;
pub mod sync;
pub mod window;
