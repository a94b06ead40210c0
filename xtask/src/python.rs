//! The Python package: its wheel, built and tested in a virtual environment below `target`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, workspace_root};

/// What the environment has besides the package.
const PACKAGES: [&str; 3] = ["maturin>=1.16,<2", "numpy", "pytest>=8"];

/// The interpreter that makes the environment.
const PYTHON: &str = "python3";

/// Why the package cannot be built here, with what to do about it.
pub(crate) fn missing() -> Option<String> {
    if command::output(PYTHON, &["--version"]).is_none() {
        return Some("no python3: install Python 3.10 or later".to_owned());
    }
    let venv = command::output(PYTHON, &["-c", "import ensurepip, venv"]);
    venv.is_none().then(|| "python3 has no venv: `apt-get install python3-venv`".to_owned())
}

/// Builds the wheel, installs it and runs the tests, with these arguments for pytest.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    if let Some(missing) = missing() {
        return Err(missing.into());
    }
    let folder = workspace_root().join("target/python");
    let environment = folder.join("venv");
    let python = environment.join("bin/python");
    if !python.exists() {
        command::run(Command::new(PYTHON).args(["-m", "venv"]).arg(&environment))?;
    }
    let pip = || {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    command::run(pip().args(PACKAGES))?;
    let wheel = build(&environment, &folder.join("wheels"))?;
    command::run(pip().args(["--force-reinstall", "--no-deps"]).arg(wheel))?;
    let mut pytest = Command::new(&python);
    pytest.args(["-m", "pytest", "-q"]).args(arguments);
    command::run(pytest.current_dir(workspace_root().join("crates/tl-python")))
}

/// Builds the wheel without optimising our own crates further than for other tests.
fn build(environment: &Path, wheels: &Path) -> Result<PathBuf, Box<dyn Error>> {
    if wheels.exists() {
        fs::remove_dir_all(wheels)?;
    }
    let mut maturin = Command::new(environment.join("bin/maturin"));
    maturin.args(["build", "--quiet", "--manifest-path", "crates/tl-python/Cargo.toml", "--out"]);
    maturin.arg(wheels).env("VIRTUAL_ENV", environment);
    command::run(maturin.current_dir(workspace_root()))?;
    let mut built = fs::read_dir(wheels)?.collect::<Result<Vec<_>, _>>()?;
    let wheel = built.pop().ok_or("maturin has built no wheel")?;
    Ok(wheel.path())
}
