//! Stores, as data sets are opened from them.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tbl_io::{Location, Object, RangeFault, ReadError, Source, Storage, Stores, Upload};

use crate::address::{self, Address};
use crate::ahead::Budget;
use crate::answer::Head;
use crate::bucket::{Bucket, Key, Limits};
use crate::clients;
use crate::connections::Use;
use crate::counters::{Counters, StoreStats};
use crate::gate::{Connector, Gate, Hosts};
use crate::hub::{Hub, HubOptions};
use crate::list;
use crate::net::Net;
use crate::object::StoredObject;
use crate::options::StoreOptions;
use crate::put::NewObject;
use crate::read::{Need, read};
use crate::redirect;
use crate::tries::repeated;
use crate::upload::StoreUpload;
use crate::version::Version;
use crate::web::certificates;

/// The schemes that this crate opens.
const SCHEMES: [&str; 8] = ["s3", "gs", "az", "abfs", "abfss", "hf", "https", "http"];

/// The bytes that an object is opened with: the header of any container, and the index of most.
const FRONT: u64 = 1 << 20;

/// The bytes of small objects that stay in memory for as long as they are open.
const FRONTS: u64 = 64 << 20;

/// The stores of one set of options: S3, Google Cloud Storage, Azure, the Hugging Face hub and web servers.
///
/// No thread is started and nothing is asked before the first object is opened. Clones share
/// connections and counts, and the last one closes the connections, once no object is open.
#[derive(Clone)]
pub struct RemoteStores(Arc<Shared>);

struct Shared {
    options: StoreOptions,
    counters: Arc<Counters>,
    /// For bytes that are requested before they are read.
    ahead: Arc<Budget>,
    /// For small objects, which are kept as they came.
    fronts: Arc<Budget>,
    net: Mutex<Option<Arc<Net>>>,
    /// By `SCHEME://BUCKET`, repository, or `SCHEME://HOST[:PORT]` of a web server.
    buckets: Mutex<HashMap<String, Arc<Bucket>>>,
}

