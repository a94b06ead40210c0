//! Every level against the bytes that Pillow and torch made (`testdata/resample/generate.py`).

use crate::noise;
use std::path::PathBuf;
use std::str::FromStr;
use tl_simd::Level;
use tl_simd::normalize::PixelType;
use tl_simd::resample::{
    Area, Filter, ImageView, Rect, Resampler, Resize, ResizeArea, TensorFilter, WideResampler,
    premultiply, unpremultiply,
};

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
    let folder = tl_testdata::shipped!("resample");
    let path = std::env::var_os(variable).map_or(folder.join(committed), PathBuf::from);
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

/// The pixels of mode `I;16`, `F` or `RGBA` of a case, and their type.
fn wide_pixels(case: &Case, name: &str) -> (PixelType, Vec<u8>) {
    let bytes = case.pixels();
    match name {
        "u16" => (PixelType::U16, bytes),
        "rgba" => (PixelType::U8, bytes),
        "f32" => {
            let numbers = bytes.as_chunks().0.iter().map(|word| u16::from_le_bytes(*word));
            let floats = numbers.map(|number| (f32::from(number) - 32768.0) / 7.0);
            (PixelType::F32, floats.flat_map(f32::to_ne_bytes).collect())
        }
        _ => unreachable!("{name} pixels"),
    }
}

fn resize_wide(
    level: Level,
    resampler: &mut WideResampler,
    pixels: PixelType,
    image: ImageView<'_>,
    resize: &Resize,
) -> Vec<u8> {
    let mut out = Vec::new();
    if pixels != PixelType::U8 {
        resampler.run(level, pixels, image, resize, |_, row| out.extend_from_slice(row));
        return out;
    }
    let (width, height) = image.size();
    let region = resize.region;
    let same = resize.resized == (region.width, region.height);
    if resize.filter == Filter::Nearest || same {
        Resampler::new().run(level, image, resize, |_, row| out.extend_from_slice(row));
        return out;
    }
    let pixels: Vec<u8> = (0..height).flat_map(|y| image.row(y)).copied().collect();
    let mut multiplied = vec![0; pixels.len()];
    premultiply(level, &pixels, &mut multiplied);
    let image = ImageView::packed(&multiplied, width, height, 4);
    Resampler::new().run(level, image, resize, |_, row| {
        let start = out.len();
        out.resize(start + row.len(), 0);
        unpremultiply(level, row, &mut out[start..]);
    });
    out
}

#[test]
fn every_level_resizes_wide_pixels_with_the_bytes_of_pillow() {
    let path = tl_testdata::shipped!("resample/wide.txt");
    let path = std::env::var_os("TL_SIMD_WIDE").map_or(path, PathBuf::from);
    let text = std::fs::read_to_string(path).expect("the cases can be read");
    let mut count = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(' ').nth(2).expect("a type of pixels");
        let samples = if name == "rgba" { "4" } else { "2" };
        let case = Case::parse(&line.replacen(name, samples, 1), filter);
        let (pixels, bytes) = wide_pixels(&case, name);
        let size = (case.width as usize, bytes.len() / case.width as usize);
        let pixel_bytes = size.1 / case.height as usize;
        let row_bytes = size.0 * pixel_bytes;
        let image = ImageView::of_pixels(&bytes, case.width, case.height, row_bytes, pixel_bytes);
        let ResizeArea { area, resized, window, filter } = case.resize;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole numbers"
        )]
        let [x, y, right, bottom] =
            [area.left, area.top, area.right, area.bottom].map(|edge| edge as u32);
        let region = Rect { x, y, width: right - x, height: bottom - y };
        let resize = Resize { region, resized, window, filter };
        for level in Level::available() {
            let out = resize_wide(level, &mut WideResampler::new(), pixels, image, &resize);
            assert_eq!(crc32fast::hash(&out), case.crc, "{level} {name}: {case:?}");
        }
        count += 1;
    }
    assert!(count >= 600, "{count} cases");
}
