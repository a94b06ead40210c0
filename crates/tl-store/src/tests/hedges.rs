//! Requests that are sent a second time.

use std::sync::atomic::AtomicUsize;

use super::*;

/// A service whose first bytes take some 30 ms, with an object that has been read often enough that
/// the usual times are known.
async fn known(sigma: f64, faults: Faults) -> (Arc<Bucket>, Key, Arc<Counters>, Head) {
    let mut service = Service::new(Dialect::S3);
    service.speed.first_byte = Duration::from_millis(30);
    service.speed.sigma = sigma;
    service.faults = faults;
    service.objects.put("b/k", content(1 << 20));
    let (bucket, key, counters) = bucket(&Arc::new(service));
    let (head, _) = store::open(bucket.clone(), key.clone()).await.unwrap();
    for _ in 0..49 {
        read(&bucket, &key, 0..1_000, Some(&head), Need::Now, drop).await.unwrap();
    }
    (bucket, key, counters, head)
}

/// A service with an object that was replaced until it had been put so often, and perhaps a fault of
/// the first answer.
fn service(puts: usize, fault: Option<Fault>) -> Service {
    let mut service = Service::new(Dialect::S3);
    (0..puts).for_each(|_| service.objects.put("b/k", content(256 << 10)));
    if let Some(fault) = fault {
        service.faults = Faults::Numbered { fault, first: 0, count: 1 };
    }
    service
}

/// The longest of some reads, and the number of hedges.
async fn longest(need: fn() -> Need, sigma: f64, faults: Faults) -> (Duration, u64) {
    let (bucket, key, counters, head) = known(sigma, faults).await;
    let before = counters.stats().hedges;
    let mut longest = Duration::ZERO;
    for _ in 0..300 {
        let begun = Instant::now();
        read(&bucket, &key, 0..1_000, Some(&head), need(), drop).await.unwrap();
        longest = longest.max(begun.elapsed());
    }
    (longest, counters.stats().hedges - before)
}

fn soon() -> Need {
    Need::after(Duration::from_millis(600))
}

fn later() -> Need {
    Need::after(Duration::from_secs(10))
}

fn at_an_unknown_time() -> Need {
    Need::Unknown
}

#[tokio::test(start_paused = true)]
async fn late_answers_with_plenty_of_time_are_not_hedged() {
    let (_, hedges) = longest(|| Need::Now, 0.8, Faults::None).await;
    assert!(hedges >= 3, "{hedges}");
    let kept = longest(at_an_unknown_time, 0.8, Faults::None).await.1;
    assert_eq!(kept, hedges - 1, "one is kept for ranges that somebody waits for");
    assert_eq!(longest(later, 0.8, Faults::None).await.1, 0);
}

