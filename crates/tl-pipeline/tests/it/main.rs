//! Loaders from outside: what batches hold, in which order, and what happens when something fails.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod allocations;
mod archives;
mod arrow_files;
mod bad_disks;
mod block_processes;
mod blocks;
mod buckets;
mod budget;
mod cache_kills;
mod caches;
mod clips;
mod containers;
mod content;
mod damage;
mod decoding;
mod delivery;
mod documents;
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
mod library {
    tl_testdata::shipped_items!("kernels/library.rs");
}
mod lifetimes;
mod memory;
mod mixing;
mod names;
mod nvjpeg;
mod observing;
mod own_index;
mod parquet_blocks;
mod parquet_files;
mod pictures_ahead;
mod places;
mod readers;
mod reading_ahead;
mod reductions;
mod resume;
mod rows_in_stores;
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
