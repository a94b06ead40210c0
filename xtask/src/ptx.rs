//! The kernels of `tl-cuda` as PTX: made by a compiler out of a wheel, which needs no GPU.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{self, workspace_root};
use crate::python;

/// Another version writes other bytes.
const COMPILER: &str = "nvidia-cuda-nvrtc-cu11==11.8.89";

const KERNELS: &str = "crates/tl-cuda/kernels";

/// Compiles the kernels into the repository.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    compile(&workspace_root().join(KERNELS).join("kernels.ptx"))
}

/// Compiles the kernels and compares them with those in the repository.
pub(crate) fn check() -> Result<(), Box<dyn Error>> {
    let made = workspace_root().join("target/kernels.ptx");
    compile(&made)?;
    if fs::read(&made)? == fs::read(workspace_root().join(KERNELS).join("kernels.ptx"))? {
        return Ok(());
    }
    Err("kernels.ptx is not that of kernels.cu: run `cargo xtask ptx`".into())
}

fn compile(target: &Path) -> Result<(), Box<dyn Error>> {
    let python = python::interpreter("ptx", &[COMPILER])?;
    let kernels = workspace_root().join(KERNELS);
    let mut compile = Command::new(python);
    compile.arg(kernels.join("compile.py")).arg(kernels.join("kernels.cu")).arg(target);
    command::run(&mut compile)
}
