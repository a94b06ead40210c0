//! Uploads that nobody completed or ended, as a process that was killed leaves them.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::DATE;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use object_store::client::HttpRequest;
use object_store::path::Path;
use object_store::signer::SignedUrlOptions;
use tbl_io::{Location, RangeFault, ReadError};

use crate::address::{Address, Store};
use crate::answer::{find, unescape};
use crate::bucket::{Bucket, failed};
use crate::cause::Cause;
use crate::clients::Signed;
use crate::gate::{MAX_DOCUMENT, Ticket};
use crate::put::NewObject;
use crate::store::{Refusal, RemoteStores};
use crate::transfer::refusal;
use crate::tries::repeated;

/// The time for which the signature of a request is good.
const SIGNED_FOR: Duration = Duration::from_secs(300);

/// An upload in a bucket of S3 that is neither complete nor ended. Its parts are stored, and paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingUpload {
    /// The object that it would become.
    pub object: Location,
    /// The time at which it was begun, if the store says so.
    pub begun: Option<SystemTime>,
    /// The time since then, by the clock of the store.
    pub age: Option<Duration>,
    key: String,
    id: String,
}

/// A page of a listing of uploads.
#[derive(Debug, Default)]
struct Page {
    uploads: Vec<Found>,
    /// The key and the identity that the next page follows.
    next: Option<[String; 2]>,
    /// The time of the store.
    now: Option<SystemTime>,
}

#[derive(Debug)]
struct Found {
    key: String,
    id: String,
    begun: Option<SystemTime>,
}

impl Signed {
    /// A page of the uploads below a prefix.
    async fn page(&self, prefix: &str, after: Option<&[String; 2]>) -> Result<Page, Cause> {
        let mut query = vec![("uploads", ""), ("prefix", prefix)];
        if let Some([key, id]) = after {
            query.extend([("key-marker", key.as_str()), ("upload-id-marker", id)]);
        }
        let options = SignedUrlOptions::new().with_query(query);
        let bucket = Path::default();
        let url = self.signer.signed_url_opts(Method::GET, &bucket, SIGNED_FOR, &options);
        let url = url.await.map_err(|error| failed(&error))?;
        let ticket = Ticket::new(0);
        let mut request = HttpRequest::new(Bytes::new().into());
        *request.uri_mut() = url.as_str().parse().map_err(|_| not_read())?;
        request.extensions_mut().insert(ticket.clone());
        // The answer is the ticket's.
        drop(self.http.execute(request).await);
        let answer = ticket.take().ok_or_else(not_read)?.map_err(Cause::from)?;
        let (parts, body) = answer.into_parts();
        if parts.status != StatusCode::OK {
            return Err(refusal(&parts, body).await);
        }
        let body = Limited::new(body, MAX_DOCUMENT).collect().await.map_err(|_| not_read())?;
        let mut page = Page::parse(&body.to_bytes()).ok_or_else(not_read)?;
        page.now = parts.headers.get(DATE).and_then(|date| parse_date(date.to_str().ok()?));
        Ok(page)
    }
}

fn not_read() -> Cause {
    let text = "the store's answer is not a page of a listing of uploads";
    Cause::Broken(io::Error::new(io::ErrorKind::InvalidData, text))
}

impl Page {
    fn parse(document: &[u8]) -> Option<Self> {
        let mut page = Self::default();
        // Names of elements have no attributes there but that of the root.
        let mut rest = document.get(find(document, b"<ListMultipartUploadsResult")?..)?;
        let head = rest;
        while let Some((upload, after)) = element(rest, "Upload") {
            page.uploads.push(Found {
                key: text(upload, "Key")?,
                id: text(upload, "UploadId")?,
                begun: text(upload, "Initiated").as_deref().and_then(parse_time),
            });
            rest = after;
        }
        if text(head, "IsTruncated").as_deref() == Some("true") {
            page.next = Some([text(head, "NextKeyMarker")?, text(head, "NextUploadIdMarker")?]);
        }
        Some(page)
    }
}

/// The bytes in the first element of this name, and those after it.
fn element<'a>(document: &'a [u8], name: &str) -> Option<(&'a [u8], &'a [u8])> {
    let start = format!("<{name}>");
    let end = format!("</{name}>");
    let rest = document.get(find(document, start.as_bytes())? + start.len()..)?;
    let len = find(rest, end.as_bytes())?;
    Some((rest.get(..len)?, rest.get(len + end.len()..)?))
}

