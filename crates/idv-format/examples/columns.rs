//! Lists the columns of an IDV file, with the number of blocks and the first value of each.
//!
//! `cargo run -p idv-format --example columns -- FILE`; without a file, one of the test files.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;

use idv_format::{IdvFile, Scratch};

fn main() -> Result<(), Box<dyn Error>> {
    let sample = tl_testdata::shipped!("idv/legacy.idv");
    let path = std::env::args_os().nth(1).map_or(sample, PathBuf::from);
    let file = IdvFile::open(File::open(&path)?)?;
    println!("{}: version {}, {} rows", path.display(), file.header().version, file.row_count());
    let mut scratch = Scratch::new();
    for (index, entry) in file.columns().iter().enumerate() {
        let column = match file.column(index) {
            Ok(column) => column,
            Err(error) => {
                println!("{:<12} {error}", entry.name);
                continue;
            }
        };
        let blocks = column.blocks().len();
        print!("{:<12} {}, {blocks} blocks", entry.name, column.codec());
        if blocks > 0 {
            let values = column.read_block(0, &mut scratch)?;
            print!(", first {:?}", values.slice(0..1));
        }
        println!();
        for metadata in file.metadata(index)? {
            println!("  {} = {:?}", metadata.kind, file.metadata_value(&metadata)?);
        }
    }
    Ok(())
}
