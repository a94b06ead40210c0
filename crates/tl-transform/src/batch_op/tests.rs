#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small integers, and torch's rounding to f32"
)]

use tl_simd::Level;
use tl_simd::resample::Rect;

use super::*;
use crate::error::RecipeError;
use crate::op::{CenterCrop, Resize, Size, ToFloat};
use crate::output::{Channels, Layout, OutputSpec};
use crate::recipe::Recipe;

const WIDTH: u32 = 7;
const HEIGHT: u32 = 5;

fn recipe(batch_ops: Vec<BatchOp>, side: u32) -> Recipe {
    let output = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
    let ops = vec![CenterCrop::new(side).into(), ToFloat {}.into()];
    Recipe::new(ops, output).unwrap().with_batch_ops(batch_ops).unwrap()
}

/// Images whose numbers say where they are: image, column, row, channel.
fn images(count: usize, output: OutputSpec) -> Vec<Vec<f32>> {
    let number = |image: usize, index: usize| {
        let pixels = (WIDTH * HEIGHT) as usize;
        let channels = 3;
        let place = match output.layout {
            Layout::Chw => index % pixels * channels + index / pixels,
            Layout::Hwc => index,
        };
        f32::from(u8::try_from((image * 31 + place) % 251).unwrap())
    };
    let numbers = (WIDTH * HEIGHT * 3) as usize;
    (0..count).map(|image| (0..numbers).map(|index| number(image, index)).collect()).collect()
}

fn bytes(images: &[Vec<f32>], dtype: Dtype) -> Vec<u8> {
    let encode = |number: &f32| match dtype {
        Dtype::F32 => number.to_ne_bytes().to_vec(),
        Dtype::F16 => half::f16::from_f32(*number).to_ne_bytes().to_vec(),
        Dtype::Bf16 => half::bf16::from_f32(*number).to_ne_bytes().to_vec(),
        Dtype::U8 | Dtype::U16 => vec![*number as u8],
    };
    images.iter().flatten().flat_map(encode).collect()
}

/// The image, and the column and row in it, that pixel `(x, y)` of image `image` comes from.
fn source(mixing: Mixing, image: usize, count: usize, x: u32, y: u32) -> (usize, u32, u32) {
    let before = |back: usize| (image + 4 * count - back) % count;
    match mixing {
        Mixing::CutMix { rect } => {
            let within = |place, start, len| (start..start + len).contains(&place);
            let cut = within(x, rect.x, rect.width) && within(y, rect.y, rect.height);
            (if cut { before(1) } else { image }, x, y)
        }
        Mixing::Mosaic { centre: (middle_x, middle_y) } => {
            let left = x < middle_x;
            let above = y < middle_y;
            let back = usize::from(!left) + 2 * usize::from(!above);
            let x = if left { x + WIDTH - middle_x } else { x - middle_x };
            let y = if above { y + HEIGHT - middle_y } else { y - middle_y };
            (before(back), x, y)
        }
        Mixing::MixUp { .. } => unreachable!("pixels are copied"),
    }
}

#[test]
fn rectangles_and_mosaics_take_every_pixel_from_its_place() {
    let rect = Rect { x: 2, y: 0, width: 3, height: 4 };
    let mixings = [
        Mixing::CutMix { rect },
        Mixing::Mosaic { centre: (2, 3) },
        Mixing::Mosaic { centre: (7, 0) },
    ];
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::U8] {
        for layout in [Layout::Chw, Layout::Hwc] {
            let output = OutputSpec { dtype, layout };
            for (mixing, count) in mixings.into_iter().flat_map(|m| (0..6).map(move |n| (m, n))) {
                let before = images(count, output);
                let mut expected = before.clone();
                for (image, out) in expected.iter_mut().enumerate() {
                    for (index, number) in out.iter_mut().enumerate() {
                        let pixel = |x: u32, y: u32| (y * WIDTH + x) as usize;
                        let place = index;
                        let pixels = (WIDTH * HEIGHT) as usize;
                        let (at, channel) = match layout {
                            Layout::Chw => (place % pixels, place / pixels),
                            Layout::Hwc => (place / 3, place % 3),
                        };
                        let at = u32::try_from(at).unwrap();
                        let (from, x, y) = source(mixing, image, count, at % WIDTH, at / WIDTH);
                        let from_index = match layout {
                            Layout::Chw => channel * pixels + pixel(x, y),
                            Layout::Hwc => pixel(x, y) * 3 + channel,
                        };
                        *number = before[from][from_index];
                    }
                }
                let mut mixed = bytes(&before, dtype);
                let mut spare = Vec::new();
                mixing.run(
                    Level::detect(),
                    output,
                    Channels::Rgb,
                    (WIDTH, HEIGHT),
                    &mut mixed,
                    &mut spare,
                );
                assert_eq!(mixed, bytes(&expected, dtype), "{mixing:?} {output:?} {count}");
            }
        }
    }
}

