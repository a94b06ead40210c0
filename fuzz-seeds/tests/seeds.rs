//! Replays the committed seeds and every input that once failed, on the stable compiler.

use std::fs;
use std::path::{Path, PathBuf};

use tl_decode::{Image, JpegDecoder, JpegRequest, Limits};

/// Runs `body` on every file of `seeds/TARGET` and `regressions/TARGET`; the seeds must exist.
fn replay(target: &str, body: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let seeds = files(&root.join("seeds").join(target));
    assert!(!seeds.is_empty(), "no seeds for {target}");
    for path in seeds.into_iter().chain(files(&root.join("regressions").join(target))) {
        let data = fs::read(&path).expect("the file is readable");
        body(&data);
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

#[test]
fn tar_seeds_pass() {
    replay("tar", fuzz_seeds::tar);
}

#[test]
fn packed_tar_seeds_pass() {
    replay("packed_tar", fuzz_seeds::packed_tar);
}

#[test]
fn numpy_seeds_pass() {
    replay("numpy", fuzz_seeds::numpy);
}

#[test]
fn tokens_seeds_pass() {
    replay("tokens", fuzz_seeds::tokens);
}

#[test]
fn lists_and_orders_of_tokens_seeds_pass() {
    replay("token_list", fuzz_seeds::token_list);
    replay("token_order", fuzz_seeds::token_order);
}

#[test]
fn tables_of_columns_seeds_pass() {
    replay("parquet_columns", fuzz_seeds::parquet_columns);
    replay("arrays", fuzz_seeds::arrays);
    replay("zarr", fuzz_seeds::zarr);
}

#[test]
fn images_seeds_pass() {
    replay("images", fuzz_seeds::images);
}

#[test]
fn rows_of_parquet_seeds_pass() {
    replay("parquet_rows", fuzz_seeds::parquet_rows);
}

#[test]
fn rows_of_arrow_seeds_pass() {
    replay("arrow_ipc", fuzz_seeds::arrow_ipc);
}

#[test]
fn video_seeds_pass() {
    replay("video_index", fuzz_seeds::video_index);
    replay("video_frames", fuzz_seeds::video_frames);
    replay("video_stored", fuzz_seeds::video_stored);
}

#[test]
fn shard_index_seeds_pass() {
    replay("shard_index", fuzz_seeds::shard_index);
}

#[test]
fn list_seeds_pass() {
    replay("lists", fuzz_seeds::lists);
}

#[test]
fn http_response_seeds_pass() {
    replay("http_response", fuzz_seeds::http_response);
}

#[test]
fn tbf_seeds_pass() {
    replay("tbf_open", fuzz_seeds::tbf_open);
    replay("tbf_open", |data| {
        tbf_format::Segment::open(data).expect("seeds open");
        let mut copy = data.to_vec();
        fuzz_seeds::fix_tbf_checksums(&mut copy);
        assert_eq!(copy, data, "seeds have the right checksums");
    });
}

#[test]
fn tbl1_seeds_pass() {
    replay("tbl1", fuzz_seeds::tbl1);
}

#[test]
fn tbl2_seeds_pass() {
    replay("tbl2", fuzz_seeds::tbl2);
}

#[test]
fn idv_open_seeds_pass() {
    replay("idv_open", fuzz_seeds::idv_open);
}

#[test]
fn idv_codecs_seeds_pass() {
    replay("idv_codecs", fuzz_seeds::idv_codecs);
}

#[test]
fn jpeg_seeds_pass() {
    replay("decode_jpeg", fuzz_seeds::decode_jpeg);
}

#[test]
fn png_seeds_pass() {
    replay("decode_png", fuzz_seeds::decode_png);
}

#[test]
fn webp_seeds_pass() {
    replay("decode_webp", fuzz_seeds::decode_webp);
}

#[test]
fn bmp_seeds_pass() {
    replay("decode_bmp", fuzz_seeds::decode_bmp);
}

#[test]
fn tiff_seeds_pass() {
    replay("decode_tiff", fuzz_seeds::decode_tiff);
}

#[test]
fn pnm_seeds_pass() {
    replay("decode_pnm", fuzz_seeds::decode_pnm);
}

#[test]
fn qoi_seeds_pass() {
    replay("decode_qoi", fuzz_seeds::decode_qoi);
}

#[test]
fn gif_seeds_pass() {
    replay("decode_gif", fuzz_seeds::decode_gif);
}

#[test]
fn jpeg2000_seeds_pass() {
    replay("decode_jpeg2000", fuzz_seeds::decode_jpeg2000);
}

#[test]
fn jxl_seeds_pass() {
    replay("decode_jxl", fuzz_seeds::decode_jxl);
}

#[test]
fn avif_seeds_pass() {
    replay("decode_avif", fuzz_seeds::decode_avif);
}

#[test]
fn jpeg_region_seeds_pass() {
    replay("jpeg_region_equals_full", fuzz_seeds::jpeg_region_equals_full);
}

#[test]
fn webp_region_seeds_pass() {
    replay("webp_region_equals_full", fuzz_seeds::webp_region_equals_full);
}

#[test]
fn jpeg_level_seeds_pass() {
    replay("jpeg_levels_agree", fuzz_seeds::jpeg_levels_agree);
}

#[test]
fn jpeg_row_index_seeds_pass() {
    replay("jpeg_row_index", fuzz_seeds::jpeg_row_index);
}

#[test]
fn extract_names_seeds_pass() {
    replay("extract_names", fuzz_seeds::extract_names);
}

#[test]
fn recipe_seeds_pass() {
    replay("recipe", fuzz_seeds::recipe);
    replay("recipe", |data| {
        let described = fuzz_seeds::recipe_json(data);
        serde_json::from_slice::<tl_transform::Recipe>(&described).expect("seeds are recipes");
    });
}

#[test]
fn csv_seeds_pass() {
    replay("csv", fuzz_seeds::csv);
}

#[test]
fn parquet_seeds_pass() {
    replay("parquet", fuzz_seeds::parquet);
}

/// The fuzzer's descriptions are valid recipes often enough, nested ones among them.
#[test]
fn described_recipes_are_recipes() {
    let read = |seed| {
        let described = fuzz_seeds::recipe_json(&pseudo_random(seed));
        serde_json::from_slice::<tl_transform::Recipe>(&described).ok()
    };
    let recipes: Vec<_> = (0..400).filter_map(read).collect();
    assert!(recipes.len() >= 100, "{} of 400", recipes.len());
    let nested = recipes.iter().flat_map(|recipe| recipe.ops()).filter(|op| op.count() > 2);
    assert!(nested.count() >= 30);
}

/// What the fuzzer makes of its inputs is whole images.
#[test]
fn described_jpeg_files_decode() {
    let mut decoder = JpegDecoder::new(Limits::default());
    let mut image = Image::new();
    for seed in 0..400u64 {
        let mut description = pseudo_random(seed);
        // No flipped bits.
        description[1] = 0;
        let file = fuzz_seeds::jpeg_file(&description);
        if let Err(error) = decoder.decode(&file, &JpegRequest::default(), &mut image) {
            panic!("description {seed}: {error}");
        }
    }
}

fn pseudo_random(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(2000).collect()
}
