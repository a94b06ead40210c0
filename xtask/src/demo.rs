//! The main job on the photographs in `testdata/`: convert, look inside, stream batches, preview.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{self, cargo, workspace_root};

const PHOTOGRAPHS: &str = "testdata/photos";
const FOLDER: &str = "target/demo";

/// Builds `tl` and runs it on the photographs. Writes only below `target/demo`.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    command::run(&mut cargo("build --release --package turboloader --bin tl"))?;
    fs::create_dir_all(workspace_root().join(FOLDER))?;
    let tbl = format!("{FOLDER}/photos.tbl");
    let sheet = format!("{FOLDER}/sheet.png");
    tl(&["convert", PHOTOGRAPHS, "-o", &tbl, "-f"])?;
    tl(&["ls", &tbl])?;
    tl(&["bench", &tbl, "--recipe", "imagenet-train", "--batch-size", "4", "--seconds", "2"])?;
    tl(&["preview", &tbl, "-o", &sheet, "--recipe", "imagenet-train", "-n", "12", "-f"])?;
    println!("\nthe batches above came from {tbl}; look at {sheet}");
    Ok(())
}

fn tl(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    println!();
    let program = Path::new("target/release/tl");
    command::run(
        Command::new(workspace_root().join(program)).current_dir(workspace_root()).args(arguments),
    )
}
