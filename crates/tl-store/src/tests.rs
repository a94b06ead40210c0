//! Reads of ranges against a store in memory that is faulty on purpose, in virtual time.

mod drops;
mod hedges;
mod listings;
mod names;
mod outages;
mod throughput;
mod uploads;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use tbl_io::{
    IndexError, IndexOptions, Location, RangeFault, Storage, Stores, index_shards, open_all_in,
    open_in,
};
use tl_store_server::{Dialect, Fault, Faults, Service, Speed};
use tokio::time::Instant;

use crate::address::{Address, Store};
use crate::answer::Head;
use crate::bucket::{Bucket, Key, Limits};
use crate::clients;
use crate::counters::Counters;
use crate::gate::{Answer, Connector, Gate, Hosts, Transport};
use crate::hub::{Hub, HubOptions};
use crate::net::Net;
use crate::options::{OptionError, StoreOptions};
use crate::read::{Need, read};
use crate::store::{self, RemoteStores};
use crate::version::Version;

/// Reaches a service without a network.
#[derive(Debug)]
pub(crate) struct InMemory(pub(crate) Arc<Service>);

#[async_trait]
impl Transport for InMemory {
    async fn send(&self, request: http::Request<Bytes>, _: usize) -> io::Result<Answer> {
        Ok(self.0.respond(&request).await)
    }
}

/// Chooses for each request the service that answers it.
struct Routed<F>(F);

impl<F> fmt::Debug for Routed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Routed")
    }
}

#[async_trait]
impl<F> Transport for Routed<F>
where
    F: Fn(&http::Request<Bytes>) -> io::Result<Arc<Service>> + Send + Sync,
{
    async fn send(&self, request: http::Request<Bytes>, _: usize) -> io::Result<Answer> {
        let service = (self.0)(&request)?;
        Ok(service.respond(&request).await)
    }
}

/// A secret that no message may have.
const SECRET: &str = "planted-secret";
const DEADLINE: Duration = Duration::from_secs(180);

