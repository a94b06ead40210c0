//! The storage seam: bytes by position, wherever they are kept.

use std::any::Any;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::error::ReadError;
use crate::location::Location;
use crate::source::Source;

/// The bytes of one version of one object, read by position.
///
/// This is the trait that a store implements for its objects. Everything that reads data sets reads
/// a [`Source`], and [`Source::from_ranges`] makes one of an object. A
/// [`Storage`](crate::Storage) opens objects by their URL.
///
/// # Contract
///
/// - The length and the [pin](Self::pin) are known when the value is made and do not change. Both
///   methods are called for each sample and must not block.
/// - A read fills the whole buffer with bytes of the pinned version, or it fails. An object that
///   was replaced is [`RangeFault::Changed`], never bytes of the new version.
/// - [`Source`] asks only for ranges inside the object, from any number of threads at once. A read
///   of no bytes succeeds without a request.
/// - Reads may block, and should end soon after [`is_interrupted`](crate::is_interrupted) is true
///   for the thread that waits. Retries, deadlines and hedges are the store's own business; a fault
///   is final.
/// - Hints must return at once. They may do nothing, which is the default.
/// - Faults carry numbers. A message of a server appears in none, unless it is escaped.
///
/// ```
/// use std::sync::Arc;
///
/// use tbl_io::{Pin, RangeFault, Ranges, Source};
///
/// /// An object of zeros.
/// #[derive(Debug)]
/// struct Zeros(u64, Pin);
///
/// impl Ranges for Zeros {
///     fn len(&self) -> u64 {
///         self.0
///     }
///     fn pin(&self) -> &Pin {
///         &self.1
///     }
///     fn read_exact_at(&self, _offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
///         bytes.fill(0);
///         Ok(())
///     }
/// }
///
/// let zeros = Zeros(4, Pin::Version("1".into()));
/// let source = Source::from_ranges("zeros://4", Arc::new(zeros));
/// let mut bytes = [1; 2];
/// source.read_exact_at(2, &mut bytes)?;
/// assert_eq!(bytes, [0; 2]);
/// # Ok::<(), tbl_io::ReadError>(())
/// ```
pub trait Ranges: Send + Sync + fmt::Debug {
    /// Bytes of the object.
    fn len(&self) -> u64;

    /// Whether the object has no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version of the object that all reads return.
    fn pin(&self) -> &Pin;

    /// The part of the object's URL that its location leaves out because it may be secret, such as a
    /// query. Other objects may have the same location then, so it is hashed into the names of cache
    /// entries. It appears nowhere else. The default is nothing.
    fn hidden(&self) -> &str {
        ""
    }

    /// Whether the object is asked for with credentials, so that others may not be meant to read it. The
    /// default is false.
    fn is_secret(&self) -> bool {
        false
    }

    /// Fills `bytes` from `offset` on. Blocks.
    ///
    /// # Errors
    /// The fault that kept the bytes from being read; `bytes` is then unspecified.
    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault>;

