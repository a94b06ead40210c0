//! Repositories of the Hugging Face hub, each at one commit.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::header::{ETAG, LAST_MODIFIED, LINK, RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use object_store::path::Path;
use reqwest::Url;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::address::Repository;
use crate::answer::{self, Head};
use crate::cause::Cause;
use crate::clients::Endpoint;
use crate::gate::{Answer, Gate, MAX_DOCUMENT};
use crate::list::Page;
use crate::options::{Common, OptionError};
use crate::redirect::{Bearer, follow, origin, refused};
use crate::transfer::refusal;
use crate::version::Version;

/// The hub, unless the option `endpoint` or `HF_ENDPOINT` names another one.
const ENDPOINT: &str = "https://huggingface.co";
/// Addresses that are remembered, of about 2 KiB each.
const ADDRESSES: usize = 4096;

/// The settings of the hub, from options and the environment.
pub(crate) struct HubOptions {
    pub(crate) common: Common,
    /// Its address, unless it is the usual one.
    pub(crate) endpoint: Option<String>,
    token: Option<String>,
}

impl HubOptions {
    pub(crate) fn new(options: &BTreeMap<String, String>) -> Result<Self, OptionError> {
        let (common, options) = Common::split(options, None)?;
        let mut endpoint = std::env::var("HF_ENDPOINT").ok();
        let mut token = token_of_environment();
        for (name, value) in options {
            match name {
                "endpoint" => endpoint = Some(value.to_owned()),
                "token" => token = Some(value.to_owned()),
                _ => {
                    let store = "the Hugging Face hub";
                    return Err(OptionError::unknown(name, store, &["token", "endpoint"]));
                }
            }
        }
        let endpoint = endpoint.map(|given| Endpoint::parse(&given, common)).transpose()?;
        let endpoint = endpoint.map(|endpoint| endpoint.name);
        let token = token.filter(|_| !common.anonymous);
        Ok(Self { common, endpoint, token })
    }
}

/// The token that the hub's own tools use: `HF_TOKEN`, or the file that a login writes.
fn token_of_environment() -> Option<String> {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let file = path("HF_TOKEN_PATH")
        .or_else(|| Some(path("HF_HOME")?.join("token")))
        .or_else(|| Some(std::env::home_dir()?.join(".cache/huggingface/token")));
    let token = std::env::var("HF_TOKEN").ok();
    let token = token.or_else(|| std::fs::read_to_string(file?).ok())?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty())
}

/// A repository. Its commit is looked up once, so that all files are of one state.
pub(crate) struct Hub {
    gate: Gate,
    endpoint: Url,
    repository: Repository,
    bearer: Option<Bearer>,
    commit: OnceCell<String>,
    /// The addresses that the hub sent requests for files to. They are signed, and end.
    addresses: Mutex<HashMap<FileAt, Url>>,
}

/// A file at a commit.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FileAt {
    commit: String,
    path: Path,
}

impl Hub {
    /// Whether requests have a token.
    pub(crate) fn has_token(&self) -> bool {
        self.bearer.is_some()
    }