fn text(document: &[u8], name: &str) -> Option<String> {
    unescape(std::str::from_utf8(element(document, name)?.0).ok()?)
}

/// Reads `2022-01-31T12:00:00.000Z`, of a year from 1970 on.
fn parse_time(text: &str) -> Option<SystemTime> {
    let number = |start: usize, end: usize| text.get(start..end)?.parse::<u64>().ok();
    let is_utc = text.ends_with('Z') && text.get(10..11) == Some("T");
    let year = number(0, 4).filter(|year| is_utc && (1970..=9999).contains(year))?;
    let month = number(5, 7).filter(|month| (1..=12).contains(month))?;
    let day = number(8, 10).filter(|day| (1..=31).contains(day))?;
    time_of(year, month, day, text.get(11..19)?)
}

/// Reads the date of an answer: `Mon, 31 Jan 2022 12:00:00 GMT`.
fn parse_date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, date) = text.strip_suffix(" GMT")?.split_once(", ")?;
    let month = MONTHS.iter().position(|name| date.get(3..6) == Some(name))? as u64 + 1;
    let day = date.get(0..2)?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let year = date.get(7..11)?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    time_of(year, month, day, date.get(12..20)?)
}

/// A time of a day, `12:34:56`.
fn time_of(year: u64, month: u64, day: u64, time: &str) -> Option<SystemTime> {
    let number = |start: usize| time.get(start..start + 2)?.parse::<u64>().ok();
    // Days since 1970, in years that begin in March (Hinnant 2014).
    let year = year - u64::from(month <= 2);
    let days = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + days;
    let seconds = number(0)? * 3_600 + number(3)? * 60 + number(6)?;
    let since = days.checked_sub(719_468)? * 86_400 + seconds;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since))
}

impl RemoteStores {
    /// The uploads to objects below a prefix that are neither complete nor ended, also those that are
    /// under way. The prefix is that of S3: `s3://bucket/train` includes `s3://bucket/train-0.tbl`.
    ///
    /// # Errors
    /// [`ReadError`]: for other stores as well, which remove such parts themselves.
    pub fn pending_uploads(&self, prefix: &Location) -> Result<Vec<PendingUpload>, ReadError> {
        let listed = self.list_pending(prefix);
        listed.map_err(|refusal| refusal.error(self.shown(prefix)))
    }

    fn list_pending(&self, prefix: &Location) -> Result<Vec<PendingUpload>, Refusal> {
        let unsupported = |text| Refusal::Io(io::Error::new(io::ErrorKind::Unsupported, text));
        let address = Address::parse(prefix.url().unwrap_or_default())?;
        let (name, key) = match &address {
            Address::Bucket { store: Store::S3, bucket, key, .. } => (bucket.clone(), key.clone()),
            Address::Bucket { store: Store::Gcs, .. } => {
                return Err(unsupported(
                    "uploads of Google Cloud Storage are not listed here; a lifecycle rule of the \
                     bucket ends them (AbortIncompleteMultipartUpload)",
                ));
            }
            Address::Bucket { store: Store::Azure, .. } => {
                return Err(unsupported(
                    "Azure removes the blocks of uploads that are not complete after a week, and \
                     has no list of them",
                ));
            }
            Address::Repository { .. } | Address::Web(_) => {
                return Err(unsupported("only buckets have uploads, expected s3://BUCKET/PREFIX"));
            }
        };
        let (net, bucket) = self.reach(&address)?;
        let Some(signed) = bucket.client().and_then(|client| client.signed.clone()) else {
            return Err(unsupported(
                "uploads are listed with credentials, expected no anonymous=true",
            ));
        };
        let listing = all(bucket, signed, key);
        let Listing { found, now } = net.engine().block_on(listing).and_then(|listed| listed)?;
        let pending = found.into_iter().map(|found| PendingUpload {
            object: Location::new(format!("s3://{name}/{}", found.key)),
            begun: found.begun,
            age: found.age(now),
            key: found.key,
            id: found.id,
        });
        Ok(pending.collect())
    }

