//! Output: standard output as a buffered file, files that appear whole or not at
//! all, the progress bar, and the line an error becomes.

use std::fmt::{self, Display};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;
use tbl_io::{AtomicFile, Placement};

use crate::args::{ColorWhen, GlobalArgs};
use crate::failure::Failure;
use crate::text::one_line;

/// Large enough that a listing of a million samples is a few thousand writes.
const BUFFER_BYTES: usize = 64 * 1024;

const BINARY_ON_TERMINAL: Failure = Failure::Usage {
    what: "refusing to write binary data to a terminal (redirect it, or name a file with -o)",
};

/// A job shorter than this shows no progress bar.
const PROGRESS_DELAY: Duration = Duration::from_millis(500);

/// The style of a table's first line.
pub(crate) const HEADING_STYLE: Style = Style::new().bold();

const ERROR_STYLE: Style = AnsiColor::Red.on_default().bold();

/// Makes `--color`, `NO_COLOR` and `TERM` hold for everything printed from here on.
pub(crate) fn set_color(when: ColorWhen) {
    let choice = match when {
        ColorWhen::Auto => anstream::ColorChoice::Auto,
        ColorWhen::Always => anstream::ColorChoice::Always,
        ColorWhen::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// `style` if standard output takes colours, else none.
pub(crate) fn stdout_style(style: Style) -> Style {
    match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => Style::new(),
        anstream::ColorChoice::Auto
        | anstream::ColorChoice::AlwaysAnsi
        | anstream::ColorChoice::Always => style,
    }
}

/// Prints `message` to standard error as one line after the command's name.
pub(crate) fn report(message: &dyn Display) {
    let line = one_line(message);
    let mut stderr = anstream::stderr().lock();
    // Standard error is the last resort: when it is closed there is nobody to tell.
    writeln!(stderr, "{ERROR_STYLE}tl:{ERROR_STYLE:#} {line}").unwrap_or(());
}

/// Prints `message` to standard error as one line that is not an error.
pub(crate) fn note(message: &dyn Display) {
    let line = one_line(message);
    let mut stderr = anstream::stderr().lock();
    writeln!(stderr, "tl: {line}").unwrap_or(());
}

/// One worker per core.
pub(crate) fn default_workers() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Standard output, buffered, with typed errors. [`finish`](Self::finish) must be called, or the
/// last bytes and their error are lost.
#[derive(Debug)]
pub(crate) struct Stdout {
    file: BufWriter<File>,
    is_terminal: bool,
}

impl Stdout {
    /// Takes standard output, past the line buffer of [`std::io::stdout`].
    pub(crate) fn open() -> Result<Self, Failure> {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let handle = stdout.as_fd().try_clone_to_owned().map_err(Failure::stdout)?;
        Ok(Self { file: BufWriter::with_capacity(BUFFER_BYTES, handle.into()), is_terminal })
    }

    /// Takes standard output for binary data; a terminal is refused.
    pub(crate) fn open_binary() -> Result<Self, Failure> {
        let stdout = Self::open()?;
        if stdout.is_terminal { Err(BINARY_ON_TERMINAL) } else { Ok(stdout) }
    }

    /// Whether a person is looking.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes `value` as one line of JSON.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.file, value)
            .map_err(|error| Failure::stdout(error.into()))?;
        self.bytes(b"\n")
    }

    /// Writes `text` and ends the line.
    pub(crate) fn line(&mut self, text: &dyn Display) -> Result<(), Failure> {
        writeln!(self.file, "{text}").map_err(Failure::stdout)
    }

    /// Writes `bytes` as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(Failure::stdout)
    }

    /// Hands the last bytes to the operating system.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.file.flush().map_err(Failure::stdout)
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The form of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListStyle {
    /// One JSON object a line.
    Json,
    /// Aligned columns, for a person.
    Table,
    /// Tab-separated values, for a program.
    Tsv,
}

impl ListStyle {
    /// The form that `--json` asks for, and otherwise one that suits a terminal or a pipe.
    pub(crate) fn choose(json: bool, stdout: &Stdout) -> Self {
        match (json, stdout.is_terminal()) {
            (true, _) => Self::Json,
            (false, true) => Self::Table,
            (false, false) => Self::Tsv,
        }
    }
}

/// Writes a file that appears under `path` only when `fill` has succeeded. An existing file is
/// replaced only with `force`; a device or a pipe is written to.
pub(crate) fn write_file(
    path: &Path,
    force: bool,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let io_failure = |source| Failure::Io { path: path.to_owned(), source };
    match path.metadata() {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let file = OpenOptions::new().write(true).open(path).map_err(io_failure)?;
            let mut writer = BufWriter::with_capacity(BUFFER_BYTES, file);
            return fill(&mut writer).and_then(|()| writer.flush()).map_err(io_failure);
        }
        _ => {}
    }
    let failure = |source: io::Error| {
        if source.kind() == io::ErrorKind::AlreadyExists {
            Failure::Exists { path: path.to_owned() }
        } else {
            io_failure(source)
        }
    };
    let placement = Placement { overwrite: force, sync: true };
    let draft = AtomicFile::create(path, placement).map_err(failure)?;
    let mut writer = BufWriter::with_capacity(BUFFER_BYTES, draft.file());
    fill(&mut writer).and_then(|()| writer.flush()).map_err(io_failure)?;
    drop(writer);
    draft.commit().map_err(failure)
}

/// A progress bar on standard error: only on a terminal, only for jobs that take a while.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The time at which to show the bar; `None` once it is shown, or when it never will be.
    show_at: Option<Instant>,
}

impl Progress {
    /// A bar of `total` samples.
    pub(crate) fn new(global: &GlobalArgs, total: u64) -> Self {
        let wanted = !global.quiet && io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        bar.set_style(progress_style());
        Self { bar, show_at: wanted.then(|| Instant::now() + PROGRESS_DELAY) }
    }

    /// Says that `done` samples are done.
    pub(crate) fn set(&mut self, done: u64) {
        if self.show_at.is_some_and(|at| Instant::now() >= at) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.show_at = None;
        }
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    /// Clears the bar, so that what is printed next starts on an empty line.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn progress_style() -> ProgressStyle {
    // `wide_bar` keeps the line within the terminal, whatever its width.
    ProgressStyle::with_template("{wide_bar} {percent:>3} %  {pos}/{len}  {rate}/s  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, text: &mut dyn fmt::Write| {
            // A rate that cannot be written is a rate that is not shown.
            write!(text, "{:.0}", state.per_sec()).unwrap_or(());
        })
}
