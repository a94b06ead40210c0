//! Conversions of tables for programs that bring the command along.

use std::iter;
use std::path::Path;

use clap::ValueEnum;

use crate::args::{ColorWhen, ConvertArgs, GlobalArgs, TableArgs, Target, Unit};
use crate::convert::{NO_TABLE, table, table_kinds};
use crate::failure::{CommandError, Failure};

/// What `tl convert` does to a table, with its arguments: an IDV, CSV or Parquet file becomes another.
///
/// ```no_run
/// use std::path::Path;
/// use turboloader::TableConversion;
///
/// let rows = TableConversion::default().run(Path::new("train.csv"), Path::new("train.idv"))?;
/// # Ok::<(), turboloader::CommandError>(())
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
    /// # Errors
    /// As for the command.
    pub fn run(&self, source: &Path, destination: &Path) -> Result<u64, CommandError> {
        Ok(self.convert(source, destination)?)
    }

    fn convert(&self, source: &Path, destination: &Path) -> Result<u64, Failure> {
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
            no_sync: !sync,
            jobs: None,
            force: *overwrite,
            table: TableArgs { columns: columns.clone(), schema: schema.clone(), time_unit },
        };
        let to = args.to.unwrap_or_else(|| Target::for_file(destination));
        let (from, to) = table_kinds(&args, to)?.ok_or(NO_TABLE)?;
        table::convert(&args, from, to, GlobalArgs { color: ColorWhen::Never, quiet: true })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn tables_are_converted_and_errors_have_their_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.csv"), "x,y\n1,a\n2,b\n").unwrap();
        let conversion = TableConversion { columns: vec!["x".into()], ..Default::default() };
        assert_eq!(conversion.run(&path("a.csv"), &path("a.idv")).unwrap(), 2);
        let back = TableConversion::default().run(&path("a.idv"), &path("b.csv"));
        assert_eq!(back.unwrap(), 2);
        assert_eq!(fs::read_to_string(path("b.csv")).unwrap(), "x\r\n1\r\n2\r\n");
        let missing = conversion.run(&path("none.csv"), &path("c.idv")).unwrap_err();
        assert!(missing.io_error().is_some() && !missing.is_about_data(), "{missing}");
        let cut = &fs::read(path("a.idv")).unwrap()[..100];
        fs::write(path("cut.idv"), cut).unwrap();
        let damaged = conversion.run(&path("cut.idv"), &path("c.csv")).unwrap_err();
        assert!(damaged.is_about_data() && !path("c.csv").exists(), "{damaged}");
        let unit = TableConversion { time_unit: "h".into(), ..Default::default() };
        let usage = unit.run(&path("a.csv"), &path("c.idv")).unwrap_err();
        assert!(!usage.is_about_data() && usage.io_error().is_none(), "{usage}");
    }
}