/// Reads with one request that stalls take at most these milliseconds, for each need, and at least so
/// many less.
async fn assert_stall_takes(fault: Fault, most: [u64; 3], less: u64) {
    for (need, most) in [at_an_unknown_time as fn() -> Need, soon, later].into_iter().zip(most) {
        let stalled = Faults::Numbered { fault, first: 100, count: 1 };
        let (longest, hedges) = longest(need, 0.0, stalled).await;
        let range = Duration::from_millis(most - less)..=Duration::from_millis(most);
        assert!(range.contains(&longest), "{longest:?}");
        assert_eq!(hedges, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn stalled_requests_are_hedged_in_time() {
    assert_stall_takes(Fault::Silence, [150, 350, 1_050], 50).await;
}

#[tokio::test(start_paused = true)]
async fn bodies_that_stall_are_hedged_in_time() {
    assert_stall_takes(Fault::Stall, [200, 400, 1_100], 100).await;
}

#[tokio::test(start_paused = true)]
async fn a_range_that_is_due_takes_the_hedge_that_is_kept() {
    for (due, from) in [(600, 600), (0, 50)] {
        let stalled = Faults::Numbered { fault: Fault::Silence, first: 50, count: 1 };
        let (bucket, key, counters, head) = known(0.0, stalled).await;
        while bucket.pace.may_hedge(1, false) {}
        let begun = Instant::now();
        let need = Need::after(Duration::from_millis(due));
        read(&bucket, &key, 0..1_000, Some(&head), need, drop).await.unwrap();
        assert_eq!(counters.stats().hedges, 1);
        let range = Duration::from_millis(from)..Duration::from_millis(from + 400);
        assert!(range.contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }
}

/// A bucket whose usual times are known. These services answer its next requests, the last one all
/// that follow.
async fn known_then<const N: usize>(services: [Service; N]) -> (Arc<Bucket>, Key, Arc<Counters>) {
    let mut usual = service(1, None);
    usual.speed.first_byte = Duration::from_millis(30);
    let usual = Arc::new(usual);
    let services = services.map(Arc::new);
    let requests = AtomicUsize::new(0);
    let transport = Routed(move |_: &http::Request<Bytes>| {
        let number = requests.fetch_add(1, Ordering::Relaxed);
        let next = number.checked_sub(50).map(|number| &services[number.min(N - 1)]);
        Ok(Arc::clone(next.unwrap_or(&usual)))
    });
    let (bucket, key, counters) = bucket_over(transport, Dialect::S3, LIMITS);
    for _ in 0..50 {
        read(&bucket, &key, 0..1_000, None, Need::Now, drop).await.unwrap();
    }
    (bucket, key, counters)
}

#[tokio::test(start_paused = true)]
async fn hedges_that_are_refused_are_followed_by_others_ever_later() {
    let refused = [Some(Fault::SlowDown); 3].map(|fault| service(1, fault));
    let [one, two, three] = refused;
    let first = service(1, Some(Fault::Stall));
    let (bucket, key, counters) = known_then([first, one, two, three, service(1, None)]).await;
    (0..200).for_each(|_| bucket.pace.asked(1_000));
    let begun = Instant::now();
    read(&bucket, &key, 0..1_000, None, Need::Now, drop).await.unwrap();
    assert_eq!(counters.stats().hedges, 4);
    // 90 ms, the usual wait, then the delays of repetitions: at least 50, 100 and 200 ms.
    let range = Duration::from_millis(90 + 90 + 100 + 200)..Duration::from_millis(1_000);
    assert!(range.contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn bytes_of_a_hedge_that_breaks_off_are_counted_as_wasted() {
    let services = [Some(Fault::Silence), Some(Fault::Reset), None];
    let (bucket, key, counters) = known_then(services.map(|fault| service(1, fault))).await;
    read(&bucket, &key, 0..1_000, None, Need::Now, drop).await.unwrap();
    let stats = counters.stats();
    assert_eq!((stats.hedges, stats.hedges_won, stats.wasted), (2, 1, 500));
    assert_eq!(stats.received - stats.wasted, 51 * 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_hedge_before_the_end_of_patience_has_its_time() {
    let mut hedge = service(1, None);
    hedge.speed.first_byte = Duration::from_millis(80);
    let (bucket, key, counters) = known_then([service(1, Some(Fault::Silence)), hedge]).await;
    while bucket.pace.may_hedge(1, true) {}
    let begun = Instant::now();
    let allowance = async {
        // The first request is given up after 5 s.
        tokio::time::sleep(Duration::from_millis(4_900)).await;
        (0..100).for_each(|_| bucket.pace.asked(1_000));
    };
    let read = read(&bucket, &key, 0..1_000, None, Need::Now, drop);
    tokio::join!(allowance, async { read.await.unwrap() });
    let stats = counters.stats();
    assert_eq!((stats.hedges, stats.hedges_won, stats.retries), (1, 1, 0));
    assert!(begun.elapsed() > Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_range_whose_requests_both_failed_is_asked_for_at_once() {
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
    let read = read(&bucket, &key, 0..256 << 10, None, Need::Now, drop).await;
    assert!(matches!(read, Err(RangeFault::Changed { .. })), "{read:?}");
    assert_eq!(counters.stats().hedges, 1);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_that_may_not_be_sent_twice_is_read_to_its_end() {
    let mut slow = service(1, None);
    slow.speed.rate = 20e3;
    let (bucket, key, counters) = known_then([slow]).await;
    while bucket.pace.may_hedge(1, true) {}
    let begun = Instant::now();
    read(&bucket, &key, 0..256 << 10, None, Need::Now, drop).await.unwrap();
    assert_eq!(counters.stats().hedges, 0);
    assert!(begun.elapsed() > Duration::from_secs(12), "{:?}", begun.elapsed());
}
