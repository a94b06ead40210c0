//! Requests that are sent a second time.

use std::sync::atomic::AtomicUsize;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_range_whose_requests_both_failed_is_asked_for_at_once() {
    let service = |puts: usize, fault: Option<Fault>| {
        let mut service = Service::new(Dialect::S3);
        (0..puts).for_each(|_| service.objects.put("b/k", content(256 << 10)));
        if let Some(fault) = fault {
            service.faults = Faults::Numbered { fault, first: 0, count: 1 };
        }
        service
    };
    // The first answer breaks off after 6.6 s; the hedge then brings another version.
    let mut first = service(1, Some(Fault::Reset));
    first.speed.rate = 20e3;
    let mut hedge = service(2, None);
    hedge.speed.first_byte = Duration::from_secs(6);
    let services = [first, hedge, service(2, None)].map(Arc::new);
    let requests = AtomicUsize::new(0);
    let transport = Routed(move |_: &http::Request<Bytes>| {
        let number = requests.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::clone(&services[number.min(2)]))
    });
    let (bucket, key, counters) = bucket_over(transport, Dialect::S3, LIMITS);
    let begun = Instant::now();
    let read = read(&bucket, &key, 0..256 << 10, None, true, drop).await;
    assert!(matches!(read, Err(RangeFault::Changed { .. })), "{read:?}");
    assert_eq!(counters.stats().hedges, 1);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}
