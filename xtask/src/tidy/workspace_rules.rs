//! Rules that hold between files: crate boundaries, the list of unsafe code, links, test data.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::file_rules::code_lines;
use super::{Problem, SourceFile};

/// Each library crate with the workspace crates it may depend on.
const ARROWS: [(&str, &[&str]); 18] = [
    ("idv-format", &[]),
    ("tbf-format", &[]),
    ("tbl-format", &[]),
    ("tbl-io", &["tbl-format"]),
    ("tl-arrow", &["tbl-format", "tbl-io", "tl-tokens"]),
    ("tl-av1", &[]),
    ("tl-cuda", &["tl-decode", "tl-handoff", "tl-simd"]),
    ("tl-decode", &["tl-av1", "tl-simd"]),
    ("tl-handoff", &[]),
    (
        "tl-pipeline",
        &[
            "idv-format",
            "tbf-format",
            "tbl-format",
            "tbl-io",
            "tl-arrow",
            "tl-cuda",
            "tl-decode",
            "tl-handoff",
            "tl-simd",
            "tl-tokens",
            "tl-transform",
            "tl-video",
        ],
    ),
    (
        "tl-python",
        &[
            "idv-format",
            "tbf-format",
            "tbl-format",
            "tbl-io",
            "tl-arrow",
            "tl-decode",
            "tl-pipeline",
            "tl-simd",
            // Only for a feature, `as-tested`.
            "tl-store",
            "tl-tokens",
            "tl-transform",
            "turboloader",
            "turboloader-cli",
        ],
    ),
    ("tl-simd", &[]),
    ("tl-store", &["tbl-io"]),
    ("tl-tokens", &["tbl-format", "tbl-io"]),
    ("tl-transform", &["tl-simd"]),
    ("tl-video", &["tl-av1", "tl-simd"]),
    (
        "turboloader",
        &[
            "idv-format",
            "tbf-format",
            "tbl-format",
            "tbl-io",
            "tl-decode",
            "tl-pipeline",
            "tl-simd",
            "tl-store",
            "tl-tokens",
            "tl-transform",
            "tl-video",
        ],
    ),
    (
        "turboloader-cli",
        &[
            "idv-format",
            "tbf-format",
            "tbl-format",
            "tbl-io",
            "tl-decode",
            "tl-pipeline",
            "tl-simd",
            "tl-tokens",
            "tl-transform",
            "tl-video",
            "turboloader",
        ],
    ),
];

/// Crates without a line of unsafe code.
const FORBID_UNSAFE: [&str; 14] = [
    "idv-format",
    "tl-store-server",
    "tbf-format",
    "tbl-format",
    "tl-arrow",
    "tl-decode",
    "tl-pipeline",
    "tl-store",
    "tl-tokens",
    "tl-transform",
    "tl-video",
    "turboloader",
    "turboloader-cli",
    "xtask",
];

/// The largest size of the committed fuzz seeds.
const MAX_SEED_BYTES: u64 = 200 * 1024;

/// All problems that take more than one file to see.
pub(super) fn check(root: &Path, files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(crates(root, files));
    problems.extend(unused_dependencies(files));
    problems.extend(unsafe_list(files));
    problems.extend(links(root, files));
    problems.extend(photographs(root, files));
    problems.extend(seeds(root));
    problems
}

fn problem(path: &str, message: impl Into<String>) -> Problem {
    Problem { path: path.to_owned(), line: 0, message: message.into() }
}

fn text_of<'a>(files: &'a [SourceFile], path: &str) -> Option<&'a str> {
    files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
}

