//! Tables: what batches of columns hold, whatever the file, the threads and the ranks.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "tables of tests have few rows, and small numbers"
)]

mod array_files;
mod arrays;
mod arrays_damage;
mod damage;
pub(crate) mod files;
mod going_on;
mod graphs;
mod labels;
mod oracle;
mod parquet;
mod requests;
