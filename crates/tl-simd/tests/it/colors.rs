//! Results for all 2^24 colours against torchvision's (`testdata/color_kernels/generate.py`).

use std::path::PathBuf;

use tl_simd::Level;
use tl_simd::color::{self, Arithmetic};

/// The checksum of an operation's results for all colours, a red at a time.
fn hash(change: impl Fn(&mut [u8])) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    let greens = (0..=255_u8).flat_map(|green| (0..=255_u8).map(move |blue| [green, blue]));
    let without_red: Vec<u8> = greens.flat_map(|[green, blue]| [0, green, blue]).collect();
    for red in 0..=255_u8 {
        let mut pixels = without_red.clone();
        pixels.iter_mut().step_by(3).for_each(|sample| *sample = red);
        change(&mut pixels);
        hasher.update(&pixels);
    }
    hasher.finalize()
}

fn check(level: Level, line: &str) {
    let fields: Vec<&str> = line.split(' ').collect();
    let [name, mode, factor, crc] = fields[..] else { unreachable!("{line}") };
    let factor: f64 = factor.parse().expect("a number");
    let arithmetic = if mode == "pil" { Arithmetic::Pillow } else { Arithmetic::Torch };
    let found = hash(|pixels| match (name, arithmetic) {
        ("grey", _) => color::to_grey(level, arithmetic, pixels),
        ("saturation", _) => color::blend_with_grey(level, arithmetic, factor, pixels),
        ("hue", Arithmetic::Pillow) => color::shift_hue_bytes(level, steps(factor), pixels),
        ("hue", _) => color::shift_hue(level, factor, pixels),
        _ => unreachable!("no operation is called {name}"),
    });
    assert_eq!(format!("{found:08x}"), crc, "{level}: {line}");
}

/// What torchvision adds to Pillow's hues.
#[expect(clippy::cast_possible_truncation, reason = "the truncation torchvision makes")]
fn steps(factor: f64) -> u8 {
    ((factor * 255.0) as i32).to_le_bytes()[0]
}

#[test]
fn every_colour_changes_as_in_torchvision() {
    let committed = tl_testdata::shipped!("color_kernels/cases.txt");
    let named = std::env::var_os("TL_SIMD_COLOR_CASES").map(PathBuf::from);
    // Other levels than the fastest take seconds, and are compared with it elsewhere.
    let all = named.is_some();
    let levels = Level::available().filter(|level| all || *level == Level::detect());
    let path = named.unwrap_or(committed);
    let text = std::fs::read_to_string(path).expect("the cases can be read");
    for level in levels {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let count = lines.inspect(|line| check(level, line)).count();
        assert!(count >= 10, "{count} cases");
        println!("{level}: {count} cases, no byte differs");
    }
}
