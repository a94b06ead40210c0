//! Plans in words.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use tl_transform::{BatchOp, DecodeMode, Op, Padding, Parity, Pass, PixelType, Recipe, Step};

use super::places::Place;

/// The place, as the table has it.
pub(super) const fn place(place: Place) -> &'static str {
    match place {
        Place::Decoding => "while decoding",
        Place::Scratch => "on the scratch image",
        Place::FinalPass => "in the final pass",
        Place::Row => "on the numbers in the batch",
        Place::Device => "on the device",
        Place::Nowhere => "nowhere",
    }
}

/// The reason why operations are carried out there. Wide pixels go from pass to pass as images.
pub(super) const fn why(place: Place, is_wide: bool) -> &'static str {
    match place {
        Place::Decoding if is_wide => {
            "crops, resizes, borders of one number and flips in front are one pass over the decoded \
             image; of JPEG files only the part that it reads is decoded"
        }
        Place::Decoding => {
            "crops, resizes, black borders and flips in front need rows only, so the part of the \
             image that they read is decoded and goes through them row by row"
        }
        Place::Scratch if is_wide => {
            "operations that cannot join the pass before them; every worker has two images and uses \
             them again"
        }
        Place::Scratch => {
            "operations on whole pixels, or what stands between two of them; every worker has the \
             image once and uses it again"
        }
        Place::FinalPass if is_wide => {
            "the last pass over the image, and what is done to its numbers as they are written into \
             the batch"
        }
        Place::FinalPass => "done to each row as it is written into the batch",
        Place::Row => "operations after the conversion to floats work on the finished row",
        Place::Device => {
            "a kernel looks each number up in the CPU's table, by the 8-bit pixels that are there"
        }
        Place::Nowhere => "left out by the draw, or nothing to do for an image of this size",
    }
}

/// The pixels that operations get.
pub(super) fn pixels(recipe: &Recipe) -> String {
    let pixels = recipe.pixels();
    let stored = if pixels == PixelType::U8 { "" } else { ", the numbers of the files" };
    format!("{} {}{stored}", pixels.in_words(), recipe.channels().in_words())
}

/// The mode and what it means.
pub(super) fn decode_mode(recipe: &Recipe) -> String {
    let mode = recipe.decode_mode();
    let what = match (mode, recipe.pixels()) {
        (DecodeMode::NvJpeg, _) => {
            "baseline files by NVIDIA's library on a device, near the pixels of Pillow; other files exactly"
        }
        (DecodeMode::Exact, PixelType::U8) => "the pixels of Pillow",
        (DecodeMode::Exact, PixelType::U16 | PixelType::F32) => "nothing is scaled",
        _ if recipe.is_wide() => "not for these pixels, which are decoded exactly",
        _ => "from the smallest scale that is enough, colours converted last",
    };
    format!("{mode}: {what}")
}

/// The owner of these pixels.
pub(super) fn parity(recipe: &Recipe) -> String {
    let parity = recipe.parity();
    let pixels = recipe.pixels();
    let whose = if parity == Parity::Pil {
        match pixels {
            PixelType::U8 => "torchvision on Pillow images, bit for bit",
            PixelType::U16 => "Pillow's mode I;16, channel by channel, bit for bit",
            PixelType::F32 => "Pillow's mode F, channel by channel, bit for bit",
        }
    } else {
        match pixels {
            PixelType::U8 => "torchvision on uint8 tensors",
            PixelType::U16 => "torchvision on uint16 tensors",
            PixelType::F32 => "torchvision on float32 tensors",
        }
    };
    format!("{parity}: {whose}")
}

/// The operations within `op`, each on a separate line, with their numbers from `first` on.
pub(super) fn children(
    f: &mut fmt::Formatter<'_>,
    op: &Op,
    first: usize,
    depth: usize,
) -> fmt::Result {
    let mut number = first;
    for child in op.children() {
        write!(f, "\n{number:>3}  {:width$}{child}", "", width = 2 * depth)?;
        children(f, child, number + 1, depth + 1)?;
        number += child.count();
    }
    Ok(())
}

/// The mixing of batches.
pub(super) fn batch_ops(f: &mut fmt::Formatter<'_>, ops: &[BatchOp]) -> fmt::Result {
    if ops.is_empty() {
        return Ok(());
    }
    let which = if ops.len() > 1 { ", one of these, each as likely as the others" } else { "" };
    write!(f, "\n\non the finished batch{which}:")?;
    ops.iter().try_for_each(|op| write!(f, "\n     {op}"))
}

