//! Recipes from bytes: each byte is a choice, so that mutations change one operation or parameter
//! and the text stays a recipe in most cases.

use serde_json::{Map, Value, json};

/// The form of a parameter's value.
#[derive(Clone, Copy)]
enum Kind {
    /// A probability or another number from 0 to 1.
    Share,
    /// A side of an image.
    Side,
    /// One side, or height and width.
    Size,
    /// A small whole number.
    Count,
    /// A number of any magnitude.
    Number,
    /// A lower and an upper bound.
    Bounds,
    /// A number, or bounds.
    Range,
    /// One number of 0 to 255, or three.
    Fill,
    /// One, two or four borders.
    Sides,
    /// An odd size of a kernel.
    Odd,
    Flag,
    Interpolation,
    PadMode,
    Policy,
    /// Operations, one at least.
    Ops,
}

use Kind::*;

/// Operations by their names in recipes, with parameters. A parameter can be left out by choice.
const OPS: &[(&str, &[(&str, Kind)])] = &[
    ("compose", &[("ops", Ops)]),
    ("random_apply", &[("ops", Ops), ("p", Share)]),
    ("random_choice", &[("ops", Ops)]),
    ("random_order", &[("ops", Ops)]),
    ("random_order", &[("ops", Ops)]),
    ("random_horizontal_flip", &[("p", Share)]),
    ("random_vertical_flip", &[("p", Share)]),
    (
        "random_resized_crop",
        &[("size", Size), ("scale", Bounds), ("ratio", Bounds), ("interpolation", Interpolation)],
    ),
    ("resize", &[("size", Size), ("max_size", Side), ("antialias", Flag)]),
    ("resize", &[("size", Size), ("interpolation", Interpolation)]),
    ("center_crop", &[("size", Size)]),
    (
        "random_crop",
        &[("size", Size), ("padding", Sides), ("pad_if_needed", Flag), ("padding_mode", PadMode)],
    ),
    ("five_crop", &[("size", Size)]),
    ("ten_crop", &[("size", Size), ("vertical_flip", Flag)]),
    ("pad", &[("padding", Sides), ("fill", Fill), ("padding_mode", PadMode)]),
    ("random_zoom_out", &[("fill", Fill), ("side_range", Bounds), ("p", Share)]),
    ("scale_jitter", &[("scale_range", Bounds)]),
    (
        "color_jitter",
        &[("brightness", Range), ("contrast", Range), ("saturation", Range), ("hue", Range)],
    ),
    ("grayscale", &[("num_output_channels", Count)]),
    ("random_grayscale", &[("p", Share)]),
    ("random_invert", &[("p", Share)]),
    ("random_posterize", &[("bits", Count), ("p", Share)]),
    ("random_solarize", &[("threshold", Number), ("p", Share)]),
    ("random_adjust_sharpness", &[("sharpness_factor", Number), ("p", Share)]),
    ("random_autocontrast", &[("p", Share)]),
    ("random_equalize", &[("p", Share)]),
    ("random_channel_permutation", &[]),
    ("random_photometric_distort", &[("brightness", Bounds), ("p", Share)]),
    ("gaussian_blur", &[("kernel_size", Odd), ("sigma", Bounds)]),
    ("gaussian_noise", &[("mean", Number), ("sigma", Number), ("clip", Flag)]),
    ("random_erasing", &[("p", Share), ("scale", Bounds), ("ratio", Bounds), ("value", Number)]),
    ("grid_mask", &[("p", Share), ("ratio", Share), ("rotate", Count), ("mode", Count)]),
    ("random_rotation", &[("degrees", Range), ("expand", Flag), ("fill", Fill)]),
    ("random_affine", &[("degrees", Range), ("scale", Bounds), ("shear", Range)]),
    ("random_perspective", &[("distortion_scale", Share), ("p", Share), ("fill", Fill)]),
    ("elastic_transform", &[("alpha", Number), ("sigma", Number)]),
    ("auto_augment", &[("policy", Policy), ("fill", Fill)]),
    ("rand_augment", &[("num_ops", Count), ("magnitude", Count), ("fill", Fill)]),
    ("trivial_augment_wide", &[("num_magnitude_bins", Count)]),
    ("aug_mix", &[("severity", Count), ("mixture_width", Count), ("alpha", Number)]),
];

