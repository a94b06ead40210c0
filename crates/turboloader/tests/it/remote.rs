//! Data sets in stores, over sockets of this machine.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tbl_io::{AsStored, Compression, ConvertOptions, Labels, Selection, Stores, Target};
use tl_pipeline::{Deal, Shard, Tail};
use tl_store_server::{Dialect, Fault, Faults, Service, Serving, serve};
use turboloader::{
    Blocks, Dataset, Loader, LoaderConfig, OnError, PipelineError, Recipe, RemoteStores, Shuffle,
    StoreOptions, Work,
};

/// The secret of all stores, which no message may have.
const SECRET: &str = "planted-secret";

/// The photographs as a folder, a TAR archive, and TBL files, in this folder. Those of a folder have
/// a final slash.
fn containers(root: &Path) -> [&'static str; 4] {
    let photos = tl_testdata::shipped!("photos");
    // More than the first bytes that come when an object is opened.
    for class in ["a", "b", "c", "d"] {
        copy(&photos, &root.join("folder").join(class));
    }
    let sources = [tbl_io::open(root.join("folder")).unwrap()];
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let v2 = Target::Tbl2(Compression::None);
    for (name, target) in [("a.tar", Target::Tar), ("v1.tbl", Target::Tbl1), ("v2.tbl", v2)] {
        let options = ConvertOptions { sync: false, ..ConvertOptions::new(target) };
        let mut on_event = |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
        let to = root.join(name);
        tbl_io::convert(&selection, &to, &options, AsStored::default, &mut on_event).unwrap();
    }
    ["folder/", "a.tar", "v1.tbl", "v2.tbl"]
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.path().extension().is_some_and(|extension| extension == "jpg") {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A service with the files of a folder in the bucket `b`, on a port.
pub(crate) fn served(root: &Path, dialect: Dialect, change: impl FnOnce(&mut Service)) -> Server {
    let mut service = Service::new(dialect);
    service.objects.put_folder("b", root).unwrap();
    change(&mut service);
    let service = Arc::new(service);
    Server { serving: serve(Arc::clone(&service), 0).unwrap(), service }
}

pub(crate) struct Server {
    serving: Serving,
    pub(crate) service: Arc<Service>,
}

impl Server {
    pub(crate) fn stores(&self) -> RemoteStores {
        self.stores_with(StoreOptions::default())
    }

    /// The stores with these settings.
    pub(crate) fn stores_with(&self, mut options: StoreOptions) -> RemoteStores {
        let endpoint = self.serving.endpoint();
        let given: &[(&str, &str)] = match self.service.dialect {
            Dialect::S3 => &[("access_key_id", "dummy"), ("secret_access_key", SECRET)],
            Dialect::Gcs => &[("bearer_token", SECRET)],
            Dialect::Azure => &[("account_name", "dummy"), ("access_key", "cGxhbnRlZC1zZWNyZXQ=")],
            Dialect::Hub => &[("token", SECRET)],
            Dialect::Http | _ => &[],
        };
        let given = given.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        options.options.extend(given);
        if self.service.dialect != Dialect::Http {
            options.options.insert("endpoint".to_owned(), endpoint);
        }
        RemoteStores::new(options)
    }

    pub(crate) fn url(&self, name: &str) -> String {
        match self.service.dialect {
            Dialect::S3 => format!("s3://b/{name}"),
            Dialect::Gcs => format!("gs://b/{name}"),
            Dialect::Azure => format!("az://b/{name}"),
            Dialect::Hub => format!("hf://datasets/o/b/{name}"),
            Dialect::Http | _ => format!("{}/b/{name}", self.serving.endpoint()),
        }
    }

    fn open(&self, name: &str) -> Result<Dataset, PipelineError> {
        Dataset::open_in(&self.stores().add_to(Stores::new()), &[self.url(name)])
    }
}

pub(crate) fn config(work: Work) -> LoaderConfig {
    let sampler = Shuffle::Full.into();
    LoaderConfig { batch_size: 4, seed: 5, workers: 2, sampler, ..LoaderConfig::new(work) }
}

fn train() -> Work {
    Work::Images(Recipe::imagenet_train(32).unwrap())
}

/// Everything that the rest of an epoch has, row by row: index, label, bytes or pixels.
pub(crate) fn rows(epoch: turboloader::Epoch) -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    for batch in epoch {
        let batch = batch.unwrap();
        let pixels = batch.images().len() / batch.len();
        for row in 0..batch.len() {
            let mut bytes = batch.indices()[row].to_le_bytes().to_vec();
            bytes.extend_from_slice(&batch.labels()[row].to_le_bytes());
            bytes.extend_from_slice(&batch.images()[row * pixels..][..pixels]);
            bytes.extend_from_slice(batch.sample(row).map_or(&[], |sample| sample.bytes));
            rows.push(bytes);
        }
    }
    rows
}

/// A store that fails now and then gives the rows of the same files on disk, in every container and
/// order.
fn check_faulty_store(dialect: Dialect) {
    let root = tempfile::tempdir().unwrap();
    let names = containers(root.path());
    let server = served(root.path(), dialect, |service| {
        service.speed.rate = 200e6;
        let chances = vec![
            (Fault::SlowDown, 0.01),
            (Fault::Reset, 0.02),
            (Fault::Short, 0.01),
            (Fault::Stall, 0.002),
        ];
        service.faults = Faults::Random { seed: 7, chances };
    });
    for name in names {
        if dialect == Dialect::Http && name.ends_with('/') {
            continue;
        }
        let local = || Dataset::open(&[root.path().join(name)]).unwrap();
        let remote = || server.open(name).unwrap();
        assert_eq!(local().fingerprint().unwrap(), remote().fingerprint().unwrap(), "{name}");
        let lanes =
            Shuffle::Lanes { lanes: 2, blocks: Blocks::Samples(3), window: 2, deal: Deal::Epoch };
        let block = Shuffle::Block { blocks: Blocks::Samples(3), window: 2 };
        let mut works = vec![(Work::Bytes, Shuffle::Full), (Work::Bytes, block)];
        // Dialects differ in how objects are asked for, not in which; decoding differs in none.
        if dialect == Dialect::S3 {
            works.extend([(Work::Bytes, Shuffle::None), (Work::Bytes, lanes)]);
            works.extend((name == "v2.tbl").then(|| (train(), block)));
        }
        for (work, shuffle) in works {
            let config = || LoaderConfig { sampler: shuffle.into(), ..config(work.clone()) };
            let local = Loader::new(local(), config()).unwrap();
            let remote = Loader::new(remote(), config()).unwrap();
            let expected = rows(local.epoch(1));
            assert_eq!(expected.len() as u64, local.dataset().len());
            assert!(rows(remote.epoch(1)) == expected, "{dialect:?} {name}");
        }
    }
}

#[test]
fn a_faulty_s3_makes_the_batches_of_local_files() {
    check_faulty_store(Dialect::S3);
}

#[test]
fn a_faulty_google_store_makes_the_batches_of_local_files() {
    check_faulty_store(Dialect::Gcs);
}

#[test]
fn a_faulty_azure_store_makes_the_batches_of_local_files() {
    check_faulty_store(Dialect::Azure);
}

#[test]
fn a_faulty_hub_makes_the_batches_of_local_files() {
    check_faulty_store(Dialect::Hub);
}

#[test]
fn a_faulty_web_server_makes_the_batches_of_local_files() {
    check_faulty_store(Dialect::Http);
}

#[test]
fn runs_move_between_files_and_stores() {
    let root = tempfile::tempdir().unwrap();
    containers(root.path());
    let server = served(root.path(), Dialect::S3, |_| {});
    let loader = |is_remote: bool, world: u32, rank: u32| {
        let dataset = match is_remote {
            true => server.open("v2.tbl").unwrap(),
            false => Dataset::open(&[root.path().join("v2.tbl")]).unwrap(),
        };
        let shard = Shard { rank, world, tail: Some(Tail::Uneven) };
        let batch_size = 4 / world as usize;
        Loader::new(dataset, LoaderConfig { shard, batch_size, ..config(Work::Bytes) }).unwrap()
    };
    let whole = rows(loader(false, 1, 0).epoch(0));
    for (from, to) in [(false, true), (true, false), (true, true)] {
        let first = loader(from, 1, 0);
        let mut epoch = first.epoch(0);
        epoch.next().unwrap().unwrap();
        let state = epoch.state().unwrap();
        drop(epoch);
        let mut rest: Vec<_> =
            (0..2).flat_map(|rank| rows(loader(to, 2, rank).resume(&state).unwrap())).collect();
        let mut expected = whole[4..].to_vec();
        rest.sort();
        expected.sort();
        assert!(rest == expected, "{from} to {to}");
    }
}

#[test]
fn patterns_are_the_objects_that_match_in_order() {
    let root = tempfile::tempdir().unwrap();
    containers(root.path());
    let folder = root.path().join("deep/er");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(root.path().join("v1.tbl"), folder.join("x.tbl")).unwrap();
    for dialect in [Dialect::S3, Dialect::Gcs, Dialect::Azure, Dialect::Hub] {
        let server = served(root.path(), dialect, |_| {});
        for (pattern, names) in [
            ("v*.tbl", &["v1.tbl", "v2.tbl"][..]),
            ("*.t*", &["a.tar", "v1.tbl", "v2.tbl"]),
            ("**/*.tbl", &["deep/er/x.tbl", "v1.tbl", "v2.tbl"]),
            ("deep/*/x.tbl", &["deep/er/x.tbl"]),
        ] {
            let dataset = server.open(pattern).unwrap();
            let found: Vec<_> = dataset.shards().iter().map(|shard| shard.location()).collect();
            let expected: Vec<_> = names.iter().map(|name| server.url(name)).collect();
            let found: Vec<_> = found.iter().filter_map(|location| location.url()).collect();
            assert_eq!(found, expected, "{dialect:?} {pattern}");
        }
        let error = server.open("deep/*.tbl").unwrap_err().to_string();
        let url = server.url("deep/*.tbl");
        assert_eq!(error, format!("{url}: no object matches this pattern"));
        let error = server.open("a**.tbl").unwrap_err().to_string();
        assert!(error.starts_with(&server.url("a**.tbl")), "{error}");
    }
}

#[test]
fn a_server_that_stalls_holds_nobody_up() {
    let root = tempfile::tempdir().unwrap();
    containers(root.path());
    let server = served(root.path(), Dialect::S3, |service| {
        service.faults = Faults::Numbered { fault: Fault::Stall, first: 1, count: u64::MAX };
    });
    // Version 1 is opened with one request.
    let loader = Loader::new(server.open("v1.tbl").unwrap(), config(Work::Bytes)).unwrap();
    let mut epoch = loader.epoch(0);
    let waited = epoch.next_timeout(Duration::from_millis(100)).unwrap();
    assert!(matches!(waited, Err(PipelineError::TimedOut { .. })));
    let begun = Instant::now();
    drop(epoch);
    drop(loader);
    // The target is a second; this only tells an answer from a hang.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// The message of a data set that cannot be opened.
fn refused(stores: &RemoteStores, url: &str) -> String {
    let opened = Dataset::open_in(&stores.add_to(Stores::new()), &[url]);
    let message = opened.unwrap_err().to_string();
    assert!(!message.contains(SECRET) && !message.contains("ignature"), "{message}");
    message
}

/// The stores of a server, with its options and then this one.
fn stores_with(server: &Server, name: &str, value: &str) -> RemoteStores {
    let mut options = StoreOptions::default();
    let endpoint = server.serving.endpoint();
    let given = [
        ("endpoint", endpoint.as_str()),
        ("access_key_id", "dummy"),
        ("secret_access_key", SECRET),
        (name, value),
    ];
    options.options.extend(given.map(|(name, value)| (name.to_owned(), value.to_owned())));
    RemoteStores::new(options)
}

#[test]
fn an_option_that_cannot_be_used_is_named() {
    let root = tempfile::tempdir().unwrap();
    let server = served(root.path(), Dialect::S3, |_| {});
    for (name, value, expected) in [
        (
            "regoin",
            "eu-west-1",
            "unknown option \"regoin\" for S3: expected region, endpoint, access_key_id, \
             secret_access_key, token, anonymous, allow_http, ca_certificate, credentials, unpinned",
        ),
        (
            "secret_access_key",
            "",
            "missing option \"secret_access_key\" for S3: a key has an ID and a secret",
        ),
        (
            "endpoint",
            "http://169.254.169.254",
            "the endpoint http://169.254.169.254 is an address of the local link, where no store \
             can be",
        ),
        (
            "endpoint",
            "http://store.example",
            "the endpoint http://store.example is not encrypted: expected https:// or \
             allow_http=true",
        ),
    ] {
        let message = refused(&stores_with(&server, name, value), "s3://b/v2.tbl");
        assert_eq!(message, format!("s3://b/v2.tbl: {expected}"));
    }
}

#[test]
fn messages_name_the_object_and_no_secret() {
    let root = tempfile::tempdir().unwrap();
    containers(root.path());
    let server = served(root.path(), Dialect::S3, |service| service.key = Some("dummy".to_owned()));
    let good = server.stores();
    let cases = [
        (&good, "s3://b/none.tbl", "s3://b/none.tbl: no such object (status 404 NoSuchKey)"),
        (
            &good,
            "s3://b/folder",
            "s3://b/folder: no such object (status 404 NoSuchKey); the URL of a folder ends with a \
             slash",
        ),
        (&good, "s3://b/nothing/", "s3://b/nothing/: no object below it"),
        (&good, "s3://c/v2.tbl", "s3://c/v2.tbl: no such bucket (status 404 NoSuchBucket)"),
        (&good, "s3://c/", "s3://c/: no such bucket (status 404 NoSuchBucket)"),
        (
            &stores_with(&server, "access_key_id", "wrong"),
            "s3://b/v2.tbl",
            "s3://b/v2.tbl: status 403 InvalidAccessKeyId, 1 try in 0.0 s",
        ),
        (
            &good,
            "https://me:planted-secret@host/a.tar",
            "https://host/a.tar: the URL has a user or a password, expected credentials as options \
             of the store",
        ),
    ];
    for (stores, url, expected) in cases {
        assert_eq!(refused(stores, url), expected);
    }
    let nobody = stores_with(&server, "endpoint", "http://127.0.0.1:9");
    let message = refused(&nobody, "s3://b/v2.tbl");
    let expected =
        "s3://b/v2.tbl: http://127.0.0.1:9: Connection refused (os error 111), 4 tries in";
    assert!(message.starts_with(expected), "{message}");
    assert!(!format!("{good:?}").contains(SECRET));

    let loader = Loader::new(
        server.open("v2.tbl").unwrap(),
        LoaderConfig { on_error: OnError::Skip, ..config(Work::Bytes) },
    );
    let other = fs::read(root.path().join("v1.tbl")).unwrap();
    server.service.objects.put("b/v2.tbl", other);
    let error = loader.unwrap().epoch(0).find_map(Result::err).unwrap().to_string();
    assert!(error.starts_with("s3://b/v2.tbl: sample "), "{error}");
    assert!(
        error.contains("the object was replaced while it was open: expected version `"),
        "{error}"
    );
}
