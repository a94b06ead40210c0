//! Objects that are written to stores, and requests of them that fail.

use tbl_io::Upload;

use super::*;
use crate::upload::StoreUpload;

/// The stores with buckets, and a URL in each.
const WRITABLE: [(Dialect, &str); 3] =
    [(Dialect::S3, "s3://b/a/k"), (Dialect::Gcs, "gs://b/a/k"), (Dialect::Azure, "az://b/a/k")];
/// The time that a request may take in these tests, which run in real time.
const SHORT: Duration = Duration::from_millis(400);
/// The length of a part.
const PART: u64 = 1_000;
/// Bytes in front of the object that are written last: one part and the half of one.
const FRONT: usize = 1_500;

fn service(dialect: Dialect, faults: Faults) -> Arc<Service> {
    let mut service = Service::new(dialect);
    service.least_part = 0;
    service.faults = faults;
    Arc::new(service)
}

fn remote(service: &Arc<Service>) -> RemoteStores {
    remote_within(service, SHORT)
}

fn remote_within(service: &Arc<Service>, deadline: Duration) -> RemoteStores {
    let net = Arc::new(Net::new(Arc::new(InMemory(Arc::clone(service)))).unwrap());
    let options = options(service.dialect);
    let options = StoreOptions { options, deadline, ..StoreOptions::default() };
    RemoteStores::over(options, Some(net))
}

fn start(stores: &RemoteStores, url: &str, overwrite: bool) -> io::Result<Box<StoreUpload>> {
    match stores.create_object(&Location::new(url), overwrite) {
        Ok(upload) => Ok(Box::new(upload.with_parts_of(PART))),
        Err(store::Refusal::Io(error)) => Err(error),
        Err(store::Refusal::Fault(fault)) => Err(io::Error::other(fault)),
    }
}

/// Writes an object as writers of TBL files do: the front comes last.
fn write(mut upload: Box<StoreUpload>, object: &[u8]) -> io::Result<()> {
    let front = FRONT.min(object.len());
    upload.skip_to(front as u64)?;
    for piece in object[front..].chunks(333) {
        upload.write(piece)?;
    }
    let half = front / 2;
    upload.write_at(half as u64, &object[half..front])?;
    upload.write_at(0, &object[..half])?;
    upload.finish()
}

fn upload(service: &Arc<Service>, url: &str, overwrite: bool, object: &[u8]) -> io::Result<()> {
    write(start(&remote(service), url, overwrite)?, object)
}

fn stored(service: &Arc<Service>) -> Option<Bytes> {
    service.objects.content("b/a/k")
}

#[test]
fn objects_of_any_length_are_written() {
    for (dialect, url) in WRITABLE {
        for len in [0, 1, 999, 1_000, 1_001, 1_499, 1_501, 3_000, 9_999] {
            let service = service(dialect, Faults::None);
            let object = content(len);
            upload(&service, url, false, &object).unwrap();
            assert_eq!(stored(&service), Some(object), "{url}: {len} bytes");
            assert_eq!(service.pending_uploads(), []);
        }
    }
}

#[test]
fn an_object_in_s3_is_whole_or_absent_whatever_request_fails() {
    sweep(Dialect::S3, "s3://b/a/k");
}

#[test]
fn an_object_in_gcs_is_whole_or_absent_whatever_request_fails() {
    sweep(Dialect::Gcs, "gs://b/a/k");
}

#[test]
fn an_object_in_azure_is_whole_or_absent_whatever_request_fails() {
    sweep(Dialect::Azure, "az://b/a/k");
}

