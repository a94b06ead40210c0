use tl_simd::resample::Rect;

use super::*;
use crate::fill::Fill;
use crate::image::Image;
use crate::interpolation::Interpolation;
use crate::op::PadMode;
use crate::parity::Parity;
use crate::pass::Padding;
use crate::runner::Runner;
use crate::stream::Stream;

const HUGE: u32 = u32::MAX;

fn rotate(expand: Option<(u32, u32)>) -> Step {
    let interpolation = Interpolation::Bilinear;
    let fill = Some(Fill::BLACK);
    Step::Warp(Warp::Rotate(Rotate { angle: 30.0, interpolation, expand, center: None, fill }))
}

fn elastic() -> Elastic {
    let interpolation = Interpolation::Bilinear;
    let fill = None;
    let stream = Stream::default();
    Elastic { alpha: (50.0, 50.0), sigma: (5.0, 5.0), stream, interpolation, fill }
}

fn grid(distance: u32, offset: u32) -> Step {
    let offset = (offset, offset);
    let value = [9.0; 3];
    Step::Erase(Erase::Grid { distance, length: 1, offset, degrees: 45, squares: false, value })
}

fn run(step: Step, size: (u32, u32), parity: Parity) -> Result<(u32, u32), StepError> {
    let (width, height) = size;
    let pixels = vec![7; width as usize * height as usize * 3];
    let mut image = Image::from_pixels(width, height, pixels);
    Runner::new().run(&[step], parity, &mut image)?;
    Ok(image.size())
}

#[test]
fn steps_that_make_images_of_impossible_sizes_are_refused() {
    let pad = |left| {
        let padding = Padding { left, ..Padding::default() };
        Step::Pad(Pad { padding, mode: PadMode::Edge, fill: [0; 3] })
    };
    let border = |right| {
        let padding = Padding { right, ..Padding::default() };
        Step::Pass(Pass { padding, ..Pass::whole(4, 3) })
    };
    let resize = |size: (u32, u32)| {
        let window = Rect::of_size(size.0, size.1);
        Step::Pass(Pass { resized: size, window, ..Pass::whole(4, 3) })
    };
    let refused = Err(StepError::Size { position: 0, width: 4, height: 3 });
    for parity in [Parity::Pil, Parity::Tensor] {
        for size in [(HUGE, HUGE), (1 << 20, 1), (1, 65_536), (0, 3), (4, 0)] {
            assert_eq!(run(rotate(Some(size)), (4, 3), parity), refused, "{size:?}");
            assert_eq!(run(resize(size), (4, 3), parity), refused, "{size:?}");
        }
        for side in [HUGE, HUGE - 4, 65_532] {
            assert_eq!(run(pad(side), (4, 3), parity), refused, "{side}");
            assert_eq!(run(border(side), (4, 3), parity), refused, "{side}");
        }
        assert_eq!(run(rotate(Some((6, 5))), (4, 3), parity), Ok((6, 5)));
        assert_eq!(run(border(65_531), (4, 3), parity), Ok((65_535, 3)));
    }
}

#[test]
fn no_step_runs_on_an_image_that_no_plan_has() {
    let color = |color| Step::Color(color);
    let pad = Pad { padding: Padding::default(), mode: PadMode::Reflect, fill: [0; 3] };
    let affine = Step::Warp(Warp::Affine(Affine::default()));
    let steps = [color(Color::Sharpness(2.0)), color(Color::Equalize), affine, Step::Pad(pad)];
    for step in steps.into_iter().chain([grid(3, 0), Step::Warp(Warp::Elastic(elastic()))]) {
        for (width, height) in [(0, 0), (0, 2), (2, 0), (1 << 23, 1), (1, 65_536)] {
            let refused = Err(StepError::Size { position: 0, width, height });
            assert_eq!(run(step, (width, height), Parity::Tensor), refused, "{step:?}");
        }
    }
    Runner::new().run(&[], Parity::Pil, &mut Image::new()).unwrap();
}

#[test]
fn grids_have_any_distance_and_offset() {
    for (distance, offset) in [(HUGE, 1), (HUGE, HUGE), (HUGE - 1, HUGE), (1, HUGE)] {
        assert_eq!(run(grid(distance, offset), (40, 30), Parity::Pil), Ok((40, 30)));
    }
}

/// The memory of each step for 100 x 50 pixels: the image, another one, and its own.
#[test]
fn memory_is_counted_before_it_is_allocated() {
    const IMAGE: u64 = 100 * 50 * 3;
    let check = |steps: &[Step], need: u64| {
        let mut image = Image::from_pixels(100, 50, vec![7; 100 * 50 * 3]);
        let mut run =
            |limit| Runner::new().with_memory_limit(limit).run(steps, Parity::Pil, &mut image);
        assert_eq!(run(need - 1), Err(StepError::Memory { need, limit: need - 1 }), "{steps:?}");
        assert_eq!(run(need), Ok(()), "{steps:?}");
    };
    check(&[Step::Color(Color::Invert)], IMAGE);
    check(&[Step::Color(Color::Sharpness(2.0))], IMAGE + 2 * 100 * 3);
    check(&[rotate(None)], 2 * IMAGE);
    let displacements = 2 * 4 * 100 * 50;
    let smoothed = Step::Warp(Warp::Elastic(elastic()));
    check(&[smoothed], 2 * IMAGE + displacements + 4 * 128 * 50);
    let rough = Step::Warp(Warp::Elastic(Elastic { sigma: (0.0, 0.0), ..elastic() }));
    check(&[rough], 2 * IMAGE + displacements);
    check(&[rough, smoothed, rotate(None)], 2 * IMAGE + displacements + 4 * 128 * 50);
    let mixture = [Mix::Begin { weight: 0.5 }, Mix::End { weight: 0.5 }].map(Step::Mix);
    check(&mixture, IMAGE + IMAGE + 4 * IMAGE);
    let kernel_size = (3, 5);
    let blur = Step::Filter(Filter::GaussianBlur { kernel_size, sigma: (1.0, 1.0) });
    // Six rows, twice, in whole blocks of 64, and one pixel on both sides.
    check(&[blur], IMAGE + 6 * 4 * (320 + 320 + 6));
    check(&[blur, rotate(None)], 2 * IMAGE + 6 * 4 * (320 + 320 + 6));
}
