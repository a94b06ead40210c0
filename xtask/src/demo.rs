//! The main job on the photographs in `testdata/`: convert, look inside, stream batches, preview.

use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{self, cargo, workspace_root};

const PHOTOGRAPHS: &str = "testdata/photos";
const FOLDER: &str = "target/demo";
const TL: &str = "target/release/tl";
const BATCHES: &str = "target/release/examples/batches";

/// Builds `tl` and an example, and runs them on the photographs. Writes only below `target`.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    command::run(&mut cargo(
        "build --release --package turboloader-cli --bin tl --package tl-pipeline --example batches",
    ))?;
    fs::create_dir_all(workspace_root().join(FOLDER))?;
    let tbl = format!("{FOLDER}/photos.tbl");
    let sheet = format!("{FOLDER}/sheet.png");
    run_built(TL, ["convert", PHOTOGRAPHS, "-o", &tbl, "-f"])?;
    run_built(TL, ["ls", &tbl])?;
    run_built(BATCHES, [&tbl])?;
    run_built(TL, ["preview", &tbl, "-o", &sheet, "--recipe", "imagenet-train", "-n", "12", "-f"])?;
    println!("\nlook at {sheet}: each photograph, and what six epochs would see of it");
    println!("`tl` is {TL}; `cargo install --path crates/turboloader-cli` puts it on the path");
    Ok(())
}

fn run_built(
    program: &str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<(), Box<dyn Error>> {
    println!();
    let root = workspace_root();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), Into::into);
    let program = target.join(Path::new(program).strip_prefix("target")?);
    command::run(Command::new(program).args(arguments).current_dir(root))
}
