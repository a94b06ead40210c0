//! Every level against the bits that torchvision made (`testdata/normalize/generate.py`).

use tl_simd::Level;
use tl_simd::normalize::{Dtype, ImageWriter, Layout, PixelFormat, Table};

const CASES: &str = tl_testdata::shipped_text!("normalize/cases.txt");

#[test]
fn every_level_normalizes_with_the_bits_of_torchvision() {
    let ramp: Vec<u8> = (0..=255).flat_map(|sample: u8| [sample; 3]).collect();
    let lines: Vec<&str> = CASES.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 50, "cases");
    for line in lines {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| rounded(fields[at]);
        let table = Table::new([0, 1, 2].map(number), [3, 4, 5].map(number));
        let elements = [Dtype::F32, Dtype::F16, Dtype::Bf16];
        for (dtype, crc) in elements.into_iter().zip(&fields[6..]) {
            let crc = u32::from_str_radix(crc, 16).expect("a CRC");
            for level in Level::available() {
                let format = PixelFormat { dtype, layout: Layout::Chw, flip: false };
                let mut out = vec![0; 256 * 3 * dtype.bytes()];
                ImageWriter::new(&mut out, 256, 1, format, &table).write_row(level, 0, &ramp);
                assert_eq!(crc32fast::hash(&out), crc, "{level} {dtype:?}: {line}");
            }
        }
    }
}

/// Python's numbers are doubles that torch rounds to float32.
#[expect(clippy::cast_possible_truncation, reason = "the rounding is what torch does")]
fn rounded(field: &str) -> f32 {
    field.parse::<f64>().expect("a number") as f32
}