    /// Ends an upload, whose parts the store removes. One that is complete by now stays.
    ///
    /// # Errors
    /// [`ReadError`], of the store.
    pub fn end_upload(&self, upload: &PendingUpload) -> Result<(), ReadError> {
        let ended = self.end_pending(upload);
        ended.map_err(|refusal| refusal.error(upload.object.clone()))
    }

    fn end_pending(&self, upload: &PendingUpload) -> Result<(), Refusal> {
        let text = upload.object.url().unwrap_or_default();
        let bucket = text.split('/').nth(2).unwrap_or_default();
        let address = Address::parse(&format!("s3://{bucket}/"))?;
        let (net, bucket) = self.reach(&address)?;
        let path = Path::parse(&upload.key).ok().filter(|path| path.as_ref() == upload.key);
        let path = path.ok_or(crate::address::Defect::BadKey)?;
        let id = upload.id.clone();
        let ended = async move { NewObject { bucket, path, is_new: false }.abort(&id).await };
        Ok(net.engine().block_on(ended).and_then(|ended| ended)?)
    }
}

impl Found {
    /// The time since it was begun.
    fn age(&self, now: SystemTime) -> Option<Duration> {
        self.begun.map(|begun| now.duration_since(begun).unwrap_or_default())
    }
}

/// The uploads below a prefix, and the time of the store.
struct Listing {
    found: Vec<Found>,
    now: SystemTime,
}

/// All uploads below a prefix.
async fn all(bucket: Arc<Bucket>, signed: Signed, prefix: String) -> Result<Listing, RangeFault> {
    let mut found = Vec::new();
    let mut next = None;
    loop {
        let page = repeated(&bucket, || signed.page(&prefix, next.as_ref())).await?;
        // Whatever else a store lists is not meant.
        found.extend(page.uploads.into_iter().filter(|upload| upload.key.starts_with(&prefix)));
        // A store that names the same place again would be asked for ever.
        if page.next.is_none() || page.next == next {
            // Only a store that does not tell the time is trusted to have that of this machine.
            return Ok(Listing { found, now: page.now.unwrap_or_else(SystemTime::now) });
        }
        next = page.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_stores_are_read() {
        let seconds = |text| {
            let time = parse_time(text)?;
            Some(time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
        };
        assert_eq!(seconds("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(seconds("2000-02-29T12:34:56Z"), Some(951_827_696));
        assert_eq!(seconds("2026-11-26T15:30:00.123Z"), Some(1_795_707_000));
        for wrong in ["", "2022-13-01T00:00:00Z", "1969-01-01T00:00:00Z", "2022-01-01 00:00:00Z"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dates_of_answers_are_read() {
        let same = |date, time| assert_eq!(parse_date(date).unwrap(), parse_time(time).unwrap());
        same("Sat, 01 Jan 2022 00:00:00 GMT", "2022-01-01T00:00:00Z");
        same("Tue, 29 Feb 2000 12:34:56 GMT", "2000-02-29T12:34:56Z");
        for wrong in
            ["", "Sat, 01 Jan 2022", "Sat, 32 Jan 2022 00:00:00 GMT", "x, y GMT", "é, é GMT"]
        {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_page_has_uploads_and_perhaps_a_next_one() {
        let text = "<?xml version=\"1.0\"?><ListMultipartUploadsResult xmlns=\"x\"><Bucket>b</Bucket>\
                    <KeyMarker></KeyMarker><NextKeyMarker>b&amp;c</NextKeyMarker>\
                    <NextUploadIdMarker>2</NextUploadIdMarker><IsTruncated>true</IsTruncated>\
                    <Upload><Key>a&lt;&#x62;</Key><UploadId>1</UploadId></Upload>\
                    <Upload><Key>b&amp;c</Key><UploadId>2</UploadId></Upload>\
                    </ListMultipartUploadsResult>";
        let page = Page::parse(text.as_bytes()).unwrap();
        let keys: Vec<_> = page.uploads.iter().map(|found| found.key.as_str()).collect();
        assert_eq!(keys, ["a<b", "b&c"]);
        assert_eq!(page.next, Some(["b&c".to_owned(), "2".to_owned()]));
        assert!(Page::parse(b"<Error/>").is_none());
    }
}
