//! Running `tl` and looking at how it ended.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};

/// How a run of `tl` ended.
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
