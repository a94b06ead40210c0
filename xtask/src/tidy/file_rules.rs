//! Rules that look at one file at a time.

use super::{Problem, SourceFile};

/// Lines a source file may have, its tests not counted.
const MAX_LINES: usize = 500;

/// Text that never belongs in a file, with the reason. Written in halves so that this file passes.
const FORBIDDEN: [(&str, &str, &str); 6] = [
    ("/wo", "rk/", "a path of one machine"),
    ("/ro", "ot/", "a path of one machine"),
    ("/ho", "me/", "a path of one machine"),
    ("TO", "DO", "unfinished work is an issue, not a comment"),
    ("[sou", "rce.", "a registry replacement belongs in the user's own configuration"),
    ("replace-", "with", "a registry replacement belongs in the user's own configuration"),
];

/// Code that never belongs in a Rust file, with the reason.
const FORBIDDEN_IN_CODE: [(&str, &str, &str); 8] = [
    ("db", "g!(", "a debugging aid"),
    ("tod", "o!(", "a stub"),
    ("unimple", "mented!(", "a stub"),
    ("#[ign", "ore", "assert what happens today; `tl_testdata::needs` is for absent data"),
    ("should_", "panic", "assert on the returned error instead"),
    ("allow(dead_", "code", "delete unused code"),
    ("allow(unu", "sed", "delete unused code"),
    ("// ==", "==", "a banner; a section is a module"),
];

/// Printing macros, reserved to the command line, examples, tests, benches and this package.
const PRINTING: [&str; 4] = ["println!(", "eprintln!(", "print!(", "eprint!("];

/// Words that a summary does not open with: it is a noun phrase, or a verb in the third person.
/// `Whether` is for booleans, `How many` for counts.
const OPENERS: [&str; 8] = ["What", "How", "Where", "Which", "Why", "Who", "Whose", "When"];

/// Openers that a summary may have.
const COUNTS: [&str; 3] = ["How many", "How much", "How long"];

/// All problems of one file.
pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !file.path.ends_with(".lock") {
        problems.extend(whitespace(file));
        problems.extend(forbidden(file, &FORBIDDEN));
    }
    if file.path.ends_with(".rs") {
        problems.extend(module_docs(file));
        problems.extend(length(file));
        problems.extend(forbidden(file, &FORBIDDEN_IN_CODE));
        problems.extend(printing(file));
        problems.extend(facade(file));
        problems.extend(level_match(file));
        problems.extend(summaries(file));
    }
    if file.path.ends_with("Cargo.lock") {
        problems.extend(lock_sources(file));
    }
    problems
}

/// The lines before the file's test module, numbered from 1. All of them in a file of tests.
pub(super) fn code_lines(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let tests = file.text.find("\n#[cfg(test)]\nmod ");
    let code = tests.map_or(file.text.as_str(), |end| file.text.get(..end).unwrap_or_default());
    code.lines().enumerate().map(|(number, line)| (number + 1, line))
}

fn problem(file: &SourceFile, line: usize, message: impl Into<String>) -> Problem {
    Problem { path: file.path.clone(), line, message: message.into() }
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn whitespace(file: &SourceFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        if line.ends_with([' ', '\t']) {
            problems.push(problem(file, number + 1, "space at the end of the line"));
        }
    }
    if !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")) {
        let last = file.text.lines().count();
        problems.push(problem(file, last, "a file ends with exactly one line feed"));
    }
    problems
}

