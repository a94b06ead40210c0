//! Empty data sets, samplers and epochs, and folders that are not classes.

use std::fs;
use std::path::Path;

use tbl_io::{NewSample, Note, StreamWriter, WriteOptions};
use tl_pipeline::{
    Dataset, Loader, LoaderConfig, LoaderNote, Part, Replacement, Sampler, Samples, Shard, Shuffle,
    Subset, Tail, Work,
};

use crate::memory::{bmp, bmps, config, dataset, pixels, train};

fn refused(dataset: Dataset, config: LoaderConfig) -> String {
    Loader::new(dataset, config).map(drop).unwrap_err().to_string()
}

fn write_image(path: &Path) {
    let (width, height, pixels) = pixels(1);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bmp(width, height, &pixels)).unwrap();
}

#[test]
fn a_data_set_without_samples_is_refused_with_what_was_looked_for() {
    let root = tempfile::tempdir().unwrap();
    let (empty, hidden) = (root.path().join("empty"), root.path().join("hidden"));
    fs::create_dir(&empty).unwrap();
    fs::create_dir_all(hidden.join("cats")).unwrap();
    fs::write(hidden.join("cats/.DS_Store"), b"no image").unwrap();
    let (tar, one) = (root.path().join("a.tar"), root.path().join("one/1.bmp"));
    fs::write(&tar, [0; 1024]).unwrap();
    write_image(&one);
    let open = |paths: &[&Path]| Dataset::open(paths).unwrap();
    for (paths, expected) in [
        (&[&*empty][..], "empty: no images found in this folder or the folders in it"),
        (&[&*hidden], "hidden: no images found in this folder or the folders in it"),
        (&[&*tar], "a.tar: the archive has no samples, expected members such as NAME.jpg"),
        (&[&*tar, &*empty], "; one other source has none either"),
    ] {
        assert!(open(paths).is_empty());
        for work in [train(), Work::Bytes] {
            let message = refused(open(paths), config(work));
            assert!(message.contains(expected), "{message}");
        }
    }
    let message = refused(dataset(Vec::new()), config(Work::Bytes));
    assert!(message.starts_with("in memory: no images found"), "{message}");
    // One that has samples is enough.
    let some = open(&[&tar, one.parent().unwrap(), &empty]);
    assert_eq!(Loader::new(some, config(Work::Bytes)).unwrap().len(), 1);
}

#[test]
fn a_data_set_without_an_image_is_refused_where_images_are_decoded() {
    let root = tempfile::tempdir().unwrap();
    let texts = root.path().join("texts");
    fs::create_dir(&texts).unwrap();
    (0..100).for_each(|number| fs::write(texts.join(format!("{number:03}.txt")), b"x").unwrap());
    let open = || Dataset::open(&[&texts]).unwrap();
    let message = refused(open(), config(train()));
    let expected = "texts: none of 100 samples is an image, the first is 000.txt; expected files \
                    such as NAME.jpg, .png or .webp; samples that are not images can be loaded as \
                    bytes";
    assert!(message.ends_with(expected), "{message}");
    assert_eq!(Loader::new(open(), config(Work::Bytes)).unwrap().len(), 25);
    // Names need not tell, and one image is enough.
    write_image(&texts.join("010"));
    assert!(Loader::new(open(), config(train())).is_ok());
    fs::remove_file(texts.join("010")).unwrap();
    // A damaged image has its name left, and is an error when it is read.
    let named = root.path().join("named.tbl");
    let mut writer = StreamWriter::create(&named, WriteOptions::default()).unwrap();
    let sample = NewSample { key: Some(b"a.jpg"), ..NewSample::new(b"no image") };
    writer.write_sample(&sample).unwrap();
    writer.finish().unwrap();
    assert!(Loader::new(Dataset::open(&[&named]).unwrap(), config(train())).is_ok());
    write_image(&texts.join("999.bmp"));
    fs::write(texts.join("999.txt"), b"x").unwrap();
    assert!(Loader::new(open(), config(train())).is_ok());
}

#[test]
fn images_that_are_not_decoded_are_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("1.heic"), b"\0\0\0\x18ftypheic\0\0\0\0mif1heic").unwrap();
    let loader = Loader::new(Dataset::open(&[root.path()]).unwrap(), config(train())).unwrap();
    let message = loader.epoch(0).next().unwrap().unwrap_err().to_string();
    let expected = "unsupported: HEIC images: convert them to JPEG, PNG or WebP";
    assert!(message.contains("1.heic") && message.contains(expected), "{message}");
}

