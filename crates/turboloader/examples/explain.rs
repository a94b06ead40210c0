//! Explains the usual ImageNet recipe for images of 500x375 pixels, and what it draws for a sample.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use turboloader::{Explanation, Recipe};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recipe = Recipe::imagenet_train(224)?;
    let explanation = Explanation::new(&recipe, (500, 375), 0)?.with_sample(0, 17)?;
    println!("{explanation}");
    Ok(())
}
