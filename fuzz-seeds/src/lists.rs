//! Lists of samples: whatever a manifest, annotations or a file of labels say, they open with samples
//! or with errors of the data.

use std::sync::Arc;

use tbl_io::{
    ErrorKind, GivenLabels, Labels, Location, Manifest, Object, Pin, RangeFault, Ranges, ReadError,
    SampleSource, Source, Storage, Stores, open_coco, open_manifest,
};
use tl_transform::Segmentation;

use crate::format::read_samples;

/// A web server that has every file, and one list.
#[derive(Debug)]
struct Server(Vec<u8>);

/// A file of zeros.
#[derive(Debug)]
struct Zeros(Pin);

impl Ranges for Zeros {
    fn len(&self) -> u64 {
        8
    }

    fn pin(&self) -> &Pin {
        &self.0
    }

    fn read_exact_at(&self, _: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        bytes.fill(0);
        Ok(())
    }
}

impl Storage for Server {
    fn open(&self, object: &Location, _: Option<&Object>) -> Result<Source, ReadError> {
        if object.url().is_some_and(|url| url.starts_with(LIST)) {
            return Ok(Source::from_bytes(object, self.0.clone()));
        }
        Ok(Source::from_ranges(object, Arc::new(Zeros(Pin::Unknown))))
    }

    fn list(&self, _: &Location) -> Result<Vec<Object>, ReadError> {
        Ok(Vec::new())
    }
}

const LIST: &str = "http://h/list.";

/// Opens `data` as a list of the kind that its first byte says, and reads every sample.
pub fn lists(data: &[u8]) {
    let Some((&kind, text)) = data.split_first() else { return };
    if kind % 8 == 7 {
        return segmentation(text);
    }
    let stores = Stores::new().with("http", Arc::new(Server(text.to_vec())));
    let extension = ["csv", "tsv", "jsonl", "json", "csv", "txt", "jsonl"][usize::from(kind % 8)];
    let list = format!("{LIST}{extension}");
    let manifest = Manifest { files: vec!["mask".to_owned()], ..Manifest::default() };
    let opened = match kind % 8 {
        0 => tbl_io::open_in(&stores, &list),
        3 => {
            let options = tbl_io::Coco { dense: kind >= 128, ..tbl_io::Coco::default() };
            open_coco(&stores, &list, &options).map(boxed)
        }
        4..=6 => return labels(&stores, &list),
        _ => open_manifest(&stores, &list, &manifest).map(boxed),
    };
    match opened {
        Ok(source) => {
            read_samples(&*source);
            drop(source.notes());
            let sources = [source];
            Labels::resolve(&sources).expect("a manifest states its labels");
        }
        Err(error) => check(&error),
    }
}

fn boxed(listed: tbl_io::Listed) -> Box<dyn SampleSource> {
    Box::new(listed)
}

fn labels(stores: &Stores, list: &str) {
    if let Err(error) = GivenLabels::read(stores, list) {
        check(&error);
    }
}

/// An invalid list is not a fault of the system.
fn check(error: &ReadError) {
    assert!(matches!(error.kind(), ErrorKind::Data | ErrorKind::Setting), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
}

/// Draws a mask; what it covers is the same when it is drawn again.
fn segmentation(text: &[u8]) {
    let Ok(segmentation) = serde_json::from_slice::<Segmentation>(text) else { return };
    let size = |segmentation: &Segmentation| match segmentation {
        Segmentation::Counts { height, width, .. } if *height < 4096 && *width < 4096 => {
            (*width, *height)
        }
        Segmentation::Counts { .. } | Segmentation::Polygons(_) => (48, 64),
    };
    let (width, height) = size(&segmentation);
    if let Ok(mask) = segmentation.mask(width, height) {
        assert!(mask.data().iter().all(|&pixel| pixel <= 1));
        assert_eq!(segmentation.mask(width, height).as_ref(), Ok(&mask));
    }
}
