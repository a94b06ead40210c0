//! Conversions of tables for programs that bring the command along.

use std::iter;
use std::ops::ControlFlow;
use std::path::Path;

use clap::ValueEnum;

use crate::args::{ColorWhen, ConvertArgs, GlobalArgs, TableArgs, Target, Unit};
use crate::convert::table::Told;
use crate::convert::{NO_TABLE, table, table_kinds};
use crate::failure::{CommandError, Failure};

/// What `tl convert` does to a table, with its arguments: an IDV, CSV or Parquet file becomes another.
///
/// ```no_run
/// use std::ops::ControlFlow;
/// use std::path::Path;
/// use turboloader_cli::TableConversion;
///
/// let (from, to) = (Path::new("train.csv"), Path::new("train.idv"));
/// let told = &mut |_, _| ControlFlow::Continue(());
/// let rows = TableConversion::default().run(from, to, told)?;
/// # Ok::<(), turboloader_cli::CommandError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TableConversion {
    /// What to write: `idv`, `csv` or `parquet`. Default what the name says.
    pub to: Option<String>,
    /// The columns to write, in this order. Default all.
    pub columns: Vec<String>,
    /// Types of columns of a CSV file, as in `age=int32`.
    pub schema: Vec<String>,
    /// The unit of times in a Parquet file, `us` or `ns`. Default, also where it is empty, `us`.
    pub time_unit: String,
    /// Whether to replace the destination if it exists.
    pub overwrite: bool,
    /// Whether to wait until the data is on the disk.
    pub sync: bool,
}

impl TableConversion {
    /// Converts `source` into `destination`, and returns how many rows there are. Nothing of that
    /// name is left behind by an error.
    ///
    /// `told` hears how much has been converted of what there is: rows, or bytes that are read of a
    /// CSV file.
    ///
    /// # Errors
    /// As for the command, and where `told` breaks off.
    pub fn run(
        &self,
        source: &Path,
        destination: &Path,
        told: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<u64, CommandError> {
        Ok(self.convert(source, destination, told)?)
    }

    fn convert(&self, source: &Path, destination: &Path, told: Told<'_>) -> Result<u64, Failure> {
        let Self { to, columns, schema, time_unit, overwrite, sync } = self;
        let target = |name: &String| {
            let what = "tables become idv, csv or parquet";
            Target::from_str(name, true).map_err(|_| Failure::Usage { what })
        };
        let time_unit = match time_unit.as_str() {
            "" => Unit::default(),
            name => Unit::from_str(name, true)
                .map_err(|_| Failure::Usage { what: "the unit of times is us or ns" })?,
        };
        let args = ConvertArgs {
            sources: iter::once(source.to_owned()).collect(),
            output: destination.to_owned(),
            to: to.as_ref().map(target).transpose()?,
            size: None,
            lz4: false,
            jpeg_index: false,
            metadata: None,
            no_sync: !sync,
            jobs: None,
            force: *overwrite,
            table: TableArgs { columns: columns.clone(), schema: schema.clone(), time_unit },
        };
        let to = args.to.unwrap_or_else(|| Target::for_file(destination));
        let (from, to) = table_kinds(&args, to)?.ok_or(NO_TABLE)?;
        let global = GlobalArgs { color: ColorWhen::Never, quiet: true };
        table::convert(&args, from, to, global, told)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Converts without a care for progress.
    fn run(conversion: &TableConversion, from: &Path, to: &Path) -> Result<u64, CommandError> {
        conversion.run(from, to, &mut |_, _| ControlFlow::Continue(()))
    }

    #[test]
    fn tables_are_converted_and_errors_have_their_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.csv"), "x,y\n1,a\n2,b\n").unwrap();
        let conversion = TableConversion { columns: vec!["x".into()], ..Default::default() };
        assert_eq!(run(&conversion, &path("a.csv"), &path("a.idv")).unwrap(), 2);
        let back = run(&TableConversion::default(), &path("a.idv"), &path("b.csv"));
        assert_eq!(back.unwrap(), 2);
        assert_eq!(fs::read_to_string(path("b.csv")).unwrap(), "x\r\n1\r\n2\r\n");
        let missing = run(&conversion, &path("none.csv"), &path("c.idv")).unwrap_err();
        assert!(missing.io_error().is_some() && !missing.is_about_data(), "{missing}");
        let cut = &fs::read(path("a.idv")).unwrap()[..100];
        fs::write(path("cut.idv"), cut).unwrap();
        let damaged = run(&conversion, &path("cut.idv"), &path("c.csv")).unwrap_err();
        assert!(damaged.is_about_data() && !path("c.csv").exists(), "{damaged}");
        let unit = TableConversion { time_unit: "h".into(), ..Default::default() };
        let usage = run(&unit, &path("a.csv"), &path("c.idv")).unwrap_err();
        assert!(!usage.is_about_data() && usage.io_error().is_none(), "{usage}");
    }
    #[test]
    fn whoever_hears_of_progress_can_end_it_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let rows: String = (0..20_000).map(|row| format!("{row},text {row}\n")).collect();
        fs::write(path("a.csv"), format!("x,y\n{rows}")).unwrap();
        let conversion = TableConversion::default();
        assert_eq!(run(&conversion, &path("a.csv"), &path("a.idv")).unwrap(), 20_000);
        for (from, to) in [("a.csv", "b.idv"), ("a.idv", "b.csv"), ("a.idv", "b.idv")] {
            let mut heard = Vec::new();
            let end = conversion.run(&path(from), &path(to), &mut |done, total| {
                heard.push((done, total));
                ControlFlow::Break(())
            });
            let error = end.unwrap_err();
            assert!(error.to_string().ends_with("stopped") && !error.is_about_data(), "{error}");
            let &[(done, total)] = heard.as_slice() else { panic!("{heard:?}") };
            assert!(0 < done && done <= total, "{done} of {total}");
            assert!(!path(to).exists());
        }
    }
}
