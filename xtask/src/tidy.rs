//! House rules that neither the compiler nor clippy checks; also run as a test of this package.
//!
//! Rules look at text. They are deliberately simple enough to be fooled on purpose, because they
//! guard against oversight and not against malice.

mod circles;
mod file_rules;
mod tuples;
mod workspace_rules;

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::workspace_root;

/// Folders that hold no sources of ours.
const SKIPPED_FOLDERS: [&str; 5] =
    [".git", "target", "fuzz/target", "fuzz/corpus", "fuzz/artifacts"];

/// A text file of the repository.
#[derive(Debug)]
struct SourceFile {
    /// Path below the workspace root, with `/` between its parts.
    path: String,
    text: String,
}

/// A broken rule, by file and line (0 when no line is to blame).
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Checks the workspace and prints every problem.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let root = workspace_root();
    let files = text_files(&root)?;
    let problems = problems(&root, &files);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("tidy: {} files, no problems", files.len());
        Ok(())
    } else {
        Err(format!("tidy: {} problems", problems.len()).into())
    }
}

fn problems(root: &Path, files: &[SourceFile]) -> Vec<Problem> {
    let mut problems: Vec<Problem> = files.iter().flat_map(file_rules::check).collect();
    problems.extend(files.iter().flat_map(tuples::check));
    problems.extend(workspace_rules::check(root, files));
    problems.extend(circles::check(files));
    problems
}

/// Every text file below `root` with one of the extensions the rules know, sorted by path.
fn text_files(root: &Path) -> Result<Vec<SourceFile>, Box<dyn Error>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = relative(root, &path);
            if path.is_symlink() || SKIPPED_FOLDERS.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if is_text(&name) {
                let text = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
                files.push(SourceFile { path: name, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn relative(root: &Path, path: &Path) -> String {
    let parts: PathBuf = path.strip_prefix(root).unwrap_or(path).into();
    parts.to_string_lossy().replace('\\', "/")
}

fn is_text(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("rs" | "toml" | "md" | "sh" | "lock" | "py"))
        || name == ".ci/run"
        || name == ".gitignore"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let root = workspace_root();
        let files = text_files(&root).expect("the workspace is readable");
        let problems: Vec<String> =
            problems(&root, &files).iter().map(ToString::to_string).collect();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
