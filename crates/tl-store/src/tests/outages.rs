//! Many ranges of a store that refuses requests for some time, and deadlines.

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::*;

/// A store that refuses every request with this fault for `outage`, and the version of its object.
fn recovering(
    fault: Fault,
    outage: Duration,
    limits: Limits,
) -> (Arc<Bucket>, Key, Arc<Counters>, Head) {
    let services = [true, false].map(|is_out| {
        let mut service = Service::new(Dialect::S3);
        service.speed.first_byte = Duration::from_millis(5);
        if is_out {
            service.faults = Faults::Numbered { fault, first: 0, count: u64::MAX };
        }
        service.objects.put("b/k", content(1 << 20));
        Arc::new(service)
    });
    let begun = Instant::now();
    let transport = Routed(move |_: &http::Request<Bytes>| {
        Ok(Arc::clone(&services[usize::from(begun.elapsed() >= outage)]))
    });
    let (bucket, key, counters) = bucket_over(transport, Dialect::S3, limits);
    (bucket, key, counters, head())
}

/// The object of a service that has been stored once.
fn head() -> Head {
    let version = Version::of_tag("9e3779b97f4a7c15-1");
    Head { len: 1 << 20, version }
}

/// Starts reads that no thread waits for.
fn start(
    count: usize,
    len: u64,
    bucket: &Arc<Bucket>,
    key: &Key,
    head: &Head,
) -> JoinSet<Result<Head, RangeFault>> {
    let mut reads = JoinSet::new();
    for _ in 0..count {
        let bucket = Arc::clone(bucket);
        let key = key.clone();
        let head = head.clone();
        reads.spawn(async move {
            let need = Need::after(Duration::from_secs(1));
            read(&bucket, &key, 0..len, Some(&head), need, drop).await
        });
    }
    reads
}

#[tokio::test(start_paused = true)]
async fn many_ranges_arrive_soon_after_a_store_is_back() {
    for outage in [1, 2, 5].map(Duration::from_secs) {
        let limits = Limits { connections: 256, ..LIMITS };
        let (bucket, key, counters, head) = recovering(Fault::SlowDown, outage, limits);
        let begun = Instant::now();
        let mut reads = start(1_000, 1_000, &bucket, &key, &head);
        while let Some(read) = reads.join_next().await {
            assert_eq!(read.unwrap().unwrap(), head);
        }
        let took = begun.elapsed();
        assert!(took <= outage + Duration::from_secs(3), "{took:?} after {outage:?}");
        assert!(counters.stats().gets <= 5_000, "{}", counters.stats().gets);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_restarted_is_waited_for() {
    let service = Service::new(Dialect::S3);
    service.objects.put("b/k", content(1 << 20));
    let service = Arc::new(service);
    let is_down = Arc::new(AtomicBool::new(true));
    let transport = Routed({
        let is_down = Arc::clone(&is_down);
        move |_: &http::Request<Bytes>| match is_down.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::ConnectionRefused.into()),
            false => Ok(Arc::clone(&service)),
        }
    });
    let (bucket, key, _) = bucket_over(transport, Dialect::S3, LIMITS);
    let read = async || {
        let head = head();
        read(&bucket, &key, 0..1_000, Some(&head), Need::Now, drop).await
    };
    let unknown = read().await.unwrap_err().to_string();
    assert!(unknown.contains(", 4 tries in "), "a host that has never answered: {unknown}");
    is_down.store(false, Ordering::Relaxed);
    read().await.unwrap();
    is_down.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    let restart = async {
        sleep(Duration::from_secs(60)).await;
        is_down.store(false, Ordering::Relaxed);
    };
    let (read_then, ()) = tokio::join!(read(), restart);
    read_then.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(63), "{:?}", begun.elapsed());
    is_down.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    let gone = read().await.unwrap_err().to_string();
    assert!(begun.elapsed() <= DEADLINE + Duration::from_secs(1), "{gone}");
    assert!(begun.elapsed() > DEADLINE / 2, "{gone}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_in_a_pause_that_the_store_asked_for() {
    let outage = Duration::from_millis(500);
    let (bucket, key, counters, head) = recovering(Fault::TooMany, outage, LIMITS);
    let mut reads = start(100, 1_000, &bucket, &key, &head);
    sleep(Duration::from_millis(950)).await;
    assert_eq!(counters.stats().gets, 8, "one for each permit");
    while let Some(read) = reads.join_next().await {
        read.unwrap().unwrap();
    }
    assert_eq!(counters.stats().gets, 108);
}

