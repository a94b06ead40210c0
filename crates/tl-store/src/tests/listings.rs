//! Listings.

use super::*;
use crate::list::objects;

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
