//! A process that is killed while it writes leaves no file that is taken for a whole one.
//!
//! `TL_KILLS` says how many are; 20 if it does not.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use idv_format::{
    Codec, Compression, IdvFile, NewColumn, Number, Values, WriteOptions, WriteSummary, Writer,
};

/// Set for the process that is to be killed: the file to write.
const VICTIM: &str = "IDV_FORMAT_KILL_VICTIM";

const BATCHES: u32 = 200;
const ROWS: u32 = 8192;

fn write_to(path: &Path) -> WriteSummary {
    let column = NewColumn {
        compression: Compression::None,
        ..NewColumn::new("n", Codec::number(Number::UInt32))
    };
    let file = File::create(path).unwrap();
    let mut writer = Writer::new(file, vec![column], WriteOptions::default()).unwrap();
    for batch in 0..BATCHES {
        let numbers: Vec<u32> = (batch * ROWS..(batch + 1) * ROWS).collect();
        writer.write(&[Values::UInt32(numbers.into())]).unwrap();
    }
    writer.finish().unwrap().1
}

#[test]
fn files_of_killed_processes_are_whole_or_refused() {
    if let Some(path) = std::env::var_os(VICTIM) {
        write_to(Path::new(&path));
        return;
    }
    let kills: u64 = std::env::var("TL_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kills");
    fs::create_dir_all(&folder).unwrap();
    let whole = folder.join("whole.idv");
    let bytes = write_to(&whole).bytes;
    let expected = fs::read(&whole).unwrap();
    let path = folder.join("killed.idv");
    let (mut partial, mut complete) = (0, 0);
    for kill in 0..kills {
        fs::remove_file(&path).unwrap_or(());
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["kills::files_of_killed_processes_are_whole_or_refused", "--exact"])
            .env(VICTIM, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The last ones wait for the whole length; only the header is written after that.
        let until = bytes * (kill + 1) / kills;
        while path.metadata().map_or(0, |found| found.len()) < until {
            std::hint::spin_loop();
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        let found = fs::read(&path).unwrap();
        if IdvFile::open(found.as_slice()).is_ok() {
            assert!(found == expected, "kill {kill}: {} bytes", found.len());
            complete += 1;
        } else {
            partial += 1;
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(partial > 0);
    println!("{kills} kills, {partial} partial files refused, {complete} complete");
}