    pub(crate) fn new(
        gate: Gate,
        repository: Repository,
        options: &HubOptions,
    ) -> Result<Self, OptionError> {
        let endpoint = options.endpoint.as_deref().unwrap_or(ENDPOINT);
        let expected = "https://HOST[:PORT]";
        let endpoint =
            Url::parse(endpoint).map_err(|_| OptionError::Value { name: "endpoint", expected })?;
        let bearer = match &options.token {
            None => None,
            Some(token) => {
                let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
                    OptionError::Value { name: "token", expected: "letters and digits" }
                })?;
                value.set_sensitive(true);
                Some(Bearer { origin: origin(&endpoint), value })
            }
        };
        let addresses = Mutex::default();
        Ok(Self { gate, endpoint, repository, bearer, commit: OnceCell::new(), addresses })
    }

    /// Asks for a range of a file: at the commit that is its version if one is given, which may be
    /// an earlier one of a shard index, otherwise at the repository's.
    pub(crate) async fn get(
        &self,
        path: &Path,
        range: &Range<u64>,
        version: Option<&Version>,
        pool: usize,
    ) -> Result<Answer, Cause> {
        let headers = [(RANGE, format!("bytes={}-{}", range.start, range.end - 1))];
        let commit = match version {
            Some(Version::Tag { tag, is_weak: false }) if is_hash(tag) => tag,
            _ => self.commit().await?,
        };
        let file = FileAt { commit: commit.to_owned(), path: path.clone() };
        if let Some(url) = self.address(&file) {
            let answer = follow(&self.gate, &Method::GET, url, &headers, pool, None).await;
            let is_over =
                |status: StatusCode| matches!(status.as_u16(), 400 | 401 | 403 | 404 | 410);
            match answer {
                Ok((answer, _)) if !is_over(answer.status()) => {
                    return Ok(at_commit(answer, commit));
                }
                // The address ended; the hub gives another one.
                Ok(_) => drop(self.lock_addresses().remove(&file)),
                // Its server may be gone; the next try asks the hub.
                Err(cause) => {
                    self.lock_addresses().remove(&file);
                    return Err(cause);
                }
            }
        }
        let url = self.file(commit, path);
        let bearer = self.bearer.as_ref();
        let (answer, at) = follow(&self.gate, &Method::GET, url, &headers, pool, bearer).await?;
        if answer.status().is_success() && origin(&at) != origin(&self.endpoint) {
            let mut addresses = self.lock_addresses();
            if addresses.len() >= ADDRESSES {
                addresses.clear();
            }
            addresses.insert(file, at);
        }
        Ok(at_commit(answer, commit))
    }

    /// Asks for the length of a file.
    pub(crate) async fn head(&self, path: &Path) -> Result<Head, Cause> {
        let commit = self.commit().await?;
        let url = self.file(commit, path);
        let bearer = self.bearer.as_ref();
        let (answer, _) = follow(&self.gate, &Method::HEAD, url, &[], 0, bearer).await?;
        let (parts, body) = at_commit(answer, commit).into_parts();
        if !parts.status.is_success() {
            return Err(refusal(&parts, body).await);
        }
        answer::check_head(&parts).map_err(Cause::Defect)
    }

    /// A page of the files below a prefix, which is empty or ends with a slash. `next` is the
    /// address that the page before named.
    pub(crate) async fn page(
        &self,
        prefix: &str,
        by_folder: bool,
        next: Option<String>,
    ) -> Result<Page, Cause> {
        let commit = self.commit().await?;
        let url = match next {
            Some(next) => Url::parse(&next).map_err(|_| not_understood("a page"))?,
            None => {
                let folders = prefix.split('/').filter(|part| !part.is_empty());
                let mut url = self.api(["tree", commit].into_iter().chain(folders));
                url.set_query((!by_folder).then_some("recursive=true"));
                url
            }
        };
        let (document, headers) = self.document(url).await?;
        let mut page = Page { token: self.next(&headers)?, ..Page::default() };
        for entry in document.as_array().ok_or_else(|| not_understood("a page"))? {
            let path = entry["path"].as_str().ok_or_else(|| not_understood("a page"))?;
            match entry["type"].as_str() {
                Some("file") => {
                    let len = entry["size"].as_u64().ok_or_else(|| not_understood("a page"))?;
                    page.objects.push((path.to_owned(), len, version(commit)));
                }
                Some("directory") if by_folder => page.folders.push(format!("{path}/")),
                _ => {}
            }
        }
        Ok(page)
    }

    /// The commit that the revision is.
    async fn commit(&self) -> Result<&str, Cause> {
        let commit = self.commit.get_or_try_init(async || {
            let revision = &self.repository.revision;
            let (document, _) = self.document(self.api(["revision", revision])).await?;
            let commit = document["sha"].as_str().unwrap_or_default();
            if is_hash(commit) { Ok(commit.to_owned()) } else { Err(not_understood("a revision")) }
        });
        commit.await.map(String::as_str)
    }

    /// An answer in JSON, of bounded length.
    async fn document(&self, url: Url) -> Result<(Value, HeaderMap), Cause> {
        let bearer = self.bearer.as_ref();
        let (answer, _) = follow(&self.gate, &Method::GET, url, &[], 0, bearer).await?;
        let (parts, body) = answer.into_parts();
        if parts.status != StatusCode::OK {
            return Err(refusal(&parts, body).await);
        }
        let body = Limited::new(body, MAX_DOCUMENT).collect().await;
        let body: Bytes = body.map_err(|error| Cause::Broken(broken(error)))?.to_bytes();
        let document = serde_json::from_slice(&body).map_err(|_| not_understood("JSON"))?;
        Ok((document, parts.headers))
    }

    /// The address of the next page, `Link: <URL>; rel="next"` (RFC 8288).
    fn next(&self, headers: &HeaderMap) -> Result<Option<String>, Cause> {
        let links = headers.get(LINK).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let next = links.split(',').find(|link| link.contains("rel=\"next\""));
        let next = next.and_then(|link| link.split_once('<')?.1.split_once('>'));
        let Some((next, _)) = next else { return Ok(None) };
        let next = self.endpoint.join(next).map_err(|_| refused())?;
        if origin(&next) != origin(&self.endpoint) {
            return Err(refused());
        }
        Ok(Some(next.into()))
    }

    fn api<'a>(&'a self, parts: impl IntoIterator<Item = &'a str>) -> Url {
        let Repository { kind, owner, name, .. } = &self.repository;
        self.url(["api", kind, owner, name].into_iter().chain(parts))
    }

    fn file(&self, commit: &str, path: &Path) -> Url {
        let Repository { kind, owner, name, .. } = &self.repository;
        let kind = Some(*kind).filter(|kind| *kind != "models");
        let parts = [owner.as_str(), name, "resolve", commit];
        self.url(kind.into_iter().chain(parts).chain(path.as_ref().split('/')))
    }

    /// A path of the hub; each part is escaped.
    fn url<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.endpoint.clone();
        // Addresses with a host have a path.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    fn address(&self, file: &FileAt) -> Option<Url> {
        self.lock_addresses().get(file).cloned()
    }

    fn lock_addresses(&self) -> std::sync::MutexGuard<'_, HashMap<FileAt, Url>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("repository", &self.repository).finish_non_exhaustive()
    }
}

/// Whether a revision is a commit, which never means other files.
fn is_hash(revision: &str) -> bool {
    revision.len() >= 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A file of a commit does not change, whatever server has it: the commit is its version.
fn at_commit(mut answer: Answer, commit: &str) -> Answer {
    let headers = answer.headers_mut();
    headers.remove(LAST_MODIFIED);
    headers.remove(ETAG);
    headers.extend(HeaderValue::try_from(format!("\"{commit}\"")).ok().map(|tag| (ETAG, tag)));
    answer
}

fn version(commit: &str) -> Version {
    Version::Tag { tag: commit.to_owned(), is_weak: false }
}

fn not_understood(what: &str) -> Cause {
    let text = format!("the hub's answer is not {what}");
    Cause::Broken(io::Error::new(io::ErrorKind::InvalidData, text))
}

fn broken(error: Box<dyn std::error::Error + Send + Sync>) -> io::Error {
    match error.downcast::<io::Error>() {
        Ok(error) => *error,
        Err(error) => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    }
}