fn options(dialect: Dialect) -> BTreeMap<String, String> {
    let options: &[(&str, &str)] = match dialect {
        Dialect::S3 => &[("access_key_id", "dummy"), ("secret_access_key", SECRET)],
        Dialect::Gcs => &[("bearer_token", SECRET)],
        // The key is base64.
        Dialect::Azure => &[("account_name", "dummy"), ("access_key", "cGxhbnRlZC1zZWNyZXQ=")],
        Dialect::Hub => &[("token", SECRET)],
        Dialect::Http | _ => &[],
    };
    let endpoint = [("endpoint", "http://store.test"), ("allow_http", "true")];
    let endpoint = if dialect == Dialect::Http { &endpoint[1..] } else { &endpoint };
    let options = options.iter().chain(endpoint);
    options.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const LIMITS: Limits = Limits { connections: 8, deadline: DEADLINE, hedge: true };

/// A bucket of a service, and an object in it.
fn bucket(service: &Arc<Service>) -> (Arc<Bucket>, Key, Arc<Counters>) {
    bucket_over(InMemory(Arc::clone(service)), service.dialect, LIMITS)
}

/// A bucket that is reached in this way, and an object in it.
fn bucket_over(
    transport: impl Transport + 'static,
    dialect: Dialect,
    limits: Limits,
) -> (Arc<Bucket>, Key, Arc<Counters>) {
    let counters = Arc::<Counters>::default();
    let transport = Arc::new(transport);
    let gate = |hosts| Gate::new(transport.clone(), hosts, Arc::clone(&counters));
    let options = options(dialect);
    let (url, store) = match dialect {
        Dialect::S3 => ("s3://b/k", Store::S3),
        Dialect::Gcs => ("gs://b/k", Store::Gcs),
        Dialect::Azure => ("az://b/k", Store::Azure),
        Dialect::Hub => {
            let options = HubOptions::new(&options).unwrap();
            let address = Address::parse("hf://datasets/o/b/k").unwrap();
            let Address::Repository { repository, .. } = address.clone() else { panic!() };
            let gate = gate(Hosts::Web { allow_http: true });
            let hub = Hub::new(gate, repository, &options).unwrap();
            let bucket = Bucket::of_hub(hub, options, limits, counters.clone());
            return (Arc::new(bucket), store::key(address).unwrap(), counters);
        }
        Dialect::Http | _ => {
            let bucket = Bucket::of_web(
                gate(Hosts::Web { allow_http: true }),
                false,
                limits,
                counters.clone(),
            );
            let address = Address::parse("http://store.test/b/k").unwrap();
            return (Arc::new(bucket), store::key(address).unwrap(), counters);
        }
    };
    let client = clients::client(store, "b", &options, |hosts| Connector(gate(hosts))).unwrap();
    let key = store::key(Address::parse(url).unwrap()).unwrap();
    (Arc::new(Bucket::of_client(client, limits, counters.clone())), key, counters)
}

static CONTENT: LazyLock<Bytes> =
    LazyLock::new(|| (0..4 << 20).map(|place: u32| (place * 31 % 251).to_le_bytes()[0]).collect());

/// The content of an object. Making it anew for each of thousands would take most of the time.
fn content(len: usize) -> Bytes {
    CONTENT.slice(..len)
}

/// A small generator: xorshift (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A run: a range of an object is read while requests have a fault.
#[derive(Clone, Debug)]
struct Run {
    dialect: Dialect,
    ignores_conditions: bool,
    fault: Fault,
    first: u64,
    count: u64,
    len: usize,
    range: std::ops::Range<u64>,
}

impl Run {
    fn random(dialect: Dialect, ignores_conditions: bool, fault: Fault, seed: u64) -> Self {
        let mut random = Random(seed * 2 + 1);
        random.below(1);
        let len = 1 + random.below(400_000);
        let start = random.below(len);
        let end = start + 1 + random.below(len - start);
        let count = [1, 2, 3, u64::MAX][usize::try_from(random.below(4)).unwrap()];
        let first = random.below(2);
        let len = usize::try_from(len).unwrap();
        Self { dialect, ignores_conditions, fault, first, count, len, range: start..end }
    }

    async fn check(&self) {
        let mut service = Service::new(self.dialect);
        service.ignores_conditions = self.ignores_conditions;
        service.speed.first_byte = Duration::from_millis(30);
        service.speed.rate = 25e6;
        let stored = content(self.len);
        service.objects.put("b/k", stored.clone());
        let healthy = Arc::new(service);
        let (bucket, key, _) = bucket(&healthy);
        let (head, front) = store::open(bucket, key).await.unwrap();
        assert_eq!((head.len, &front), (self.len as u64, &stored.slice(..front.len())));

        let mut service = Arc::into_inner(healthy).unwrap();
        service.faults = Faults::Numbered {
            fault: self.fault,
            first: service_requests(&service) + self.first,
            count: self.count,
        };
        let service = Arc::new(service);
        let (bucket, key, _) = self::bucket(&service);
        for _ in 0..2 {
            self.read(&bucket, &key, &head, &stored).await;
        }
    }

    /// Reads the range: it has the right bytes, or the fault is named in time.
    async fn read(&self, bucket: &Arc<Bucket>, key: &Key, head: &Head, stored: &Bytes) {
        let mut bytes = Vec::new();
        let begun = Instant::now();
        let sink = |part: Bytes| bytes.extend_from_slice(&part);
        let read = read(bucket, key, self.range.clone(), Some(head), Need::Unknown, sink).await;
        let took = begun.elapsed();
        assert!(took <= DEADLINE + Duration::from_secs(1), "{took:?}: {self:?}");
        let range =
            usize::try_from(self.range.start).unwrap()..usize::try_from(self.range.end).unwrap();
        match read {
            Ok(_) => assert_eq!(bytes, stored[range], "{self:?}"),
            Err(fault) => {
                assert!(stored[range].starts_with(&bytes), "{self:?}");
                self.check_fault(&fault);
                assert!(!self.fault.may_pass() || self.count > 3, "{fault}: {self:?}");
            }
        }
    }

    fn check_fault(&self, fault: &RangeFault) {
        let text = fault.to_string();
        assert!(!text.contains(SECRET) && !text.contains("Signature"), "{text}");
        let is_expected = match self.fault {
            Fault::SlowDown => matches!(fault, RangeFault::Refused { status: 503, tries: 10, .. }),
            Fault::TooMany => matches!(fault, RangeFault::Refused { status: 429, .. }),
            Fault::Silence | Fault::Stall | Fault::Reset | Fault::Short => {
                matches!(fault, RangeFault::NoAnswer { tries: 2.., .. })
            }
            Fault::Forbidden => {
                matches!(fault, RangeFault::Refused { status: 403, tries: 1.., .. })
            }
            Fault::Missing => matches!(fault, RangeFault::Refused { status: 404, tries: 1.., .. }),
            Fault::OtherTag => matches!(fault, RangeFault::Changed { .. }),
            Fault::Long | Fault::Whole | Fault::OtherRange | Fault::Redirect | Fault::Gzip => {
                matches!(fault, RangeFault::Unusable(_))
            }
            Fault::Lost | _ => false,
        };
        assert!(is_expected, "{fault}: {self:?}");
    }
}

fn service_requests(service: &Service) -> u64 {
    let counts = service.counts();
    counts.gets + counts.heads + counts.lists
}

/// Every fault in every dialect, and in a store that overlooks conditions.
async fn matrix(seeds: std::ops::Range<u64>) {
    for fault in Fault::ALL {
        for (dialect, ignores) in
            Dialect::ALL.map(|dialect| (dialect, false)).into_iter().chain([(Dialect::S3, true)])
        {
            for seed in seeds.clone() {
                Run::random(dialect, ignores, fault, seed).check().await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn faults_never_give_wrong_bytes() {
    matrix(0..20).await;
}

#[tokio::test(start_paused = true)]
async fn many_faults_never_give_wrong_bytes() {
    matrix(20..200).await;
}

/// Opens an object and reads ranges of it while each request of the run fails in turn, once and for
/// ever.
#[tokio::test(start_paused = true)]
async fn any_request_may_fail() {
    for dialect in Dialect::ALL {
        for fault in Fault::ALL {
            for first in 0..6 {
                for count in [1, u64::MAX] {
                    let mut service = Service::new(dialect);
                    service.faults = Faults::Numbered { fault, first, count };
                    let stored = content(3 << 20);
                    service.objects.put("b/k", stored.clone());
                    let service = Arc::new(service);
                    let (bucket, key, _) = bucket(&service);
                    let Ok((head, _)) = store::open(bucket.clone(), key.clone()).await else {
                        continue;
                    };
                    for start in [1_500_000, 2_000_000, 2_500_000] {
                        let mut bytes = Vec::new();
                        let sink = |part: Bytes| bytes.extend_from_slice(&part);
                        let range = start..start + 300_000;
                        let read = read(&bucket, &key, range, Some(&head), Need::Now, sink).await;
                        let start = usize::try_from(start).unwrap();
                        if read.is_ok() {
                            assert_eq!(bytes, stored[start..start + 300_000]);
                        } else {
                            assert!(count > 1 || !fault.may_pass(), "{fault:?} {first}");
                        }
                    }
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_replaced_object_is_named_with_both_versions() {
    // A file at a commit of the hub does not change.
    for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Hub) {
        let service = Arc::new(Service::new(dialect));
        service.objects.put("b/k", content(2 << 20));
        let (bucket, key, _) = bucket(&service);
        let (head, _) = store::open(bucket.clone(), key.clone()).await.unwrap();
        service.objects.put("b/k", content(2 << 20));
        let read = read(&bucket, &key, 1 << 20..(1 << 20) + 10, Some(&head), Need::Now, drop).await;
        let Err(RangeFault::Changed { found }) = read else { panic!("{read:?}") };
        let (now, _) = store::open(bucket.clone(), key).await.unwrap();
        assert_eq!(found, now.version.pin(bucket.endpoint.as_deref()), "{dialect:?}");
        assert_ne!(now.version, head.version);
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_asked_for_once_more() {
    let mut service = Service::new(Dialect::S3);
    service.speed.first_byte = Duration::from_millis(30);
    service.faults = Faults::Numbered { fault: Fault::Stall, first: 40, count: 1 };
    service.objects.put("b/k", content(1 << 20));
    let service = Arc::new(service);
    let (bucket, key, counters) = bucket(&service);
    let (head, _) = store::open(bucket.clone(), key.clone()).await.unwrap();
    let mut longest = Duration::ZERO;
    for _ in 0..100 {
        let begun = Instant::now();
        read(&bucket, &key, 0..100_000, Some(&head), Need::Now, drop).await.unwrap();
        longest = longest.max(begun.elapsed());
    }
    // The stall is noticed a second after the last byte.
    assert!(longest < Duration::from_millis(1_100), "{longest:?}");
    let stats = counters.stats();
    assert_eq!((stats.hedges, stats.hedges_won, stats.retries), (1, 1, 0));
    assert_eq!(stats.received, stats.wasted + 100 * 100_000 + (1 << 20));
}

#[tokio::test(start_paused = true)]
async fn a_broken_body_continues_where_it_ended() {
    let mut service = Service::new(Dialect::S3);
    service.faults = Faults::Numbered { fault: Fault::Reset, first: 1, count: 2 };
    service.objects.put("b/k", content(1 << 20));
    let service = Arc::new(service);
    let (bucket, key, counters) = bucket(&service);
    let (head, _) = store::open(bucket.clone(), key.clone()).await.unwrap();
    let before = counters.stats();
    read(&bucket, &key, 0..800_000, Some(&head), Need::Now, drop).await.unwrap();
    let stats = counters.stats();
    assert_eq!(stats.received - before.received, 800_000, "no byte twice");
    assert_eq!((stats.retries, stats.resumed), (2, 2));
    assert_eq!(service.counts().gets, 4);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_byte_is_opened() {
    for dialect in Dialect::ALL {
        let service = Arc::new(Service::new(dialect));
        service.objects.put("b/k", Bytes::new());
        let (bucket, key, _) = bucket(&service);
        let (head, front) = store::open(bucket, key).await.unwrap();
        assert_eq!((head.len, front.len()), (0, 0), "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_hub_is_asked_once_for_a_file_until_its_address_ends() {
    let mut service = Service::new(Dialect::Hub);
    service.key = Some(SECRET.to_owned());
    // The fifth request, which is for the third range.
    service.faults = Faults::Numbered { fault: Fault::Forbidden, first: 4, count: 1 };
    let stored = content(3 << 20);
    service.objects.put("b/k", stored.clone());
    let (bucket, key, counters) = bucket(&Arc::new(service));
    let (head, _) = store::open(bucket.clone(), key.clone()).await.unwrap();
    assert_eq!(counters.stats().gets, 3, "commit, address, file");
    for (start, requests) in [(1 << 20, 1), (2 << 20, 3), ((2 << 20) + 100, 1)] {
        let before = counters.stats().gets;
        let mut bytes = Vec::new();
        let sink = |part: Bytes| bytes.extend_from_slice(&part);
        let range = start..start + 100;
        read(&bucket, &key, range, Some(&head), Need::Now, sink).await.unwrap();
        let start = usize::try_from(start).unwrap();
        assert_eq!(bytes, stored[start..start + 100]);
        assert_eq!(counters.stats().gets - before, requests, "{start}");
    }
}

/// A service in memory, and the stores that reach it.
fn stores(dialect: Dialect) -> (Arc<Service>, Stores) {
    let service = Arc::new(Service::new(dialect));
    let net = Arc::new(Net::new(Arc::new(InMemory(Arc::clone(&service)))).unwrap());
    let options = StoreOptions { options: options(dialect), ..StoreOptions::default() };
    (service, RemoteStores::over(options, Some(net)).add_to(Stores::new()))
}

/// The index of these archives, which have no sample.
fn index(stores: &Stores, service: &Service, archives: &[&str]) -> Result<Bytes, IndexError> {
    for archive in archives {
        let (_, key) = archive.split_once("/b/").unwrap();
        let key = if archive.starts_with("http") { key.split('?').next().unwrap() } else { key };
        service.objects.put(&format!("b/{key}"), vec![0; 10_240]);
    }
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("all.tlidx");
    let options = IndexOptions { sync: false, ..IndexOptions::default() };
    index_shards(stores, archives, &target, options)?;
    Ok(std::fs::read(target).unwrap().into())
}

#[test]
fn a_signed_url_is_in_no_message_and_no_representation() {
    let (service, stores) = stores(Dialect::Http);
    let archives = [
        "http://127.0.0.1/b/1.tar?sig=planted-secret",
        "http://127.0.0.1/b/2.tar?sig=planted-secret",
    ];
    service.objects.put("b/all.tlidx", index(&stores, &service, &archives).unwrap());
    let url = "http://127.0.0.1/b/all.tlidx?X-Amz-Signature=planted-secret";
    let two = open_in(&stores, url).unwrap_err();
    let expected = "http://127.0.0.1/b/all.tlidx?...: stands for 2 data sets, expected one";
    assert_eq!(two.to_string(), expected);
    let other = "http://localhost/b/3.tar?sig=planted-secret";
    let outside = index(&stores, &service, &[archives[0], other]).unwrap_err();
    let text = outside.to_string();
    assert!(text.starts_with("http://localhost/b/3.tar?...: lies outside of "), "{text}");
    let source = open_in(&stores, archives[0]).unwrap();
    let unknown = open_in(&stores, "HTTP://h/k?sig=planted-secret").unwrap_err();
    for text in
        [format!("{two:?}"), format!("{outside:?}"), format!("{source:?}"), format!("{unknown:?}")]
    {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn a_question_mark_belongs_to_a_key() {
    let (service, stores) = stores(Dialect::S3);
    let archives = ["s3://b/what?/1.tar", "s3://b/what?/2.tar"];
    service.objects.put("b/what?/all.tlidx", index(&stores, &service, &archives).unwrap());
    let shards = open_all_in(&stores, &["s3://b/what?/all.tlidx"]).unwrap();
    let found: Vec<_> = shards.iter().map(|shard| shard.location().url().unwrap()).collect();
    assert_eq!(found, archives);
}

/// S3 in another region than the bucket's.
#[derive(Debug)]
struct Elsewhere(u16);

#[async_trait]
impl Transport for Elsewhere {
    async fn send(&self, _: http::Request<Bytes>, _: usize) -> io::Result<Answer> {
        let code = if self.0 == 400 { "AuthorizationHeaderMalformed" } else { "PermanentRedirect" };
        let body = format!("<Error><Code>{code}</Code><Region>eu-west-1</Region></Error>");
        let body = Full::new(Bytes::from(body)).map_err(io::Error::other).boxed();
        let answer = http::Response::builder().status(self.0);
        let answer = answer.header("x-amz-bucket-region", "eu-west-1").body(body);
        answer.map_err(io::Error::other)
    }
}

#[test]
fn the_region_of_a_bucket_is_named() {
    for status in [301, 307, 400] {
        let net = Arc::new(Net::new(Arc::new(Elsewhere(status))).unwrap());
        let options = StoreOptions { options: options(Dialect::S3), ..StoreOptions::default() };
        let stores = RemoteStores::over(options, Some(net));
        let opened = stores.open(&Location::new("s3://b/k"), None).unwrap_err().to_string();
        assert_eq!(opened, "s3://b/k: the bucket is in eu-west-1: set region=eu-west-1");
        let listed = stores.list(&Location::new("s3://b/")).unwrap_err().to_string();
        assert_eq!(listed, "s3://b/: the bucket is in eu-west-1: set region=eu-west-1");
    }
}

#[test]
fn web_servers_are_apart() {
    let service = Service::new(Dialect::Http);
    service.objects.put("b/k", content(10));
    let net = Arc::new(Net::new(Arc::new(InMemory(Arc::new(service)))).unwrap());
    let stores = RemoteStores::over(StoreOptions::default(), Some(net));
    let open = |url: &str| stores.open(&Location::new(url), None);
    open("http://127.0.0.1/b/k").unwrap();
    open("https://store.test/b/k").unwrap();
    open("https://store.test/b/k?other").unwrap();
    assert_eq!(stores.stats().connections, 2, "one at once of each server");
    let refused = open("http://store.test/b/k?sig=planted-secret").unwrap_err().to_string();
    assert_eq!(
        refused,
        "http://store.test/b/k?...: the endpoint http://store.test is not encrypted: expected \
         https:// or allow_http=true"
    );
}

#[test]
fn the_account_in_a_url_is_the_one_that_is_asked() {
    let transport = Arc::new(InMemory(Arc::new(Service::new(Dialect::Azure))));
    let made = |account: &[(&str, &str)]| {
        let given = account.iter().chain(&[("access_key", "AAAA")]);
        let options = given.map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut allowed = String::new();
        let connector = |hosts| {
            allowed = format!("{hosts:?}");
            Connector(Gate::new(transport.clone(), hosts, Arc::default()))
        };
        let client = clients::client(Store::Azure, "images@photos", &options, connector)?;
        assert!(allowed.contains("https://photos.blob.core.windows.net"), "{allowed}");
        Ok::<_, OptionError>(client.store.to_string())
    };
    let expected = "MicrosoftAzure { account: photos, container: images }";
    assert_eq!(made(&[]).unwrap(), expected);
    assert_eq!(made(&[("account_name", "photos")]).unwrap(), expected);
    let refused = made(&[("account_name", "others")]).unwrap_err().to_string();
    assert!(refused.contains("the URL's account"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_byte_is_opened_though_an_answer_refuses() {
    let mut service = Service::new(Dialect::S3);
    // The request for its length.
    service.faults = Faults::Numbered { fault: Fault::SlowDown, first: 1, count: 1 };
    service.objects.put("b/k", Bytes::new());
    let (bucket, key, counters) = bucket(&Arc::new(service));
    let (head, front) = store::open(bucket, key).await.unwrap();
    assert_eq!((head.len, front.len()), (0, 0));
    assert_eq!(counters.stats().heads, 2);
}

#[tokio::test(start_paused = true)]
async fn an_address_of_the_hub_that_no_longer_connects_is_asked_for_again() {
    let service = Arc::new(Service::new(Dialect::Hub));
    service.objects.put("b/k", content(3 << 20));
    let is_gone = Arc::new(AtomicBool::new(false));
    let gone = Arc::clone(&is_gone);
    let transport = Routed(move |request: &http::Request<Bytes>| {
        let is_file = request.uri().host() == Some("files.test");
        // The next address is of a server that is there.
        if is_file && gone.swap(false, Ordering::Relaxed) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(Arc::clone(&service))
    });
    let (bucket, key, counters) = bucket_over(transport, Dialect::Hub, LIMITS);
    let (head, _) = store::open(bucket.clone(), key.clone()).await.unwrap();
    let before = counters.stats().gets;
    is_gone.store(true, Ordering::Relaxed);
    let range = 2 << 20..(2 << 20) + 100;
    read(&bucket, &key, range, Some(&head), Need::Now, drop).await.unwrap();
    assert_eq!(counters.stats().gets - before, 3, "old address, hub, new address");
}

#[test]
fn options_without_an_effect_are_refused_by_name() {
    let transport = Arc::new(InMemory(Arc::new(Service::new(Dialect::S3))));
    let made = |store, given: &[(&str, &str)]| {
        let keys: &[(&str, &str)] = match store {
            Store::Azure => &[("account_name", "a"), ("access_key", "AAAA")],
            Store::Gcs => &[("bearer_token", "a")],
            Store::S3 => &[("access_key_id", "a"), ("secret_access_key", "a")],
        };
        let given = given.iter().chain(keys);
        let options = given.map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let connector = |hosts| Connector(Gate::new(transport.clone(), hosts, Arc::default()));
        clients::client(store, "b", &options, connector).map(drop)
    };
    for store in [Store::S3, Store::Gcs, Store::Azure] {
        for (name, instead) in [
            ("proxy_url", "set HTTPS_PROXY"),
            ("proxy_excludes", "set NO_PROXY"),
            ("timeout", "set deadline"),
            ("connect_timeout", "set deadline"),
            ("allow_invalid_certificates", "root certificate"),
            ("user_agent", "leave it out"),
        ] {
            let refused = made(store, &[(name, SECRET)]).unwrap_err().to_string();
            let expected = format!("option \"{name}\" is not supported: ");
            assert!(refused.starts_with(&expected) && refused.contains(instead), "{refused}");
            assert!(!refused.contains(SECRET), "{refused}");
        }
        assert_eq!(made(store, &[("skip_signature", "false")]), Ok(()));
    }
    let refused = made(Store::S3, &[("s3_express", "TRUE")]).unwrap_err();
    assert!(matches!(refused, OptionError::Unsupported { .. }), "{refused}");
    assert_eq!(made(Store::S3, &[("s3_express", "false")]), Ok(()));
}

#[test]
fn requests_without_a_signature_need_no_keys() {
    let transport = Arc::new(InMemory(Arc::new(Service::new(Dialect::S3))));
    for store in [Store::S3, Store::Gcs, Store::Azure] {
        let given: &[(&str, &str)] = match store {
            Store::S3 | Store::Gcs => &[("skip_signature", "yes")],
            Store::Azure => &[("skip_signature", "yes"), ("account_name", "a")],
        };
        let options = given.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let connector = |hosts| Connector(Gate::new(transport.clone(), hosts, Arc::default()));
        let made = clients::client(store, "b", &options.collect(), connector);
        assert_eq!(made.map(drop), Ok(()), "{store:?}");
    }
}
