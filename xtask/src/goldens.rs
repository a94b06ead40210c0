//! Regenerates the stored results of torchvision and Pillow that the transforms are tested with.
//!
//! They come from the real packages, never from our own code, so this needs Python: the one that
//! `TURBOLOADER_PYTHON` names, or one in a virtual environment below `target`.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use crate::command::{self, workspace_root};

const FOLDER: &str = "testdata/transforms";
const ENVIRONMENT: &str = "target/goldens";

/// Writes the goldens again and says what changed.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let python = match std::env::var_os("TURBOLOADER_PYTHON") {
        Some(python) => PathBuf::from(python),
        None => environment()?,
    };
    let generator = workspace_root().join(FOLDER).join("generate.py");
    command::run(Command::new(python).arg(generator).current_dir(workspace_root()))?;
    let mut status = Command::new("git");
    status.args(["status", "--short", "--", FOLDER]).current_dir(workspace_root());
    command::run(&mut status)
}

/// The Python of a virtual environment with the pinned packages, made when it is not there.
fn environment() -> Result<PathBuf, Box<dyn Error>> {
    let folder = workspace_root().join(ENVIRONMENT);
    let python = folder.join("bin/python");
    if !python.exists() {
        command::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let requirements = workspace_root().join(FOLDER).join("requirements.txt");
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements);
    command::run(&mut install)?;
    Ok(python)
}
