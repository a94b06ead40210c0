//! Positioned reads through `io_uring`: one thread keeps many under way. Linux only, with the feature
//! `io-uring`; a kernel or a sandbox may refuse it, and the caller then reads in another way.
//!
//! The kernel writes to a buffer until it reports the read's end, whatever this process does
//! meanwhile. So a read owns its buffer and its file from [`UringReader::start`] until
//! [`UringReader::wait`] returns them, and a reader that is dropped waits for what is under way.
#![expect(unsafe_code, reason = "handing buffers to the kernel; docs/safety.md")]

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

use io_uring::{IoUring, Probe, opcode, types};

use crate::error::ReadError;
use crate::sample::StoredBytes;
use crate::source::{Backing, PageCache};

/// Address, position and length of a read around the page cache are multiples of this: the largest
/// logical block of a disk in use.
const DIRECT_ALIGNMENT: u64 = 4096;

/// A direct read covers at most this many files before they are opened anew: a descriptor each.
const MAX_DIRECT_FILES: usize = 256;

/// A number of reads under way at once.
pub struct UringReader {
    ring: IoUring,
    slots: Vec<Option<Read>>,
    free: Vec<usize>,
    /// Reads that ended without the kernel.
    done: VecDeque<Completed>,
    page_cache: PageCache,
    /// By descriptor, the file with `O_DIRECT`, or `None` where that is refused. The first of each
    /// pair keeps the descriptor from being given to another file.
    direct: HashMap<i32, (Arc<File>, Option<Arc<File>>)>,
}

/// The reason why nothing can be read through `io_uring`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UringError {
    /// The system refuses a call: an old kernel, a sandbox, or a limit.
    #[error("{call}: {source}{}", advice(.source))]
    Refused {
        /// The name of the call.
        call: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The kernel has `io_uring` without reads by position.
    #[error("this kernel cannot read files with it, expected Linux 5.6 or later")]
    NoReads,
}

/// The usual cause of a refusal, in brackets.
fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => " (expected Linux 5.6 or later, and no sandbox that hides it)",
        Some(libc::EPERM | libc::EACCES) => {
            " (a sandbox such as a container's seccomp profile, or kernel.io_uring_disabled)"
        }
        Some(libc::ENOMEM) => " (the limit of locked memory, ulimit -l, or no memory)",
        Some(libc::EMFILE | libc::ENFILE) => " (the limit of open files, ulimit -n)",
        _ => "",
    }
}

/// A read that has ended.
#[derive(Debug)]
pub struct Completed {
    /// The number that the read was started with.
    pub tag: u64,
    /// The bytes asked for; whatever they were if the read failed.
    pub bytes: Vec<u8>,
    /// Whether it failed.
    pub result: Result<(), ReadError>,
}

/// A read under way.
struct Read {
    tag: u64,
    stored: StoredBytes,
    /// The file that the kernel reads from.
    file: Arc<File>,
    is_direct: bool,
    bytes: Vec<u8>,
    /// The position in `bytes` at which the kernel writes, and the offset in the file.
    place: usize,
    offset: u64,
    /// Bytes that it is to read, and has read.
    len: usize,
    read: usize,
}

