//! Every level against the bytes that Pillow and torch made (`testdata/resample/generate.py`).

use crate::noise;
use std::path::PathBuf;
use std::str::FromStr;
use tl_simd::Level;
use tl_simd::resample::{Area, Filter, ImageView, Rect, Resampler, ResizeArea, TensorFilter};

#[derive(Debug)]
struct Case {
    width: u32,
    height: u32,
    channels: usize,
    extreme: bool,
    seed: u64,
    resize: ResizeArea,
    crc: u32,
}

impl Case {
    /// `filter` tells the filter from its name.
    fn parse(line: &str, filter: fn(&str) -> Filter) -> Self {
        let fields: Vec<&str> = line.split(' ').collect();
        let rect = |at: usize| Rect {
            x: number(fields[at]),
            y: number(fields[at + 1]),
            width: number(fields[at + 2]),
            height: number(fields[at + 3]),
        };
        let area = |at: usize| {
            let [left, top, width, height]: [f64; 4] =
                std::array::from_fn(|field| number(fields[at + field]));
            Area { left, top, right: left + width, bottom: top + height }
        };
        assert_eq!(fields.len(), 17, "fields of {line:?}");
        Self {
            width: number(fields[0]),
            height: number(fields[1]),
            channels: number(fields[2]),
            extreme: fields[3] == "extreme",
            seed: number(fields[4]),
            resize: ResizeArea {
                area: area(5),
                resized: (number(fields[9]), number(fields[10])),
                window: rect(11),
                filter: filter(fields[15]),
            },
            crc: u32::from_str_radix(fields[16], 16).expect("a CRC"),
        }
    }

    fn pixels(&self) -> Vec<u8> {
        let size = self.width as usize * self.height as usize * self.channels;
        let black_or_white = |byte| if self.extreme { (byte & 1) * 255 } else { byte };
        noise(size, self.seed).into_iter().map(black_or_white).collect()
    }
}

fn number<T: FromStr>(field: &str) -> T {
    field.parse().ok().expect("a number")
}

fn filter(name: &str) -> Filter {
    let filters = [
        ("nearest", Filter::Nearest),
        ("box", Filter::Box),
        ("bilinear", Filter::Bilinear),
        ("hamming", Filter::Hamming),
        ("bicubic", Filter::Bicubic),
        ("lanczos", Filter::Lanczos),
    ];
    filters.into_iter().find(|filter| filter.0 == name).expect("a filter's name").1
}

fn tensor_filter(name: &str) -> Filter {
    let filters = [
        ("nearest", TensorFilter::Nearest),
        ("nearest-exact", TensorFilter::NearestExact),
        ("bilinear", TensorFilter::Bilinear),
        ("bicubic", TensorFilter::Bicubic),
        ("lanczos", TensorFilter::Lanczos),
        ("plain-bilinear", TensorFilter::PlainBilinear),
        ("plain-bicubic", TensorFilter::PlainBicubic),
    ];
    Filter::Tensor(filters.into_iter().find(|filter| filter.0 == name).expect("a filter's name").1)
}

/// The cases in the repository, or those of the file that `variable` names.
fn cases(variable: &str, committed: &str, filter: fn(&str) -> Filter) -> Vec<Case> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/resample");
    let committed = PathBuf::from(folder).join(committed);
    let path = std::env::var_os(variable).map_or(committed, PathBuf::from);
    let text = std::fs::read_to_string(&path).expect("the cases can be read");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| Case::parse(line, filter)).collect()
}

/// Returns how many bytes were compared, all levels together.
fn check(cases: &[Case]) -> usize {
    assert!(cases.len() >= 600, "{} cases", cases.len());
    let mut bytes = 0;
    for level in Level::available() {
        let mut resampler = Resampler::new();
        for case in cases {
            let pixels = case.pixels();
            let image = ImageView::packed(&pixels, case.width, case.height, case.channels);
            let mut out = Vec::new();
            resampler.run_area(level, image, &case.resize, |_, row| out.extend_from_slice(row));
            assert_eq!(crc32fast::hash(&out), case.crc, "{level}: {case:?}");
            bytes += out.len();
        }
    }
    bytes
}

#[test]
fn every_level_resizes_with_the_bytes_of_pillow() {
    println!("{} bytes, none differs", check(&cases("TL_SIMD_CASES", "cases.txt", filter)));
}

#[test]
fn every_level_resizes_boxes_with_the_bytes_of_pillow() {
    println!("{} bytes, none differs", check(&cases("TL_SIMD_BOXES", "boxes.txt", filter)));
}

#[test]
fn every_level_resizes_with_the_bytes_of_torch() {
    let cases = cases("TL_SIMD_TENSORS", "tensors.txt", tensor_filter);
    println!("{} bytes, none differs", check(&cases));
}
