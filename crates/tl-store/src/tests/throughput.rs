//! The bytes a second that a store brings, in virtual time.

use std::sync::atomic::AtomicBool;

use super::*;

/// Bytes that want to be under way.
const WANTED: u64 = 256 << 20;
/// Rates of a connection to a store nearby and far away.
const FAST: f64 = 55e6;
const SLOW: f64 = 25e6;
const FIRST_BYTE: Duration = Duration::from_millis(30);

/// A store with this link and this rate of a connection, whose first bytes take some 30 ms.
fn service(link: f64, rate: f64) -> Service {
    let mut service = Service::new(Dialect::S3);
    service.speed = Speed { first_byte: FIRST_BYTE, sigma: 0.5, rate, link };
    service.objects.put("b/k", content(4 << 20));
    service
}

/// Reads parts of an object, many at once, and returns the bytes received in each of these seconds.
async fn load(
    bucket: &Arc<Bucket>,
    key: &Key,
    part: u64,
    counters: &Counters,
    seconds: u64,
) -> Vec<f64> {
    let readers = (0..WANTED / part).map(|_| {
        let bucket = Arc::clone(bucket);
        let key = key.clone();
        tokio::spawn(async move {
            loop {
                let need = Need::after(Duration::from_secs(1));
                // What is refused in an outage is asked for again.
                drop(read(&bucket, &key, 0..part, None, need, drop).await);
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    let mut received = Vec::new();
    let mut before = counters.stats().received;
    for _ in 0..seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = counters.stats().received;
        received.push((now - before) as f64);
        before = now;
    }
    readers.into_iter().for_each(|reader| reader.abort());
    received
}

fn assert_fills(received: &[f64], possible: f64) {
    assert!(received.iter().all(|bytes| *bytes >= 0.9 * possible), "{possible}: {received:?}");
}

#[tokio::test(start_paused = true)]
async fn a_link_is_filled_within_three_seconds() {
    for (link, rate, part, connections) in [
        (500e6, FAST, 2 << 20, 256),
        (100e6, FAST, 2 << 20, 256),
        (500e6, SLOW, 2 << 20, 256),
        // A part takes seconds.
        (50e6, 1e6, 4 << 20, 256),
        // These connections cannot fill it.
        (f64::INFINITY, SLOW, 2 << 20, 12),
    ] {
        let limits = Limits { connections, ..LIMITS };
        let transport = InMemory(Arc::new(service(link, rate)));
        let (bucket, key, counters) = bucket_over(transport, Dialect::S3, limits);
        let received = load(&bucket, &key, part, &counters, 7).await;
        // A connection waits for its first byte, then brings the part.
        let part = part as f64;
        let of_connection = part / (FIRST_BYTE.as_secs_f64() * 1.14 + part / rate);
        let possible = link.min(of_connection * connections as f64);
        assert_fills(&received[3..], possible);
    }
}

/// Refuses these requests from the third second to the eighth, and expects the link to be full again
/// after three more.
async fn assert_recovers(faults: Faults, most: f64) {
    let mut refusing = service(500e6, FAST);
    refusing.faults = faults;
    let services = [service(500e6, FAST), refusing].map(Arc::new);
    let is_refusing = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&is_refusing);
    let transport = Routed(move |_: &http::Request<Bytes>| {
        Ok(Arc::clone(&services[usize::from(now.load(Ordering::Relaxed))]))
    });
    let limits = Limits { connections: 256, ..LIMITS };
    let (bucket, key, counters) = bucket_over(transport, Dialect::S3, limits);
    let outage = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        is_refusing.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(5)).await;
        is_refusing.store(false, Ordering::Relaxed);
    };
    let (received, ()) = tokio::join!(load(&bucket, &key, 2 << 20, &counters, 14), outage);
    assert!(received[6] < most, "{received:?}");
    assert_fills(&received[11..], 500e6);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refused_everything_is_soon_used_again() {
    let all = Faults::Numbered { fault: Fault::SlowDown, first: 0, count: u64::MAX };
    assert_recovers(all, 0.1 * 500e6).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refused_a_part_is_soon_used_again() {
    let some = Faults::Random { seed: 1, chances: vec![(Fault::SlowDown, 0.2)] };
    assert_recovers(some, 0.7 * 500e6).await;
}
