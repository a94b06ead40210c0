//! The Python package: checked and tested in a virtual environment below `target`, and its wheel
//! for every Linux.

use std::env::{self, JoinPathsError};
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, workspace_root};
use crate::test::FEATURES;

/// The packages that the tests need. The ranges keep formatting and types what they are.
const FOR_TESTS: [&str; 3] = ["hypothesis>=6,<7", "numpy>=1.23", "pytest>=8,<10"];

/// The packages for the build and for checking the style of the sources.
const FOR_BUILDS: [&str; 2] = ["maturin>=1.16,<2", "ruff>=0.17,<0.18"];

/// The packages for checking types. Basedpyright is Pyright with all that it needs to run.
const FOR_TYPES: [&str; 2] = ["basedpyright>=1.40,<2", "mypy>=1.18,<2"];

/// The libraries that batches are handed to, and those that tests compare with.
const FRAMEWORKS: [&str; 16] = [
    "accelerate",
    "datasets",
    "jax",
    "lightning",
    "maturin>=1.16,<2",
    "pandas",
    "pyarrow",
    "pytest-run-parallel",
    "ray[data]",
    "scipy",
    "tensorflow-cpu",
    "torch",
    "torchdata",
    "torchvision",
    "transformers",
    "webdataset",
];

/// The packages that build a wheel for every Linux: a compiler that links with an old C library.
const FOR_WHEELS: [&str; 3] = ["maturin>=1.16,<2", "ziglang>=0.15", "auditwheel>=6"];

/// Those of a library that type stubs can be generated from: the feature puts their contents into
/// it, and maturin finds these by their symbols. The crates have the features that the tests of the
/// workspace give them, so that they are compiled once for both.
fn checked_build() -> String {
    format!("--profile dev --features stubs,as-tested,{FEATURES} -- -C strip=debuginfo")
}

/// The packages that make the site of the documentation.
const FOR_SITE: [&str; 2] = ["mkdocs-material>=9.7,<10", "mkdocstrings-python>=2,<3"];

/// The systems that wheels are built for on Linux, with their tags: glibc 2.17 or later, musl 1.2.
const PLATFORMS: [Platform; 4] = [
    Platform { target: "x86_64-unknown-linux-gnu", tag: "manylinux2014" },
    Platform { target: "aarch64-unknown-linux-gnu", tag: "manylinux2014" },
    Platform { target: "x86_64-unknown-linux-musl", tag: "musllinux_1_2" },
    Platform { target: "aarch64-unknown-linux-musl", tag: "musllinux_1_2" },
];

struct Platform {
    target: &'static str,
    tag: &'static str,
}

/// The interpreter that makes the environments of checks and builds.
const PYTHON: &str = "python3";

/// Those that the wheel has to work with.
const PYTHONS: [&str; 4] = ["python3.10", "python3.11", "python3.12", "python3.13"];

const PACKAGE: &str = "crates/tl-python";

/// The reason why the package cannot be built here, with a remedy.
pub(crate) fn missing() -> Option<String> {
    if command::output(PYTHON, &["--version"]).is_none() {
        return Some("no python3: install Python 3.10 or later".to_owned());
    }
    let venv = command::output(PYTHON, &["-c", "import ensurepip, venv"]);
    venv.is_none().then(|| "python3 has no venv: `apt-get install python3-venv`".to_owned())
}

/// Checks the style of the sources, builds the package, installs it and runs the tests.
pub(crate) fn test() -> Result<(), Box<dyn Error>> {
    let environment = Environment::of_checks()?;
    environment.check_style()?;
    environment.install_checked()?;
    environment.test(&[])
}

/// Checks the sources, builds and installs the package, and compares it with its type stubs.
pub(crate) fn lint() -> Result<(), Box<dyn Error>> {
    Environment::of_checks()?.lint()
}

/// Does what [`lint`] does and runs the tests, with these arguments for pytest.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let environment = Environment::of_checks()?;
    environment.lint()?;
    environment.test(arguments)
}

/// Builds the package and runs the tests where everything is installed that they can make use of,
/// with these arguments for pytest.
pub(crate) fn frameworks(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let environment = Environment::make("frameworks", PYTHON)?;
    // Scripts of users are checked with the types of torch.
    environment.install(FOR_TESTS.iter().chain(&FOR_TYPES).chain(&FRAMEWORKS))?;
    environment.install_checked()?;
    environment.test(arguments)
}