#[test]
fn images_are_blended_with_the_one_before() {
    let output = OutputSpec { dtype: Dtype::F32, layout: Layout::Hwc };
    for count in 0..4 {
        let before = images(count, output);
        let blend = |image: usize, index: usize| {
            let rolled = before[(image + count - 1) % count][index];
            rolled * (1.0_f64 - 0.3) as f32 + before[image][index] * 0.3_f32
        };
        let expected: Vec<Vec<f32>> = (0..count)
            .map(|image| (0..before[image].len()).map(|index| blend(image, index)).collect())
            .collect();
        let mut mixed = bytes(&before, Dtype::F32);
        let mut spare = Vec::new();
        let mixing = Mixing::MixUp { lambda: 0.3 };
        mixing.run(Level::detect(), output, Channels::Rgb, (WIDTH, HEIGHT), &mut mixed, &mut spare);
        assert_eq!(mixed, bytes(&expected, Dtype::F32), "{count} images");
    }
}

#[test]
fn weights_are_areas() {
    let size = (8, 4);
    let rect = Rect { x: 1, y: 1, width: 2, height: 2 };
    assert_eq!(Mixing::CutMix { rect }.weights(size), [0.875, 0.125, 0.0, 0.0]);
    assert_eq!(Mixing::MixUp { lambda: 0.25 }.weights(size), [0.25, 0.75, 0.0, 0.0]);
    let mosaic = Mixing::Mosaic { centre: (6, 1) };
    assert_eq!(mosaic.weights(size), [0.1875, 0.0625, 0.5625, 0.1875]);
}

const BATCHES: u64 = 20_000;

#[test]
fn lambda_has_the_moments_of_its_distribution() {
    for alpha in [0.2, 1.0, 4.0] {
        let recipe = recipe(vec![MixUp { alpha, ..MixUp::default() }.into()], 224);
        let lambdas: Vec<f64> = (0..BATCHES)
            .map(|batch| match recipe.mixing(1, 2, batch) {
                Some(Mixing::MixUp { lambda }) => lambda,
                other => panic!("{other:?}"),
            })
            .collect();
        let count = BATCHES as f64;
        let mean = lambdas.iter().sum::<f64>() / count;
        let variance = lambdas.iter().map(|lambda| (lambda - mean).powi(2)).sum::<f64>() / count;
        let expected = 0.25 / (2.0 * alpha + 1.0);
        assert!((mean - 0.5).abs() < 4.0 * (expected / count).sqrt(), "{alpha}: {mean}");
        assert!((variance / expected - 1.0).abs() < 0.04, "{alpha}: {variance}");
        assert!(lambdas.iter().all(|&lambda| f64::from(lambda as f32) == lambda), "f32 as torch's");
    }
}

/// Means of 20,000 draws of torchvision's `CutMix.make_params` on 2x3x200x160: the lambda of the
/// labels, and its deviation.
const CUTMIX: (f64, f64) = (0.684, 0.188);

#[test]
fn cut_rectangles_have_the_areas_of_torchvision() {
    let output = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
    let crop = CenterCrop { size: Size::exact(160, 200) };
    let recipe = Recipe::new(vec![crop.into(), ToFloat {}.into()], output).unwrap();
    let recipe = recipe.with_batch_ops(vec![CutMix::default().into()]).unwrap();
    let lambdas: Vec<f64> = (0..BATCHES)
        .map(|batch| {
            let mixing = recipe.mixing(3, 0, batch).unwrap();
            let Mixing::CutMix { rect } = mixing else { panic!("{mixing:?}") };
            assert!(rect.fits(160, 200), "{rect:?}");
            mixing.weights((160, 200))[0]
        })
        .collect();
    let count = BATCHES as f64;
    let mean = lambdas.iter().sum::<f64>() / count;
    let deviation = (lambdas.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / count).sqrt();
    assert!((mean - CUTMIX.0).abs() < 0.006, "{mean}");
    assert!((deviation - CUTMIX.1).abs() < 0.006, "{deviation}");
}

