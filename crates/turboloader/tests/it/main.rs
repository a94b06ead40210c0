//! Tests of the library as a program uses it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

#[cfg(feature = "remote")]
mod block_cache;
#[cfg(feature = "remote")]
mod elastic;
#[cfg(all(feature = "arrow", feature = "remote"))]
mod job;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "remote")]
mod remote;
#[cfg(all(feature = "arrow", feature = "remote", feature = "tables"))]
mod rows;
#[cfg(feature = "parquet")]
mod segments;
#[cfg(all(feature = "remote", target_os = "linux"))]
mod sockets;