/// Every crate has the parts a published crate needs, and only the dependencies it may have.
fn crates(root: &Path, files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, allowed) in ARROWS {
        let manifest = format!("crates/{name}/Cargo.toml");
        let Some(text) = text_of(files, &manifest) else {
            problems.push(problem(&manifest, "missing"));
            continue;
        };
        for (other, _) in ARROWS {
            let needs = dependencies(text).any(|dependency| dependency == other);
            if needs && !allowed.contains(&other) {
                problems.push(problem(&manifest, format!("{name} may not depend on {other}")));
            }
        }
        if !text.contains("[lints]\nworkspace = true") {
            problems.push(problem(&manifest, "does not inherit the workspace lints"));
        }
        let parts: &[&str] = match name {
            "turboloader-cli" | "tl-python" => &["README.md"],
            _ => &["README.md", "examples"],
        };
        for part in parts {
            if !root.join("crates").join(name).join(part).exists() {
                problems.push(problem(&format!("crates/{name}"), format!("has no {part}")));
            }
        }
    }
    for name in FORBID_UNSAFE {
        let folder = if name == "xtask" { "xtask".to_owned() } else { format!("crates/{name}") };
        let roots = [format!("{folder}/src/lib.rs"), format!("{folder}/src/main.rs")];
        for root in roots {
            if text_of(files, &root).is_some_and(|text| !text.contains("#![forbid(unsafe_code)]")) {
                problems.push(problem(&root, "lacks `#![forbid(unsafe_code)]`"));
            }
        }
    }
    problems
}

/// The names in a manifest's `[dependencies]` table; development dependencies are free.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    table(manifest, "[dependencies]")
}

/// The keys of a table of a manifest.
fn table<'a>(manifest: &'a str, header: &'static str) -> impl Iterator<Item = &'a str> {
    manifest
        .lines()
        .skip_while(move |line| *line != header)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
}

/// Whether one of the crates takes each dependency that the workspace offers.
/// `cargo shear` and `cargo machete` would have to be installed before a check without a build.
fn unused_dependencies(files: &[SourceFile]) -> Vec<Problem> {
    const MANIFEST: &str = "Cargo.toml";
    let offered = text_of(files, MANIFEST).unwrap_or_default();
    let names = table(offered, "[workspace.dependencies]");
    let is_used = |name: &str| {
        let forms = [format!("{name}.workspace"), format!("{name} = {{ workspace")];
        let lines = files
            .iter()
            .filter(|file| file.path.ends_with("/Cargo.toml"))
            .flat_map(|file| file.text.lines());
        lines.into_iter().any(|line| forms.iter().any(|form| line.starts_with(form.as_str())))
    };
    names
        .filter(|name| !is_used(name))
        .map(|name| problem(MANIFEST, format!("no crate depends on {name}")))
        .collect()
}

/// `docs/safety.md` lists exactly the files with unsafe code.
fn unsafe_list(files: &[SourceFile]) -> Vec<Problem> {
    const PAGE: &str = "docs/safety.md";
    let found: BTreeSet<&str> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && !file.path.starts_with("xtask/"))
        .filter(|file| has_unsafe(file))
        .map(|file| file.path.as_str())
        .collect();
    let page = text_of(files, PAGE).unwrap_or_default();
    let listed: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next())
        .filter(|path| path.ends_with(".rs"))
        .collect();
    let unlisted = found.difference(&listed).map(|path| format!("`{path}` is not listed"));
    let stale = listed.difference(&found).map(|path| format!("`{path}` has no unsafe code"));
    unlisted.chain(stale).map(|message| problem(PAGE, message)).collect()
}

fn has_unsafe(file: &SourceFile) -> bool {
    const FORMS: [&str; 4] = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
    code_lines(file).any(|(_, line)| {
        let line = line.trim_start();
        !line.starts_with("//") && FORMS.iter().any(|form| line.contains(form))
    })
}

/// Relative links in the documentation lead somewhere.
/// `lychee` would have to be installed, and its main work, links to the network, is not wanted here.
fn links(root: &Path, files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = root.join(&file.path);
        let Some(folder) = folder.parent() else { continue };
        for target in link_targets(&file.text) {
            if !folder.join(target).exists() {
                problems.push(problem(&file.path, format!("the link to `{target}` leads nowhere")));
            }
        }
    }
    problems
}

/// The targets of Markdown links to files, without their fragments.
fn link_targets(text: &str) -> impl Iterator<Item = &str> {
    let is_file =
        |target: &&str| !target.is_empty() && !target.contains("://") && !target.contains("::");
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter_map(|target| target.split('#').next())
        .filter(move |target| is_file(target) && target.contains(['.', '/']))
}