#[test]
fn every_way_is_as_likely_and_done_with_its_probability() {
    let ways = vec![
        MixUp { p: 0.5, ..MixUp::default() }.into(),
        CutMix::default().into(),
        Mosaic { p: 0.25, ..Mosaic::default() }.into(),
    ];
    let recipe = recipe(ways, 10);
    let mut counts = [0_u32; 4];
    let mut centres = [0_u32; 11];
    for batch in 0..BATCHES {
        let mixing = recipe.mixing(5, 1, batch);
        assert_eq!(mixing, recipe.mixing(5, 1, batch));
        counts[match mixing {
            None => 0,
            Some(Mixing::MixUp { .. }) => 1,
            Some(Mixing::CutMix { .. }) => 2,
            Some(Mixing::Mosaic { centre }) => {
                centres[centre.0 as usize] += 1;
                3
            }
        }] += 1;
    }
    let expected = [8333.3, 3333.3, 6666.7, 1666.7];
    for (count, expected) in counts.into_iter().zip(expected) {
        assert!((f64::from(count) - expected).abs() < 300.0, "{counts:?}");
    }
    // A quarter of 10 is 2: columns 2 to 8.
    assert!(centres[2..=8].iter().all(|count| (170..310).contains(count)), "{centres:?}");
    assert_eq!(centres[2..=8].iter().sum::<u32>(), counts[3]);
    assert_ne!(recipe.mixing(5, 1, 0), recipe.mixing(6, 1, 0));
}

#[test]
fn ways_that_make_no_sense_are_refused_by_name() {
    let pixels = OutputSpec { dtype: Dtype::U8, layout: Layout::Chw };
    let cut = BatchOp::from(CutMix::default());
    let mixed = |op: BatchOp, output: OutputSpec| {
        Recipe::new(vec![CenterCrop::new(8).into()], output).unwrap().with_batch_ops(vec![op])
    };
    let refused = mixed(MixUp::default().into(), pixels);
    assert_eq!(refused, Err(RecipeError::BatchType { op: "MixUp", dtype: "u8" }));
    assert!(mixed(cut, pixels).is_ok());
    let floats = recipe(vec![MixUp::default().into()], 8);
    assert!(floats.clone().into_pixels(Layout::Chw).batch_ops().is_empty());
    let half = OutputSpec { dtype: Dtype::F16, layout: Layout::Hwc };
    assert_eq!(floats.with_output(half).unwrap().batch_ops().len(), 1);
    let varying = Resize::new(8);
    let varying = Recipe::new(vec![varying.into()], pixels).unwrap().with_batch_ops(vec![cut]);
    assert_eq!(varying, Err(RecipeError::BatchSize { op: "CutMix" }));
    for op in [
        CutMix { alpha: 0.0, ..CutMix::default() }.into(),
        CutMix { alpha: f64::NAN, ..CutMix::default() }.into(),
        CutMix { num_classes: Some(0), ..CutMix::default() }.into(),
        BatchOp::from(Mosaic { p: 1.5, ..Mosaic::default() }),
    ] {
        let refused = mixed(op, pixels);
        assert!(matches!(refused, Err(RecipeError::BatchParameter { position: 0, .. })), "{op:?}");
    }
    let classes = |count| CutMix { num_classes: Some(count), ..CutMix::default() }.into();
    let recipe = Recipe::new(vec![CenterCrop::new(8).into()], pixels).unwrap();
    let refused = recipe.clone().with_batch_ops(vec![classes(10), classes(11)]);
    assert_eq!(refused, Err(RecipeError::ClassCount { first: 10, second: 11 }));
    assert_eq!(recipe.with_batch_ops(vec![cut, classes(10)]).unwrap().num_classes(), Some(10));
}

#[test]
fn recipes_with_batch_operations_are_read_back() {
    let ways = vec![
        MixUp { alpha: 0.2, p: 0.5, num_classes: Some(1000) }.into(),
        Mosaic::default().into(),
    ];
    let mixed = recipe(ways, 8);
    assert_eq!(
        mixed.to_string(),
        "CenterCrop(8x8) -> ToFloat -> f32 CHW, batches: MixUp(alpha 0.2, p 0.5) or Mosaic(p 1)"
    );
    let json = serde_json::to_string(&mixed).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), mixed);
    assert_ne!(mixed.hash(), recipe(Vec::new(), 8).hash());
    let short = json.replace(r#""alpha":0.2,"p":0.5,"num_classes":1000"#, r#""alpha":0.2"#);
    let read = serde_json::from_str::<Recipe>(&short).unwrap();
    assert_eq!(read.batch_ops()[0], MixUp { alpha: 0.2, ..MixUp::default() }.into());
}