impl RemoteStores {
    /// Stores with these options.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        Self::over(options, None)
    }

    /// Stores that are reached by `net`, in place of the process's.
    pub(crate) fn over(options: StoreOptions, net: Option<Arc<Net>>) -> Self {
        let buckets = Mutex::default();
        let counters = Arc::default();
        let ahead = Arc::new(Budget::new(options.read_ahead));
        let fronts = Arc::new(Budget::new(FRONTS));
        Self(Arc::new(Shared { options, counters, ahead, fronts, net: Mutex::new(net), buckets }))
    }

    /// Adds these stores to others, one for each scheme.
    #[must_use]
    pub fn add_to(&self, stores: Stores) -> Stores {
        SCHEMES.iter().fold(stores, |stores, scheme| stores.with(scheme, Arc::new(self.clone())))
    }

    /// Requests and bytes so far.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let mut stats = self.0.counters.stats();
        for bucket in lock(&self.0.buckets).values() {
            let Use { most, in_vain } = bucket.connections.use_so_far();
            stats.connections += most as u64;
            stats.saturated += in_vain;
        }
        stats
    }

    /// The threads and connections, started at the first use in this process.
    fn net(&self) -> Result<Arc<Net>, Refusal> {
        let mut net = lock(&self.0.net);
        if let Some(net) = &*net {
            return Ok(Arc::clone(net));
        }
        let file = self.0.options.options.get("ca_certificate");
        let roots = file.map_or(Ok(Vec::new()), |file| certificates(Path::new(file)))?;
        Ok(Arc::clone(net.insert(Net::of_process(&roots)?)))
    }

    /// The bucket of an address, with its connections.
    fn bucket(&self, net: &Net, address: &Address) -> Result<Arc<Bucket>, Refusal> {
        let mut buckets = lock(&self.0.buckets);
        let name = match address {
            Address::Bucket { store, bucket, .. } => format!("{store:?}://{bucket}"),
            Address::Repository { repository, .. } => format!("{repository:?}"),
            Address::Web(url) => redirect::origin(url),
        };
        if let Some(bucket) = buckets.get(&name) {
            return Ok(Arc::clone(bucket));
        }
        let options = &self.0.options;
        let limits = Limits {
            connections: options.connections.max(1),
            deadline: options.deadline,
            hedge: options.hedge,
        };
        let counters = Arc::clone(&self.0.counters);
        let gate = |hosts| Gate::new(net.transport(), hosts, Arc::clone(&counters));
        let bucket = match address {
            Address::Bucket { store, bucket, .. } => {
                let connector = |hosts| Connector(gate(hosts));
                let client = clients::client(*store, bucket, &options.options, connector)?;
                Bucket::of_client(client, limits, Arc::clone(&counters))
            }
            Address::Repository { repository, .. } => {
                let options = HubOptions::new(&options.options)?;
                let gate = gate(Hosts::Web { allow_http: options.common.allow_http });
                let hub = Hub::new(gate, repository.clone(), &options)?;
                Bucket::of_hub(hub, options, limits, Arc::clone(&counters))
            }
            Address::Web(url) => {
                let (allow_http, unpinned) = clients::web(url, &options.options)?;
                let gate = gate(Hosts::Web { allow_http });
                Bucket::of_web(gate, unpinned, limits, Arc::clone(&counters))
            }
        };
        let bucket = Arc::new(bucket);
        buckets.insert(name, Arc::clone(&bucket));
        Ok(bucket)
    }

    /// The bucket of an address, and the thread that asks it.
    pub(crate) fn reach(&self, address: &Address) -> Result<(Arc<Net>, Arc<Bucket>), Refusal> {
        let net = self.net()?;
        let bucket = self.bucket(&net, address)?;
        Ok((net, bucket))
    }

    /// The location without what may be secret.
    pub(crate) fn shown(&self, location: &Location) -> Location {
        Storage::printable(self, location)
    }

    fn open_object(
        &self,
        object: &Location,
        listed: Option<&Object>,
    ) -> Result<StoredObject, Refusal> {
        let net = self.net()?;
        let address = Address::parse(object.url().unwrap_or_default())?;
        let bucket = self.bucket(&net, &address)?;
        let key = key(address)?;
        let pinned = listed.filter(|listed| listed.pin != tbl_io::Pin::Unknown);
        if let Some(Object { len, pin, .. }) = pinned {
            let head = Head { len: *len, version: Version::of_pin(pin) };
            return Ok(self.object(net, bucket, key, head, None));
        }
        let opening = open(Arc::clone(&bucket), key.clone());
        let (head, front) = net.engine().block_on(opening).and_then(|opened| opened)?;
        if head.version == Version::Unknown && !bucket.unpinned {
            return Err(RangeFault::Unusable(tbl_io::Unusable::NoVersion).into());
        }
        // Some stores name no versions in listings: the object is pinned as it is found now.
        if listed.is_some_and(|listed| listed.len != head.len) {
            let found = head.version.pin(bucket.endpoint.as_deref());
            return Err(RangeFault::Changed { found }.into());
        }
        Ok(self.object(net, bucket, key, head, Some(front)))
    }

    pub(crate) fn create_object(
        &self,
        object: &Location,
        overwrite: bool,
    ) -> Result<StoreUpload, Refusal> {
        let unsupported = |text| Refusal::Io(io::Error::new(io::ErrorKind::Unsupported, text));
        let key = match Address::parse(object.url().unwrap_or_default())? {
            Address::Bucket { version: Some(_), .. } => {
                return Err(unsupported("a new object has a version of its own, expected none"));
            }
            Address::Repository { .. } => {
                return Err(unsupported(
                    "the hub is only read; upload a local file, with `hf upload`",
                ));
            }
            Address::Web(_) => {
                return Err(unsupported(
                    "web servers are only read, expected s3://, gs:// or az://",
                ));
            }
            address @ Address::Bucket { version: None, .. } => address,
        };
        let net = self.net()?;
        let bucket = self.bucket(&net, &key)?;
        let key = self::key(key)?;
        let Key::Path { path, .. } = key.clone() else { return Err(address::Defect::NoKey.into()) };
        let asked = Arc::clone(&bucket);
        let found = async move { repeated(&asked, || asked.head(&key)).await };
        let earlier = match net.engine().block_on(found)? {
            Ok(_) if !overwrite => {
                let text = "the object exists already";
                return Err(Refusal::Io(io::Error::new(io::ErrorKind::AlreadyExists, text)));
            }
            Ok(head) => Some(head),
            Err(RangeFault::Refused { status: 404, .. }) => None,
            Err(fault) => return Err(fault.into()),
        };
        let object = NewObject { bucket, path, is_new: !overwrite };
        Ok(StoreUpload::new(net, object, earlier))
    }

    fn object(
        &self,
        net: Arc<Net>,
        bucket: Arc<Bucket>,
        key: Key,
        head: Head,
        front: Option<Bytes>,
    ) -> StoredObject {
        let ahead = Arc::clone(&self.0.ahead);
        let fronts = Arc::clone(&self.0.fronts);
        StoredObject::new(net, bucket, key, head, front, ahead, fronts)
    }

    fn list_objects(&self, folder: &Location) -> Result<Vec<Object>, Refusal> {
        let net = self.net()?;
        let address = Address::parse(folder.url().unwrap_or_default())?;
        let bucket = self.bucket(&net, &address)?;
        let (Address::Bucket { key, .. } | Address::Repository { key, .. }) = address else {
            return Err(Refusal::Io(io::Error::new(
                io::ErrorKind::Unsupported,
                "web servers list no files, expected the URL of a file",
            )));
        };
        let slash = if key.is_empty() || key.ends_with('/') { "" } else { "/" };
        let listing = list::objects(bucket, format!("{key}{slash}"));
        Ok(net.engine().block_on(listing).and_then(|listed| listed)?)
    }
}

