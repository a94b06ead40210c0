//! Prints the pictures of files that hold open bitstream units of AV1, such as the item of an image.
//!
//! usage: pictures FILE ..

#![expect(clippy::print_stdout, reason = "an example")]

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let data = std::fs::read(&path)?;
        if let Some(picture) = tl_av1::Decoder::new(1 << 30).decode(&data)? {
            let size = format!("{}x{}", picture.width, picture.height);
            println!("{path}: {size}, {} bits, {:?}", picture.bit_depth, picture.layout);
        }
    }
    Ok(())
}
