//! Child processes: started in the workspace root, reported by their command line.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace root, where every task runs.
pub(crate) fn workspace_root() -> PathBuf {
    // Cargo says it anew for each run: a program that another checkout built would name that one.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The folder of builds.
pub(crate) fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    workspace_root().join(target.map_or_else(|| "target".into(), PathBuf::from))
}

/// A `cargo` command with `arguments` (separated by spaces), to be run in the workspace root.
pub(crate) fn cargo(arguments: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments.split_whitespace()).current_dir(workspace_root());
    as_from_a_shell(&mut command);
    command
}

/// Takes away what cargo set for this program. Build scripts that look at it would compile their
/// crates anew whenever the same build is started by hand.
pub(crate) fn as_from_a_shell(command: &mut Command) {
    command.env_remove("CARGO_MANIFEST_DIR");
}

/// Prints the command line, runs it with our own output, and turns a failure into an error.
pub(crate) fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    println!("$ {}", command_line(command));
    let status = command
        .status()
        .map_err(|error| format!("cannot start `{}`: {error}", command_line(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` ended with {status}", command_line(command)).into())
    }
}

/// The standard output of a command, `None` when it is not installed or fails.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(workspace_root())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The command that installs a target of the compiler which is not there.
pub(crate) fn missing_target(target: &str) -> Option<String> {
    let libraries = output("rustc", &["--print", "target-libdir", "--target", target]);
    let is_there = libraries.is_some_and(|folder| fs::exists(folder).unwrap_or(false));
    (!is_there).then(|| format!("`rustup target add {target}` installs the target"))
}

/// The program's name with its arguments.
pub(crate) fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let mut line = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