/// Writes an object of seven parts once for every request of it and every fault that this may have.
fn sweep(dialect: Dialect, url: &str) {
    let object = content(6_200);
    let healthy = service(dialect, Faults::None);
    let stores = remote(&healthy);
    write(start(&stores, url, false).unwrap(), &object).unwrap();
    let stats = stores.stats();
    let requests = stats.heads + stats.puts;
    assert!(requests >= 10, "{requests} requests");
    for first in 0..requests {
        for (fault, count) in [
            (Fault::SlowDown, 1),
            (Fault::SlowDown, u64::MAX),
            (Fault::Forbidden, 1),
            (Fault::Lost, 1),
            (Fault::Silence, 1),
        ] {
            let service = service(dialect, Faults::Numbered { fault, first, count });
            let written = upload(&service, url, false, &object);
            let is_whole = stored(&service) == Some(object.clone());
            let told = written.as_ref().map_err(ToString::to_string);
            let place = format!("{url}: {fault:?} {count} at request {first}: {told:?}");
            assert!(!place.contains(SECRET), "{place}");
            // An answer that gets lost may be the identity of an upload, which has no parts then.
            let has_parts = service.pending_uploads().iter().any(|upload| upload.parts > 0);
            // A store that refuses all requests refuses the one that ends the upload, and Azure's blocks
            // go by themselves.
            let may_be_left = count > 1 || dialect == Dialect::Azure;
            assert!(may_be_left || !has_parts, "{place}");
            // The last request reads back the length of the object.
            if written.is_ok() || first + 1 == requests {
                assert!(is_whole, "{place}");
                continue;
            }
            // Whether the object was made is known by its tag, which S3 alone has of its content.
            if place.contains("the object may be there") {
                assert!(count > 1 || dialect != Dialect::S3 && first + 2 == requests, "{place}");
                continue;
            }
            // Requests that ask for the object wait as long as all may take.
            let asks = first == 0 || first + 3 == requests;
            let may_fail = count > 1 || asks && fault == Fault::Silence;
            assert!(fault == Fault::Forbidden || may_fail, "{place}");
            assert_eq!(stored(&service), None, "{place}");
        }
    }
}

#[test]
fn an_existing_object_is_replaced_only_where_that_is_asked_for() {
    for (dialect, url) in WRITABLE {
        for len in [100, 5_000] {
            let service = service(dialect, Faults::None);
            service.objects.put("b/a/k", &b"earlier"[..]);
            let object = content(len);
            let refused = upload(&service, url, false, &object).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(stored(&service).as_deref(), Some(&b"earlier"[..]));
            assert_eq!(service.counts().puts, 0, "nothing is sent");
            upload(&service, url, true, &object).unwrap();
            assert_eq!(stored(&service), Some(object));
        }
    }
}

#[test]
fn an_object_that_appears_meanwhile_is_not_replaced() {
    for (dialect, url) in WRITABLE {
        for len in [100, 5_000] {
            let service = service(dialect, Faults::None);
            let started = start(&remote(&service), url, false).unwrap();
            service.objects.put("b/a/k", &b"theirs"[..]);
            let written = write(started, &content(len));
            let refused = written.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{url}: {refused}");
            assert_eq!(stored(&service).as_deref(), Some(&b"theirs"[..]));
            // Azure's blocks go by themselves.
            let is_clean = service.pending_uploads().is_empty();
            assert!(is_clean || dialect == Dialect::Azure);
        }
    }
}

#[test]
fn an_upload_that_is_dropped_is_ended() {
    let service = service(Dialect::S3, Faults::None);
    let mut upload = start(&remote(&service), "s3://b/a/k", false).unwrap();
    upload.write(&content(3_500)).unwrap();
    assert_eq!(service.pending_uploads().len(), 1);
    drop(upload);
    assert_eq!((stored(&service), service.pending_uploads()), (None, vec![]));
}

#[test]
fn an_interrupted_writer_ends_the_upload() {
    let faults = Faults::Numbered { fault: Fault::Silence, first: 3, count: 1 };
    let service = service(Dialect::S3, faults);
    let begun = std::time::Instant::now();
    let is_over = move || begun.elapsed() > Duration::from_millis(50);
    let url = "s3://b/a/k";
    let written = tbl_io::interruptible(is_over, || upload(&service, url, false, &content(9_000)));
    assert!(written.is_err());
    assert_eq!((stored(&service), service.pending_uploads()), (None, vec![]));
}

