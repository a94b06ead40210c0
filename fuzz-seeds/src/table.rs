//! CSV and Parquet files: whatever the bytes are, converting them ends with a table or an error.

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process;

use turboloader::{TableConversion, TableConversionError};

/// Converts `data` as a CSV file. The table that it makes is written as CSV, and that file is the
/// same table.
pub fn csv(data: &[u8]) {
    let files = Files::new("csv");
    let [first, table, written, again, rewritten] =
        ["a.csv", "b.idv", "c.csv", "d.idv", "e.csv"].map(|name| files.path(name));
    fs::write(&first, data).expect("the folder for temporary files is writable");
    let rows = match convert(&first, &table) {
        Ok(rows) => rows,
        Err(error) => {
            assert!(error.is_damage(), "{error}");
            return;
        }
    };
    let expect = "a table that was made of CSV";
    assert_eq!(convert(&table, &written).expect(expect), rows);
    assert_eq!(convert(&written, &again).expect(expect), rows);
    assert_eq!(convert(&again, &rewritten).expect(expect), rows);
    let [written, rewritten] = [&written, &rewritten].map(|path| fs::read(path).expect(expect));
    assert_eq!(written, rewritten);
}

/// Converts `data` as a Parquet file.
pub fn parquet(data: &[u8]) {
    // Other files are not taken for one.
    if !data.starts_with(b"PAR1") {
        return;
    }
    let files = Files::new("parquet");
    let (source, table) = (files.path("a.parquet"), files.path("b.idv"));
    fs::write(&source, data).expect("the folder for temporary files is writable");
    if let Err(error) = convert(&source, &table) {
        assert!(error.to_string().contains("a.parquet: "), "{error}");
    }
}

fn convert(from: &Path, to: &Path) -> Result<u64, TableConversionError> {
    let conversion = TableConversion {
        threads: NonZeroUsize::MIN,
        overwrite: true,
        sync: false,
        ..TableConversion::default()
    };
    Ok(conversion.run(from, to, &mut |_| ControlFlow::Continue(()))?.rows)
}

/// A folder of a run, which is gone after it.
struct Files(PathBuf);

impl Files {
    fn new(target: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("fuzz-{target}-{}", process::id()));
        fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("the folder is the run's own");
    }
}
