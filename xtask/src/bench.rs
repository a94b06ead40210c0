//! Runs the benchmarks, keeps their results as JSON, and prints the table for `docs/benchmarks.md`.
//!
//! Criterion measures; this reads the estimates it leaves in `target/criterion`. The groups `jpeg`
//! and `webp` measure by themselves and leave the same. `critcmp` compares such results too, but prints neither
//! intervals nor Markdown.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::command::{self, cargo, workspace_root};

/// The benchmarks to run and the handling of the results.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    group: Option<String>,
    save: Option<String>,
    against: Option<String>,
}

impl Options {
    /// Reads `[GROUP] [--save NAME] [--against NAME]`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let place = match argument.as_str() {
                "--save" => &mut options.save,
                "--against" => &mut options.against,
                _ if argument.starts_with('-') || options.group.is_some() => {
                    return Err(format!("bench: unexpected argument {argument}").into());
                }
                _ => {
                    options.group = Some(argument.clone());
                    continue;
                }
            };
            *place = Some(arguments.next().ok_or(format!("{argument} needs a name"))?.clone());
        }
        Ok(options)
    }
}

/// One benchmark's result.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    id: String,
    /// Median time of one iteration, with its confidence interval.
    nanoseconds: f64,
    low: f64,
    high: f64,
    /// The unit of one iteration: a count and `bytes` or `elements`.
    work: Option<(f64, String)>,
}

/// Runs the benchmarks, saves or compares the results, and prints them as a Markdown table.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let before = options.against.as_deref().map(load).transpose()?;
    let start = SystemTime::now();
    let selection = match &options.group {
        Some(group) => format!("--bench {group}"),
        None => "--benches".to_owned(),
    };
    let features = features();
    command::run(&mut cargo(&format!("bench --package tl-benches {features} {selection}")))?;
    let mut rows = Vec::new();
    collect(&workspace_root().join("target/criterion"), start, &mut rows)?;
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    println!("\n{}\n", machine());
    print!("{}", table(&rows, before.as_deref()));
    if let Some(name) = &options.save {
        println!("\nsaved as {}", save(name, &rows)?.display());
    }
    Ok(())
}

/// The libraries in C beside ours that the tools of this machine can compile, as arguments of cargo.
fn features() -> String {
    let is_here = |&(tool, version): &(&str, &str)| command::output(tool, &[version]).is_some();
    let compiler = ("cc", "--version");
    let assembler = [("nasm", "-v"), ("cmake", "--version"), compiler];
    let mut features = String::new();
    let libraries = [
        ("libwebp", &[compiler][..], "a C compiler"),
        ("libjpeg-turbo", &assembler, "nasm, cmake and a C compiler"),
    ];
    for (library, tools, needed) in libraries {
        if tools.iter().all(is_here) {
            features += &format!(" --features {library}");
        } else {
            println!("without {library}: building it needs {needed}");
        }
    }
    features
}

/// Gathers every `new/estimates.json` below `folder` that was written since `start`.
fn collect(folder: &Path, start: SystemTime, rows: &mut Vec<Row>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        let estimates = path.join("estimates.json");
        if path.ends_with("new") && estimates.exists() {
            if fs::metadata(&estimates)?.modified()? >= start {
                let benchmark = read_json(&path.join("benchmark.json"))?;
                rows.push(row(&benchmark, &read_json(&estimates)?).ok_or_else(|| {
                    format!("{} is not as criterion writes it", estimates.display())
                })?);
            }
        } else {
            collect(&path, start, rows)?;
        }
    }
    Ok(())
}

fn read_json(path: &Path) -> Result<Value, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn row(benchmark: &Value, estimates: &Value) -> Option<Row> {
    let median = estimates.get("median")?;
    let interval = median.get("confidence_interval")?;
    let work = benchmark.get("throughput").and_then(Value::as_object).and_then(|throughput| {
        let (unit, count) = throughput.iter().next()?;
        Some((count.as_f64()?, unit.to_lowercase()))
    });
    Some(Row {
        id: benchmark.get("full_id")?.as_str()?.to_owned(),
        nanoseconds: median.get("point_estimate")?.as_f64()?,
        low: interval.get("lower_bound")?.as_f64()?,
        high: interval.get("upper_bound")?.as_f64()?,
        work,
    })
}

