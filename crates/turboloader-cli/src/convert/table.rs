//! `tl convert` of tables.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use tbl_io::Escaped;
use turboloader::{CsvSchema, TableConversion, TableEvent, TableFormat, TableSummary, TimeUnit};

use crate::args::{ConvertArgs, GlobalArgs, Unit};
use crate::failure::{Failure, Verdict};
use crate::output::{self, Progress};

/// Converts one table into another.
pub(super) fn convert(
    args: &ConvertArgs,
    to: TableFormat,
    global: GlobalArgs,
) -> Result<Verdict, Failure> {
    let [source] = args.sources.as_slice() else {
        return Err(Failure::Usage { what: "tables are converted one at a time" });
    };
    let conversion = TableConversion {
        to: Some(to),
        columns: args.table.columns.clone(),
        schema: CsvSchema::parse(&args.table.schema)?,
        time_unit: match args.table.time_unit {
            Unit::Us => TimeUnit::Microseconds,
            Unit::Ns => TimeUnit::Nanoseconds,
        },
        threads: args.jobs.unwrap_or_else(output::default_workers),
        overwrite: args.force,
        sync: !args.no_sync,
    };
    let start = Instant::now();
    let mut progress: Option<Progress> = None;
    let summary = conversion.run(source, &args.output, &mut |event| {
        match event {
            TableEvent::Progress { done, total } => {
                progress.get_or_insert_with(|| Progress::new(global, total)).set(done);
            }
            TableEvent::LeftOut(note) => {
                output::note(&format_args!("{}: {note}", source.display()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    drop(progress);
    if !global.quiet {
        let TableSummary { rows, file_bytes, .. } = summary;
        let output = Escaped(args.output.as_os_str().as_bytes());
        let seconds = start.elapsed().as_secs_f64();
        output::note(&format_args!("{output}: {rows} rows, {file_bytes} bytes, {seconds:.2} s"));
    }
    Ok(Verdict::Good)
}