const SIDES: [u64; 8] = [1, 2, 7, 16, 33, 255, 65_535, 65_536];
const COUNTS: [u64; 8] = [1, 3, 2, 8, 10, 0, 31, 4_294_967_295];
const SHARES: [f64; 8] = [0.5, 1.0, 0.0, 0.25, 1e-300, 0.999_999_999_999, 1.000_000_1, -0.0];
const NUMBERS: [f64; 8] = [0.5, 1.0, 0.0, 2.0, 128.0, 255.0, 1e300, -1e-300];
/// Deepest nesting that is tried: more than a recipe may have.
const MAX_LEVELS: u32 = 55;
/// Operations that are described: more than a recipe may have.
const MAX_OPS: u32 = 300;

/// The recipe that `data` describes, as JSON: `data` itself where that starts as JSON does.
pub fn recipe_json(data: &[u8]) -> Vec<u8> {
    if data.first() == Some(&b'{') {
        return data.to_vec();
    }
    let mut choices = Choices { data, ops_left: MAX_OPS };
    let mut ops = choices.ops(0);
    let is_float = choices.next(4) == 0;
    if is_float {
        ops.push(json!({ "op": "to_float" }));
    }
    let dtype = if is_float { "f32" } else { "u8" };
    let layout = choices.name(&["hwc", "chw"]);
    let parity = choices.name(&["pil", "tensor"]);
    let output = json!({ "dtype": dtype, "layout": layout });
    json!({ "ops": ops, "output": output, "parity": parity }).to_string().into_bytes()
}

struct Choices<'a> {
    data: &'a [u8],
    ops_left: u32,
}

impl Choices<'_> {
    /// A number below `bound`; 0 after the last byte.
    fn next(&mut self, bound: usize) -> usize {
        let Some((first, rest)) = self.data.split_first() else { return 0 };
        self.data = rest;
        usize::from(*first) % bound
    }

    fn name(&mut self, names: &[&str]) -> Value {
        names[self.next(names.len())].into()
    }

    /// One in eight is an extreme; most are values that any operation takes.
    fn of<T: Copy + Into<Value>>(&mut self, values: [T; 8]) -> Value {
        let usual = self.next(8) > 0;
        values[self.next(if usual { 4 } else { 8 })].into()
    }

    fn ops(&mut self, level: u32) -> Vec<Value> {
        let count = 1 + self.next(3);
        (0..count).filter_map(|_| self.op(level)).collect()
    }

    fn op(&mut self, level: u32) -> Option<Value> {
        self.ops_left = self.ops_left.checked_sub(1)?;
        let choice = self.next(OPS.len());
        let first_leaf = OPS.iter().position(|(name, _)| *name == "random_horizontal_flip")?;
        let is_last = level == MAX_LEVELS || self.data.is_empty();
        let (name, parameters) = OPS[if is_last { choice.max(first_leaf) } else { choice }];
        let mut op = Map::from_iter([("op".to_owned(), name.into())]);
        for (parameter, kind) in parameters {
            // Sizes and operations have no default.
            let is_needed = matches!(kind, Kind::Ops | Size | Odd | Range | Count | Number | Sides);
            if is_needed || self.next(2) == 0 {
                op.insert((*parameter).to_owned(), self.value(*kind, level));
            }
        }
        if name == "scale_jitter" {
            op.insert("target_size".to_owned(), json!([self.of(SIDES), self.of(SIDES)]));
        }
        Some(op.into())
    }

    fn value(&mut self, kind: Kind, level: u32) -> Value {
        match kind {
            Share => self.of(SHARES),
            Side => self.of(SIDES),
            Size if self.next(2) == 0 => self.of(SIDES),
            Size => json!([self.of(SIDES), self.of(SIDES)]),
            Count => self.of(COUNTS),
            Number => self.of(NUMBERS),
            Bounds => {
                let (low, high) = (self.of(SHARES), self.of(NUMBERS));
                let ordered = low.as_f64() <= high.as_f64();
                if ordered { json!([low, high]) } else { json!([high, low]) }
            }
            Range if self.next(2) == 0 => self.of(SHARES),
            Range => self.value(Bounds, level),
            Fill if self.next(2) == 0 => self.of(NUMBERS),
            Fill => json!([self.of(NUMBERS), 1, 2]),
            Sides => match self.next(3) {
                0 => self.of(COUNTS),
                1 => json!([self.of(COUNTS), 1]),
                _ => json!([self.of(COUNTS), 0, 1, 2]),
            },
            Odd => self.of([3, 5, 1, 7, 9, 31, 4, 0]),
            Flag => (self.next(2) == 0).into(),
            Interpolation => {
                let names = ["bilinear", "nearest", "nearest_exact", "box", "hamming", "bicubic"];
                self.name(&names)
            }
            PadMode => self.name(&["constant", "edge", "reflect", "symmetric"]),
            Policy => self.name(&["imagenet", "cifar10", "svhn", "none"]),
            Ops => self.ops(level + 1).into(),
        }
    }
}
