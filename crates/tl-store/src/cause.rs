//! Reasons of failed requests, and which of them may pass.

use std::io;
use std::time::Duration;

use http::StatusCode;
use tbl_io::{RangeFault, Unusable};

use crate::answer::Defect;
use crate::gate::NoAnswer;

/// The reason why one request failed.
#[derive(Debug)]
pub(crate) enum Cause {
    Status {
        status: u16,
        code: Option<Box<str>>,
        retry_after: Option<Duration>,
    },
    /// No answer, or one that broke off.
    Broken(io::Error),
    /// No byte for this long.
    Silent(Duration),
    /// The body ended after this many bytes of the range.
    Short {
        received: u64,
    },
    /// Bytes still arrived at the deadline.
    Unfinished {
        received: u64,
        asked: u64,
    },
    Defect(Defect),
    OtherRegion {
        region: Box<str>,
    },
    Forbidden {
        host: Box<str>,
    },
    /// The key of a listed object, which the client cannot ask for.
    Key(Box<str>),
    Credentials(Box<dyn std::error::Error + Send + Sync>),
}

impl Cause {
    /// Whether the same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Status { status, code, .. } => {
                let is_transient = matches!(
                    code.as_deref(),
                    Some("SlowDown" | "InternalError" | "RequestTimeout")
                );
                is_transient || matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
            }
            // A certificate that is refused stays so.
            Self::Broken(error) => error.kind() != io::ErrorKind::InvalidData,
            Self::Silent(_) | Self::Short { .. } | Self::Unfinished { .. } => true,
            Self::Defect(_)
            | Self::OtherRegion { .. }
            | Self::Forbidden { .. }
            | Self::Key(_)
            | Self::Credentials(_) => false,
        }
    }

    /// Whether the store may have done what was asked, and the answer was lost.
    pub(crate) fn may_be_done(&self) -> bool {
        match self {
            Self::Broken(_) | Self::Silent(_) | Self::Short { .. } | Self::Unfinished { .. } => {
                true
            }
            Self::Status { status, .. } => *status < 300 || *status >= 500,
            Self::Defect(_)
            | Self::OtherRegion { .. }
            | Self::Forbidden { .. }
            | Self::Key(_)
            | Self::Credentials(_) => false,
        }
    }

    /// Whether another object has the name, or another request makes one at the same time. A store has
    /// other conflicts, such as one with a lease or a policy.
    pub(crate) fn is_in_the_way(&self) -> bool {
        let Self::Status { status, code, .. } = self else { return false };
        let conflicts = ["BlobAlreadyExists", "ConditionalRequestConflict", "PreconditionFailed"];
        let is_conflict = code.as_deref().is_some_and(|code| conflicts.contains(&code));
        *status == 412 || *status == 409 && is_conflict
    }

    /// Whether the store asks for fewer requests.
    pub(crate) fn is_throttling(&self) -> bool {
        matches!(self, Self::Status { status, code, .. }
            if crate::counters::is_throttling(*status) || code.as_deref() == Some("SlowDown"))
    }

    /// Whether nothing is known but that no byte came.
    pub(crate) fn is_silence(&self) -> bool {
        matches!(self, Self::Silent(_))
    }

    /// Whether no connection was made at all.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, Self::Broken(error) if matches!(
            error.kind(),
            io::ErrorKind::NotConnected | io::ErrorKind::ConnectionRefused
        ))
    }

    /// The fault of a range after `tries` requests.
    pub(crate) fn fault(self, endpoint: Option<&str>, tries: u32, elapsed: Duration) -> RangeFault {
        let is_unreachable = self.is_unreachable();
        match self {
            Self::Status { status: 412, .. } => RangeFault::Changed { found: tbl_io::Pin::Unknown },
            Self::Status { status, .. } if StatusCode::from_u16(status).is_ok_and(redirects) => {
                RangeFault::Unusable(Unusable::Redirect)
            }
            Self::Status { status, code, .. } => {
                RangeFault::Refused { status, code, tries, elapsed }
            }
            Self::Broken(error) => {
                // The URL of an object does not name the endpoint.
                let source = match endpoint.filter(|_| is_unreachable) {
                    Some(endpoint) => io::Error::new(error.kind(), format!("{endpoint}: {error}")),
                    None => error,
                };
                RangeFault::NoAnswer { tries, elapsed, source }
            }
            Self::Silent(silence) => {
                let source = io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no byte for {:.1} s", silence.as_secs_f64()),
                );
                RangeFault::NoAnswer { tries, elapsed, source }
            }
            Self::Short { received } => {
                let text = format!("the answer ended after {received} bytes");
                let source = io::Error::new(io::ErrorKind::UnexpectedEof, text);
                RangeFault::NoAnswer { tries, elapsed, source }
            }
            Self::Unfinished { received, asked } => {
                let text = format!("received {received} of {asked} bytes by the deadline");
                let source = io::Error::new(io::ErrorKind::TimedOut, text);
                RangeFault::NoAnswer { tries, elapsed, source }
            }
            Self::Defect(Defect::Unusable(unusable)) => RangeFault::Unusable(unusable),
            Self::Defect(Defect::Changed(version)) => {
                RangeFault::Changed { found: version.pin(endpoint) }
            }
            Self::OtherRegion { region } => RangeFault::OtherRegion { region },
            Self::Forbidden { host } => RangeFault::Forbidden { host },
            Self::Key(key) => RangeFault::InvalidKey { key },
            Self::Credentials(source) => RangeFault::Credentials { source },
        }
    }
}

fn redirects(status: StatusCode) -> bool {
    status.is_redirection()
}

impl From<NoAnswer> for Cause {
    fn from(error: NoAnswer) -> Self {
        match error {
            NoAnswer::Forbidden { host } => Self::Forbidden { host },
            NoAnswer::Broken(error) => Self::Broken(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_every_conflict_is_an_object_in_the_way() {
        let is_in_the_way = |status, code: Option<&str>| {
            Cause::Status { status, code: code.map(Into::into), retry_after: None }.is_in_the_way()
        };
        assert!(is_in_the_way(412, None));
        assert!(is_in_the_way(409, Some("BlobAlreadyExists")));
        assert!(is_in_the_way(409, Some("ConditionalRequestConflict")));
        assert!(!is_in_the_way(409, Some("LeaseAlreadyPresent")));
        assert!(!is_in_the_way(409, Some("OperationAborted")));
        assert!(!is_in_the_way(409, None) && !is_in_the_way(403, Some("BlobAlreadyExists")));
    }
}
