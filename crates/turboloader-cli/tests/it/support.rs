//! Running `tl` and looking at how it ended; small archives to run it on; the data folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The outcome of a run of `tl`.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit code; `None` when a signal ended the process.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: Vec<u8>,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Run {
    /// Standard output of a run that must have succeeded silently.
    pub(crate) fn good(self) -> Vec<u8> {
        assert_eq!(self.code, Some(0), "stderr: {}", self.stderr);
        assert_eq!(self.stderr, "");
        self.stdout
    }

    /// As [`good`](Self::good), as text.
    pub(crate) fn text(self) -> String {
        String::from_utf8(self.good()).expect("the output is UTF-8")
    }

    /// The one line of a run that must have failed with `code`.
    pub(crate) fn error(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "stderr: {}", self.stderr);
        let line = self.stderr.strip_suffix('\n').expect("the message ends its line");
        assert!(line.starts_with("tl: ") && line.len() <= 404 && !line.contains('\n'), "{line}");
        line.to_owned()
    }
}

/// Runs `tl` with `args`.
pub(crate) fn tl<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    let output = command(args).stdin(Stdio::null()).output().expect("tl starts");
    finished(output)
}

/// `tl` with `args`, not yet started.
pub(crate) fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tl"));
    command.args(args).env_remove("NO_COLOR");
    command
}

/// The end of a process.
pub(crate) fn finished(output: Output) -> Run {
    Run {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).expect("messages are UTF-8"),
    }
}

/// Each line of `text` as JSON.
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// The SHA-256 of `bytes` in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A TAR archive of these members, whose names are written as they are, however unwise.
pub(crate) fn tar(members: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_ustar();
        let field = &mut header.as_old_mut().name;
        if name.len() <= field.len() && !name.contains(&0) {
            field[..name.len()].copy_from_slice(name);
        } else {
            let record = [("path", *name)];
            builder.append_pax_extensions(record).expect("writing to a vector succeeds");
        }
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *bytes).expect("writing to a vector succeeds");
    }
    builder.into_inner().expect("writing to a vector succeeds")
}

/// Writes `bytes` under `name` in `folder` and returns the path.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("the temporary folder is writable");
    path
}

/// Every file below `folder`, by relative path, sorted.
pub(crate) fn files_below(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(current) = open.pop() {
        for entry in fs::read_dir(&current).expect("the folder is readable") {
            let path = entry.expect("the entry is readable").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it lies below").to_string_lossy();
                files.push((name.into_owned(), fs::read(&path).expect("the file is readable")));
            }
        }
    }
    files.sort();
    files
}

/// The photographs that come with the source.
pub(crate) fn photos() -> PathBuf {
    tl_testdata::shipped!("photos")
}