/// The manifest of the photographs, with their sources and licences, names each one and no other.
fn photographs(root: &Path, files: &[SourceFile]) -> Vec<Problem> {
    const MANIFEST: &str = "testdata/photos/manifest.toml";
    let manifest = text_of(files, MANIFEST).unwrap_or_default();
    let field = |key: &str| {
        let prefix = format!("{key} = ");
        manifest
            .lines()
            .filter_map(move |line| line.strip_prefix(&prefix))
            .map(|value| value.trim_matches('"').to_owned())
            .collect::<Vec<_>>()
    };
    let listed: BTreeSet<(String, String)> =
        field("file").into_iter().zip(field("bytes")).collect();
    let found = photograph_sizes(&root.join("testdata/photos"));
    let unlisted =
        found.difference(&listed).map(|(file, bytes)| format!("lacks {file} ({bytes} B)"));
    let stale =
        listed.difference(&found).map(|(file, bytes)| format!("no {file} of {bytes} B here"));
    unlisted.chain(stale).map(|message| problem(MANIFEST, message)).collect()
}

fn photograph_sizes(folder: &Path) -> BTreeSet<(String, String)> {
    let classes = fs::read_dir(folder).into_iter().flatten().flatten();
    let files =
        classes.flat_map(|class| fs::read_dir(class.path()).into_iter().flatten().flatten());
    files
        .filter_map(|file| {
            let class = file.path().parent()?.file_name()?.to_string_lossy().into_owned();
            let name = file.file_name().to_string_lossy().into_owned();
            Some((format!("{class}/{name}"), file.metadata().ok()?.len().to_string()))
        })
        .collect()
}

fn seeds(root: &Path) -> Option<Problem> {
    const SEEDS: &str = "fuzz/seeds";
    let targets = fs::read_dir(root.join(SEEDS)).into_iter().flatten().flatten();
    let files =
        targets.flat_map(|target| fs::read_dir(target.path()).into_iter().flatten().flatten());
    let bytes: u64 = files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
    let message = format!("{bytes} bytes of seeds, at most {MAX_SEED_BYTES}");
    (bytes > MAX_SEED_BYTES).then(|| problem(SEEDS, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn messages(problems: &[Problem]) -> Vec<&str> {
        problems.iter().map(|problem| problem.message.as_str()).collect()
    }

    #[test]
    fn development_dependencies_are_free() {
        let manifest = "[dependencies]\ncrc.workspace = true\nlz4 = \"1\"\n\n[dev-dependencies]\ntar.workspace = true\n";
        assert_eq!(dependencies(manifest).collect::<Vec<_>>(), ["crc", "lz4"]);
    }

    #[test]
    fn a_dependency_that_no_crate_takes_is_named() {
        let offer = file("Cargo.toml", "[workspace.dependencies]\ncrc = \"3\"\nlz4 = \"1\"\n");
        let taker = file("crates/a/Cargo.toml", "[dependencies]\ncrc.workspace = true\n");
        assert_eq!(messages(&unused_dependencies(&[offer, taker])), ["no crate depends on lz4"]);
    }

    #[test]
    fn the_list_of_unsafe_files_must_match_the_code() {
        let code = file("crates/a/src/map.rs", "//! Maps.\nfn f() {\n    unsafe { g() }\n}\n");
        let prose = file("crates/a/src/lib.rs", "//! No unsafe { here }.\n");
        let stale = file("docs/safety.md", "| `crates/a/src/lib.rs` | why |\n");
        assert_eq!(
            messages(&unsafe_list(&[code, prose, stale])),
            ["`crates/a/src/map.rs` is not listed", "`crates/a/src/lib.rs` has no unsafe code"]
        );
    }

    #[test]
    fn links_to_files_are_found_and_others_are_not() {
        let text = "[a](docs/a.md#b) [c](https://x.org/) [d](#here) [e](crate::E) ![f](f.png)";
        assert_eq!(link_targets(text).collect::<Vec<_>>(), ["docs/a.md", "f.png"]);
    }
}