/// Reads the front of an object, which tells its length and version.
pub(crate) async fn open(bucket: Arc<Bucket>, key: Key) -> Result<(Head, Bytes), RangeFault> {
    let mut front = BytesMut::new();
    let sink = |bytes: Bytes| front.extend_from_slice(&bytes);
    let read = read(&bucket, &key, 0..FRONT, None, Need::Now, sink).await;
    match read {
        Ok(head) => Ok((head, front.freeze())),
        // No range can be requested of an object without a byte.
        Err(RangeFault::Refused { status: 416, code, tries, elapsed }) => {
            let head = repeated(&bucket, || bucket.head(&key)).await?;
            if head.len > 0 {
                return Err(RangeFault::Refused { status: 416, code, tries, elapsed });
            }
            Ok((head, Bytes::new()))
        }
        Err(fault) => Err(fault),
    }
}

pub(crate) fn key(address: Address) -> Result<Key, Refusal> {
    Ok(match address {
        Address::Web(url) => Key::Url(url),
        Address::Bucket { key, version, .. } => path(&key, version)?,
        Address::Repository { key, .. } => path(&key, None)?,
    })
}

fn path(key: &str, version: Option<String>) -> Result<Key, address::Defect> {
    if key.is_empty() || key.ends_with('/') {
        return Err(address::Defect::NoKey);
    }
    let path = object_store::path::Path::parse(key).map_err(|_| address::Defect::BadKey)?;
    Ok(Key::Path { path, version })
}

impl Storage for RemoteStores {
    fn open(&self, object: &Location, listed: Option<&Object>) -> Result<Source, ReadError> {
        let location = self.printable(object);
        match self.open_object(object, listed) {
            Ok(object) => Ok(Source::from_ranges(&location, Arc::new(object))),
            Err(refusal) => Err(refusal.error(location)),
        }
    }

    fn list(&self, folder: &Location) -> Result<Vec<Object>, ReadError> {
        self.list_objects(folder).map_err(|refusal| refusal.error(self.printable(folder)))
    }

    fn is_folder(&self, location: &Location) -> Result<bool, ReadError> {
        match Address::parse(location.url().unwrap_or_default()) {
            Ok(Address::Bucket { key, .. } | Address::Repository { key, .. }) => {
                Ok(key.is_empty() || key.ends_with('/'))
            }
            Ok(Address::Web(url)) => Ok(url.path().ends_with('/')),
            Err(defect) => Err(Refusal::from(defect).error(self.printable(location))),
        }
    }

    fn create(&self, object: &Location, overwrite: bool) -> io::Result<Box<dyn Upload>> {
        match self.create_object(object, overwrite) {
            Ok(upload) => Ok(Box::new(upload)),
            Err(Refusal::Io(error)) => Err(error),
            Err(Refusal::Fault(fault)) => Err(io::Error::other(fault)),
        }
    }

    fn printable(&self, location: &Location) -> Location {
        Location::new(address::redact(location.url().unwrap_or_default()))
    }
}

/// Whether the last part of a URL looks like a folder's name.
fn may_be_folder(url: &str) -> bool {
    let last = url.rsplit('/').next().unwrap_or_default();
    !(last.is_empty() || last.contains('.') || url.starts_with("http"))
}

/// The reason why nothing was opened.
#[derive(Debug)]
pub(crate) enum Refusal {
    Io(io::Error),
    Fault(RangeFault),
}

impl Refusal {
    pub(crate) fn error(self, location: Location) -> ReadError {
        match self {
            Self::Io(source) => ReadError::Io { location, source },
            Self::Fault(RangeFault::Refused { status: 404, code, .. }) => {
                let code = code.as_deref().unwrap_or("Not Found");
                let is_bucket = matches!(code, "NoSuchBucket" | "ContainerNotFound");
                let what = if is_bucket { "bucket" } else { "object" };
                let hint = if !is_bucket && may_be_folder(location.url().unwrap_or_default()) {
                    "; the URL of a folder ends with a slash"
                } else {
                    ""
                };
                let text = format!("no such {what} (status 404 {code}){hint}");
                let source = io::Error::new(io::ErrorKind::NotFound, text);
                ReadError::Io { location, source }
            }
            Self::Fault(source) => ReadError::Store { location, source },
        }
    }
}

impl From<RangeFault> for Refusal {
    fn from(fault: RangeFault) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<address::Defect> for Refusal {
    fn from(defect: address::Defect) -> Self {
        Self::Io(io::Error::new(io::ErrorKind::InvalidInput, defect.to_string()))
    }
}

impl From<crate::options::OptionError> for Refusal {
    fn from(error: crate::options::OptionError) -> Self {
        Self::Io(io::Error::new(io::ErrorKind::InvalidInput, error))
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for RemoteStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteStores").field("options", &self.0.options).finish_non_exhaustive()
    }
}