/// Writes the type stubs.
pub(crate) fn stubs() -> Result<(), Box<dyn Error>> {
    let environment = Environment::of_checks()?;
    environment.install_checked()?;
    environment.stubs(&[])
}

/// Builds the wheel of a system, by default the first of [`PLATFORMS`], and tests it with every
/// Python there is if this machine can run it.
pub(crate) fn wheel(target: Option<&str>) -> Result<(), Box<dyn Error>> {
    let wanted = target.unwrap_or(PLATFORMS[0].target);
    let platform = PLATFORMS.iter().find(|platform| platform.target == wanted);
    let platform = platform.ok_or_else(|| {
        let known = PLATFORMS.map(|platform| platform.target).join(", ");
        format!("no wheel for {wanted}; there are {known}")
    })?;
    if let Some(missing) = command::missing_target(platform.target) {
        return Err(missing.into());
    }
    let environment = Environment::make("build", PYTHON)?;
    environment.install(&FOR_WHEELS)?;
    let Platform { target, tag } = platform;
    let mut arguments = format!("--zig --target {target} --compatibility {tag}");
    // The assembler of AV1 is for x86; that of ARM needs no NASM, and was never tried.
    let assembler = if !target.starts_with("x86_64") {
        "without the assembler for AV1"
    } else if command::output("nasm", &["-v"]).is_some() {
        arguments += " --features av1-asm";
        "with the assembler for AV1"
    } else {
        "without the assembler for AV1, which needs nasm"
    };
    let wheel = environment.build(&format!("wheels/{target}"), &arguments)?;
    let bytes = fs::metadata(&wheel)?.len();
    let mut results = vec![format!("{}: {bytes} bytes, {assembler}", wheel.display())];
    if *target == PLATFORMS[0].target && cfg!(target_arch = "x86_64") {
        environment.module("auditwheel", &["show", &wheel.to_string_lossy()])?;
        results.extend(test_wheel(&wheel)?);
    } else {
        results.push(format!("not tested: made for {target}"));
    }
    println!("\n{}", results.join("\n"));
    Ok(())
}

/// Removes the wheels of earlier builds.
pub(crate) fn remove_wheels() -> std::io::Result<()> {
    let folder = target().join("wheels");
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}

/// The targets that wheels are built for.
pub(crate) fn targets() -> [&'static str; 4] {
    PLATFORMS.map(|platform| platform.target)
}

/// Tests a wheel with every Python there is, each in a new environment.
fn test_wheel(wheel: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut results = Vec::new();
    for python in PYTHONS {
        let Some(version) = command::output(python, &["--version"]) else {
            results.push(format!("{python}: not here"));
            continue;
        };
        let fresh = Environment::fresh(python, python)?;
        fresh.install(&FOR_TESTS)?;
        fresh.install_wheel(wheel)?;
        fresh.test(&[])?;
        results.push(format!("{version}: tests passed"));
    }
    Ok(results)
}

/// Makes the site of the documentation in `target/site`. Warnings are errors, such as those of a
/// link that leads nowhere.
pub(crate) fn site() -> Result<(), Box<dyn Error>> {
    let environment = Environment::make("site", PYTHON)?;
    environment.install(&FOR_SITE)?;
    // The theme's announcement of its successor.
    let mut build = environment.python("mkdocs");
    build.env("NO_MKDOCS_2_WARNING", "1").current_dir(workspace_root());
    // Not with `--quiet`: warnings that are not printed are not counted either.
    command::run(build.args(["build", "--config-file", "site/mkdocs.yml"]))
}

/// The interpreter of an environment that has these packages.
pub(crate) fn interpreter(name: &str, packages: &[&str]) -> Result<PathBuf, Box<dyn Error>> {
    let environment = Environment::make(name, PYTHON)?;
    environment.install(packages)?;
    Ok(environment.folder.join("bin/python"))
}