/// The effect of a pass on an image of `size`.
fn pass(pass: &Pass, size: (u32, u32)) -> String {
    let mut said = Vec::new();
    let region = pass.region;
    if (region.width, region.height) != size {
        said.push(format!("crop {}x{}+{}+{}", region.width, region.height, region.x, region.y));
    }
    if pass.resized != (region.width, region.height) {
        said.push(format!(
            "resize to {}x{}, {}",
            pass.resized.0, pass.resized.1, pass.interpolation
        ));
    }
    let window = pass.window;
    if (window.width, window.height) != pass.resized {
        said.push(format!("cut {}x{}+{}+{}", window.width, window.height, window.x, window.y));
    }
    let Padding { left, top, right, bottom } = pass.padding;
    if pass.padding != Padding::default() {
        said.push(format!("pad {left} left, {top} top, {right} right, {bottom} bottom"));
        if pass.fill != [0; 3] {
            said.push(format!("fill {:?}", pass.fill));
        }
    }
    if pass.flip {
        said.push("mirror left and right".to_owned());
    }
    if pass.flip_vertical {
        said.push("mirror top and bottom".to_owned());
    }
    if said.is_empty() { "as it is".to_owned() } else { said.join("; ") }
}

/// The effect of a step on an image of `size`.
pub(super) fn step(step: &Step, size: (u32, u32)) -> String {
    if let Step::Pass(step) = step { pass(step, size) } else { described(step) }
}

/// Data in words: `{"color": {"brightness": 1.5}}` is `color brightness 1.5`.
pub(super) fn described(data: &impl Serialize) -> String {
    let mut words = String::new();
    // Data that does not serialise has a defect, which printing must not hide.
    match serde_json::to_value(data) {
        Ok(value) => describe(&value, &mut words),
        Err(error) => words = error.to_string(),
    }
    words
}

fn describe(value: &Value, words: &mut String) {
    match value {
        Value::Null => words.push_str("none"),
        Value::Bool(yes) => words.push_str(if *yes { "yes" } else { "no" }),
        Value::Number(number) => words.push_str(&rounded(number)),
        Value::String(text) => words.push_str(&text.replace('_', " ")),
        Value::Array(items) => {
            words.push('[');
            for (place, item) in items.iter().enumerate() {
                words.push_str(if place > 0 { ", " } else { "" });
                describe(item, words);
            }
            words.push(']');
        }
        Value::Object(fields) => {
            let nested = |value: &Value| value.as_object().is_some_and(|fields| fields.len() > 1);
            let said = fields.iter().filter(|(_, value)| !value.is_null());
            for (place, (key, value)) in said.enumerate() {
                words.push_str(if place > 0 { ", " } else { "" });
                words.push_str(&key.replace('_', " "));
                words.push(' ');
                let inner = fields.len() > 1 && nested(value);
                words.push_str(if inner { "(" } else { "" });
                describe(value, words);
                words.push_str(if inner { ")" } else { "" });
            }
        }
    }
}

/// A number of six digits is enough to look at.
fn rounded(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(value) if !(number.is_i64() || number.is_u64()) => {
            format!("{:.6}", value).trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tl_simd::resample::Rect;

    use super::*;

    #[test]
    fn data_reads_as_words() {
        let check = |data: Value, expected| assert_eq!(described(&data), expected);
        check(json!({"color": {"brightness": {"factor": 1.25}}}), "color brightness factor 1.25");
        check(json!({"color": "auto_contrast"}), "color auto contrast");
        check(json!({"a": {"b": 1, "c": [0.1, 2.0]}}), "a b 1, c [0.1, 2]");
        check(json!({"a": 1, "b": {"c": true, "d": []}}), "a 1, b (c yes, d [])");
        check(json!({"warp": {"affine": {"a": 1, "z": null}}}), "warp affine a 1");
    }

    #[test]
    fn a_pass_says_what_it_changes() {
        let whole = Pass::whole(9, 8);
        assert_eq!(pass(&whole, (9, 8)), "as it is");
        let changed = Pass {
            region: Rect { x: 1, y: 2, width: 5, height: 4 },
            resized: (10, 8),
            window: Rect { x: 3, y: 0, width: 4, height: 8 },
            padding: Padding { left: 1, ..Padding::default() },
            flip: true,
            ..whole
        };
        let expected = "crop 5x4+1+2; resize to 10x8, bilinear; cut 4x8+3+0; \
                        pad 1 left, 0 top, 0 right, 0 bottom; mirror left and right";
        assert_eq!(pass(&changed, (9, 8)), expected);
    }
}
