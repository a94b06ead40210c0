#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod batch;
mod config;
mod dataset;
mod error;
mod loader;
mod order;
mod pool;
mod render;
mod ring;
mod sample;
mod slab;
mod stats;
mod sync;
mod worker;

pub use batch::{Batch, Dimensions, ImageSpec, Sample};
pub use config::{LoaderConfig, OnError, Work};
pub use dataset::Dataset;
pub use error::{PipelineError, SampleError, SampleFault};
pub use loader::{Epoch, Loader};
pub use order::Order;
pub use render::Renderer;
pub use sample::{SampleRenderer, Stored, Target};
pub use stats::{Damaged, LoaderStats, Skipped};
