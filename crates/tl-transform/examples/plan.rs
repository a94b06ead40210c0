//! Prints the recipe and the plans of one image over four epochs.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use tl_transform::{Draw, Recipe};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recipe = Recipe::imagenet_train(224)?;
    println!("{recipe}");
    for epoch in 0..4 {
        let plan = recipe.plan(500, 375, Draw { seed: 42, epoch, sample: 7 })?.head;
        let crop = plan.region;
        println!(
            "epoch {epoch}: {}x{} at ({}, {}){}",
            crop.width,
            crop.height,
            crop.x,
            crop.y,
            if plan.flip { ", flipped" } else { "" }
        );
    }
    Ok(())
}
