//! Steps against the results of torchvision and Pillow on small images (`testdata/transforms`).

use std::fs;

use serde::Deserialize;
use tl_simd::Level;
use tl_transform::{Image, Parity, Runner, Step};

use crate::noise;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    row: String,
    mode: Parity,
    image: String,
    steps: Vec<Step>,
    size: (u32, u32),
    /// The checksum of the result.
    crc32: u32,
}

/// The image of a case by its name, `KIND WIDTHxHEIGHT`, as `generate.py` draws it.
fn image(name: &str) -> Image {
    let (kind, size) = name.rsplit_once(' ').expect("a kind and a size");
    let (width, height) = size.split_once('x').expect("two sides");
    let [width, height] = [width, height].map(|side| side.parse::<u32>().expect("a number"));
    let bytes = width as usize * height as usize * 3;
    let pixels = match (kind, width) {
        ("noise", 13) => noise(bytes, 1),
        ("noise", 1) => noise(bytes, 2),
        ("noise", 9) => noise(bytes, 3),
        ("black and white", _) => noise(bytes, 4).iter().map(|byte| (byte & 1) * 255).collect(),
        ("smooth", _) => smooth(2, width, height),
        _ => unreachable!("no image is called {name}"),
    };
    Image::from_pixels(width, height, pixels)
}

fn smooth(seed: u32, width: u32, height: u32) -> Vec<u8> {
    let sample = |x: u32, y: u32, channel: u32| {
        let [low, ..] = (x * (3 + seed % 5) + y * (2 + channel) + channel * 40).to_le_bytes();
        low
    };
    let pixel = |x, y| [sample(x, y, 0), sample(x, y, 1), sample(x, y, 2)];
    (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect()
}

#[test]
fn steps_give_the_pixels_of_torchvision_at_every_level() {
    let folder = tl_testdata::shipped!("transforms");
    let text = fs::read_to_string(folder.join("cases.jsonl")).expect("the goldens exist");
    let mut runners: Vec<(Level, Runner)> =
        Level::available().map(|level| (level, Runner::new().with_level(level))).collect();
    for line in text.lines() {
        let case: Case =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for (level, runner) in &mut runners {
            let mut result = image(&case.image);
            let label = format!("{level}: {} ({}) of {}", case.row, case.mode, case.image);
            runner
                .run(&case.steps, case.mode, &mut result)
                .unwrap_or_else(|error| panic!("{label}: {error}"));
            assert_eq!(result.size(), case.size, "{label}");
            assert_eq!(crc32fast::hash(result.pixels()), case.crc32, "{label}");
        }
    }
}
