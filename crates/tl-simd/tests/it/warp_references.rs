//! Every level against what Pillow and torchvision made (`testdata/warp/generate.py`).

use crate::noise;
use std::array;
use std::path::PathBuf;
use tl_simd::Level;
use tl_simd::resample::ImageView;
use tl_simd::warp::{Filter, Grid, GridWarp, Map, Warp, Warper};

struct Case<'a> {
    line: &'a str,
    width: u32,
    height: u32,
    channels: usize,
    kind: &'a str,
    seed: u64,
    size: (u32, u32),
    filter: Filter,
    fill: Option<[u8; 3]>,
    map: &'a str,
    numbers: Vec<&'a str>,
    crc: u32,
}

impl<'a> Case<'a> {
    fn parse(line: &'a str) -> Self {
        let fields: Vec<&str> = line.split(' ').collect();
        assert_eq!(fields.len(), 12, "fields of {line:?}");
        let number = |at: usize| fields[at].parse().expect("a number");
        Self {
            line,
            width: number(0),
            height: number(1),
            channels: number(2) as usize,
            kind: fields[3],
            seed: fields[4].parse().expect("a seed"),
            size: (number(5), number(6)),
            filter: match fields[7] {
                "nearest" => Filter::Nearest,
                "bilinear" => Filter::Bilinear,
                other => {
                    assert_eq!(other, "bicubic");
                    Filter::Bicubic
                }
            },
            fill: (fields[8] != "none").then(|| {
                let mut channels = fields[8].split(',').map(|field| field.parse().expect("a byte"));
                array::from_fn(|_| channels.next().expect("three channels"))
            }),
            map: fields[9],
            numbers: fields[10].split(',').collect(),
            crc: u32::from_str_radix(fields[11], 16).expect("a CRC"),
        }
    }

    fn pixels(&self) -> Vec<u8> {
        let size = self.width as usize * self.height as usize * self.channels;
        let drawn = noise(size, self.seed);
        let first = drawn[0];
        let pixel = |byte| match self.kind {
            "noise" => byte,
            "extreme" => (byte & 1) * 255,
            _ => first,
        };
        drawn.into_iter().map(pixel).collect()
    }

    fn doubles<const N: usize>(&self) -> [f64; N] {
        let bits = |at: usize| u64::from_str_radix(self.numbers[at], 16).expect("bits in hex");
        array::from_fn(|at| f64::from_bits(bits(at)))
    }

    fn floats<const N: usize>(&self) -> [f32; N] {
        let bits = |at: usize| u32::from_str_radix(self.numbers[at], 16).expect("bits in hex");
        array::from_fn(|at| f32::from_bits(bits(at)))
    }

    fn displacements(&self) -> [Vec<f32>; 2] {
        let [scale] = self.floats();
        let pixels = self.width as usize * self.height as usize;
        let words = noise(8 * pixels, self.seed);
        let words = words.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word) >> 8);
        let all: Vec<f32> = words.map(|word| (word as f32 / 16_777_216.0 - 0.5) * scale).collect();
        let (x, y) = all.split_at(pixels);
        [x.to_vec(), y.to_vec()]
    }

    fn run(&self, level: Level, warper: &mut Warper) -> Vec<u8> {
        let pixels = self.pixels();
        let src = ImageView::packed(&pixels, self.width, self.height, self.channels);
        let (size, filter) = (self.size, self.filter);
        let mut out = vec![77; size.0 as usize * size.1 as usize * self.channels];
        let displacements;
        let grid = match self.map {
            "affine" | "perspective" => {
                let map = match self.map {
                    "affine" => Map::Affine(self.doubles()),
                    _ => Map::Perspective(self.doubles()),
                };
                let fill = self.fill.expect("Pillow's cases have a colour");
                warper.pil(level, src, &Warp { map, size, filter, fill }, &mut out);
                return out;
            }
            "grid-affine" => Grid::Affine(self.floats()),
            "grid-perspective" => Grid::Perspective(self.floats()),
            other => {
                assert_eq!(other, "grid-displaced");
                displacements = self.displacements();
                Grid::Displaced(displacements.each_ref().map(Vec::as_slice))
            }
        };
        let fill = self.fill.map(|fill| fill.map(f32::from));
        warper.tensor(level, src, &GridWarp { grid, size, filter, fill }, &mut out);
        out
    }
}

#[test]
fn every_level_warps_with_the_bytes_of_pillow_and_torchvision() {
    let committed = tl_testdata::shipped!("warp/cases.txt");
    let path = std::env::var_os("TL_SIMD_WARPS").map_or(committed, PathBuf::from);
    let text = std::fs::read_to_string(&path).expect("the cases can be read");
    let cases: Vec<Case<'_>> =
        text.lines().filter(|line| !line.starts_with('#')).map(Case::parse).collect();
    assert!(cases.len() >= 500, "{} cases", cases.len());
    for level in Level::available() {
        let mut warper = Warper::new();
        for case in &cases {
            let crc = crc32fast::hash(&case.run(level, &mut warper));
            assert_eq!(crc, case.crc, "{level}: {}", case.line);
        }
    }
}
