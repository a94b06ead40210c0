//! GPUs: what `doctor` says of them, and `bench` with batches on one. The driver is emulated, and the
//! system's loader finds it as it finds the real one.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::library::library;
use crate::support::{Run, command, finished, json_lines, photos};

/// A folder with a driver that was compiled with these macros.
fn driver(macros: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    compiled("emulator.c", macros, &folder, "libcuda.so.1");
    folder
}

/// Puts a library under the name by which the system's loader looks for it.
fn compiled(source: &str, macros: &[&str], folder: &TempDir, name: &str) {
    let library = library(source, macros, folder.path());
    std::fs::rename(library, folder.path().join(name)).expect("a folder of the test");
}

/// Runs `tl` with this driver, or with none.
fn tl(driver: &TempDir, args: &[&str]) -> Run {
    tl_with(driver, args, &[])
}

fn tl_with(driver: &TempDir, args: &[&str], more: &[(&str, &str)]) -> Run {
    let photos = photos();
    let args = args.iter().map(OsStr::new).chain([photos.as_os_str()]);
    let mut command = command(args);
    command.env("LD_LIBRARY_PATH", driver.path()).env_remove("LOCAL_RANK");
    command.env_remove("CUDA_VISIBLE_DEVICES").envs(more.iter().copied());
    finished(command.stdin(Stdio::null()).output().expect("tl starts"))
}

fn json(run: Run) -> Value {
    json_lines(&run.text()).remove(0)
}

const BENCH: [&str; 6] =
    ["bench", "--seconds=0", "--recipe=imagenet-train", "--size=32", "--batch-size=4", "--digest"];

#[test]
fn doctor_names_the_devices_or_the_reason() {
    let doctor = ["doctor", "--seconds=1", "--size=32", "--batch-size=4"];
    let gpus = |folder: &TempDir| json(tl(folder, &[&doctor[..], &["--json"]].concat()));
    let found = gpus(&driver(&["DEVICES=2", "MEMORY=1<<30"]));
    let found = &found["gpus"];
    assert_eq!((&found["cuda"], found.get("error")), (&"13.0".into(), None));
    for number in [0, 1] {
        let device = &found["devices"][number];
        assert_eq!(device["name"], format!("emulator {number}"));
        assert_eq!((&device["free_gib"], &device["total_gib"]), (&1.0.into(), &1.0.into()));
        assert!(device["copy_gb_per_s"].as_f64() > Some(0.0), "{found}");
    }
    let found = gpus(&driver(&["MEMORY=1<<20"]));
    let error = found["gpus"]["devices"][0]["error"].as_str().expect("a reason");
    assert!(error.starts_with("out of device memory: "), "{error}");
    let old = tl(&driver(&["VERSION=10020"]), &doctor).text();
    let line = "\ngpus      none: the NVIDIA driver supports CUDA 10.2, and 11.0 is the oldest";
    assert!(old.contains(line), "{old}");
}

#[test]
fn bench_copies_batches_with_the_digest_of_the_host() {
    let folder = driver(&[]);
    let host = json(tl(&folder, &[&BENCH[..], &["--json"]].concat()));
    let device = ["--device", "cuda:0", "--report", "--json"];
    let device = json(tl(&folder, &[&BENCH[..], &device].concat()));
    assert_eq!(host["digest"], device["digest"]);
    let copies = &device["report"]["copies"];
    assert!(copies["batches"].as_u64() > Some(0), "{device}");
    for figure in ["bytes", "gb_per_s", "device_ms", "allocated"] {
        assert!(copies[figure].as_f64() > Some(0.0), "{figure}: {device}");
    }
    let text = tl(&folder, &[&BENCH[..], &["--device=cuda", "--report"]].concat()).text();
    assert!(text.contains("\ncopies to the device: "), "{text}");
}

#[test]
fn a_device_that_cannot_be_used_is_an_error_by_name() {
    let args = [&BENCH[..], &["--device", "cuda"]].concat();
    let old = tl(&driver(&["VERSION=10020"]), &args).error(2);
    assert!(old.contains("the NVIDIA driver supports CUDA 10.2, and 11.0 is the oldest"), "{old}");
    let hidden = tl_with(&driver(&["HIDES=1"]), &args, &[("CUDA_VISIBLE_DEVICES", "")]).error(2);
    assert!(hidden.contains("no CUDA device 0: this process sees 0"), "{hidden}");
    let empty = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(empty.path().join("libcuda.so.1"), "").expect("the folder is writable");
    let broken = tl(&empty, &args).error(2);
    assert!(broken.contains("no NVIDIA driver: "), "{broken}");
    let wrong = tl(&empty, &[&BENCH[..], &["--device", "gpu"]].concat());
    assert!(wrong.stderr.contains("expected cuda, or cuda:N with the number"), "{}", wrong.stderr);
}

