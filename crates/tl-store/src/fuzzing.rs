//! A web server that answers whatever a fuzzer says, in virtual time.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::RANGE;
use http_body_util::BodyExt;
use http_body_util::channel::{Channel, Sender};
use tokio::runtime::Builder;
use tokio::time::Instant;

use crate::address::Address;
use crate::bucket::{Bucket, Limits};
use crate::counters::Counters;
use crate::gate::{Answer, Gate, Hosts, Transport, is_metadata};
use crate::read::{Need, read};
use crate::store::key;

const DEADLINE: Duration = Duration::from_secs(20);
/// The time after the deadline in which a fault finds out the current version.
const GRACE: Duration = Duration::from_secs(6);

/// The length of the object, as honest answers name it.
const LEN: u64 = 1 << 20;

/// Choices, taken from the fuzzer's bytes. Zeros follow the last one.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }
}

/// The answers to come, and the bodies that never end.
#[derive(Default)]
struct State {
    script: Vec<u8>,
    stalled: Vec<Sender<Bytes, io::Error>>,
}

struct Server(Mutex<State>);

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

/// An answer whose body has not been sent.
struct Draft {
    headers: http::response::Builder,
    parts: Vec<Bytes>,
    ending: Ending,
}

#[derive(Clone, Copy)]
enum Ending {
    Whole,
    Reset,
    Stall,
}

#[async_trait]
impl Transport for Server {
    async fn send(&self, request: http::Request<Bytes>, _: usize) -> io::Result<Answer> {
        let host = request.uri().host().unwrap_or_default();
        assert!(!is_metadata(host), "a request to {host}");
        let draft = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let mut choices = Choices(&state.script);
            let draft = draft(&mut choices, &asked(&request).unwrap_or(0..1));
            state.script = choices.0.to_vec();
            draft.ok_or(io::ErrorKind::ConnectionReset)?
        };
        let (mut sender, body) = Channel::new(draft.parts.len().max(1));
        for part in draft.parts {
            sender.send_data(part).await.map_err(io::Error::other)?;
        }
        match draft.ending {
            Ending::Whole => {}
            Ending::Reset => sender.abort(io::ErrorKind::ConnectionReset.into()),
            Ending::Stall => {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).stalled.push(sender);
            }
        }
        draft.headers.body(BodyExt::boxed(body)).map_err(io::Error::other)
    }
}

/// The range that a request asks for.
fn asked(request: &http::Request<Bytes>) -> Option<Range<u64>> {
    let text = request.headers().get(RANGE)?.to_str().ok()?;
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some(first.parse().ok()?..last.parse::<u64>().ok()?.checked_add(1)?)
}

/// The byte at `place` of a version: every version has others.
fn byte_of(version: u8, place: u64) -> u8 {
    place.wrapping_mul(31).to_le_bytes()[1] ^ place.to_le_bytes()[0] ^ version.wrapping_mul(85)
}

/// The next answer; none when the script is over.
fn draft(choices: &mut Choices<'_>, asked: &Range<u64>) -> Option<Draft> {
    const STATUSES: [u16; 16] =
        [206, 206, 206, 206, 206, 200, 204, 301, 307, 403, 404, 412, 416, 429, 500, 503];
    if choices.0.is_empty() {
        return None;
    }
    let status = choices.of(&STATUSES);
    let start = asked.start.wrapping_add_signed(choices.of(&[0, 0, 0, 0, 1, -1, 4096]));
    let end = asked.end.min(LEN).wrapping_add_signed(choices.of(&[0, 0, 0, 0, 1, -1]));
    let len = choices.of(&[LEN, LEN, LEN, LEN - 1, LEN + 1, end, u64::MAX]);
    let (version, tag) = match (choices.of(&[1, 1, 1, 2, 3]), choices.byte() % 8) {
        (version, 0) => (version, Some(format!("W/\"{version}\""))),
        (version, 1) => (version, Some(version.to_string())),
        // Nothing tells replaced objects without a version from each other.
        (_, 2) => (1, None),
        (version, _) => (version, Some(format!("\"{version}\""))),
    };
    let mut headers = http::Response::builder().status(status);
    if let Some(tag) = tag {
        headers = headers.header("etag", tag);
    }
    headers = match choices.byte() % 8 {
        0 => headers,
        1 => headers.header("content-range", format!("bytes */{len}")),
        2 => headers.header("content-range", "bytes 0-18446744073709551615/18446744073709551615"),
        _ => {
            let last = end.wrapping_sub(1);
            headers.header("content-range", format!("bytes {start}-{last}/{len}"))
        }
    };
    headers = match choices.byte() % 16 {
        0 => headers.header("content-encoding", "gzip"),
        1 => headers.header("content-length", "18446744073709551615"),
        2 => headers.header("retry-after", "18446744073709551615"),
        3 => headers.header("location", "http://169.254.169.254/latest/meta-data/"),
        4 => headers.header("location", "http://store.test/other"),
        5 => headers.header("location", "//store.test:99999/"),
        6 => headers.header("x-error-code", "a\tb"),
        _ => headers,
    };
    let promised = end.saturating_sub(start).min(2 * LEN);
    let sent = match choices.byte() % 8 {
        0 => promised / 2,
        1 => promised + 1,
        2 => 0,
        _ => promised,
    };
    let body: Bytes = (0..sent).map(|at| byte_of(version, start.wrapping_add(at))).collect();
    let step = 1 + usize::from(choices.byte()) * 257;
    let parts = (0..body.len()).step_by(step);
    let parts = parts.map(|at| body.slice(at..body.len().min(at + step))).collect();
    let ending = choices.of(&[Ending::Whole, Ending::Whole, Ending::Reset, Ending::Stall]);
    Some(Draft { headers, parts, ending })
}

/// Reads a range from a web server that answers as `data` says.
///
/// # Panics
/// If bytes were passed on that are not those of the range or are of two versions, if the read ended
/// well after its deadline, or if an address of the local link was asked.
pub fn http_response(data: &[u8]) {
    let mut choices = Choices(data);
    let start = u64::from(choices.byte()) * 4_500;
    let range = start..start + choices.of(&[1, 100, 5_000, 70_000]);
    let state = State { script: choices.0.to_vec(), stalled: Vec::new() };
    let server = Arc::new(Server(Mutex::new(state)));
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without I/O starts").block_on(async {
        let counters = Arc::<Counters>::default();
        let gate = Gate::new(server, Hosts::Web { allow_http: true }, Arc::clone(&counters));
        let limits = Limits { connections: 4, deadline: DEADLINE, hedge: true };
        let bucket = Arc::new(Bucket::of_web(gate, true, limits, counters));
        let address = Address::parse("http://store.test/b/k").expect("a valid address");
        let key = key(address).expect("the address of an object");
        let begun = Instant::now();
        let mut received = Vec::new();
        let sink = |bytes: Bytes| received.extend_from_slice(&bytes);
        let result = read(&bucket, &key, range.clone(), None, Need::Now, sink).await;
        let took = begun.elapsed();
        assert!(took <= DEADLINE + GRACE, "the read took {took:?}");
        let is_of = |version: u8| {
            let expected = (range.start..).map(|place| byte_of(version, place));
            received.iter().copied().eq(expected.take(received.len()))
        };
        assert!((1..=3).any(is_of), "bytes of another place or of two versions");
        if let Ok(head) = result {
            assert_eq!(received.len() as u64, range.end.min(head.len) - range.start);
        }
    });
}
