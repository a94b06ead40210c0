//! Listings: all objects below a prefix.

use std::sync::Arc;

use object_store::list::PaginatedListResult;
use tbl_io::{Object, RangeFault};
use tokio::task::JoinSet;

use crate::bucket::Bucket;
use crate::tries::repeated;
use crate::version::Version;

/// Prefixes that are listed at once.
const AT_ONCE: usize = 32;

/// A part of a listing.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Key, length and version of each object.
    pub(crate) objects: Vec<(String, u64, Version)>,
    /// Prefixes that end with a slash.
    pub(crate) folders: Vec<String>,
    /// The mark of the next page.
    pub(crate) token: Option<String>,
}

impl From<PaginatedListResult> for Page {
    fn from(page: PaginatedListResult) -> Self {
        let object = |object: object_store::ObjectMeta| {
            let version = object.e_tag.as_deref().map_or(Version::Unknown, Version::of_tag);
            (object.location.into(), object.size, version)
        };
        let folders = page.result.common_prefixes.into_iter();
        Self {
            objects: page.result.objects.into_iter().map(object).collect(),
            folders: folders.map(|folder| format!("{folder}/")).collect(),
            token: page.page_token,
        }
    }
}

/// The objects below a prefix that is empty or ends with a slash. Those of each folder in it are
/// listed at the same time.
pub(crate) async fn objects(
    bucket: Arc<Bucket>,
    prefix: String,
) -> Result<Vec<Object>, RangeFault> {
    let mut objects = Vec::new();
    let mut folders = Vec::new();
    let mut token = None;
    loop {
        let page = page(&bucket, &prefix, true, token).await?;
        objects.extend(page.objects.iter().filter_map(|found| object(&bucket, &prefix, found)));
        folders.extend(page.folders);
        token = page.token;
        if token.is_none() {
            break;
        }
    }
    let mut running = JoinSet::new();
    let mut folders = folders.into_iter();
    loop {
        while running.len() < AT_ONCE
            && let Some(folder) = folders.next()
        {
            running.spawn(below(Arc::clone(&bucket), prefix.clone(), folder));
        }
        match running.join_next().await {
            None => return Ok(without_markers(objects)),
            Some(Ok(found)) => objects.extend(found?),
            // The thread ends, and with it whoever waits for this.
            Some(Err(_)) => return Err(crate::engine::stopped()),
        }
    }
}

/// All objects of a folder, with their names below `prefix`.
async fn below(
    bucket: Arc<Bucket>,
    prefix: String,
    folder: String,
) -> Result<Vec<Object>, RangeFault> {
    let mut objects = Vec::new();
    let mut token = None;
    loop {
        let page = page(&bucket, &folder, false, token).await?;
        objects.extend(page.objects.iter().filter_map(|found| object(&bucket, &prefix, found)));
        token = page.token;
        if token.is_none() {
            return Ok(objects);
        }
    }
}

/// `None` for the key of the prefix itself, which loses its final slash.
fn object(bucket: &Bucket, prefix: &str, found: &(String, u64, Version)) -> Option<Object> {
    let (key, len, version) = found;
    let name = key.strip_prefix(prefix)?.as_bytes().to_vec();
    Some(Object { name, len: *len, pin: version.pin(bucket.endpoint.as_deref()) })
}

/// Leaves out keys that stand for folders: they have no bytes, and others begin with their name.
fn without_markers(mut objects: Vec<Object>) -> Vec<Object> {
    objects.sort_by(|a, b| a.name.cmp(&b.name));
    let is_folder = |object: &Object| {
        let inside = [object.name.as_slice(), b"/"].concat();
        let next = objects.partition_point(|other| other.name < inside);
        objects.get(next).is_some_and(|other| other.name.starts_with(&inside))
    };
    let keep: Vec<_> = objects.iter().map(|object| object.len > 0 || !is_folder(object)).collect();
    let mut keep = keep.into_iter();
    objects.retain(|_| keep.next() == Some(true));
    objects
}

/// A page, requested again where that may help.
async fn page(
    bucket: &Arc<Bucket>,
    prefix: &str,
    by_folder: bool,
    token: Option<String>,
) -> Result<Page, RangeFault> {
    repeated(bucket, || bucket.page(prefix, by_folder, token.clone())).await
}