/// A virtual environment.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment of this name, created unless it exists.
    fn make(name: &str, python: &str) -> Result<Self, Box<dyn Error>> {
        if let Some(missing) = missing() {
            return Err(missing.into());
        }
        let folder = target().join(name);
        if !folder.join("bin/python").exists() {
            command::run(Command::new(python).args(["-m", "venv"]).arg(&folder))?;
        }
        Ok(Self { folder })
    }

    /// The environment of this name, created anew.
    fn fresh(name: &str, python: &str) -> Result<Self, Box<dyn Error>> {
        let folder = target().join(name);
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        Self::make(name, python)
    }

    fn of_checks() -> Result<Self, Box<dyn Error>> {
        let environment = Self::make("venv", PYTHON)?;
        environment.install(FOR_TESTS.iter().chain(&FOR_BUILDS))?;
        Ok(environment)
    }

    /// Runs a module in the package's folder.
    fn module(&self, module: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
        command::run(self.python(module).args(arguments))
    }

    fn python(&self, module: &str) -> Command {
        let mut command = Command::new(self.folder.join("bin/python"));
        command.args(["-m", module]).current_dir(workspace_root().join(PACKAGE));
        command
    }

    fn pip(&self) -> Command {
        let mut pip = self.python("pip");
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        pip
    }

    fn install<'a>(
        &self,
        packages: impl IntoIterator<Item = &'a &'a str>,
    ) -> Result<(), Box<dyn Error>> {
        command::run(self.pip().args(packages))
    }

    fn install_wheel(&self, wheel: &Path) -> Result<(), Box<dyn Error>> {
        command::run(self.pip().args(["--force-reinstall", "--no-deps"]).arg(wheel))
    }

    /// Builds and installs the package as it is now. As for other tests, our own crates are not
    /// optimised further.
    fn install_checked(&self) -> Result<(), Box<dyn Error>> {
        let wheel = self.build("checked", &checked_build())?;
        self.install_wheel(&wheel)
    }

    fn check_style(&self) -> Result<(), Box<dyn Error>> {
        // The hooks of the site have the settings of the package.
        let places = [".", "../../site"];
        let settings = ["--config", "pyproject.toml"];
        self.module("ruff", &[&["check"], &places[..], &settings].concat())?;
        self.module("ruff", &[&["format", "--check"], &places[..], &settings].concat())
    }

    fn lint(&self) -> Result<(), Box<dyn Error>> {
        self.install(&FOR_TYPES)?;
        self.check_style()?;
        self.install_checked()?;
        self.stubs(&["--check"])?;
        self.module("mypy", &[])?;
        let settings = ["--mypy-config-file", "pyproject.toml", "--ignore-unused-allowlist"];
        let stubtest = ["turboloader", "--allowlist", "stubtest.txt"];
        self.module("mypy.stubtest", &[&stubtest[..], &settings[..]].concat())
    }

    /// Generates the type stubs of the library that was just built, and writes or compares them.
    fn stubs(&self, options: &[&str]) -> Result<(), Box<dyn Error>> {
        let folder = self.maturin("generate-stubs", "stubs", &checked_build())?;
        let generated = folder.join("turboloader/_native.pyi");
        self.module("stubs", &[options, &[&*generated.to_string_lossy()]].concat())
    }

    fn test(&self, arguments: &[String]) -> Result<(), Box<dyn Error>> {
        command::run(self.python("pytest").arg("-q").args(arguments))
    }

    /// The search path, with the environment's programs first.
    fn path(&self) -> Result<OsString, JoinPathsError> {
        let path = env::var_os("PATH").unwrap_or_default();
        let before = env::split_paths(&path);
        env::join_paths(iter::once(self.folder.join("bin")).chain(before))
    }

    /// Builds the wheel into an empty folder.
    fn build(&self, folder: &str, arguments: &str) -> Result<PathBuf, Box<dyn Error>> {
        let folder = self.maturin("build", folder, arguments)?;
        let mut built = fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
        let wheel = built.pop().ok_or("maturin has built no wheel")?;
        Ok(wheel.path())
    }

    /// Runs maturin's task, which fills an empty folder, with arguments separated by spaces.
    fn maturin(
        &self,
        task: &str,
        folder: &str,
        arguments: &str,
    ) -> Result<PathBuf, Box<dyn Error>> {
        let folder = target().join(folder);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let mut maturin = self.python("maturin");
        // The linker is looked for on the path.
        maturin.env("PATH", self.path()?);
        command::as_from_a_shell(&mut maturin);
        maturin.args([task, "--quiet", "--out"]).arg(&folder).args(arguments.split_whitespace());
        command::run(&mut maturin)?;
        Ok(folder)
    }
}

/// The configuration of pyo3 that maturin wrote when it last built the package. A check with another
/// one would compile pyo3 again, and so would the next build.
pub(crate) fn pyo3_configuration() -> Option<PathBuf> {
    let folder = fs::read_dir(workspace_root().join("target/maturin")).ok()?;
    let mut files = folder.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(|file| file.extension().is_some_and(|extension| extension == "txt"))
}

/// The folder of environments and wheels.
fn target() -> PathBuf {
    workspace_root().join("target/python")
}
