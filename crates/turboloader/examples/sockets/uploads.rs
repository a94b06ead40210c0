//! Files that are written, to the disk and to the store.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use tbl_format::SampleFormat;
use tbl_io::{
    AsStored, Compression, ConvertError, ConvertEvent, ConvertOptions, Labels, Location, NewSample,
    Selection, Stores, StreamWriter, Target, WriteOptions, convert_in,
};
use turboloader::RemoteStores;

use crate::{BUCKET, NAMES, Outcome, Random, SAMPLES, Soak};

/// A conversion of the TBL file to TBL, beside the bucket.
const COPY: &str = "copy.tbl";

impl Soak<'_> {
    /// Converts a file to an object, or begins to.
    pub(crate) fn upload(&mut self, stores: &RemoteStores) -> Outcome<()> {
        let stops = (self.random.below(2) == 0).then(|| self.random.below(SAMPLES));
        let bucket = self.folder.join(BUCKET);
        let (target, same) = match self.random.below(2) {
            0 => (Target::Tar, bucket.join(NAMES[1])),
            _ => (Target::Tbl2(Compression::None), self.folder.join(COPY)),
        };
        let url = Location::new(format!("s3://{BUCKET}/copy-{}", self.random.below(4)));
        let table = bucket.join(NAMES[0]);
        let stores_of = stores.add_to(Stores::new());
        let before = read(&stores_of, &url)?;
        let is_whole = convert(&stores_of, &table, target, &url, stops)?;
        let after = read(&stores_of, &url)?;
        let expected = if is_whole { Some(fs::read(same)?) } else { before };
        if is_whole == stops.is_some() || after != expected {
            let after = after.map(|bytes| bytes.len());
            return Err(format!("{url}, stopped at {stops:?}: {is_whole}, {after:?}").into());
        }
        *(if is_whole { &mut self.counts.uploads } else { &mut self.counts.stopped }) += 1;
        let left = stores.pending_uploads(&Location::new(format!("s3://{BUCKET}/")))?;
        // Those whose identity got lost have no parts. One in a hundred answers does.
        left.iter().try_for_each(|upload| stores.end_upload(upload))?;
        if left.len() < 3 { Ok(()) } else { Err(format!("uploads were left: {left:?}").into()) }
    }
}

/// An object, if there is one.
fn read(stores: &Stores, url: &Location) -> Outcome<Option<Vec<u8>>> {
    let Some(object) = stores.open_existing(url)? else { return Ok(None) };
    let mut bytes = vec![0; usize::try_from(object.len())?];
    object.read_exact_at(0, &mut bytes)?;
    Ok(Some(bytes))
}

/// Samples of random bytes in a TBL file, the same in a TAR archive, and what a conversion makes of
/// them beside the bucket.
pub(crate) fn write(bucket: &Path) -> Outcome<()> {
    let table = bucket.join(NAMES[0]);
    let mut writer = StreamWriter::create(&table, WriteOptions::default())?;
    let mut random = Random(0);
    for index in 0..SAMPLES {
        let words = 500 + random.below(8_000);
        let bytes: Vec<u8> =
            (0..words).flat_map(|_| random.below(u64::MAX).to_le_bytes()).collect();
        let key = format!("{index:06}");
        let label = Some(i64::try_from(index % 10)?);
        let format = SampleFormat::Jpeg;
        let sample =
            NewSample { format, key: Some(key.as_bytes()), label, ..NewSample::new(&bytes) };
        writer.write_sample(&sample)?;
    }
    writer.finish()?;
    let stores = Stores::new();
    let archive = Location::new(bucket.join(NAMES[1]));
    convert(&stores, &table, Target::Tar, &archive, None)?;
    let copy = Location::new(bucket.with_file_name(COPY));
    convert(&stores, &table, Target::Tbl2(Compression::None), &copy, None)?;
    Ok(())
}

/// Converts a file, or stops after so many samples.
fn convert(
    stores: &Stores,
    table: &Path,
    target: Target,
    to: &Location,
    stops: Option<u64>,
) -> Outcome<bool> {
    let sources = [tbl_io::open(table)?];
    let labels = Labels::resolve(&sources)?;
    let selection = Selection::all(&sources, &labels)?;
    let options = ConvertOptions { sync: false, overwrite: true, ..ConvertOptions::new(target) };
    let mut on_event = |event: ConvertEvent<'_>| match (event, stops) {
        (ConvertEvent::Written { samples, .. }, Some(stop)) if samples > stop => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    match convert_in(stores, &selection, to, &options, AsStored::default, &mut on_event) {
        Ok(_) => Ok(true),
        Err(ConvertError::Stopped) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