/// The table, with a column for the change when there is something to compare with.
fn table(rows: &[Row], before: Option<&[Row]>) -> String {
    let mut text = String::from("| benchmark | median | interval | rate |");
    text.push_str(if before.is_some() { " before | speed-up |\n" } else { "\n" });
    text.push_str("|---|---|---|---|");
    text.push_str(if before.is_some() { "---|---|\n" } else { "\n" });
    for row in rows {
        text.push_str(&format!(
            "| {} | {} | {} to {} | {} |",
            row.id,
            duration(row.nanoseconds),
            duration(row.low),
            duration(row.high),
            rate(row)
        ));
        if let Some(before) = before {
            match before.iter().find(|old| old.id == row.id) {
                Some(old) => text.push_str(&format!(
                    " {} | {:.2}x |",
                    duration(old.nanoseconds),
                    old.nanoseconds / row.nanoseconds
                )),
                None => text.push_str(" not measured | |"),
            }
        }
        text.push('\n');
    }
    text
}

fn duration(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e3 => format!("{n:.1} ns"),
        n if n < 1e6 => format!("{:.2} µs", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

fn rate(row: &Row) -> String {
    match &row.work {
        Some((count, unit)) if unit == "bytes" => {
            format!("{:.2} GB/s", count / row.nanoseconds)
        }
        Some((count, _)) => format!("{:.0} /s", count * 1e9 / row.nanoseconds),
        None => String::new(),
    }
}

/// The machine and the compiler: a figure without them means nothing.
fn machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown CPU", |model| model.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let rustc = command::output("rustc", &["--version"]).unwrap_or_default();
    format!("{model}, {cores} cores, {rustc}")
}

fn results_path(name: &str) -> PathBuf {
    workspace_root().join("target/bench").join(format!("{name}.json"))
}

fn save(name: &str, rows: &[Row]) -> Result<PathBuf, Box<dyn Error>> {
    let path = results_path(name);
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let results: Vec<Value> = rows.iter().map(to_json).collect();
    let document = json!({ "machine": machine(), "results": results });
    fs::write(&path, serde_json::to_string_pretty(&document)? + "\n")?;
    Ok(path)
}

fn load(name: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let path = results_path(name);
    let document = read_json(&path)?;
    let results = document.get("results").and_then(Value::as_array);
    results
        .and_then(|results| results.iter().map(from_json).collect())
        .ok_or_else(|| format!("{} holds no results", path.display()).into())
}

fn to_json(row: &Row) -> Value {
    let (count, unit) = row.work.clone().unwrap_or_default();
    json!({
        "id": row.id, "nanoseconds": row.nanoseconds, "low": row.low, "high": row.high,
        "count": count, "unit": unit,
    })
}

fn from_json(value: &Value) -> Option<Row> {
    let number = |key: &str| value.get(key)?.as_f64();
    let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
    let (count, unit) = (number("count")?, text("unit")?);
    Some(Row {
        id: text("id")?,
        nanoseconds: number("nanoseconds")?,
        low: number("low")?,
        high: number("high")?,
        work: (!unit.is_empty()).then_some((count, unit)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Row {
        let benchmark = json!({ "full_id": "crc/110 KB", "throughput": { "Bytes": 110_000 } });
        let estimates = json!({ "median": {
            "point_estimate": 5_000.0,
            "confidence_interval": { "lower_bound": 4_900.0, "upper_bound": 5_100.0 },
        } });
        row(&benchmark, &estimates).expect("as criterion writes it")
    }

    #[test]
    fn a_result_survives_saving() {
        assert_eq!(from_json(&to_json(&example())), Some(example()));
    }

    #[test]
    fn the_table_names_the_rate_and_the_change() {
        let before = Row { nanoseconds: 10_000.0, ..example() };
        let expected = "\
| benchmark | median | interval | rate | before | speed-up |
|---|---|---|---|---|---|
| crc/110 KB | 5.00 µs | 4.90 µs to 5.10 µs | 22.00 GB/s | 10.00 µs | 2.00x |
";
        assert_eq!(table(&[example()], Some(&[before])), expected);
    }

    #[test]
    fn options_name_a_group_and_a_baseline() {
        let arguments = ["format", "--against", "main"].map(str::to_owned);
        let options = Options::parse(&arguments).expect("valid options");
        assert_eq!(options.group.as_deref(), Some("format"));
        assert_eq!(options.against.as_deref(), Some("main"));
        assert!(Options::parse(&["--save".to_owned()]).is_err());
    }
}
