//! The `tl` binary, run as a user runs it.

mod benchmark;
mod compression;
mod converting;
mod damage;
mod decoding;
#[cfg(target_os = "linux")]
mod devices;
mod doctor;
mod escape;
mod extraction;
mod formats;
#[cfg(target_os = "linux")]
mod interrupts;
mod jobs;
mod labels;
#[cfg(target_os = "linux")]
mod limits;
mod listing;
mod lists;
mod metadata;
mod notes;
mod orders;
mod parquet_samples;
mod recipes;
#[cfg(feature = "remote")]
mod remote;
mod row_indexes;
mod row_tables;
#[cfg(feature = "parquet")]
mod segment_writing;
mod segments;
mod shards;
mod sheets;
mod support;
mod table_batches;
mod table_conversion;
mod tables;
mod tokenize;
mod tokens;
#[cfg(feature = "remote")]
mod uploads;
mod usage;
mod videos;
mod views;

#[cfg(target_os = "linux")]
tl_testdata::shipped_module!("kernels/library.rs");
