//! Lists a data set (a folder, a TAR archive or a TBL file); without an argument, a small archive
//! that it makes first. Reads every sample, so that damage shows.
#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::path::Path;

use tbl_io::{Escaped, Labels, SampleSource, SampleSourceExt, TarOptions, TarWriter};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = std::env::args_os().nth(1) {
        return list(Path::new(&path));
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pets.tar");
    let mut writer = TarWriter::create(&path, TarOptions::default())?;
    for (name, bytes) in
        [("cats/tom.jpg", "meow"), ("cats/tom.json", "{}"), ("dogs/rex.jpg", "wuff")]
    {
        writer.append(name.as_bytes(), bytes.as_bytes())?;
    }
    writer.finish()?;
    list(&path)
}

fn list(path: &Path) -> Result<(), Box<dyn Error>> {
    let sources: [Box<dyn SampleSource>; 1] = [tbl_io::open(path)?];
    let labels = Labels::resolve(&sources)?;
    let [samples] = sources;
    let mut bytes = Vec::new();
    let mut fields = Vec::new();
    for index in 0..samples.sample_count() {
        let entry = samples.entry(index)?;
        samples.read_into(index, &mut bytes)?;
        fields.clear();
        samples.read_fields(index, &mut fields)?;
        let class = labels.label(0, index).map_or("-".to_owned(), |label| label.to_string());
        let extensions: Vec<String> =
            fields.iter().map(|field| Escaped(&field.extension).to_string()).collect();
        println!(
            "{index:>6} {:<8} {:>9} bytes at {:>9}  class {class:<4} {} [{}]",
            entry.format.to_string(),
            bytes.len(),
            entry.offset,
            Escaped(entry.key.as_deref().unwrap_or_default()),
            extensions.join(" "),
        );
    }
    Ok(())
}
