//! Pixels of 16 bits and floats, and images that move with others.

use serde_json::{Value, json};
use tl_simd::Level;
use tl_simd::resample::ImageView;
use tl_transform::{
    Channels, Draw, Dtype, Layout, Op, OutputSpec, Parity, PixelType, Plan, Recipe, StepError,
    WideRenderer,
};

use super::U8;

/// A recipe of these operations on 8-bit RGB.
fn recipe(ops: &Value, parity: Parity) -> Recipe {
    let ops: Vec<Op> = serde_json::from_value(ops.clone()).expect("operations");
    Recipe::new(ops, U8).and_then(|recipe| recipe.with_parity(parity)).expect("a recipe")
}

/// The numbers of an image of 16 bits, all 1500, that moves with an image of `recipe`.
fn moved(recipe: &Recipe) -> Vec<u16> {
    let along = recipe.moving_along(PixelType::U16, Channels::Grey).expect("only moves");
    let mut plan = recipe.plan(12, 10, Draw::default()).expect("a plan");
    plan.keep_geometry();
    let source: Vec<u8> = [1500_u16; 120].iter().flat_map(|number| number.to_ne_bytes()).collect();
    let mut renderer = WideRenderer::new(&along);
    let mut out = vec![0; renderer.output_bytes(plan.output_size())];
    let source = ImageView::of_pixels(&source, 12, 10, 24, 2);
    renderer.render(&plan, source, &mut out).expect("only moves");
    out.as_chunks::<2>().0.iter().map(|number| u16::from_ne_bytes(*number)).collect()
}

#[test]
fn filters_that_are_not_defined_do_not_move_along() {
    let along = |ops: Value, parity| {
        recipe(&ops, parity).moving_along(PixelType::U16, Channels::Grey).map_err(|e| e.to_string())
    };
    let tensor = "parity `tensor` resizes them by nearest and nearest_exact alone, parity `pil` by all filters";
    let smooth = json!([{"op": "resize", "size": [5, 6]}]);
    let error = along(smooth.clone(), Parity::Tensor).unwrap_err();
    let expected = "operation 0: Resize cannot be done to 16-bit grey pixels: ";
    assert_eq!(error, format!("{expected}{tensor}"));
    let nested = json!([{"op": "random_apply", "ops": [{"op": "random_resized_crop", "size": 4}]}]);
    let error = along(nested, Parity::Tensor).unwrap_err();
    assert!(error.contains("RandomResizedCrop") && error.ends_with(tensor), "{error}");
    assert!(along(smooth, Parity::Pil).is_ok());
    for filter in ["nearest", "nearest_exact"] {
        let copies = json!([{"op": "resize", "size": [5, 6], "interpolation": filter}]);
        assert!(along(copies.clone(), Parity::Tensor).is_ok());
        assert_eq!(moved(&recipe(&copies, Parity::Tensor)), [1500; 30]);
    }
    // Eight bits have all filters, and colours are left out.
    let ops = json!([
        {"op": "color_jitter", "brightness": 0.5},
        {"op": "resize", "size": [5, 6]},
        {"op": "gaussian_blur", "kernel_size": 3},
    ]);
    let bytes = recipe(&ops, Parity::Tensor).moving_along(PixelType::U8, Channels::Grey);
    assert!(bytes.is_ok(), "{bytes:?}");
    assert_eq!(moved(&recipe(&ops, Parity::Pil)), [1500; 30]);
}

#[test]
fn borders_of_moved_images_are_0() {
    let bordered = [
        json!([{"op": "pad", "padding": 1, "fill": 128}]),
        json!([{"op": "random_crop", "size": [12, 14], "padding": 2, "fill": [1, 2, 3]}]),
        json!([
            {"op": "color_jitter", "brightness": 0.5},
            {"op": "random_zoom_out", "fill": 200, "p": 1.0},
            {"op": "pad", "padding": 2, "fill": 9},
        ]),
        json!([{"op": "resize", "size": [5, 6]}, {"op": "center_crop", "size": [8, 8]}]),
    ];
    for ops in bordered {
        let numbers = moved(&recipe(&ops, Parity::Pil));
        assert!(numbers.iter().all(|number| [0, 1500].contains(number)), "{ops}: {numbers:?}");
        assert!(numbers.contains(&0) && numbers.contains(&1500), "{ops}: {numbers:?}");
    }
    let edge = json!([{"op": "pad", "padding": 1, "fill": 128, "padding_mode": "edge"}]);
    assert!(moved(&recipe(&edge, Parity::Pil)).iter().all(|&number| number == 1500));
}

