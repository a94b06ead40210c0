//! All steps of a release except its upload: the version and the changelogs are set, every check runs,
//! packages and wheels are built, and the commands that upload them are printed.

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::command::{self, cargo, workspace_root};
use crate::{packages, python, test};

/// The heading of what the next release will contain.
const UNRELEASED: &str = "## [Unreleased]";

/// Prepares the release of `version` from a clean working tree, and commits nothing.
///
/// # Errors
/// If the tree has changes, `version` is not later than the current one, a changelog has no list of
/// changes, or a check fails. The files are changed before the checks run.
pub(crate) fn run(version: &str) -> Result<(), Box<dyn Error>> {
    let changes = command::output("git", &["status", "--porcelain"]).ok_or("git is needed")?;
    if !changes.is_empty() {
        return Err(format!("the working tree has changes:\n{changes}").into());
    }
    let published = packages::published()?;
    let current = published.get("turboloader").ok_or("no crate turboloader")?;
    let is_released = has_tag(current);
    if numbers(version)? < numbers(current)? || (is_released && version == current) {
        return Err(format!("{version} is not later than {current}").into());
    }
    let date = command::output("date", &["+%F"]).ok_or("`date` is needed")?;
    let root = workspace_root();
    // All texts are made before the first is written, so that an error leaves the tree as it was.
    let manifest = root.join("Cargo.toml");
    let mut texts = vec![(with_version(&manifest, current, version)?, manifest)];
    let crates = published.keys().map(|name| root.join("crates").join(name));
    for folder in std::iter::once(root.clone()).chain(crates) {
        let file = folder.join("CHANGELOG.md");
        let text = fs::read_to_string(&file);
        let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
        let text = dated(&text, version, &date);
        texts.push((text.map_err(|error| format!("{}: {error}", file.display()))?, file));
    }
    for (text, file) in texts {
        fs::write(file, text)?;
    }
    // The lock files have the versions of the workspace's crates.
    command::run(&mut cargo("update --workspace --quiet"))?;
    command::run(&mut cargo("update --workspace --quiet --manifest-path fuzz/Cargo.toml"))?;

    test::run(&test::Options::default())?;
    test::run(&test::Options::parse(&["--full".to_owned()])?)?;
    let semver = if is_released {
        compare_with_release(current)?
    } else {
        format!("not compared: no tag v{current}")
    };
    python::remove_wheels()?;
    let mut wheels = Vec::new();
    for target in python::targets() {
        match command::missing_target(target) {
            None => python::wheel(Some(target))?,
            Some(missing) => wheels.push(format!("no wheel for {target}: {missing}")),
        }
    }
    println!("\nchanges of the interfaces: {semver}");
    wheels.iter().for_each(|missing| println!("{missing}"));
    println!("\nUpload with:");
    println!("  git commit --all --message 'Release {version}'");
    println!("  git tag v{version}");
    println!("  cargo publish --workspace");
    println!("  python3 -m pip install twine");
    println!("  python3 -m twine upload target/python/wheels/*/*.whl");
    println!("  git push origin main v{version}");
    Ok(())
}

/// Whether this version was released: it has a tag.
fn has_tag(version: &str) -> bool {
    let tag = format!("refs/tags/v{version}");
    command::output("git", &["rev-parse", "--verify", "--quiet", &tag]).is_some()
}

/// The three numbers of a version.
fn numbers(version: &str) -> Result<Vec<u64>, Box<dyn Error>> {
    let numbers: Result<Vec<u64>, _> = version.split('.').map(str::parse).collect();
    match numbers {
        Ok(numbers) if numbers.len() == 3 => Ok(numbers),
        _ => Err(format!("{version} is not a version, such as 0.2.0").into()),
    }
}

/// The manifest with another version of the workspace and of its crates as dependencies.
fn with_version(manifest: &Path, current: &str, version: &str) -> Result<String, Box<dyn Error>> {
    let text = fs::read_to_string(manifest)?;
    let quoted = |version: &str| format!("version = \"{version}\"");
    let set = |line: &str| {
        let is_own = line.starts_with("version = ") || line.contains("path = \"crates/");
        if is_own { line.replace(&quoted(current), &quoted(version)) } else { line.to_owned() }
    };
    let lines: Vec<_> = text.lines().map(set).collect();
    Ok(lines.join("\n") + "\n")
}

/// A changelog whose unreleased changes have a version and a date, below a new heading for later ones.
fn dated(text: &str, version: &str, date: &str) -> Result<String, String> {
    let heading = format!("{UNRELEASED}\n");
    let at = text.find(&heading).ok_or(format!("no heading {UNRELEASED}"))?;
    let before = &text[..at];
    let after = &text[at + heading.len()..];
    let changes = after.split("\n## [").next().unwrap_or_default();
    // All crates have one version, also those that did not change.
    let none = if changes.contains("- ") { "" } else { "\nNo changes.\n" };
    Ok(format!("{before}{heading}\n## [{version}] - {date}\n{none}{after}"))
}

/// Compares the interfaces of the crates with those of the release before, which its tag has: the
/// registry is not asked.
fn compare_with_release(previous: &str) -> Result<String, Box<dyn Error>> {
    if command::output("cargo", &["semver-checks", "--version"]).is_none() {
        return Ok("not compared: `cargo install cargo-semver-checks --locked` installs the tool"
            .to_owned());
    }
    command::run(&mut cargo(&format!("semver-checks --workspace --baseline-rev v{previous}")))?;
    Ok(format!("none since v{previous} that the version does not allow"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changelogs_get_a_heading_for_what_comes_later() {
        let text = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Videos.\n\n## [0.1.0] - 2026-01-02\n\n- All.\n";
        let expected = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-03-04\n\n### Added\n\n- Videos.\n\n## [0.1.0] - 2026-01-02\n\n- All.\n";
        assert_eq!(dated(text, "0.2.0", "2026-03-04").unwrap(), expected);
        let unchanged = dated(expected, "0.3.0", "2026-03-05").unwrap();
        assert!(unchanged.contains("## [0.3.0] - 2026-03-05\n\nNo changes.\n\n## [0.2.0]"));
        assert!(dated("# Changelog\n", "0.3.0", "2026-03-05").is_err());
    }

    #[test]
    fn versions_are_three_numbers() {
        assert_eq!(numbers("0.12.3").unwrap(), [0, 12, 3]);
        for wrong in ["1.2", "1.2.3.4", "1.2.x", ""] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
        assert!(numbers("0.10.0").unwrap() > numbers("0.9.9").unwrap());
    }
}
