//! The tests of each published crate from its package alone, as somebody has it who downloads it
//! from the registry: outside the repository, with the other crates from their packages too.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, cargo, workspace_root};

/// Packages the published crates, unpacks them in a folder of their own and runs their tests there,
/// but those whose names contain one of `skipped`.
pub(crate) fn run(skipped: &[&str]) -> Result<(), Box<dyn Error>> {
    let published = published()?;
    let mut arguments = "package --no-verify --allow-dirty".to_owned();
    for name in published.keys() {
        write!(arguments, " --package {name}")?;
    }
    command::run(&mut cargo(&arguments))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let target = workspace_root().join(target);
    let folder = env::temp_dir().join(format!("turboloader-packages-{}", std::process::id()));
    fs::create_dir_all(folder.join(".cargo"))?;
    let tested = unpack(&published, &target, &folder)
        .and_then(|()| test(&published, &target, &folder, skipped));
    fs::remove_dir_all(&folder)?;
    tested
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

/// The packages below `folder`, each of which finds the others there instead of in the registry.
fn unpack(
    published: &BTreeMap<String, String>,
    target: &Path,
    folder: &Path,
) -> Result<(), Box<dyn Error>> {
    // What the workspace says of its tests: kernels and decoders are slow without.
    let mut configuration = "[profile.dev]\nopt-level = 1\ndebug = false\n".to_owned();
    configuration.push_str("[patch.crates-io]\n");
    for (name, version) in published {
        let package = format!("{name}-{version}");
        let file = target.join("package").join(format!("{package}.crate"));
        command::run(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(folder))?;
        writeln!(configuration, "{name} = {{ path = {:?} }}", folder.join(package))?;
    }
    fs::write(folder.join(".cargo/config.toml"), configuration)?;
    Ok(())
}

fn test(
    published: &BTreeMap<String, String>,
    target: &Path,
    folder: &Path,
    skipped: &[&str],
) -> Result<(), Box<dyn Error>> {
    let skipped: String = skipped.iter().map(|name| format!(" --skip {name}")).collect();
    let mut failed = Vec::new();
    for (name, version) in published {
        println!("\n-- {name}");
        let mut tests = cargo(&format!("test --no-fail-fast --{skipped}"));
        tests.current_dir(folder.join(format!("{name}-{version}")));
        tests.env("CARGO_TARGET_DIR", target.join("packages"));
        if let Err(error) = command::run(&mut tests) {
            println!("{error}");
            failed.push(name.as_str());
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(format!("tests fail in the packages of {}", failed.join(", ")).into()),
    }
}
