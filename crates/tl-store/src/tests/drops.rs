//! Requests over sockets that nobody waits for any more.

use std::future::pending;

use tbl_io::{PartReceiver, UnderWay};
use tl_store_server::serve;

use super::*;
use crate::web::Web;

/// The target, from the drop of many requests to the end of the last one.
const TARGET: Duration = Duration::from_secs(1);
/// The time after which a test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The receiver of parts that nobody reads. It goes with its request.
struct Unread(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl PartReceiver for Unread {
    fn buffer(&mut self, _: usize) -> Vec<u8> {
        Vec::new()
    }

    fn receive(&mut self, _: Vec<u8>) {}
}

/// The time until something holds.
fn until(holds: impl Fn() -> bool) -> Duration {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "the time is over");
        std::thread::park_timeout(Duration::from_millis(1));
    }
    begun.elapsed()
}

#[test]
fn many_requests_of_a_stalled_server_end_at_once() {
    // A bucket begins with as many connections.
    const BUCKETS: u64 = 16;
    const EACH: u64 = 16;
    const PART: u64 = 100_000;
    let mut service = Service::new(Dialect::S3);
    service.faults = Faults::Numbered { fault: Fault::Stall, first: BUCKETS, count: u64::MAX };
    for bucket in 0..BUCKETS {
        service.objects.put(&format!("b{bucket}/k"), content(4 << 20));
    }
    let server = serve(Arc::new(service), 0).unwrap();
    let mut options = options(Dialect::S3);
    options.insert("endpoint".to_owned(), server.endpoint());
    let net = Net::new(Arc::new(Web::new(&[]).unwrap())).unwrap();
    // It goes when the work of the thread is over.
    let work = Arc::new(());
    let is_working = Arc::downgrade(&work);
    let _waiting = net.engine().spawn(async move {
        let _work = work;
        pending::<()>().await;
    });
    let options = StoreOptions { options, ..StoreOptions::default() };
    let stores = RemoteStores::over(options, Some(Arc::new(net)));
    let open = |bucket| stores.open(&Location::new(format!("s3://b{bucket}/k")), None).unwrap();
    let objects: Vec<_> = (0..BUCKETS).map(open).collect();
    let opened = stores.stats().received;
    let requests = Arc::new(());
    let start = |object: &tbl_io::Source| -> Vec<UnderWay> {
        let start = |number| {
            let first = (1 << 20) + number * PART;
            let receiver = Box::new(Unread(Arc::clone(&requests)));
            let middle = first + PART / 2;
            let parts = vec![first..middle, middle..first + PART];
            object.background().unwrap().start(parts, Some(PATIENCE), receiver)
        };
        (0..EACH).map(start).collect()
    };
    let under_way: Vec<_> = objects.iter().flat_map(start).collect();
    assert_eq!((under_way.len(), Arc::strong_count(&requests)), (256, 257));
    until(|| stores.stats().received - opened >= 256 * PART / 2);
    let begun = std::time::Instant::now();
    drop(under_way);
    until(|| Arc::strong_count(&requests) == 1);
    let ended = begun.elapsed();
    let begun = std::time::Instant::now();
    drop((objects, stores));
    until(|| is_working.strong_count() == 0);
    let stopped = begun.elapsed();
    println!("256 stalled requests ended in {ended:?}, their thread in {stopped:?}");
    assert!(ended <= TARGET && stopped <= TARGET, "{ended:?} {stopped:?}");
}
