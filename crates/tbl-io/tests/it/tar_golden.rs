//! Archives made by GNU tar and Python, kept in `testdata/tar`.

use std::path::Path;

use tbl_io::{Escaped, SampleSource, SampleSourceExt, TarArchive};

use crate::tar_corpora::sha256;

/// Checks the archive of one `[[file]]` table.
fn check(folder: &Path, table: &str) {
    let value = |key: &str| {
        let line = table.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        serde_json::from_str::<serde_json::Value>(line.unwrap()).unwrap()
    };
    let path = folder.join(value("file").as_str().unwrap());
    assert_eq!(sha256(&std::fs::read(&path).unwrap()), value("sha256"), "{}", path.display());
    let archive = TarArchive::open(&path).unwrap();
    assert_eq!(archive.has_end_marker(), value("has_end_marker").as_bool().unwrap());
    let skipped: Vec<String> =
        archive.skipped().iter().map(|member| Escaped(&member.path).to_string()).collect();
    assert_eq!(serde_json::to_value(skipped).unwrap(), value("skipped"), "{}", path.display());

    let members = table.lines().filter_map(|line| line.strip_prefix("  ")?.strip_suffix(","));
    let mut index = 0;
    for member in members {
        let [name, size, offset, digest]: [String; 4] = serde_json::from_str(member).unwrap();
        let mut bytes = Vec::new();
        if name == "a.cls" {
            let mut fields = Vec::new();
            archive.read_fields(index - 1, &mut fields).unwrap();
            assert_eq!(fields.len(), 1, "{}", path.display());
            bytes.clone_from(&fields[0].bytes);
        } else {
            let entry = archive.entry(index).unwrap();
            let found = (
                Escaped(&entry.key.unwrap()).to_string(),
                entry.bytes.to_string(),
                entry.offset.to_string(),
            );
            assert_eq!(found, (name, size, offset), "{}", path.display());
            archive.read_into(index, &mut bytes).unwrap();
            index += 1;
        }
        assert_eq!(sha256(&bytes), digest, "{}", path.display());
    }
    assert_eq!(archive.sample_count(), index, "{}", path.display());
}

#[test]
fn every_archive_gives_what_its_manifest_says() {
    let folder = tl_testdata::shipped!("tar");
    let manifest = std::fs::read_to_string(folder.join("manifest.toml")).unwrap();
    let tables: Vec<&str> = manifest.split("[[file]]").skip(1).collect();
    assert_eq!(tables.len(), 13);
    for table in tables {
        check(&folder, table);
    }
}
