#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod at_once;
mod atomic_file;
mod braces;
mod byte_locks;
mod codec;
mod convert;
mod draft;
mod error;
mod escape;
mod fault;
mod files;
mod folder;
mod folder_shards;
mod foreign;
mod grouping;
mod identity;
mod images;
mod in_memory;
mod interrupt;
mod json;
mod json_object;
mod kind;
mod label;
mod labels;
mod limits;
mod list_error;
mod list_options;
mod listed;
mod lists;
mod local_file;
mod location;
mod metadata_json;
mod mmap;
mod names;
mod note;
mod npy;
mod open;
mod ordered;
mod plain;
mod ranges;
mod reader;
mod repair;
mod retry;
mod sample;
mod saved;
mod seekable;
mod shard_index;
mod source;
mod starts;
mod storage;
mod tar;
mod tar_writer;
mod tbl_version;
mod unpack;
#[cfg(all(target_os = "linux", feature = "io-uring"))]
mod uring;
mod verify;
mod view;
mod write_error;
mod writer;

pub use atomic_file::{AtomicFile, Placement, remove_drafts};
pub use braces::expand_braces;
pub use byte_locks::ByteLocks;
pub use convert::{
    AsStored, ConvertError, ConvertEvent, ConvertOptions, ConvertSummary, FileLayout, Prepare,
    Prepared, RowIndex, SampleWriter, Selection, Target, TargetFormat, convert, convert_in,
};
pub use draft::{Draft, Upload};
pub use error::{
    ClassPair, FileKind, ImagesDefect, RawDefect, ReadError, RowsDefect, TarDefect, TokensDefect,
};
pub use escape::Escaped;
pub use folder::{Folder, FolderSkips};
pub use grouping::{join_base, split_base};
pub use in_memory::{HeldBytes, InMemory, Items};
pub use interrupt::{interruptible, is_interrupted};
pub use kind::{ErrorKind, ErrorPlace};
pub use label::LabelDefect;
pub use labels::{GivenLabels, LabelOrigin, Labels};
pub use limits::ReadLimits;
pub use list_error::{ListDefect, ListPlace};
pub use list_options::{Coco, ListOptions, Manifest};
pub use listed::Listed;
pub use lists::{Pairs, Unpaired, is_list, open_coco, open_manifest, open_pairs};
pub use location::Location;
pub use mmap::Mapped;
pub use note::{Note, NotedSample};
pub use npy::{NpyArray, NpyError, NpyHeader, NpyKind, NpzMember, npz_member, npz_members};
pub use open::{
    allow_open_files, open, open_all, open_all_in, open_each, open_in, open_source, open_source_in,
};
pub use plain::PlainReader;
pub use ranges::{
    BackgroundReads, Part, PartFault, PartReceiver, Pin, RangeFault, Ranges, UnderWay, Unusable,
};
pub use reader::{Damage, MetadataTotals, RawView, ReadOptions, RowIndexTotals, TblFile, Verify};
pub use repair::{RepairEvent, RepairOptions, RepairSummary, repair};
pub use retry::{RetryPolicy, is_transient};
pub use sample::{
    BlockMemory, BulkIndex, DamageChecks, Entry, Facts, Field, MetadataBlock, RowIndexes,
    SampleBlocks, SampleName, SampleSource, SampleSourceExt, SourceKind, StoredBytes,
    StoredSamples, announce_after,
};
pub use seekable::open_seekable;
pub use shard_index::{
    IndexError, IndexOptions, IndexSummary, index_shards, open_indexed, open_shards,
};
pub use source::{PageCache, Source, open_file};
pub use storage::{ContainerFormat, FilePart, Object, Opened, Storage, Stores};
pub use tar::{MemberCounts, MemberKind, SkippedMember, TarArchive};
pub use tar_writer::{TarOptions, TarSummary, TarWriter};
pub use tbl_version::TblVersion;
pub use unpack::Unpack;
#[cfg(all(target_os = "linux", feature = "io-uring"))]
pub use uring::{Completed, UringError, UringReader};
pub use verify::{Finding, Oddity, VerifySummary, verify};
pub use write_error::{MetadataDefect, NameDefect, WriteError};
pub use writer::{
    Compressed, Compression, CompressionError, EncodeError, Encoded, Encoder, NewSample,
    StreamWriter, Unstored, WriteOptions, WriteSummary, ZstdLevel,
};
