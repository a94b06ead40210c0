//! `tl extract`: samples and their fields as files below one folder, and never outside it.

mod names;
mod tree;

use std::borrow::Cow;

use tbl_io::{ConvertSummary, Entry, Field, FileLayout, SampleSource};

use crate::args::{ExtractArgs, GlobalArgs};
use crate::convert::{self, Sources};
use crate::data_set;
use crate::failure::{Failure, Subject, Verdict};
use crate::output::Progress;

pub(crate) use names::NameDefect;
use names::{Names, SampleFiles, SamplePath};
use tree::Tree;

/// Writes the samples. Every name that a file stores is checked before the first file is written.
pub(crate) fn run(args: &ExtractArgs, global: GlobalArgs) -> Result<Verdict, Failure> {
    let source = data_set::open(&args.file)?;
    let selected = Selection { indices: &args.indices, sample_count: source.sample_count() };
    for index in selected.iter() {
        check_names(&*source, index, args.output.as_os_str().len())?;
    }
    let sources = Sources::of(vec![source])?;
    let source = &*sources.as_slice()[0];
    let all = sources.all()?;
    let mut layout = if args.indices.is_empty() {
        FileLayout::plan(&all)?
    } else {
        FileLayout::plan_some(&all)?
    };
    let mut tree = Tree::create(&args.output, args.force)?;
    let mut names = Names::default();
    let mut progress = Progress::new(global, selected.len());
    let (mut bytes, mut fields) = (Vec::new(), Vec::new());
    for (done, index) in (1..).zip(selected.iter()) {
        source.read_into(index, &mut bytes)?;
        fields.clear();
        source.read_fields(index, &mut fields)?;
        let name = layout.place(&all, index, &bytes, &mut fields)?;
        let entry = source.entry(index)?;
        let placed = Entry { key: Some(Cow::Owned(name)), ..entry.clone() };
        let files = SamplePath::new(index, &placed)
            .map_err(NameDefect::from)
            .and_then(|path| names.assign(&path, &fields))
            .map_err(unsafe_name(source, index, &entry))?;
        write_sample(&mut tree, &files, &bytes, &fields)?;
        progress.set(done);
    }
    drop(progress);
    let summary = ConvertSummary { unstored: layout.unstored(), ..ConvertSummary::default() };
    convert::note_unstored(&args.output, &summary);
    Ok(Verdict::Good)
}

fn write_sample(
    tree: &mut Tree,
    files: &SampleFiles,
    bytes: &[u8],
    fields: &[Field],
) -> Result<(), Failure> {
    tree.write(&files.sample, bytes)?;
    for (name, field) in files.fields.iter().zip(fields) {
        if let Some(name) = name {
            tree.write(name, &field.bytes)?;
        }
    }
    Ok(())
}

/// Checks the names of sample `index` and its fields, whose bytes are not read, in a folder whose
/// path has `folder_bytes`.
fn check_names(source: &dyn SampleSource, index: u64, folder_bytes: usize) -> Result<(), Failure> {
    let entry = source.entry(index)?;
    let mut extensions = Vec::new();
    let mut note = |extension: &[u8], _| {
        extensions.push(extension.to_vec());
        false
    };
    source.read_fields_where(index, &mut note, &mut Vec::new())?;
    SamplePath::new(index, &entry)
        .map_err(NameDefect::from)
        .and_then(|path| path.check(&extensions, folder_bytes))
        .map_err(unsafe_name(source, index, &entry))
}

fn unsafe_name(
    source: &dyn SampleSource,
    index: u64,
    entry: &Entry<'_>,
) -> impl Fn(NameDefect) -> Failure {
    move |defect| Failure::UnsafeName { of: Subject::sample(source, index, entry), defect }
}

/// The samples asked for: those named, or all.
struct Selection<'a> {
    indices: &'a [u64],
    sample_count: u64,
}

impl Selection<'_> {
    fn len(&self) -> u64 {
        if self.indices.is_empty() { self.sample_count } else { self.indices.len() as u64 }
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        let all = if self.indices.is_empty() { self.sample_count } else { 0 };
        self.indices.iter().copied().chain(0..all)
    }
}
