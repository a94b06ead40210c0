//! The bodies of the fuzz targets: what must hold for any bytes whatever.
//!
//! A body returns nothing; it fails by panicking, by running too long or by allocating too much.
//! The same functions replay seeds and past crashes in an ordinary test.

mod columns;
mod decode;
mod files;
mod format;
mod idv;
mod jpeg;
mod jpeg_file;
mod lists;
mod names;
mod parquet_rows;
mod recipe;
mod recipe_json;
mod shard_index;
mod table;
mod tbf;
mod token_lists;
mod tokens;
mod video;
mod webp;

pub use columns::{arrays, parquet_columns, zarr};
pub use decode::{
    decode_avif, decode_bmp, decode_gif, decode_jpeg, decode_jpeg2000, decode_jxl, decode_png,
    decode_pnm, decode_qoi, decode_tiff, decode_webp,
};
pub use format::{
    fix_tar_checksums, fix_tbl2_checksums, images, numpy, packed_tar, tar, tbl1, tbl2,
};
pub use idv::{idv_codecs, idv_open};
pub use jpeg::{jpeg_levels_agree, jpeg_region_equals_full, jpeg_row_index};
pub use jpeg_file::jpeg_file;
pub use lists::lists;
pub use names::extract_names;
pub use parquet_rows::{arrow_ipc, parquet_rows};
pub use recipe::recipe;
pub use recipe_json::recipe_json;
pub use shard_index::shard_index;
pub use table::{csv, parquet};
pub use tbf::{fix_tbf_checksums, tbf_open};
pub use tl_store::http_response;
pub use token_lists::{token_list, token_order};
pub use tokens::tokens;
pub use video::{video_frames, video_index, video_stored};
pub use webp::webp_region_equals_full;
