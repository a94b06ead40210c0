//! Every level against the bytes that Pillow made (`testdata/jpeg_kernels/generate.py`).

use crate::split_mix;
use std::path::PathBuf;
use std::str::FromStr;
use tl_simd::Level;
use tl_simd::jpeg::{
    Block, Scale, idct, replicate, upsample_h1v2, upsample_h2v1, upsample_h2v2, ycc_to_rgb,
    ycc_to_rgb_planar,
};

/// The coefficients that a case draws.
#[derive(Clone, Copy, Debug)]
struct Kind {
    /// How many of 256 are not zero.
    density: u64,
    /// Whether they get rarer and smaller away from the mean.
    falloff: u64,
    amplitude: i64,
    largest_quantizer: u64,
    /// Rows of a block that have any.
    rows: usize,
}

impl Kind {
    fn named(name: &str) -> Self {
        let (density, falloff, amplitude, largest_quantizer, rows) = match name {
            "photo" => (400, 1, 160, 16, 8),
            "dense" => (256, 0, 1023, 16, 8),
            "extreme" => (256, 0, 16_383, 65_535, 8),
            "sparse" => (8, 0, 16_383, 65_535, 8),
            "flat" => (256, 0, 16_383, 65_535, 1),
            _ => unreachable!("no kind {name}"),
        };
        Self { density, falloff, amplitude, largest_quantizer, rows }
    }

    fn quantizer(self, seed: u64) -> [u16; 64] {
        let mut words = (1..).map(|counter| split_mix(seed, counter) % self.largest_quantizer + 1);
        [(); 64].map(|()| words.next().and_then(|word| word.try_into().ok()).expect("16 bits"))
    }

    fn blocks(self, seed: u64, count: usize) -> Vec<Block> {
        let block = |first: usize| {
            Block(std::array::from_fn(|k| {
                self.coefficient(k, split_mix(seed, 65 + (first + k) as u64))
            }))
        };
        (0..count).map(|i| block(i * 64)).collect()
    }

    fn coefficient(self, k: usize, word: u64) -> i16 {
        let distance = 1 + (k % 8 + k / 8) as u64 * self.falloff;
        let limit = self.amplitude / distance.cast_signed();
        if (word & 255) * distance >= self.density || k / 8 >= self.rows {
            return 0;
        }
        let drawn = (word >> 8) % (2 * limit + 1).cast_unsigned();
        i16::try_from(drawn.cast_signed() - limit).expect("16 bits")
    }
}

/// A component's samples.
#[derive(Debug)]
struct Plane {
    samples: Vec<u8>,
    stride: usize,
    width: usize,
    height: usize,
}

impl Plane {
    fn row(&self, y: usize) -> &[u8] {
        &self.samples[y * self.stride..][..self.width]
    }
}

/// Transforms rows of `across` blocks, and cuts the samples to `size`.
fn transform(
    level: Level,
    scale: Scale,
    quantizer: &[u16; 64],
    mut blocks: Vec<Block>,
    across: usize,
    [width, height]: [usize; 2],
) -> Plane {
    let side = scale.block_side();
    let stride = across * side;
    let mut samples = vec![0; blocks.len() * side * side];
    for (row, out) in blocks.chunks_mut(across).zip(samples.chunks_mut(stride * side)) {
        idct(level, scale, quantizer, row, out, stride);
        assert!(row.iter().all(|block| *block == Block::ZERO), "{level} leaves coefficients");
    }
    Plane { samples, stride, width, height }
}

/// Row `y` of the image out of a plane that is `h` by `v` times smaller.
fn upsampled(level: Level, plane: &Plane, y: usize, [h, v]: [usize; 2]) -> Vec<u8> {
    let near = y / v;
    let lower = y % v == 1;
    let far = if lower { (near + 1).min(plane.height - 1) } else { near.saturating_sub(1) };
    let [near, far] = [near, far].map(|y| plane.row(y));
    let mut out = vec![0; plane.width * h];
    match (h, v) {
        (2, 1) => upsample_h2v1(level, near, &mut out),
        (2, 2) => upsample_h2v2(level, near, far, &mut out),
        (1, 2) => upsample_h1v2(level, near, far, lower, &mut out),
        _ => replicate(level, near, h, &mut out),
    }
    out
}