    /// Fills several parts of the object, in any order or at once. Blocks until all are read. The
    /// default reads one part after another; a store with a round trip per read overrides it.
    ///
    /// # Errors
    /// The fault of a part; all parts are then unspecified.
    fn read_parts(&self, parts: &mut [Part<'_>]) -> Result<(), PartFault> {
        for (number, part) in parts.iter_mut().enumerate() {
            let read = self.read_exact_at(part.offset, part.bytes);
            read.map_err(|fault| PartFault { part: number, fault })?;
        }
        Ok(())
    }

    /// Announces that the range will be read soon. Must not block.
    fn will_need(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// Releases whatever is kept of the range, so that its next read is a cold one.
    fn dont_need(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// The same bytes in a local file or in memory, if they are available. They are then mapped
    /// instead of read, so they must stay those of the pinned version.
    fn local(&self) -> Option<Source> {
        None
    }

    /// Reads that no thread waits for, if the store has them.
    fn background(&self) -> Option<&dyn BackgroundReads> {
        None
    }
}

/// Reads of an object that no thread waits for.
///
/// A loader that knows which samples it will need requests many of them at once this way, without a
/// thread for each.
pub trait BackgroundReads {
    /// Begins to read from the start of the first part to the end of the last, and hands the parts
    /// to `receiver` in order, each when its last byte is there. What lies between parts is
    /// dropped.
    ///
    /// Parts are ascending, disjoint, not empty, and inside the object. `receiver` is dropped when
    /// the read has ended; if that is before the last part, the read has failed. A blocking read of
    /// the same bytes gives the fault. Must not block.
    ///
    /// The caller needs the first byte in about `needed_in`; zero means that it waits, and `None`
    /// that the time is unknown. A store may be patient with a late answer until then.
    fn start(
        &self,
        parts: Vec<Range<u64>>,
        needed_in: Option<Duration>,
        receiver: Box<dyn PartReceiver>,
    ) -> UnderWay;
}

/// Takes the parts of a range as they arrive. Must not block.
pub trait PartReceiver: Send {
    /// Memory for the next part, whose bytes have begun to arrive, preferably with capacity for all
    /// `len` bytes. Its content is overwritten.
    fn buffer(&mut self, len: usize) -> Vec<u8>;

    /// The next part, in such memory.
    fn receive(&mut self, part: Vec<u8>);
}

/// A read under way. It ends when this is dropped.
pub struct UnderWay(#[expect(dead_code, reason = "dropping it is its use")] Box<dyn Any + Send>);

impl UnderWay {
    /// A read that ends when `guard` is dropped.
    pub fn new(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderWay").finish_non_exhaustive()
    }
}

/// A part of an object, and where its bytes go.
#[derive(Debug)]
pub struct Part<'a> {
    /// The position of its first byte in the object.
    pub offset: u64,
    /// The memory to fill.
    pub bytes: &'a mut [u8],
}

/// The fault of one of several parts.
#[derive(Debug)]
pub struct PartFault {
    /// The number of the part, from 0.
    pub part: usize,
    /// The fault.
    pub fault: RangeFault,
}

/// The version of an object, as its store names it.
///
/// Two objects with equal locations, [hidden](Ranges::hidden) parts and pins have equal bytes if both pins are a
/// [`Version`](Self::Version). Caches rely on that. A store whose URLs mean other objects at other
/// endpoints makes the endpoint a part of its pins. Credentials are never part of a pin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pin {
    /// A name that changes with the bytes: a strong `ETag`, a generation, a commit.
    Version(Arc<str>),
    /// A name that may stay the same when the bytes change: a weak `ETag`, a date.
    Weak(Arc<str>),
    /// The store names no versions.
    Unknown,
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(name) => write!(f, "`{}`", name.escape_debug()),
            Self::Weak(name) => write!(f, "weak `{}`", name.escape_debug()),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// The reason why an object, or a range of it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum RangeFault {
    /// The object ends before the range does.
    #[error("received {received} bytes")]
    Short {
        /// Bytes that were received.
        received: u64,
    },
    /// The object was replaced.
    #[error("the object is now version {found}")]
    Changed {
        /// The version that is current now.
        found: Pin,
    },
    /// The object was replaced since its shard index was made.
    #[error("the object is now version {found}, other than in {index}")]
    ChangedSinceIndexed {
        /// The version that is current now.
        found: Pin,
        /// The shard index.
        index: Location,
    },
    /// The store no longer has the object in the version that a shard index names. Stores that read
    /// earlier versions say so of an object that has another name now.
    #[error(
        "no such object in the version that {index} names; make the index anew where the shards \
         are now, with tl index"
    )]
    MissingSinceIndexed {
        /// The shard index.
        index: Location,
    },
    /// The store refused the request.
    #[error(
        "{}, {}",
        Status { status: *status, code: code.as_deref() },
        Effort { tries: *tries, elapsed: *elapsed }
    )]
    Refused {
        /// The status of the last answer.
        status: u16,
        /// The store's name for the reason: letters, digits, `.`, `-` and `_`.
        code: Option<Box<str>>,
        /// Requests that were sent.
        tries: u32,
        /// The time they took.
        elapsed: Duration,
    },
    /// The store gave no answer, or broke off in the middle of one.
    #[error("{source}, {}", Effort { tries: *tries, elapsed: *elapsed })]
    NoAnswer {
        /// Requests that were sent.
        tries: u32,
        /// The time they took.
        elapsed: Duration,
        source: io::Error,
    },
    /// The server cannot be used to read ranges.
    #[error("unusable answer: {0}")]
    Unusable(Unusable),
    /// The bucket is in another region than the one that was asked.
    #[error("the bucket is in {0}: set region={0}", region.escape_debug())]
    OtherRegion {
        /// Its region, as the store names it.
        region: Box<str>,
    },
    /// A request was not sent, because its host may not be asked.
    #[error("the host {} may not be asked for this object", host.escape_debug())]
    Forbidden { host: Box<str> },
    /// A listed object has a key that cannot be requested.
    #[error(
        "invalid key \"{}\" in the listing, expected parts between slashes that are not empty, \".\" or \"..\", without control characters; rename the object",
        key.escape_debug()
    )]
    InvalidKey { key: Box<str> },
    /// There are no credentials for the store.
    #[error("no usable credentials: {source}")]
    Credentials { source: Box<dyn std::error::Error + Send + Sync> },
    /// The bytes are made of those of another source, which cannot be read.
    #[error(transparent)]
    OfSource(Box<ReadError>),
    /// The bytes are not needed any more: see [`interruptible`](crate::interruptible).
    #[error("the read was interrupted")]
    Interrupted,
    /// The process was forked, and the connections belong to its parent.
    #[error(
        "the process was forked after the store was opened, expected the store to be opened in \
         this process"
    )]
    Forked,
}

/// The reason why the answers of a server cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// The server sends the whole object when a range is requested.
    #[error("status {status} to a request for a range, expected 206 with that range")]
    IgnoresRanges {
        /// The status of the answer.
        status: u16,
    },
    /// The server sends another range than the requested one.
    #[error("another range than the requested one")]
    OtherRange,
    /// The body is longer than its range.
    #[error("more bytes than requested")]
    TooLong,
    /// The body is compressed, so that ranges mean other bytes.
    #[error("a compressed body, expected no Content-Encoding")]
    Compressed,
    /// The answer has no length.
    #[error("no Content-Length")]
    NoLength,
    /// The answer names no version, so that a replaced object would go unnoticed.
    #[error("neither ETag nor Last-Modified, expected a version (unpinned=true reads without one)")]
    NoVersion,
    /// The server redirects to another region, host or scheme.
    #[error("a redirect that is not followed")]
    Redirect,
}

/// Formats a status with the store's code, if there is one.
struct Status<'a> {
    status: u16,
    code: Option<&'a str>,
}

impl fmt::Display for Status<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "status {} {code}", self.status),
            None => write!(f, "status {}", self.status),
        }
    }
}

/// Formats the number of tries and their time.
struct Effort {
    tries: u32,
    elapsed: Duration,
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.tries == 1 { "try" } else { "tries" };
        write!(f, "{} {plural} in {:.1} s", self.tries, self.elapsed.as_secs_f64())
    }
}
