//! Listings that cannot be used.

use http_body_util::{BodyExt, Full};

use super::*;
use crate::list::objects;

const STORES: [Dialect; 3] = [Dialect::S3, Dialect::Gcs, Dialect::Azure];

/// Answers every request with the same text.
#[derive(Debug)]
struct Text(&'static str);

#[async_trait]
impl Transport for Text {
    async fn send(&self, _: http::Request<Bytes>, _: usize) -> io::Result<Answer> {
        let body = Full::new(Bytes::from_static(self.0.as_bytes()));
        Ok(http::Response::new(body.map_err(|never| match never {}).boxed()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_cannot_be_requested_is_named() {
    for dialect in STORES {
        let service = Arc::new(Service::new(dialect));
        for key in ["b/train/0.jpg", "b/train//1.jpg", "b/train/2.jpg"] {
            service.objects.put(key, content(10));
        }
        let (bucket, ..) = bucket(&service);
        let fault = objects(bucket, "train/".to_owned()).await.unwrap_err();
        let RangeFault::InvalidKey { key } = &fault else { panic!("{fault}") };
        assert!(["train//", "train//1.jpg"].contains(&&**key), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_below_folders_of_any_name_are_found() {
    let names = ["a b", "100%", "c+d", "\u{fc}", "x&y=z", "%41", "#1?", "'<q>\"", "e.f"];
    for dialect in STORES {
        let service = Arc::new(Service::new(dialect));
        for name in names {
            service.objects.put(&format!("b/train/{name}/{name}.jpg"), content(10));
        }
        let (bucket, ..) = bucket(&service);
        for (folder, count) in [("train/", names.len()), ("train/a b/", 1), ("train/c+d/", 1)] {
            let found = objects(bucket.clone(), folder.to_owned()).await.unwrap();
            assert_eq!(found.len(), count, "{dialect:?} {folder}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_a_listing_is_no_matter_of_credentials() {
    for dialect in STORES {
        let (bucket, ..) = bucket_over(Text("<html><body>Welcome"), dialect, LIMITS);
        let fault = objects(bucket, "train/".to_owned()).await.unwrap_err();
        let expected = "the store's answer is not a page of a listing, 1 try in 0.0 s";
        assert_eq!(fault.to_string(), expected, "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_without_allowance_is_asked_for_once_more() {
    let mut service = Service::new(Dialect::S3);
    service.faults = Faults::Numbered { fault: Fault::SlowDown, first: 0, count: 1 };
    service.objects.put("b/train/0.jpg", content(10));
    let (bucket, ..) = bucket(&Arc::new(service));
    for _ in 0..1_000 {
        bucket.pace.delay(1, 0.0);
    }
    let begun = Instant::now();
    let found = objects(bucket, "train/".to_owned()).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(begun.elapsed() <= Duration::from_secs(3), "{:?}", begun.elapsed());
}
