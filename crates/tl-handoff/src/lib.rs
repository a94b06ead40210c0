#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

pub mod permits;
pub mod pool;
pub mod recent;
pub mod ring;
pub mod slab;
pub mod sync;
pub mod window;
