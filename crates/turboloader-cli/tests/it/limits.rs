//! Limits of the system: threads, files without an end, signals in the middle of a read.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Run, files_below, finished, photos, tar, tl, write};

/// The photographs as an archive.
fn archive(folder: &Path) -> std::path::PathBuf {
    let mut files = files_below(&photos());
    files.retain(|(name, _)| name.contains('/'));
    let members: Vec<_> =
        files.iter().map(|(name, bytes)| (name.as_bytes(), bytes.as_slice())).collect();
    write(folder, "in.tar", &tar(&members))
}

/// Runs `tl` where no thread can be started; `None` where that cannot be arranged.
fn without_threads(args: &[&str]) -> Option<Run> {
    // The limit does not hold for the superuser.
    let user = ["--reuid", "65534", "--clear-groups", "prlimit", "--nproc=1"];
    let mut command = Command::new("setpriv");
    command.args(user).arg(env!("CARGO_BIN_EXE_tl")).args(args).stdin(Stdio::null());
    let output = command.output().ok()?;
    let run = finished(output);
    // `setpriv` itself fails without the right to change the user.
    (!run.stderr.starts_with("setpriv")).then_some(run)
}

#[test]
fn threads_that_cannot_be_started_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everyone).unwrap();
    let photos = archive(folder.path());
    let rows: String = (0..40_000).map(|row| format!("{row},{}\n", row % 7)).collect();
    let csv = write(folder.path(), "a.csv", format!("a,b\n{rows}").as_bytes());
    let idv = folder.path().join("a.idv");
    tl(["convert".as_ref(), csv.as_os_str(), "-qo".as_ref(), idv.as_ref()]).good();
    let output = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (photos, csv, idv) = (&*text(&photos), &*text(&csv), &*text(&idv));
    let commands: [&[&str]; 5] = [
        &["verify", "--decode", "-j", "8", photos],
        &["convert", "--jpeg-index", "-j", "8", photos, "-o", &output("a.tbl")],
        &["convert", "--to", "raw", "--size", "8", "-j", "8", photos, "-o", &output("b.tbl")],
        &["convert", "-j", "8", csv, "-o", &output("b.idv")],
        &["verify", "-j", "8", idv],
    ];
    for args in commands {
        let Some(run) = without_threads(args) else {
            eprintln!("SKIPPED: setpriv or prlimit is not there, or may not change the user");
            return;
        };
        let line = run.error(2);
        assert!(line.contains("worker ") && line.contains(" of "), "{args:?}: {line}");
        assert!(line.contains("cannot be started: "), "{args:?}: {line}");
    }
}

/// Runs `tl`, which must not wait for anything.
fn at_once(args: &[&std::ffi::OsStr]) -> Run {
    let mut command = Command::new("timeout");
    command.arg("20").arg(env!("CARGO_BIN_EXE_tl")).args(args).stdin(Stdio::null());
    finished(command.output().expect("timeout starts"))
}

#[test]
fn devices_and_fifos_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo.json");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let data = archive(folder.path());
    let check = |path: &Path, found: &str| {
        let expected = format!("{}: is {found}, expected a regular file", path.display());
        let (path, output) = (path.as_os_str(), folder.path().join("x.tbl"));
        for args in [
            vec!["decode".as_ref(), path],
            vec!["verify".as_ref(), path],
            vec!["convert".as_ref(), path, "-o".as_ref(), output.as_ref()],
            vec!["repair".as_ref(), path, "-o".as_ref(), output.as_ref()],
            vec!["explain".as_ref(), path],
            vec![
                "convert".as_ref(),
                data.as_os_str(),
                "-o".as_ref(),
                output.as_ref(),
                "--metadata".as_ref(),
                path,
            ],
            vec![
                "bench".as_ref(),
                data.as_os_str(),
                "--recipe".as_ref(),
                "raw".as_ref(),
                "--weights".as_ref(),
                path,
            ],
        ] {
            // A name is a recipe's own only with this extension.
            if args[0] == "explain" && !found.contains("FIFO") {
                continue;
            }
            let line = at_once(&args).error(2);
            assert!(line.contains(&expected), "{args:?}: {line}");
        }
    };
    check(&fifo, "a FIFO");
    check(Path::new("/dev/zero"), "a character device");
    for name in ["fifo.csv", "fifo.idv", "fifo.parquet"] {
        let fifo = folder.path().join(name);
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for output in ["x.idv", "x.tbl"] {
            let output = folder.path().join(output);
            let args = ["convert".as_ref(), fifo.as_os_str(), "-o".as_ref(), output.as_ref()];
            let line = at_once(&args).error(2);
            assert!(line.contains(&format!("{name}: is a FIFO, expected")), "{args:?}: {line}");
        }
    }
}
