//! Loaders from outside: what batches hold, in which order, and what happens when something fails.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod allocations;
mod archives;
mod buckets;
mod budget;
mod cache_kills;
mod caches;
mod containers;
mod content;
mod damage;
mod empties;
mod errors;
mod fast;
mod field_names;
mod fields;
mod going_on;
mod grey;
mod images;
mod instance_masks;
mod keypoints;
mod labels;
mod lifetimes;
mod memory;
mod mixing;
mod names;
mod observing;
mod parquet_files;
mod places;
mod readers;
mod reading_ahead;
mod reductions;
mod resume;
mod samplers;
mod shard_index;
mod shutdown;
mod skipping;
mod sources;
mod steps;
mod store;
mod tables;
mod tokens;
mod user_transforms;
mod values;
mod views;
mod wide;
