//! Checking tables: every block and piece of metadata of an IDV file, every region of a segment.

mod blocks;
mod report;

use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use idv_format::ReadError;
use tbf_format::{FormatError, Region, UnpackOptions};
use tbl_io::Escaped;

use crate::args::GlobalArgs;
use crate::failure::{Failure, Verdict};
use crate::output::{self, Progress, Stdout};
use crate::table::{IdvTable, RowTable, SegmentFile, Table, TableFailure, oddity_text, read_key};
use crate::text::one_line;
use crate::verify::Args;
use blocks::damaged_blocks;
use report::{Counts, Findings, Listed, Report, SCHEMA};

/// Checks a table; `None` for something else.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Option<Verdict>, Failure> {
    let [path] = &*args.files else { return Ok(None) };
    let table = Table::open(global, &args.files);
    let checked =
        table.and_then(|table| table.map(|table| check(&table, path, args, global)).transpose());
    if let Err(failure) = &checked {
        report_unopened(args, path, failure)?;
    }
    checked
}

/// A table whose opening failed has an answer too.
fn report_unopened(args: &Args, path: &Path, failure: &Failure) -> Result<(), Failure> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    let kind = match failure.downcast_ref::<TableFailure>() {
        Some(TableFailure::Idv { .. }) => "idv",
        Some(_) => "tbf",
        None if extension == "parquet" => "parquet",
        None if extension == "safetensors" => "safetensors",
        None if extension == "npz" => "npz",
        None if path.is_dir() || path.ends_with("zarr.json") => "zarr",
        None => "npy",
    };
    if !args.json || !failure.is_about_data() {
        return Ok(());
    }
    let finding = Listed::damage(one_line(failure));
    let mut stdout = Stdout::open()?;
    stdout.json_line(&Report {
        schema: SCHEMA,
        file: &path.to_string_lossy(),
        kind,
        good: false,
        counts: Counts::default(),
        damaged: 1,
        warnings: 0,
        not_verified: &[],
        findings: &[finding],
    })?;
    stdout.finish()
}

/// Checks a table.
fn check(table: &Table, path: &Path, args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let mut stdout = Stdout::open()?;
    let mut findings = Findings {
        stdout: &mut stdout,
        json: args.json,
        listed: Vec::new(),
        damaged: 0,
        warnings: 0,
        first: None,
    };
    let mut encrypted = Vec::new();
    let (kind, part, counts) = match table {
        Table::Idv(table) => {
            let workers = args.jobs.unwrap_or_else(output::default_workers);
            ("idv", "blocks", check_idv(table, workers, global, &mut findings)?)
        }
        Table::Rows(table) => {
            (table.format(), "columns", check_rows(table, global, &mut findings)?)
        }
        Table::Segment(file) => {
            let counts = check_segment(file, args, &mut findings, &mut encrypted)?;
            ("tbf", "regions", counts)
        }
    };
    let Findings { listed, damaged, warnings, first, .. } = findings;
    let name = Escaped(path.as_os_str().as_bytes());
    let Counts { rows, columns, parts, bytes } = counts;
    if args.json {
        let file = &path.to_string_lossy();
        let good = damaged == 0 && encrypted.is_empty();
        let findings = &listed[..];
        let schema = SCHEMA;
        stdout.json_line(&Report {
            schema,
            file,
            kind,
            good,
            counts,
            damaged,
            warnings,
            not_verified: &encrypted,
            findings,
        })?;
    } else if damaged == 0 && encrypted.is_empty() {
        let warnings = if warnings > 0 { format!(", {warnings} warnings") } else { String::new() };
        let parts = match table {
            // Their parts are their columns.
            Table::Rows(_) => String::new(),
            Table::Idv(_) | Table::Segment(_) => format!(", {parts} {part}"),
        };
        stdout.line(&format_args!(
            "{name}: good: {rows} rows, {columns} columns{parts}, {bytes} bytes{warnings}"
        ))?;
    }
    stdout.finish()?;
    let Some(first) = first else {
        if encrypted.is_empty() {
            return Ok(Verdict::Good);
        }
        let path = path.to_owned();
        let regions = encrypted.join(", ");
        return Err(TableFailure::NotVerified { path, regions }.into());
    };
    if damaged == 1 {
        output::report(&format_args!("{name}: {first}"));
    } else {
        output::report(&format_args!("{name}: damaged in {damaged} places, the first: {first}"));
    }
    Ok(Verdict::Bad)
}