#[test]
fn explain_says_what_runs_on_the_device_and_why() {
    let empty = tempfile::tempdir().expect("a temporary folder");
    let explain = |recipe: &str, more: &[&str]| {
        let args = ["explain", recipe, "--device", "cuda"];
        let mut command = command(args.iter().chain(more));
        command.env("LD_LIBRARY_PATH", empty.path()).stdin(Stdio::null());
        finished(command.output().expect("tl starts")).text()
    };
    let text = explain("imagenet-train", &[]);
    assert!(text.contains("\ndevice   decodes JPEG images there and converts pixels\n"), "{text}");
    assert!(text.contains("Normalize(mean"), "{text}");
    let on_device = "\n     on the device\n";
    assert_eq!(text.matches(on_device).count(), 2, "ToFloat and Normalize: {text}");
    assert!(text.contains("\non the device: a kernel looks each number up "), "{text}");
    let json = explain("imagenet-train", &["--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["device"]["converts"], true);
    let last = json["ops"].as_array().and_then(|ops| ops.last()).expect("operations");
    assert_eq!(last["places"], serde_json::json!({ "device": 1.0 }));

    let explained = |batch_ops: &str| {
        let recipe = empty.path().join("recipe.json");
        let text = format!(
            r#"{{"output":{{"dtype":"f32","layout":"chw"}},"ops":[
            {{"op":"random_resized_crop","size":32}},{{"op":"to_float"}},{{"op":"random_erasing"}}],
            "batch_ops":[{batch_ops}]}}"#
        );
        std::fs::write(&recipe, text).expect("the folder is writable");
        explain(recipe.to_str().expect("a path in UTF-8"), &[])
    };
    let text = explained("");
    assert_eq!(text.matches("\n     on the device").count(), 2, "RandomErasing as well: {text}");
    let text = explained(r#"{"op":"mix_up","num_classes":10}"#);
    let line = "\ndevice   copies; conversion on the device: on the CPU instead; `MixUp` runs on \
                the CPU\n";
    assert!(text.contains(line) && !text.contains(on_device), "{text}");
}

#[test]
fn recipes_that_decode_with_nvjpeg_name_it() {
    let empty = tempfile::tempdir().expect("a temporary folder");
    let explain = |op: &str| {
        let recipe = empty.path().join("recipe.toml");
        let text = format!(
            "decode = \"nvjpeg\"\noutput = {{dtype = \"u8\", layout = \"hwc\"}}\n\
             [[ops]]\nop = \"random_resized_crop\"\nsize = 32\n{op}"
        );
        std::fs::write(&recipe, text).expect("the folder is writable");
        let recipe = recipe.to_str().expect("a path in UTF-8");
        let mut command = command(["explain", recipe, "--device", "cuda"]);
        command.env("LD_LIBRARY_PATH", empty.path()).stdin(Stdio::null());
        finished(command.output().expect("tl starts")).text()
    };
    let text = explain("");
    assert!(text.contains("nvjpeg: baseline files by NVIDIA's library on a device"), "{text}");
    let line = "\ndevice   decodes JPEG images there, baseline files by nvJPEG\n";
    assert!(text.contains(line), "{text}");
    let text = explain("[[ops]]\nop = \"grayscale\"\n");
    let line = "refused by loaders: nvJPEG decodes there, and `Grayscale` runs on the CPU\n";
    assert!(text.contains(line), "{text}");

    let bench = |folder: &TempDir, more: &[&str]| {
        tl(folder, &[&BENCH[..], &["--decode=nvjpeg"], more].concat())
    };
    let refused = bench(&empty, &[]).stderr;
    assert!(refused.contains("needs batches on a device"), "{refused}");
    let refused = bench(&empty, &["--decode-margin=2"]).stderr;
    assert!(refused.contains("nvJPEG has no margin"), "{refused}");
    let folder = driver(&[]);
    let device = ["--device=cuda", "--json", "--report"];
    let missing = bench(&folder, &device).stderr;
    assert!(missing.contains("pip install 'turboloader-rs[nvjpeg]'"), "{missing}");
    compiled("nvjpeg.c", &[], &folder, "libnvjpeg.so.12");
    let found = bench(&folder, &device).text();
    assert!(found.contains("\"nvjpeg\":"), "{found}");
}

#[test]
fn nothing_opens_the_driver_unless_a_device_is_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("abort.c");
    let text =
        "#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }";
    std::fs::write(&source, text).expect("the folder is writable");
    let library = folder.path().join("libcuda.so.1");
    let status =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(status.expect("the C compiler that links Rust").success());
    let host = tl(&folder, &[&BENCH[..], &["--json"]].concat());
    assert!(json(host)["images_per_s"].as_f64() > Some(0.0));
    let device = tl(&folder, &[&BENCH[..], &["--device", "cuda"]].concat());
    assert_eq!(device.code, None, "it aborts: {}", device.stderr);
}
