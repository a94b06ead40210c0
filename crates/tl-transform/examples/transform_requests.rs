//! Carries out steps on images as standard input asks, for `testdata/tools/*_transforms.py`.
//!
//! `transform_requests serve [LEVEL]` reads requests: a line of JSON and the pixels it speaks of,
//! interleaved RGB. `{"width", "height", "parity", "steps"}` runs the steps; with `"recipe"` and
//! `"draw"` instead of `"steps"` they are drawn first. `"repeat": N` runs them N times more, each
//! on the original pixels, and reports the nanoseconds that took without restoring these.
//! With `"normalize": {"mean", "std"}` the result of the steps is converted to planes of f32, and
//! only that is timed.
//! With `"displacements": true` the result is that of the first step, an elastic one: an f32 to the
//! right and one down for every pixel.
//! The answer is a line of JSON with `width`, `height`, `bytes`, `steps` and `nanoseconds`,
//! followed by the bytes, or a line with `error`.

use std::error::Error;
use std::io::{self, BufRead, Read, Write};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use tl_simd::Level;
use tl_transform::step::Warp;
use tl_transform::{
    Draw, Dtype, Image, Layout, OutputSpec, Parity, Pass, Plan, Recipe, Renderer, Runner, Step,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("serve") {
        let mut image = Image::from_pixels(2, 1, vec![1, 2, 3, 4, 5, 6]);
        let steps = serde_json::from_str::<Vec<Step>>("[]")?;
        Runner::new().run(&steps, Parity::Pil, &mut image)?;
        writeln!(io::stdout(), "`serve` reads requests; no steps leave {:?}", image.pixels())?;
        return Ok(());
    }
    let mut level = Level::detect();
    if let Some(name) = arguments.next() {
        let found = Level::available().find(|level| level.to_string() == name);
        level = found.ok_or_else(|| format!("this CPU has no {name}"))?;
    }
    serve(level)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    width: u32,
    height: u32,
    #[serde(default)]
    parity: Parity,
    #[serde(default)]
    steps: Vec<Step>,
    recipe: Option<Recipe>,
    #[serde(default)]
    draw: Draw,
    #[serde(default)]
    repeat: u32,
    normalize: Option<Normalize>,
    #[serde(default)]
    displacements: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Normalize {
    mean: [f32; 3],
    std: [f32; 3],
}

fn serve(level: Level) -> Result<(), Box<dyn Error>> {
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut runner = Runner::new().with_level(level);
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let size: Size = serde_json::from_str(&line)?;
        let mut pixels = vec![0; size.width as usize * size.height as usize * 3];
        input.read_exact(&mut pixels)?;
        match answer(&line, &pixels, &mut runner) {
            Ok((header, result)) => {
                writeln!(output, "{header}")?;
                output.write_all(&result)?;
            }
            Err(error) => writeln!(output, "{}", json!({ "error": error.to_string() }))?,
        }
        output.flush()?;
        line.clear();
    }
    Ok(())
}

/// What is needed to read the pixels of a request, also of one that cannot be carried out.
#[derive(Deserialize)]
struct Size {
    width: u32,
    height: u32,
}

fn answer(
    line: &str,
    pixels: &[u8],
    runner: &mut Runner,
) -> Result<(serde_json::Value, Vec<u8>), Box<dyn Error>> {
    let request: Request = serde_json::from_str(line)?;
    let width = request.width;
    let height = request.height;
    let (steps, parity) = match &request.recipe {
        Some(recipe) => {
            let plan = recipe.plan(width, height, request.draw)?;
            (all_steps(&plan), recipe.parity())
        }
        None => (request.steps, request.parity),
    };
    let mut image = Image::from_pixels(width, height, pixels.to_vec());
    runner.run(&steps, parity, &mut image)?;
    let mut nanoseconds = Duration::ZERO;
    let result = if request.displacements {
        displacements(&steps, width, height)?
    } else if let Some(normalize) = request.normalize {
        let (floats, time) = floats(&image, normalize, request.repeat);
        nanoseconds = time;
        floats
    } else {
        // The first two runs make room in the two images; the third is the first of many.
        let rounds = if request.repeat == 0 { 0 } else { request.repeat.saturating_add(1) };
        for round in 0..rounds {
            image.reshape(width, height);
            image.pixels_mut().copy_from_slice(pixels);
            let start = Instant::now();
            runner.run(&steps, parity, &mut image)?;
            if round > 0 {
                nanoseconds += start.elapsed();
            }
        }
        image.pixels().to_vec()
    };
    let (width, height) = image.size();
    Ok((
        json!({
            "width": width, "height": height, "bytes": result.len(), "steps": steps,
            "nanoseconds": nanoseconds.as_nanos(),
        }),
        result,
    ))
}

fn displacements(steps: &[Step], width: u32, height: u32) -> Result<Vec<u8>, &'static str> {
    let Some(Step::Warp(Warp::Elastic(elastic))) = steps.first() else {
        return Err("the first step is not elastic");
    };
    let numbers = elastic.displacements(width, height);
    Ok(numbers.into_iter().flat_map(f32::to_le_bytes).collect())
}

/// The image as planes of normalised f32, and what doing that `repeat` times more took.
fn floats(image: &Image, normalize: Normalize, repeat: u32) -> (Vec<u8>, Duration) {
    let output = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
    let mut renderer = Renderer::new(output, normalize.mean, normalize.std);
    let (width, height) = image.size();
    let pass = Pass::whole(width, height);
    let view = image.view();
    let mut result = vec![0; renderer.output_bytes((width, height))];
    renderer.render(&pass, view, &mut result);
    let start = Instant::now();
    for _ in 0..repeat {
        renderer.render(&pass, view, &mut result);
    }
    (result, start.elapsed())
}

/// The whole plan as steps: its head and its tail are passes that a loader fuses with others.
fn all_steps(plan: &Plan) -> Vec<Step> {
    let mut steps = vec![Step::Pass(plan.head)];
    steps.extend(&plan.steps);
    steps.push(Step::Pass(plan.tail));
    steps
}