#[test]
fn a_folder_of_archives_is_refused_with_their_pattern() {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"x").unwrap();
    };
    for name in [
        "tars/0.tar",
        "tars/1.tar",
        "tars/README.md",
        "below/a/0.tar",
        "below/a/1.tar",
        "spread/a/0.tbl",
        "spread/b/0.tbl",
        "one/0.tar",
        "indexed/0.tar",
        "indexed/1.tar",
        "indexed/all.tlidx",
        "texts/0.txt",
        "mixed/0.tar",
    ] {
        write(name);
    }
    for (folder, expected) in [
        ("tars", Some(("2 TAR archives", "*.tar"))),
        ("below", Some(("2 TAR archives", "a/*.tar"))),
        ("spread", Some(("2 TBL files", "**/*.tbl"))),
        ("one", Some(("1 TAR archive", "0.tar"))),
        ("indexed", Some(("1 shard index", "all.tlidx"))),
        ("texts", None),
    ] {
        let folder = root.path().join(folder);
        let message = refused(Dataset::open(&[&folder]).unwrap(), config(train()));
        let folder = folder.display();
        match expected {
            Some((what, pattern)) => assert_eq!(
                message,
                format!(
                    "{folder}: this folder has no images but {what}: pass '{folder}/{pattern}'"
                )
            ),
            None => assert!(message.contains("none of 1 samples is an image"), "{message}"),
        }
    }
    // An archive among images is passed over.
    let mixed = root.path().join("mixed");
    write_image(&mixed.join("1.bmp"));
    assert!(Loader::new(Dataset::open(&[&mixed]).unwrap(), config(train())).is_ok());
}

#[test]
fn a_sampler_that_selects_nothing_is_refused() {
    let subset = |subset: Subset| Samples::Subset(subset);
    let parts = Vec::<Part>::new();
    for samples in [
        subset((3..3).into()),
        subset(Subset::List(Vec::new())),
        Samples::Mix { parts, length: tl_pipeline::Length::Samples, stages: vec![] },
        Samples::Weighted {
            weights: vec![0u32; 9].into(),
            replacement: Replacement::Without,
            count: None,
        },
    ] {
        let sampler = Sampler { samples, ..Shuffle::Full.into() };
        let message = refused(bmps(9), LoaderConfig { sampler, ..config(Work::Bytes) });
        assert_eq!(message, "the sampler selects none of 9 samples");
    }
}

#[test]
fn fewer_samples_than_a_global_batch_cannot_all_be_dropped() {
    let sharded = |rank, world, tail| {
        let shard = Shard { rank, world, tail: Some(tail) };
        LoaderConfig { shard, ..config(Work::Bytes) }
    };
    for rank in 0..2 {
        let message = refused(bmps(7), sharded(rank, 2, Tail::Drop));
        assert!(message.starts_with("7 samples do not fill one global batch of 8"), "{message}");
    }
    assert!(refused(bmps(3), sharded(0, 1, Tail::Drop)).contains("lower batch_size"));
    let batches =
        |rank, tail| Loader::new(bmps(3), sharded(rank, 2, tail)).unwrap().epoch(0).count();
    assert_eq!([0, 1].map(|rank| batches(rank, Tail::Pad)), [1, 1]);
    // The other rank has the only batch.
    assert_eq!([0, 1].map(|rank| batches(rank, Tail::Uneven)), [1, 0]);
}

#[test]
fn class_folders_with_the_names_of_splits_are_noted() {
    for (folders, is_noted) in [
        (&["train", "val"][..], true),
        (&["Train", "Test", "valid"], true),
        (&["images", "masks"], true),
        (&["train", "plane"], false),
        (&["train", "images"], false),
        (&["ant", "bee"], false),
    ] {
        let root = tempfile::tempdir().unwrap();
        for folder in folders {
            write_image(&root.path().join(folder).join("1.bmp"));
        }
        let dataset = Dataset::open(&[root.path()]).unwrap();
        let notes = Loader::new(dataset, config(train())).unwrap().notes();
        match &notes[..] {
            [LoaderNote::Labels { note: note @ Note::FoldersLikeSplits { names } }] => {
                assert!(is_noted && names.len() == folders.len(), "{note}");
                assert!(note.to_string().contains("look like parts of a data set"), "{note}");
            }
            notes => assert!(notes.is_empty() && !is_noted, "{folders:?}: {notes:?}"),
        }
    }
}