/// Every level gives the same bits.
#[test]
fn warps_of_wide_images_agree_at_every_level() {
    let ops = json!([
        {"op": "random_affine", "degrees": 20, "scale": [0.5, 0.7], "interpolation": "bicubic"},
        {"op": "elastic_transform", "interpolation": "bilinear", "fill": 9},
        {"op": "random_rotation", "degrees": 40, "expand": true},
    ]);
    for (pixels, channels) in [
        (PixelType::U16, Channels::Grey),
        (PixelType::F32, Channels::Rgb),
        (PixelType::U8, Channels::Rgba),
    ] {
        let recipe = wide(ops.clone(), pixels, channels);
        let plan = plan(&recipe);
        let pixel = channels.count() as usize * pixels.bytes();
        let source: Vec<u8> = (0..64).cycle().take(40 * 30 * pixel).collect();
        let view = ImageView::of_pixels(&source, 40, 30, 40 * pixel, pixel);
        let made: Vec<Vec<u8>> = Level::available()
            .map(|level| {
                let mut renderer = WideRenderer::new(&recipe).with_level(level);
                let mut out = vec![0; renderer.output_bytes(plan.output_size())];
                renderer.render(&plan, view, &mut out).expect("only moves");
                out
            })
            .collect();
        assert!(made.iter().all(|out| *out == made[0]), "{pixels} {channels:?}");
        assert!(made[0].iter().any(|&byte| byte != made[0][0]), "{pixels} {channels:?}");
    }
}

/// A recipe of these operations on pixels of 16 bits or floats, whose output is in planes.
fn wide(ops: Value, pixels: PixelType, channels: Channels) -> Recipe {
    let ops: Vec<Op> = serde_json::from_value(ops).expect("operations");
    let to_float = ops.iter().any(|op| matches!(op, Op::ToFloat(_)));
    let dtype = if to_float { Dtype::F32 } else { pixels.dtype() };
    let output = OutputSpec { dtype, layout: Layout::Chw };
    Recipe::on_pixels(pixels, channels, ops, output).expect("a recipe")
}

fn plan(recipe: &Recipe) -> Plan {
    recipe.plan(40, 30, Draw::default()).expect("a plan")
}

/// Images on the way, and the rows and coefficients of the resampler, which keeps eight rows of
/// `f64`, are counted before anything is allocated.
#[test]
fn scratch_of_wide_images_is_known_before() {
    let bytes = |ops: Value, pixels, channels| {
        let recipe = wide(ops, pixels, channels);
        recipe.scratch_bytes(&plan(&recipe)).expect("only moves")
    };
    let crop = json!([{"op": "center_crop", "size": [10, 20]}]);
    // A grey crop is written where it belongs; planes of colours are made of an image.
    assert_eq!(bytes(crop.clone(), PixelType::U16, Channels::Grey), 0);
    assert_eq!(bytes(crop.clone(), PixelType::U16, Channels::Rgb), 10 * 20 * 6);
    assert_eq!(bytes(crop, PixelType::U8, Channels::Rgba), 10 * 20 * 4);
    let floats = json!([{"op": "center_crop", "size": [10, 20]}, {"op": "to_float"}]);
    assert_eq!(bytes(floats, PixelType::U16, Channels::Grey), 10 * 20 * 2);
    // Colours are multiplied by alpha before the resize.
    let resize = json!([{"op": "resize", "size": [10, 20]}]);
    assert_eq!(bytes(resize.clone(), PixelType::U8, Channels::Rgba), (10 * 20 + 40 * 30) * 4);
    let rows = bytes(resize.clone(), PixelType::U16, Channels::Grey);
    let lanes = 40 * 8 * 8;
    assert!((lanes..3 * lanes).contains(&rows), "{rows}");
    let floats = bytes(resize.clone(), PixelType::F32, Channels::Rgba);
    assert!(floats > 4 * lanes + 10 * 20 * 16, "{floats}");
    // Steps have two images, of which the larger one counts twice.
    let steps = json!([
        {"op": "pad", "padding": 5, "padding_mode": "reflect"},
        {"op": "resize", "size": [10, 20]},
    ]);
    assert!(bytes(steps, PixelType::U16, Channels::Grey) > 2 * 50 * 40 * 2 + lanes);

    // Displacements count, and colours are multiplied by alpha for smooth filters.
    let elastic = json!([{"op": "elastic_transform"}]);
    let images = 2 * 40 * 30 * 2;
    assert!(bytes(elastic, PixelType::U16, Channels::Grey) >= images + 40 * 30 * 8);
    let turn = |filter| json!([{"op": "random_rotation", "degrees": 30, "interpolation": filter}]);
    let images = 2 * 40 * 30 * 4;
    assert_eq!(bytes(turn("nearest"), PixelType::U8, Channels::Rgba), images);
    assert_eq!(bytes(turn("bilinear"), PixelType::U8, Channels::Rgba), images + 40 * 30 * 4);

    let recipe = wide(resize, PixelType::U16, Channels::Grey);
    let plan = plan(&recipe);
    let source = [0; 40 * 30 * 2];
    let view = ImageView::of_pixels(&source, 40, 30, 80, 2);
    let mut out = vec![0; 400];
    let mut render = |limit| {
        let mut renderer = WideRenderer::new(&recipe).with_memory_limit(limit);
        renderer.render(&plan, view, &mut out)
    };
    assert_eq!(render(rows - 1), Err(StepError::Memory { need: rows, limit: rows - 1 }));
    assert_eq!(render(rows), Ok(()));
}