fn check_idct(level: Level, fields: &[&str]) {
    let [kind, seed, across, down, crcs @ ..] = fields else { unreachable!("{fields:?}") };
    let (kind, seed) = (Kind::named(kind), number(seed));
    let (across, down): (usize, usize) = (number(across), number(down));
    for (scale, expected) in Scale::HALVINGS.into_iter().zip(crcs) {
        let blocks = kind.blocks(seed, across * down);
        let plane = transform(level, scale, &kind.quantizer(seed), blocks, across, [0; 2]);
        assert_eq!(crc(&plane.samples), *expected, "{level} {scale} {fields:?}");
    }
}

fn check_color(level: Level, fields: &[&str]) {
    let [kind, seed, width, height, h, v, ycc, rgb] = fields else { unreachable!("{fields:?}") };
    let (kind, seed) = (Kind::named(kind), number(seed));
    let [width, height, h, v] = [width, height, h, v].map(|field| number::<usize>(field));
    let quantizer = kind.quantizer(seed);
    let (across, down) = (width.div_ceil(8 * h), height.div_ceil(8 * v));
    let planes = [0, 1, 2].map(|component| {
        let [h, v] = if component == 0 { [h, v] } else { [1, 1] };
        let blocks = kind.blocks(seed + component, across * h * down * v);
        let size = if component == 0 {
            [width, height]
        } else {
            [width.div_ceil(number(fields[4])), height.div_ceil(number(fields[5]))]
        };
        transform(level, Scale::FULL, &quantizer, blocks, across * h, size)
    });
    let (mut interleaved, mut converted) = (Vec::new(), Vec::new());
    for y in 0..height {
        let luma = planes[0].row(y);
        let chroma = [1, 2].map(|component| upsampled(level, &planes[component], y, [h, v]));
        let rows = [luma, &chroma[0][..width], &chroma[1][..width]];
        interleaved.extend((0..width).flat_map(|x| rows.map(|row| row[x])));
        converted.extend(rgb_row(level, rows));
    }
    assert_eq!(crc(&interleaved), *ycc, "{level} {fields:?}");
    assert_eq!(crc(&converted), *rgb, "{level} {fields:?}");
}

fn check_pixels(level: Level, fields: &[&str]) {
    let [seed, expected] = fields else { unreachable!("{fields:?}") };
    let seed = number(seed);
    let sample = |value: u64| value.to_le_bytes()[0];
    let y: Vec<u8> = (1..=1 << 16).map(|counter| sample(split_mix(seed, counter))).collect();
    let cb: Vec<u8> = (0..1 << 16).map(sample).collect();
    let cr: Vec<u8> = (0..1 << 16).map(|place| sample(place >> 8)).collect();
    assert_eq!(crc(&rgb_row(level, [&y, &cb, &cr])), *expected, "{level}");
}

/// A row of pixels, by the interleaving and by the planar conversion.
fn rgb_row(level: Level, planes: [&[u8]; 3]) -> Vec<u8> {
    let mut out = vec![0; planes[0].len() * 3];
    ycc_to_rgb(level, planes, &mut out);
    let mut separate = planes.map(<[u8]>::to_vec);
    let [red, green, blue] = separate.each_mut().map(Vec::as_mut_slice);
    ycc_to_rgb_planar(level, planes, [red, green, blue]);
    for (x, pixel) in out.chunks_exact(3).enumerate() {
        assert_eq!(separate.each_ref().map(|plane| plane[x]), pixel, "{level}: pixel {x}");
    }
    out
}

fn crc(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

fn number<T: FromStr>(field: &str) -> T {
    field.parse().ok().expect("a number")
}

/// The cases in the repository, or those of the file that `TL_SIMD_JPEG_CASES` names.
fn cases() -> String {
    let committed = tl_testdata::shipped!("jpeg_kernels/cases.txt");
    let path = std::env::var_os("TL_SIMD_JPEG_CASES").map_or(committed, PathBuf::from);
    std::fs::read_to_string(path).expect("the cases can be read")
}

#[test]
fn every_level_decodes_with_the_bytes_of_pillow() {
    let text = cases();
    for level in Level::available() {
        let mut count = 0;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split(' ').collect();
            match fields[0] {
                "idct" => check_idct(level, &fields[1..]),
                "color" => check_color(level, &fields[1..]),
                "pixels" => check_pixels(level, &fields[1..]),
                other => panic!("no case {other}"),
            }
            count += 1;
        }
        assert!(count >= 49, "{count} cases");
        println!("{level}: {count} cases, no byte differs");
    }
}