/// Reads every row of every column.
fn check_rows(
    table: &RowTable,
    global: &GlobalArgs,
    findings: &mut Findings<'_>,
) -> Result<Counts, Failure> {
    let rows = table.row_count();
    let columns = table.column_count() as u64;
    let mut progress = Progress::new(global, rows.saturating_mul(columns));
    for column in 0..table.column_count() {
        let done = rows.saturating_mul(column as u64);
        if let Some(reason) = table.unreadable(column) {
            findings.add(Listed::warning(format!("column {:?}: {reason}", table.name(column))))?;
            continue;
        }
        let hashed = table.hash(column, &mut |row| progress.set(done + row));
        if let Err(failure) = hashed.and_then(|_| table.verify(column)) {
            if !failure.is_about_data() {
                return Err(failure);
            }
            findings.add(Listed::damage(one_line(&failure)))?;
        }
    }
    Ok(Counts { rows, columns, parts: columns, bytes: table.bytes() })
}

fn check_idv(
    table: &IdvTable,
    workers: NonZeroUsize,
    global: &GlobalArgs,
    findings: &mut Findings<'_>,
) -> Result<Counts, Failure> {
    let file = table.file();
    let columns = file.columns();
    let rows = file.row_count();
    let parts = columns.iter().map(|column| column.block_count(rows)).sum();
    let counts = Counts { rows, columns: columns.len() as u64, parts, bytes: table.file_bytes() };
    let mut progress = Progress::new(global, parts);
    let mut done = 0;
    for (index, entry) in columns.iter().enumerate() {
        let errors = damaged_blocks(table, index, workers)?;
        done += entry.block_count(rows);
        progress.set(done);
        for error in errors.into_iter().chain(damaged_metadata(table, index)) {
            let finding = if let ReadError::Dead { name, dead } = &error {
                Listed::warning(format!("the values of {name:?} were not checked: {dead}"))
            } else {
                let finding = Listed::idv(&entry.name, &error);
                let failure = table.failure(error);
                // What the system refuses for one block it refuses for the next as well.
                if !failure.is_about_data() {
                    return Err(failure);
                }
                finding
            };
            findings.add(finding)?;
        }
    }
    Ok(counts)
}

/// The defects of a column's metadata.
fn damaged_metadata(table: &IdvTable, column: usize) -> Vec<ReadError> {
    match table.file().metadata(column) {
        Err(error) => vec![error],
        Ok(entries) => {
            let values = entries.iter().map(|entry| table.file().metadata_value(entry));
            values.filter_map(Result::err).collect()
        }
    }
}

fn check_segment(
    file: &SegmentFile,
    args: &Args,
    findings: &mut Findings<'_>,
    encrypted: &mut Vec<String>,
) -> Result<Counts, Failure> {
    let key = read_key(args.key.key_file.as_deref())?;
    let mut segment = file.segment()?;
    let options = UnpackOptions { key: key.as_ref(), ..UnpackOptions::default() };
    for region in Region::DATA {
        if !segment.has(region) {
            continue;
        }
        match segment.unpack(region, &options) {
            Ok(()) => {}
            Err(FormatError::KeyNeeded { region }) => encrypted.push(region.to_string()),
            Err(error) => findings.add(Listed::segment(&segment, &error))?,
        }
    }
    let (oddities, damage) = segment.verify_all();
    for oddity in &oddities {
        findings.add(Listed::warning(oddity_text(oddity)))?;
    }
    for error in &damage {
        findings.add(Listed::segment(&segment, error))?;
    }
    file.check_unchanged()?;
    let regions = Region::DATA.into_iter().filter(|&region| segment.has(region)).count();
    Ok(Counts {
        rows: segment.node_count(),
        columns: tbf_format::Columns::NAMES.len() as u64,
        parts: regions as u64,
        bytes: file.bytes()?.len() as u64,
    })
}
