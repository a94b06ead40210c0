//! Integration tests of tbl-io.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::needless_pass_by_value,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "test code, helpers included"
)]

mod containers;
mod content_id;
mod convert;

mod damage;
mod folder;
mod images;
mod labels;
mod lists;
mod mapped;
mod npy;
mod ranges;
mod row_indexes;
mod shard_index;
mod source;
mod tar_bytes;
mod tar_corpora;
mod tar_golden;
mod tar_hostile;
mod tar_index;
mod tar_of_tars;
mod tar_writer;
mod tbl;
mod unpack;
mod uploads;
#[cfg(all(target_os = "linux", feature = "io-uring"))]
mod uring;
mod views;
