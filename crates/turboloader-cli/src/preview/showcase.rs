//! The operations of the sheet of all operations, with parameters that show what they do.

use serde_json::Value;
use tl_transform::{Op, Rng, UserError, UserTransform, UserTransforms};

/// One operation each, as it stands in a recipe file.
const OPERATIONS: &[&str] = &[
    r#"{"op": "random_resized_crop", "size": 128}"#,
    r#"{"op": "resize", "size": 24}"#,
    r#"{"op": "random_shortest_size", "min_size": [16, 24, 32, 48, 64]}"#,
    r#"{"op": "scale_jitter", "target_size": [64, 64]}"#,
    r#"{"op": "center_crop", "size": 80}"#,
    r#"{"op": "random_crop", "size": 96, "pad_if_needed": true}"#,
    r#"{"op": "five_crop", "size": 72}"#,
    r#"{"op": "ten_crop", "size": 72}"#,
    r#"{"op": "random_horizontal_flip"}"#,
    r#"{"op": "random_vertical_flip"}"#,
    r#"{"op": "pad", "padding": [32, 8], "padding_mode": "reflect"}"#,
    r#"{"op": "random_zoom_out", "fill": [124, 116, 104], "side_range": [1, 3], "p": 1}"#,
    r#"{"op": "random_rotation", "degrees": 30, "interpolation": "bilinear"}"#,
    r#"{"op": "random_affine", "degrees": 15, "translate": [0.1, 0.1], "scale": [0.7, 1.2],
        "shear": 15, "interpolation": "bilinear"}"#,
    r#"{"op": "random_perspective", "p": 1}"#,
    r#"{"op": "elastic_transform", "alpha": 80}"#,
    r#"{"op": "color_jitter", "brightness": 0.5, "contrast": 0.5, "saturation": 0.8, "hue": 0.2}"#,
    r#"{"op": "grayscale"}"#,
    r#"{"op": "random_grayscale", "p": 0.5}"#,
    r#"{"op": "random_invert", "p": 0.7}"#,
    r#"{"op": "random_posterize", "bits": 2, "p": 0.7}"#,
    r#"{"op": "random_solarize", "threshold": 128, "p": 0.7}"#,
    r#"{"op": "random_adjust_sharpness", "sharpness_factor": 6, "p": 0.7}"#,
    r#"{"op": "random_autocontrast", "p": 0.7}"#,
    r#"{"op": "random_equalize", "p": 0.7}"#,
    r#"{"op": "random_channel_permutation"}"#,
    r#"{"op": "random_photometric_distort", "p": 0.8}"#,
    r#"{"op": "gaussian_blur", "kernel_size": 13, "sigma": [0.1, 5]}"#,
    r#"{"op": "gaussian_noise", "sigma": 0.15}"#,
    r#"{"op": "random_erasing", "p": 0.8, "value": [124, 116, 104]}"#,
    r#"{"op": "grid_mask", "p": 0.8, "distance": [24, 64]}"#,
    r#"{"op": "auto_augment"}"#,
    r#"{"op": "rand_augment"}"#,
    r#"{"op": "trivial_augment_wide"}"#,
    r#"{"op": "aug_mix", "severity": 6}"#,
    r#"{"op": "compose", "ops": [{"op": "random_rotation", "degrees": 20}, {"op": "grayscale"}]}"#,
    r#"{"op": "random_apply", "p": 0.5, "ops": [{"op": "random_invert", "p": 1}]}"#,
    r#"{"op": "random_choice", "ops": [{"op": "random_equalize", "p": 1},
        {"op": "random_perspective", "p": 1}, {"op": "grayscale"}]}"#,
    r#"{"op": "random_order", "ops": [{"op": "center_crop", "size": 80},
        {"op": "random_rotation", "degrees": 45}]}"#,
    r#"{"op": "user_transform", "name": "chessboard"}"#,
    r#"{"op": "to_float"}"#,
    r#"{"op": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}"#,
];

/// The operations in the order of the rows.
pub(super) fn operations() -> Vec<Op> {
    let parse = |text: &&str| serde_json::from_str(text).expect("a test parses every operation");
    OPERATIONS.iter().map(parse).collect()
}

/// The name of the user's transform in the sheet.
pub(super) fn user_transforms() -> UserTransforms {
    let mut transforms = UserTransforms::new();
    transforms.insert("chessboard", Chessboard);
    transforms
}

/// Darkens every other square of a random size.
struct Chessboard;

impl UserTransform for Chessboard {
    fn apply(
        &self,
        pixels: &mut [u8],
        size: (u32, u32),
        rng: &mut Rng,
        _: &Value,
    ) -> Result<(), UserError> {
        let side = 8 + rng.below(24) as usize;
        for (y, row) in pixels.chunks_exact_mut(size.0 as usize * 3).enumerate() {
            for (x, pixel) in row.chunks_exact_mut(3).enumerate() {
                if (x / side + y / side) % 2 == 1 {
                    pixel.iter_mut().for_each(|sample| *sample /= 2);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_row() {
        let shown: Vec<_> = operations().iter().map(Op::name).collect();
        let missing: Vec<_> = Op::NAMES.iter().filter(|name| !shown.contains(name)).collect();
        assert!(missing.is_empty(), "no row in `showcase.rs` shows {missing:?}");
    }
}