impl UringReader {
    /// A reader of up to `depth` reads at once.
    ///
    /// Every call that reading takes is tried here, because a sandbox may permit some of them only.
    ///
    /// # Errors
    /// If the system has no `io_uring` for this process, or no memory for it.
    pub fn new(depth: u32, page_cache: PageCache) -> Result<Self, UringError> {
        let depth = depth.max(1);
        let refused = |call| move |source| UringError::Refused { call, source };
        let ring = IoUring::new(depth).map_err(refused("io_uring_setup"))?;
        let mut probe = Probe::new();
        match ring.submitter().register_probe(&mut probe) {
            Ok(()) if probe.is_supported(opcode::Read::CODE) => {}
            Ok(()) => return Err(UringError::NoReads),
            // Kernels before 5.6 have neither the probe nor reads by position.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                return Err(UringError::NoReads);
            }
            Err(error) => return Err(refused("io_uring_register")(error)),
        }
        // With nothing to submit.
        ring.submit().map_err(refused("io_uring_enter"))?;
        let slots: Vec<Option<Read>> = (0..depth).map(|_| None).collect();
        let free = (0..slots.len()).rev().collect();
        let done = VecDeque::new();
        let direct = HashMap::new();
        Ok(Self { ring, slots, free, done, page_cache, direct })
    }

    /// Whether no further read can be started before one has ended.
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Whether nothing is left to wait for.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len() && self.done.is_empty()
    }

    /// The capacity of a buffer that holds a read of `len` bytes: around the page cache, blocks are
    /// read whole, into aligned memory.
    pub fn room(&self, len: u64) -> u64 {
        match self.page_cache {
            PageCache::Used => len,
            PageCache::Bypassed => len.saturating_add(3 * DIRECT_ALIGNMENT),
        }
    }

    /// Starts to read `stored` into `bytes`, whose capacity is reused. The kernel gets the request
    /// with
    /// the next [`wait`](Self::wait).
    ///
    /// # Panics
    /// If the reader [`is_full`](Self::is_full).
    pub fn start(&mut self, tag: u64, stored: StoredBytes, mut bytes: Vec<u8>) {
        let Backing::File(file) = stored.source.backing() else {
            let result = stored.read_into(&mut bytes);
            self.done.push_back(Completed { tag, bytes, result });
            return;
        };
        let file = file.current();
        let direct = match self.page_cache {
            PageCache::Used => None,
            PageCache::Bypassed => self.direct_file(&file),
        };
        match Read::prepare(tag, stored, file, direct, bytes) {
            Err(completed) => self.done.push_back(completed),
            // Nothing to ask the kernel for.
            Ok(read) if read.stored.len == 0 => self.done.push_back(read.complete(Ok(()))),
            Ok(read) => {
                let slot = self.free.pop().expect("the caller has seen that the reader has room");
                self.slots[slot] = Some(read);
                self.submit(slot);
            }
        }
    }

    /// Waits until a read has ended and returns it; `None` when no read is under way.
    ///
    /// # Errors
    /// When the system refuses to wait. The reads stay under way.
    pub fn wait(&mut self) -> io::Result<Option<Completed>> {
        loop {
            if let Some(completed) = self.done.pop_front() {
                return Ok(Some(completed));
            }
            if self.free.len() == self.slots.len() {
                return Ok(None);
            }
            let Some(entry) = self.ring.completion().next() else {
                match self.ring.submit_and_wait(1) {
                    Ok(_) => continue,
                    Err(error) if is_transient(&error) => continue,
                    Err(error) => return Err(error),
                }
            };
            let slot = usize::try_from(entry.user_data()).expect("a slot's number");
            let read = self.slots[slot].as_mut().expect("the kernel ends a read once");
            match read.advance(entry.result()) {
                None => self.submit(slot),
                Some(result) => {
                    let read = self.slots[slot].take().expect("it is there");
                    self.free.push(slot);
                    return Ok(Some(read.complete(result)));
                }
            }
        }
    }

    /// Queues what is left of the read in `slot`.
    fn submit(&mut self, slot: usize) {
        let read = self.slots[slot].as_mut().expect("a slot that is in use");
        let rest = &mut read.bytes[read.place + read.read..][..read.len - read.read];
        // What a read leaves undone is read next.
        let len = u32::try_from(rest.len()).unwrap_or(MAX_READ);
        let offset = read.offset + read.read as u64;
        let fd = types::Fd(read.file.as_raw_fd());
        let read = opcode::Read::new(fd, rest.as_mut_ptr(), len).offset(offset);
        let entry = read.build().user_data(slot as u64);
        // SAFETY: descriptor and buffer have to stay valid until the read has ended. Both belong to
        // the `Read` in `slot`: `file` is a counted reference to the open file, and `bytes` is not
        // resized or moved out before `wait` has seen the completion with this slot's number. What
        // `drop` cannot wait for it leaks. The kernel writes `len` bytes at most, which are those
        // of the slice `rest`, and nobody looks at them before.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue has an entry for every slot, and a slot has one read");
    }

    /// The same file with `O_DIRECT`, unless the file system refuses.
    fn direct_file(&mut self, file: &Arc<File>) -> Option<Arc<File>> {
        if self.direct.len() >= MAX_DIRECT_FILES {
            self.direct.clear();
        }
        let entry = self.direct.entry(file.as_raw_fd()).or_insert_with(|| {
            // By descriptor, since the path may name another file by now.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let direct = File::options().read(true).custom_flags(libc::O_DIRECT).open(path);
            (Arc::clone(file), direct.ok().map(Arc::new))
        });
        entry.1.clone()
    }
}