#[test]
fn an_interruption_leaves_no_parts_while_the_identity_is_on_its_way() {
    for fault in [Fault::Lost, Fault::Silence] {
        let service = service(Dialect::S3, Faults::Numbered { fault, first: 1, count: 1 });
        let mut upload = start(&remote(&service), "s3://b/a/k", false).unwrap();
        // It fails at the first answer that is waited for.
        drop(tbl_io::interruptible(|| true, || upload.write(&content(9_000))));
        drop(upload);
        assert_eq!(stored(&service), None);
        assert!(service.pending_uploads().iter().all(|upload| upload.parts == 0), "{fault:?}");
    }
}

#[test]
fn uploads_of_other_writers_stay_when_an_identity_gets_lost() {
    // The first writer's upload is begun twice, and another writer begins one of the same object.
    let faults = Faults::Numbered { fault: Fault::Lost, first: 1, count: 1 };
    let service = service(Dialect::S3, faults);
    let stores = remote(&service);
    let object = content(5_000);
    let mut one = start(&stores, "s3://b/a/k", true).unwrap();
    one.write(&object).unwrap();
    let other = start(&stores, "s3://b/a/k", true).unwrap();
    let mut begun = start(&stores, "s3://b/a/k", true).unwrap();
    begun.write(&object[..2_000]).unwrap();
    one.finish().unwrap();
    write(other, &object).unwrap();
    begun.write(&object[2_000..]).unwrap();
    begun.finish().unwrap();
    assert_eq!(stored(&service), Some(object));
    let left: Vec<_> = service.pending_uploads().iter().map(|upload| upload.parts).collect();
    assert_eq!(left, [0]);
}

#[test]
fn an_upload_that_cannot_be_ended_is_named() {
    let faults = Faults::Numbered { fault: Fault::Forbidden, first: 2, count: u64::MAX };
    let service = service(Dialect::S3, faults);
    let error = upload(&service, "s3://b/a/k", false, &content(9_000)).unwrap_err().to_string();
    assert!(error.starts_with("status 403 AccessDenied, 1 try in "), "{error}");
    let left = "; the upload \"upload/1+=\" could not be ended, and its parts are kept and paid for: \
                end it with `tl rm --uploads`";
    assert!(error.ends_with(left), "{error}");
}

#[test]
fn an_object_of_another_writer_is_not_taken_for_ones_own() {
    let mut service = Service::new(Dialect::S3);
    service.least_part = 0;
    service.completes_nothing = true;
    let service = Arc::new(service);
    let started = start(&remote(&service), "s3://b/a/k", true).unwrap();
    let object = content(5_000);
    let theirs: Bytes = object.iter().map(|byte| !byte).collect();
    service.objects.put("b/a/k", theirs.clone());
    let error = write(started, &object).unwrap_err();
    assert!(error.to_string().starts_with("status 503 SlowDown"), "{error}");
    assert!(error.to_string().contains("the object may be there"), "{error}");
    assert_eq!((stored(&service), service.pending_uploads()), (Some(theirs), vec![]));
}

#[test]
fn a_lost_answer_leaves_a_small_object_to_its_writer() {
    // The answer to the only PUT is lost, and its repetition finds an object in the way.
    for (dialect, url) in WRITABLE {
        let service = service(dialect, Faults::Numbered { fault: Fault::Lost, first: 1, count: 1 });
        let object = content(900);
        let written = upload(&service, url, false, &object);
        assert_eq!(stored(&service), Some(object));
        match (dialect, written) {
            (Dialect::S3, written) => written.unwrap(),
            (_, written) => {
                let error = written.unwrap_err().to_string();
                assert!(error.contains("the object may be there"), "{url}: {error}");
            }
        }
    }
}

