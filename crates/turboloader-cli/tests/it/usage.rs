//! Properties of every subcommand: help, version, exit codes, closed pipes.

use std::fs::File;
use std::process::Stdio;

use crate::support::{command, finished, tl};

const SUBCOMMANDS: [&str; 17] = [
    "convert",
    "info",
    "ls",
    "cat",
    "extract",
    "verify",
    "digest",
    "find",
    "edges",
    "merge",
    "split",
    "repair",
    "decode",
    "preview",
    "explain",
    "bench",
    "completions",
];

#[test]
fn every_subcommand_explains_itself_with_an_example() {
    let listing = tl(["--help"]).text();
    for name in SUBCOMMANDS {
        assert!(listing.contains(name), "{name} is missing in {listing}");
        let help = tl([name, "--help"]).text();
        assert!(help.contains("Example"), "no example in the help of {name}");
        assert!(help.contains(&format!("tl {name}")), "{help}");
    }
}

#[test]
fn version_names_the_command() {
    assert_eq!(tl(["--version"]).text(), format!("tl {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_exits_with_2() {
    for (args, word) in [
        (&["no-such-command"][..], "no-such-command"),
        (&["ls"], "<FILE>"),
        (&["cat", "x.tbl", "first"], "first"),
        // As a shell expands them.
        (&["cat", "0.tar", "1.tar"], "put a pattern or ranges of file names in quotes"),
        (
            &["extract", "0.tar", "1.tar", "-o", "x"],
            "put a pattern or ranges of file names in quotes",
        ),
        (&["convert", "x", "-o", "y", "--to", "zip"], "tbl2"),
        (&["ls", "x", "--jsn"], "--json"),
    ] {
        let line = tl(args).error(2);
        assert!(line.contains(word) && !line.contains("error:"), "{line}");
    }
    // Without a command there is help instead.
    let bare = tl::<&str>([]);
    assert!(bare.code == Some(2) && bare.stderr.contains("Usage: tl"), "{}", bare.stderr);
}

#[test]
fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(tl(["completions", shell]).text().contains("preview"), "{shell}");
    }
}

#[test]
fn a_closed_pipe_is_a_silent_success() {
    let mut child = command(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tl starts");
    drop(child.stdout.take());
    let run = finished(child.wait_with_output().expect("tl ends"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_full_device_is_an_error() {
    for args in [&["completions", "bash"][..], &["--help"], &["--version"], &["verify", "-h"]] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has /dev/full");
        let output = command(args).stdout(full).output().expect("tl starts");
        let message = finished(output).error(2);
        assert!(message.starts_with("tl: standard output: No space left"), "{args:?}: {message}");
    }
}
