#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![allow(clippy::doc_markdown, reason = "help texts are read on terminals, without backticks")]

mod args;
mod bench;
mod cat;
mod cli;
mod completions;
mod convert;
mod data_set;
mod decode;
mod digest;
mod doctor;
mod explain;
mod extract;
mod failure;
mod figures;
mod index;
mod info;
mod interrupt;
mod job;
mod ls;
mod merge;
mod output;
mod page;
mod pixels;
mod preview;
mod recipe;
mod repair;
#[cfg(feature = "remote")]
mod rm;
mod split;
mod stats;
#[cfg(feature = "tables")]
mod table;
mod tar_to_tbl;
mod text;
mod threads;
#[cfg(feature = "text")]
mod tokenize;
mod verify;
mod weights;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use signal_hook::consts::SIGXFSZ;

use cli::Cli;
use failure::{EXIT_BAD, EXIT_GOOD, EXIT_INTERNAL, Failure, Verdict};

/// The `tl` command: runs the subcommand the process was started with and returns its exit code.
#[must_use]
pub fn tl() -> ExitCode {
    tl_with(env::args_os()).into()
}

/// The `tl` command with these arguments, of which the first is the program's name: for programs
/// that bring it along. Returns the exit code; a command line without a command ends the process.
#[must_use]
pub fn tl_with(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    catch_panic(|| {
        let cli = match Cli::try_parse_from(arguments) {
            Ok(cli) => cli,
            Err(error) => return refused(&error),
        };
        output::set_color(cli.global.color);
        check_level()?;
        cli.command.run(&cli.global)
    })
}

/// The `tar_to_tbl` command: as [`tl`], for converting one archive.
#[must_use]
pub fn tar_to_tbl() -> ExitCode {
    tar_to_tbl_with(env::args_os()).into()
}

/// The `tar_to_tbl` command with these arguments: as [`tl_with`].
#[must_use]
pub fn tar_to_tbl_with(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    catch_panic(|| match tar_to_tbl::TarToTblArgs::try_parse_from(arguments) {
        Ok(args) => check_level().and_then(|()| tar_to_tbl::run(&args)),
        Err(error) => refused(&error),
    })
}

/// The definition of the `tl` command line, for generators of manuals or completions.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs `command` and turns its end into a line on standard error and an exit code. A panic,
/// on whichever thread, is one line too.
fn catch_panic(command: impl FnOnce() -> Result<Verdict, Failure> + panic::UnwindSafe) -> u8 {
    panic::set_hook(Box::new(report_panic));
    catch_file_size_signal();
    let Ok(end) = panic::catch_unwind(command) else {
        return EXIT_INTERNAL;
    };
    match end {
        Ok(Verdict::Good) => EXIT_GOOD,
        Ok(Verdict::Bad) => EXIT_BAD,
        Err(failure) => {
            if !matches!(failure, Failure::ClosedPipe) {
                output::report(&failure);
            }
            failure.exit_code()
        }
    }
}

/// Refuses an instruction set level that this CPU lacks.
fn check_level() -> Result<(), Failure> {
    match tl_simd::Level::requested() {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::setting(format_args!("{error} (see --help)"))),
    }
}

/// Prints help or version, or makes a wrong command line an error of one line, like every other.
/// Help instead of a missing command ends the process.
fn refused(error: &clap::Error) -> Result<Verdict, Failure> {
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| io::stdout().flush());
        return printed.map(|()| Verdict::Good).map_err(Failure::stdout);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim);
    // A tip, as in `tip: a similar argument exists`, is a statement of its own.
    let message: String = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more info"))
        .filter(|line| !line.is_empty())
        .flat_map(|line| line.strip_prefix("tip: ").map_or([" ", line], |tip| ["; ", tip]))
        .collect();
    let message = message.trim_start();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    Err(Failure::setting(format_args!("{message} (see --help)")))
}

/// Makes a write beyond the file size limit an error to report, like a full disk, instead of the
/// end of the process.
fn catch_file_size_signal() {
    // Without a handler the process ends by SIGXFSZ and the output is discarded all the same.
    let _flag = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).ok();
}

/// Says in one line where the bug is, on whichever thread it struck.
fn report_panic(info: &PanicHookInfo<'_>) {
    if turboloader::catches_panics() {
        return;
    }
    let message = info.payload_as_str().unwrap_or("no message");
    match info.location() {
        Some(at) => output::report(&format_args!(
            "internal error, please report it: {message} ({}:{})",
            at.file(),
            at.line()
        )),
        None => output::report(&format_args!("internal error, please report it: {message}")),
    }
}