/// The most bytes that Linux reads at once.
const MAX_READ: u32 = 0x7fff_f000;

impl Read {
    /// Makes room for a read, or says that it ends before it starts.
    fn prepare(
        tag: u64,
        stored: StoredBytes,
        file: Arc<File>,
        direct: Option<Arc<File>>,
        mut bytes: Vec<u8>,
    ) -> Result<Self, Completed> {
        let StoredBytes { source, offset, len } = &stored;
        let failed = |bytes, error| Completed { tag, bytes, result: Err(error) };
        if let Err(error) = source.check_range(*offset, *len) {
            return Err(failed(bytes, error));
        }
        let head = if direct.is_some() { offset % DIRECT_ALIGNMENT } else { 0 };
        let padding = if direct.is_some() { DIRECT_ALIGNMENT } else { 0 };
        let span = match direct {
            Some(_) => (head + len).checked_next_multiple_of(DIRECT_ALIGNMENT),
            None => Some(*len),
        };
        let total = span.and_then(|span| usize::try_from(span.checked_add(padding)?).ok());
        let limit = |bytes: Vec<u8>| {
            let limit = bytes.capacity() as u64;
            let location = source.location().clone();
            let what = "bytes to hold in memory";
            failed(bytes, ReadError::Limit { location, what, limit, need: *len })
        };
        let Some(total) = total else { return Err(limit(bytes)) };
        if bytes.try_reserve_exact(total.saturating_sub(bytes.len())).is_err() {
            return Err(limit(bytes));
        }
        bytes.resize(total, 0);
        let alignment = usize::try_from(padding).expect("a small number");
        let place = if alignment > 0 { bytes.as_ptr().align_offset(alignment) } else { 0 };
        let offset = offset - head;
        let len = total - alignment;
        let is_direct = direct.is_some();
        let file = direct.unwrap_or(file);
        Ok(Self { tag, stored, file, is_direct, bytes, place, offset, len, read: 0 })
    }

    /// Takes in the kernel's result; `None` when the read has to continue.
    fn advance(&mut self, result: i32) -> Option<Result<(), ReadError>> {
        let read = match usize::try_from(result) {
            Ok(read) => read,
            Err(_) if matches!(-result, libc::EINTR | libc::EAGAIN) => return None,
            // Read around the page cache is a favour that a file system may take back.
            Err(_) if self.is_direct && -result == libc::EINVAL => return Some(self.read_cached()),
            Err(_) => {
                let error = io::Error::from_raw_os_error(-result);
                return Some(Err(ReadError::io(self.stored.source.location(), error)));
            }
        };
        self.read += read;
        let head = self.stored.offset - self.offset;
        if self.read as u64 >= head + self.stored.len {
            return Some(Ok(()));
        }
        if read == 0 {
            let StoredBytes { source, offset, len: expected } = &self.stored;
            let location = source.location().clone();
            let offset = *offset;
            let expected = *expected;
            return Some(Err(ReadError::ChangedWhileOpen { location, offset, expected }));
        }
        // What follows a part of a block cannot be read directly.
        if self.is_direct { Some(self.read_cached()) } else { None }
    }

    /// Reads all of it again, here and now.
    fn read_cached(&mut self) -> Result<(), ReadError> {
        (self.place, self.offset) = (0, self.stored.offset);
        self.stored.read_into(&mut self.bytes)
    }

    /// Brings the bytes to the front.
    fn complete(mut self, result: Result<(), ReadError>) -> Completed {
        if result.is_ok() {
            let head = self.stored.offset - self.offset;
            // A part of the buffer, whose length is a `usize`.
            let start = self.place + usize::try_from(head).expect("less than the alignment");
            let len = usize::try_from(self.stored.len).expect("it was read");
            if start > 0 {
                self.bytes.copy_within(start..start + len, 0);
            }
            self.bytes.truncate(len);
        }
        Completed { tag: self.tag, bytes: self.bytes, result }
    }
}

impl Drop for UringReader {
    fn drop(&mut self) {
        loop {
            match self.wait() {
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(_) => break,
            }
        }
        // The kernel may still write to these buffers.
        mem::forget(mem::take(&mut self.slots));
    }
}

impl fmt::Debug for UringReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UringReader")
            .field("depth", &self.slots.len())
            .field("under_way", &(self.slots.len() - self.free.len()))
            .field("page_cache", &self.page_cache)
            .finish_non_exhaustive()
    }
}

/// Whether waiting is to be tried again.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
