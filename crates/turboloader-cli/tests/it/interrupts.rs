//! `bench` that is interrupted: it ends, and no file has its name before it is whole.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{json_lines, photos, tl};

/// Far longer than anything here takes, on a machine however busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The number of the signal that Ctrl-C sends.
const SIGINT: i32 = 2;

/// Asks until there is an answer.
fn await_it<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::yield_now();
    }
}

struct Bench {
    folder: tempfile::TempDir,
    child: Child,
}

impl Bench {
    /// Starts one that measures for so long, with every file that it can write.
    fn start(seconds: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // A parent of the tests may have had the signal ignored, which children inherit.
        let child = Command::new("env")
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_tl"), "bench", "--seconds", seconds])
            .args(["--recipe=imagenet-train", "--size=32", "--batch-size=2", "--workers=2"])
            .args(["--cache-disk=64M", "--cache-folder"])
            .arg(folder.path().join("cache"))
            .args(["--rows", "--trace", "--audit"].iter().flat_map(|option| {
                let path = folder.path().join(option.trim_start_matches('-'));
                [PathBuf::from(option), path]
            }))
            .arg(photos())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("tl starts");
        Self { folder, child }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Presses Ctrl-C, and returns how it ended.
    fn interrupt(&mut self) -> ExitStatus {
        let number = self.child.id().to_string();
        let sent = Command::new("sh").args(["-c", "kill -INT \"$0\"", &number]).status();
        assert!(sent.expect("a shell starts").success());
        await_it("it ends", || self.child.try_wait().expect("it is a child"))
    }
}

fn json(path: &Path) -> Vec<Value> {
    json_lines(&fs::read_to_string(path).expect("the file is readable"))
}

#[test]
fn an_interrupted_bench_ends_at_once_with_its_workers() {
    let mut bench = Bench::start("100000");
    // From here on epochs are measured, for longer than anyone waits.
    let audit = bench.file("audit");
    await_it("epoch 0 is over", || audit.exists().then_some(()));
    assert_eq!(bench.child.try_wait().expect("it is a child"), None);
    let threads = fs::read_dir(format!("/proc/{}/task", bench.child.id()));
    assert!(threads.expect("it runs").count() >= 3, "workers run");
    let end = bench.interrupt();
    assert!(end.signal() == Some(SIGINT) || end.code() == Some(130), "{end}");
    // A process that has been waited for has no thread left.
    assert!(!Path::new(&format!("/proc/{}/task", bench.child.id())).exists());
    assert!(!bench.file("rows").exists() && !bench.file("trace").exists());
    // What is in the cache is whole, and is used.
    let (cache, photos) = (bench.file("cache"), photos());
    let again = ["bench", "--seconds=0", "--recipe=imagenet-train", "--size=32", "--json"];
    let again = again.map(OsStr::new).into_iter().chain([photos.as_os_str()]);
    let again = again.chain(["--cache-disk=64M".as_ref(), "--cache-folder".as_ref()]);
    let line = json_lines(&tl(again.chain([cache.as_os_str()])).text()).remove(0);
    assert_eq!((&line["cache"]["bad_entries"], &line["cache"]["faults"]), (&0.into(), &0.into()));
    assert!(line["cache"]["disk"]["hits"].as_u64() > Some(0), "{line}");
}

#[test]
fn whatever_is_interrupted_has_whole_files_or_none() {
    for later in 0..4 {
        let mut bench = Bench::start("0");
        let (audit, trace) = (bench.file("audit"), bench.file("trace"));
        // While samples are read, when epochs are measured, when the trace exists and rows are
        // written, and somewhat after that: how far it is then depends on the machine.
        let mut looks = 0_u32;
        await_it("it goes on", || {
            let is_there = match later {
                0 => true,
                1 => audit.exists(),
                2 => trace.exists(),
                _ => {
                    looks += u32::from(trace.exists());
                    looks > 2_000
                }
            };
            let has_ended = bench.child.try_wait().expect("it is a child").is_some();
            (is_there || has_ended).then_some(())
        });
        let ended = bench.child.try_wait().expect("it is a child");
        let end = ended.unwrap_or_else(|| bench.interrupt());
        assert!(end.success() || end.signal() == Some(SIGINT) || end.code() == Some(130), "{end}");
        let (rows, trace) = (bench.file("rows"), bench.file("trace"));
        assert!(!rows.exists() || json(&rows).len() == 12, "{end}");
        if trace.exists() {
            let text = fs::read_to_string(&trace).expect("the file is readable");
            let trace: Value = serde_json::from_str(&text).expect("the trace is whole");
            assert!(trace["traceEvents"].is_array());
        }
    }
}
