//! The published crates as packages: their builds as the registry would receive them, and their tests
//! without the repository, with the other crates from their packages too.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, cargo, workspace_root};
use crate::counts;
use crate::test::FEATURES;

/// The crates with settings of the compiler that are not published.
const UNPUBLISHED: [&str; 2] = ["tl-python ", "xtask "];

/// Packages the published crates, unpacks them in a folder of their own and runs their tests there,
/// except those whose names contain one of `skipped`.
pub(crate) fn run(skipped: &[&str]) -> Result<(), Box<dyn Error>> {
    let published = published()?;
    let mut arguments = "package --no-verify --allow-dirty".to_owned();
    for name in published.keys() {
        write!(arguments, " --package {name}")?;
    }
    command::run(&mut cargo(&arguments))?;
    let target = command::target();
    // Two folders deep: from a package, no path of the repository leads to a file of it.
    let folder = target.join("packages/unpacked");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    unpack(&published, &target, &folder)?;
    test(&target, &folder, skipped)
}

/// Packages every published crate as the registry would receive it, and builds each alone, with its
/// own default features and the other crates from their packages.
pub(crate) fn publish() -> Result<(), Box<dyn Error>> {
    let target = command::target().join("publish");
    forget_builds(&target)?;
    let mut publish = cargo("publish --workspace --dry-run --allow-dirty");
    // Nothing is run or debugged.
    command::run(publish.env("CARGO_TARGET_DIR", target).env("CARGO_PROFILE_DEV_DEBUG", "0"))
}

/// Removes what earlier dry runs unpacked and built of this workspace's crates. Cargo would take it
/// for this run's packages, because a crate of a version never changes in a registry, and here it
/// does.
fn forget_builds(target: &Path) -> Result<(), Box<dyn Error>> {
    let published = published()?;
    for fingerprint in entries(&target.join("debug/.fingerprint"))? {
        // It is named `CRATE-HASH`.
        let name = fingerprint.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.rsplit_once('-'));
        if name.is_some_and(|name| published.contains_key(name.0)) {
            fs::remove_dir_all(fingerprint)?;
        }
    }
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| env::home_dir().map(|home| home.join(".cargo"))) else {
        return Ok(());
    };
    // The folder of a registry is named `HOST-HASH`, and the registry of a dry run has no host.
    for registry in entries(&home.join("registry/src"))? {
        if registry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('-')) {
            fs::remove_dir_all(registry)?;
        }
    }
    Ok(())
}

/// The paths in a folder, none if it does not exist.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The versions of the workspace's crates that are published, by name.
pub(crate) fn published() -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let metadata = cargo("metadata --no-deps --format-version 1").output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("cargo lists no packages")?;
    let published = packages.iter().filter(|package| package["publish"].is_null());
    let text = |package: &serde_json::Value, key: &str| {
        package[key].as_str().map(str::to_owned).ok_or_else(|| format!("a package without {key}"))
    };
    let entries = published.map(|package| Ok((text(package, "name")?, text(package, "version")?)));
    entries.collect()
}

/// The packages below `folder` as a workspace, in which they find each other instead of in the
/// registry. Versions of dependencies and settings of the compiler are those of the repository, so
/// that a build folder serves both.
fn unpack(
    published: &BTreeMap<String, String>,
    target: &Path,
    folder: &Path,
) -> Result<(), Box<dyn Error>> {
    let mut members = String::new();
    let mut patches = "[patch.crates-io]\n".to_owned();
    for (name, version) in published {
        let package = format!("{name}-{version}");
        let file = target.join("package").join(format!("{package}.crate"));
        // Files are as new as this run: cargo compiles them again.
        command::run(Command::new("tar").arg("-xzmf").arg(file).arg("-C").arg(folder))?;
        writeln!(members, "    {package:?},")?;
        writeln!(patches, "{name} = {{ path = {package:?} }}")?;
    }
    let root = workspace_root();
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let profiles = profiles(&manifest).ok_or("Cargo.toml has no [profile.dev]")?;
    let workspace = format!("[workspace]\nresolver = \"3\"\nmembers = [\n{members}]\n");
    fs::write(folder.join("Cargo.toml"), format!("{workspace}\n{patches}\n{profiles}"))?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

/// The settings of the compiler for tests, which a manifest of the workspace ends with; without those
/// of crates that have no package.
fn profiles(manifest: &str) -> Option<String> {
    let start = manifest.find("[profile.dev]")?;
    let has_package = |line: &&str| !UNPUBLISHED.iter().any(|name| line.starts_with(name));
    Some(manifest[start..].lines().filter(has_package).collect::<Vec<_>>().join("\n"))
}

/// Tests the packages together, with the features that the tests of the workspace have: these read
/// the most files, and the crates of others are already built with them.
fn test(target: &Path, folder: &Path, skipped: &[&str]) -> Result<(), Box<dyn Error>> {
    let skipped: String = skipped.iter().map(|name| format!(" --skip {name}")).collect();
    let mut tests =
        cargo(&format!("test --workspace --features {FEATURES} --no-fail-fast --{skipped}"));
    let run = counts::run(tests.current_dir(folder).env("CARGO_TARGET_DIR", target))?;
    println!("\n{run}");
    if run.is_success { Ok(()) } else { Err("tests fail in the packages".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_of_packages() {
        let manifest = "[workspace]\n[profile.dev]\nopt-level = 1\n\n[profile.dev.package]\n\
                        tl-io = { opt-level = 0 }\ntl-python = { opt-level = 0 }\nxtask = 1\n";
        let expected = "[profile.dev]\nopt-level = 1\n\n[profile.dev.package]\n\
                        tl-io = { opt-level = 0 }";
        assert_eq!(profiles(manifest).as_deref(), Some(expected));
        assert_eq!(profiles("[workspace]\n"), None);
    }
}