#[test]
fn memory_does_not_grow_with_the_object() {
    let mut service = Service::new(Dialect::S3);
    service.speed.first_byte = Duration::from_millis(5);
    let service = Arc::new(service);
    let stores = remote_within(&service, DEADLINE);
    let mut upload = stores.create_object(&Location::new("s3://b/a/k"), false).unwrap();
    let piece = content(1 << 20);
    let mut most = 0;
    upload.skip_to(100).unwrap();
    for _ in 0..200 {
        upload.write(&piece).unwrap();
        most = most.max(upload.held());
    }
    upload.write_at(0, &piece[..100]).unwrap();
    Box::new(upload).finish().unwrap();
    assert!(most <= 50 << 20, "{most} bytes");
    assert_eq!(stored(&service).map(|object| object.len()), Some((200 << 20) + 100));
    // HEAD, begin, 41 parts, HEAD, complete, HEAD.
    assert_eq!((stores.stats().heads, stores.stats().puts), (3, 43));
}

#[test]
fn other_places_are_refused_by_name() {
    let stores = remote(&service(Dialect::S3, Faults::None)).add_to(Stores::new());
    let placement = tbl_io::Placement { overwrite: false, sync: false };
    let refused = |url: &str| {
        let refused = stores.create(&Location::new(url), placement).unwrap_err().to_string();
        assert!(!refused.contains(SECRET), "{refused}");
        refused
    };
    for (url, expected) in [
        (
            "https://store.test/k?sig=planted-secret",
            "https://store.test/k?...: web servers are only read, expected s3://, gs:// or az://",
        ),
        (
            "hf://datasets/o/n/k",
            "hf://datasets/o/n/k: the hub is only read; upload a local file, with `hf upload`",
        ),
        (
            "s3://b/k?versionId=1",
            "s3://b/k?versionId=1: a new object has a version of its own, expected none",
        ),
        ("s3://b/a/", "s3://b/a/: the URL has no key, expected SCHEME://BUCKET/KEY"),
        (
            "ftp://h/k",
            "ftp://h/k: no store for this URL, expected a path or the URL of one of: abfs, abfss, az, \
             gs, hf, http, https, s3",
        ),
    ] {
        assert_eq!(refused(url), expected);
    }
}

#[test]
fn uploads_that_were_left_are_listed_and_ended() {
    let mut service = Service::new(Dialect::S3);
    service.uploads_per_page = 2;
    let service = Arc::new(service);
    let stores = remote(&service);
    // A process that is killed drops nothing.
    for url in ["s3://b/a/k 1", "s3://b/a/k&2", "s3://b/other"] {
        let mut upload = start(&stores, url, false).unwrap();
        upload.write(&content(3_500)).unwrap();
        std::mem::forget(upload);
    }
    service.objects.put("b/a/k&2", &b"earlier"[..]);
    let listed = |prefix: &str| stores.pending_uploads(&Location::new(prefix)).unwrap();
    let names = |prefix: &str| {
        let names = listed(prefix).into_iter().map(|upload| upload.object.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("s3://b/a/"), ["s3://b/a/k 1", "s3://b/a/k&2"]);
    assert_eq!(names("s3://b"), ["s3://b/a/k 1", "s3://b/a/k&2", "s3://b/other"]);
    let begun = listed("s3://b")[0].begun.unwrap();
    let since = begun.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(since.as_secs(), 1_640_995_200);
    // By the clock of the store, which is years behind that of this machine.
    assert_eq!(listed("s3://b")[0].age, Some(Duration::from_secs(2)));
    for upload in listed("s3://b/a/k") {
        stores.end_upload(&upload).unwrap();
        stores.end_upload(&upload).unwrap();
    }
    assert_eq!(names("s3://b"), ["s3://b/other"]);
    assert!(service.objects.content("b/a/k&2").is_some(), "no object is removed");
    for (url, expected) in [
        (
            "gs://b/k",
            "gs://b/k: uploads of Google Cloud Storage are not listed here; a lifecycle rule",
        ),
        (
            "az://b/k",
            "az://b/k: Azure removes the blocks of uploads that are not complete after a week",
        ),
        ("https://h/k?sig=planted-secret", "https://h/k?...: only buckets have uploads"),
    ] {
        let text = stores.pending_uploads(&Location::new(url)).unwrap_err().to_string();
        assert!(text.starts_with(expected) && !text.contains(SECRET), "{text}");
    }
}
