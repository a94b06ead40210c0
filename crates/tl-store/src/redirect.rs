//! Requests to web servers, which may redirect to others.

use bytes::Bytes;
use http::header::{AUTHORIZATION, LOCATION};
use http::{HeaderName, HeaderValue, Method, Uri};
use reqwest::Url;

use crate::answer::Defect;
use crate::cause::Cause;
use crate::gate::{Answer, Gate};

/// Redirects that are followed for one request.
const REDIRECTS: usize = 5;

/// A token, and the only server that it is sent to.
pub(crate) struct Bearer {
    pub(crate) origin: String,
    pub(crate) value: HeaderValue,
}

/// Asks a web server, and those that it redirects to. Returns the address of the last one, too.
pub(crate) async fn follow(
    gate: &Gate,
    method: &Method,
    mut url: Url,
    headers: &[(HeaderName, String)],
    pool: usize,
    bearer: Option<&Bearer>,
) -> Result<(Answer, Url), Cause> {
    for _ in 0..=REDIRECTS {
        let uri: Uri = url.as_str().parse().map_err(|_| refused())?;
        let mut request = http::Request::new(Bytes::new());
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri;
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(|_| refused())?;
            request.headers_mut().insert(name, value);
        }
        if let Some(Bearer { value, .. }) = bearer.filter(|bearer| bearer.origin == origin(&url)) {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        let answer = gate.send(request, pool).await?;
        if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok((answer, url));
        }
        let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let next = location.and_then(|location| url.join(location).ok()).ok_or_else(refused)?;
        if next.scheme() != url.scheme() {
            return Err(refused());
        }
        url = next;
    }
    Err(refused())
}

/// `SCHEME://HOST[:PORT]` of a URL.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The cause of a redirect that is not followed.
pub(crate) fn refused() -> Cause {
    Cause::Defect(Defect::Unusable(tbl_io::Unusable::Redirect))
}