fn forbidden(file: &SourceFile, words: &[(&str, &str, &str)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (head, tail, reason) in words {
        let word = format!("{head}{tail}");
        for (number, line) in file.text.lines().enumerate() {
            if line.contains(&word) {
                problems.push(problem(file, number + 1, format!("`{word}`: {reason}")));
            }
        }
    }
    problems
}

/// A file says what it is before its first item; attributes of the crate may come first.
/// A `tests.rs` is what its module's documentation says already.
fn module_docs(file: &SourceFile) -> Option<Problem> {
    if file.path.ends_with("/tests.rs") {
        return None;
    }
    let first = file.text.lines().map(str::trim).find(|line| {
        !line.is_empty() && (!line.starts_with("#![") || line.starts_with("#![doc = include_str!"))
    });
    let documented = first
        .is_some_and(|line| line.starts_with("//!") || line.starts_with("#![doc = include_str!"));
    (!documented).then(|| problem(file, 1, "a file starts with `//!`: what it is"))
}

fn length(file: &SourceFile) -> Option<Problem> {
    if is_test(&file.path) {
        return None;
    }
    let lines = code_lines(file).count();
    let message = format!("{lines} lines without tests, at most {MAX_LINES}");
    (lines > MAX_LINES).then(|| problem(file, lines, message))
}

/// The first line of every documentation comment of a crate opens with what the caller gets.
fn summaries(file: &SourceFile) -> Vec<Problem> {
    if !(file.path.starts_with("crates/") && file.path.contains("/src/")) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut is_inside = false;
    for (number, line) in file.text.lines().enumerate() {
        let comment = line.trim_start();
        let text = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"));
        let first = text.filter(|_| !is_inside).unwrap_or_default().trim_start();
        let word = first.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
        if OPENERS.contains(&word) && !COUNTS.iter().any(|count| first.starts_with(count)) {
            let message = format!("a summary opens with `{word}`: write a noun phrase or a verb");
            problems.push(problem(file, number + 1, message));
        }
        is_inside = text.is_some();
    }
    problems
}

fn printing(file: &SourceFile) -> Vec<Problem> {
    let library = file.path.starts_with("crates/")
        && file.path.contains("/src/")
        && !file.path.starts_with("crates/turboloader-cli/")
        && !file.path.ends_with("/src/main.rs")
        && !is_test(&file.path);
    if !library {
        return Vec::new();
    }
    let prints = |line: &str| {
        let line = line.trim_start();
        !line.starts_with("//") && PRINTING.iter().any(|word| line.contains(word))
    };
    code_lines(file)
        .filter(|(_, line)| prints(line))
        .map(|(number, _)| problem(file, number, "only the command line prints"))
        .collect()
}

/// Threads and locks of the loader come through `sync.rs`, so that shuttle can replace them.
fn facade(file: &SourceFile) -> Vec<Problem> {
    const FACADE: &str = "crates/tl-handoff/src/sync.rs";
    let crates = ["crates/tl-handoff/src/", "crates/tl-pipeline/src/"];
    if file.path == FACADE || !crates.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    code_lines(file)
        .filter(|(_, line)| line.contains("std::sync") || line.contains("std::thread"))
        .map(|(number, _)| problem(file, number, format!("threads and locks come from {FACADE}")))
        .collect()
}

/// `dispatch!` holds the only choice by level, so that a new level is added in one place.
fn level_match(file: &SourceFile) -> Vec<Problem> {
    const LEVEL: &str = "crates/tl-simd/src/level.rs";
    let home = file.path == LEVEL || file.text.contains("macro_rules! dispatch");
    if home || file.path.starts_with("xtask/") {
        return Vec::new();
    }
    let chooses = |line: &str| {
        line.contains("match level") || (line.contains("Level::") && line.contains("=>"))
    };
    code_lines(file)
        .filter(|(_, line)| chooses(line))
        .map(|(number, _)| problem(file, number, "a choice by level belongs in `dispatch!`"))
        .collect()
}

/// Every locked package comes from the public registry.
fn lock_sources(file: &SourceFile) -> Vec<Problem> {
    const REGISTRY: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("source = ") && *line != REGISTRY)
        .map(|(number, line)| problem(file, number + 1, format!("unexpected {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(path: &str, text: &str, expected: &[(usize, &str)]) {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        let found = check(&file);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, (line, message)) in found.iter().zip(expected) {
            assert_eq!(found.line, *line, "{found:?}");
            assert!(found.message.contains(message), "{found:?} should say {message:?}");
        }
    }

    const LIBRARY: &str = "crates/tbl-io/src/reader.rs";

    #[test]
    fn a_documented_file_has_no_problem() {
        check_text(LIBRARY, "//! Reads.\n\nfn read() {}\n", &[]);
        check_text(LIBRARY, "#![doc = include_str!(\"../README.md\")]\n#![no_std]\n", &[]);
        check_text(LIBRARY, "#![no_std]\n//! Reads.\n", &[]);
    }

    #[test]
    fn a_file_without_docs_is_named() {
        check_text(LIBRARY, "fn read() {}\n", &[(1, "a file starts with")]);
    }

    #[test]
    fn spaces_and_missing_line_feeds_are_named() {
        check_text("README.md", "one \ntwo", &[(1, "space at the end"), (2, "line feed")]);
        check_text("README.md", "one\n\n", &[(2, "line feed")]);
    }

    #[test]
    fn machine_paths_are_named() {
        let text = format!("see {}{}x\n", "/ho", "me/");
        check_text("README.md", &text, &[(1, "a path of one machine")]);
    }

    #[test]
    fn skipped_tests_are_named() {
        let text = format!("//! Tests.\n#[test]\n{}{}]\nfn f() {{}}\n", "#[ign", "ore");
        check_text("crates/tbl-io/tests/it/main.rs", &text, &[(3, "assert what happens")]);
    }

    #[test]
    fn only_the_command_line_prints() {
        let text = "//! Reads.\nfn f() { println!(\"x\"); }\n";
        check_text(LIBRARY, text, &[(2, "only the command line prints")]);
        check_text("crates/turboloader-cli/src/ls.rs", text, &[]);
        check_text("crates/tbl-io/examples/read.rs", text, &[]);
        check_text(LIBRARY, "//! Reads.\n/// println!(\"x\")\nfn f() {}\n", &[]);
    }

    #[test]
    fn summaries_open_with_what_the_caller_gets() {
        let path = "crates/tl-decode/src/image.rs";
        let text = "//! What it is.\n\n/// How many rows.\n/// Where it goes on.\nfn f() {}\n";
        check_text(path, text, &[(1, "opens with `What`")]);
        check_text(path, "//! Images.\n\n/// Whether it is whole.\nfn f() {}\n", &[]);
        check_text("crates/tl-pipeline/tests/it/order.rs", text, &[]);
    }

    #[test]
    fn threads_of_the_pipeline_come_from_the_facade() {
        let text = "//! Works.\nuse std::thread;\n";
        check_text("crates/tl-pipeline/src/worker.rs", text, &[(2, "sync.rs")]);
        check_text("crates/tl-handoff/src/sync.rs", text, &[]);
        check_text(LIBRARY, text, &[]);
    }

    #[test]
    fn the_choice_by_level_has_one_home() {
        let text = "//! Kernel.\nfn f(level: Level) {\n    match level {}\n}\n";
        check_text("crates/tl-simd/src/kernels/flip.rs", text, &[(3, "a choice by level")]);
        check_text("crates/tl-simd/src/level.rs", text, &[]);
        let home = text.replace("fn f", "macro_rules! dispatch {}\nfn f");
        check_text("crates/tl-simd/src/vector.rs", &home, &[]);
    }

    #[test]
    fn long_files_are_named_and_tests_do_not_count() {
        let code = "//! Long.\n".to_owned() + &"fn f() {}\n".repeat(MAX_LINES);
        check_text(LIBRARY, &code, &[(501, "501 lines without tests")]);
        let tested = "//! Short.\n\n#[cfg(test)]\nmod tests {\n".to_owned()
            + &"    fn f() {}\n".repeat(MAX_LINES)
            + "}\n";
        check_text(LIBRARY, &tested, &[]);
    }

    #[test]
    fn a_package_from_elsewhere_is_named() {
        let text = "[[package]]\nname = \"x\"\nsource = \"git+https://example.org/x\"\n";
        check_text("Cargo.lock", text, &[(3, "unexpected source")]);
    }
}