#[tokio::test(start_paused = true)]
async fn a_pause_beyond_the_deadline_is_reported_with_its_status() {
    let limits = Limits { deadline: Duration::from_millis(500), ..LIMITS };
    let (bucket, key, counters, head) = recovering(Fault::TooMany, DEADLINE, limits);
    let mut reads = start(20, 1_000, &bucket, &key, &head);
    while let Some(read) = reads.join_next().await {
        let fault = read.unwrap().unwrap_err().to_string();
        assert_eq!(fault, "status 429 TooManyRequests, 1 try in 0.0 s");
    }
    assert_eq!(counters.stats().gets, 8);
}

/// A store that answers as `set` makes it, and the version of its object.
fn store_of(set: impl FnOnce(&mut Service), limits: Limits) -> (Arc<Bucket>, Key, Head) {
    let mut service = Service::new(Dialect::S3);
    set(&mut service);
    service.objects.put("b/k", content(1 << 20));
    let service = Arc::new(service);
    let (bucket, key, _) = bucket_over(InMemory(service), Dialect::S3, limits);
    (bucket, key, head())
}

#[tokio::test(start_paused = true)]
async fn waiting_for_other_ranges_does_not_count() {
    let limits = Limits { connections: 1, deadline: Duration::from_secs(1), hedge: false };
    let slow = |service: &mut Service| service.speed.first_byte = Duration::from_millis(300);
    let (bucket, key, head) = store_of(slow, limits);
    let mut reads = start(20, 1_000, &bucket, &key, &head);
    while let Some(read) = reads.join_next().await {
        read.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_missed_deadline_is_named() {
    let limits = Limits { deadline: Duration::from_secs(1), hedge: false, ..LIMITS };
    let fault = async |set: &dyn Fn(&mut Service)| {
        let (bucket, key, head) = store_of(set, limits);
        let read = read(&bucket, &key, 0..1 << 20, Some(&head), Need::Now, drop).await;
        read.unwrap_err().to_string()
    };
    let slow = fault(&|service| service.speed.rate = 100e3).await;
    assert_eq!(slow, "received 65536 of 1048576 bytes by the deadline, 1 try in 1.0 s");
    let silent = fault(&|service| {
        service.faults = Faults::Numbered { fault: Fault::Silence, first: 0, count: 9 };
    });
    assert_eq!(silent.await, "no byte for 1.0 s, 1 try in 1.0 s");
    // An answer that comes too late.
    let refused = fault(&|service| {
        service.faults = Faults::Numbered { fault: Fault::SlowDown, first: 0, count: 1 };
        service.speed.first_byte = Duration::from_millis(600);
    });
    assert_eq!(refused.await, "status 503 SlowDown, 2 tries in 1.0 s");
}

#[tokio::test(start_paused = true)]
async fn the_longest_deadline_is_as_good_as_none() {
    let limits = Limits { deadline: Duration::MAX, ..LIMITS };
    let refusing = |service: &mut Service| {
        service.faults = Faults::Numbered { fault: Fault::TooMany, first: 0, count: 2 };
    };
    let (bucket, key, head) = store_of(refusing, limits);
    for need in [Need::Now, Need::after(Duration::MAX)] {
        read(&bucket, &key, 0..1_000, Some(&head), need, drop).await.unwrap();
    }
}
