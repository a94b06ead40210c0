//! Read-only mappings that survive a file which shrinks.
//!
//! Touching a mapped page that lies wholly beyond the end of its file raises SIGBUS. Another
//! process can bring that about at any time, so no check beforehand can rule it out. The first
//! mapping installs a SIGBUS handler that looks the faulting address up among the live mappings.
//! When one contains it, the handler puts zero pages over the rest of that mapping, marks it as
//! damaged and returns, and the read continues. [`Mapped::with`] looks at the mark after each
//! access
//! and reports [`ReadError::ChangedWhileOpen`], or EIO if the file is unchanged and its disk failed,
//! instead of a result that may have come from such
//! pages. A file cut inside a page raises nothing: the rest of that page reads as zeros. So an
//! access also looks at the file's length, unless `range_end` finds a byte that is not zero. Any
//! other SIGBUS goes to the handler that was there before.
//!
//! A program that later installs another SIGBUS handler, without calling ours, takes the
//! guard away.
//!
//! [`Mapped::slice`] lends bytes for as long as the mapping is borrowed. It checks the length when
//! it lends; a caller that must know that the file was not cut short while it used the bytes
//! asks [`Mapped::is_damaged`] or lends again afterwards.
//!
//! What is not promised: bytes that another process writes into the mapped part of the file show
//! up at any moment, between two reads of the same byte as well. Callers copy, hash or compute on
//! bytes whose values cannot hurt, and re-check what they copied.
#![expect(unsafe_code, reason = "mapping files and handling SIGBUS; docs/safety.md")]

mod damage;
mod prefetch;
mod range_end;

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst, compiler_fence};
use std::sync::{Arc, OnceLock};

use memmap2::{Mmap, MmapOptions};

use crate::error::ReadError;
use crate::local_file::LocalFile;
use crate::location::Location;
use crate::source::{Backing, Source};

/// Mappings that may be live at once. Each costs 32 bytes of static memory and one comparison in
/// the handler; every mapped file also needs a descriptor, of which processes get 1024 by default.
const MAX_MAPPINGS: usize = 4096;

/// Part of a file mapped into memory, read-only.
///
/// ```
/// let source = tbl_io::Source::from_bytes("in memory", b"abcdef".to_vec());
/// let mapped = tbl_io::Mapped::new(&source, 0, source.len())?;
/// assert_eq!(mapped.with(1, 2, |bytes| bytes.to_vec())?, b"bc");
/// # Ok::<(), tbl_io::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Mapped {
    location: Location,
    offset: u64,
    len: usize,
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    /// `registration` is dropped before `map` (declaration order), so that the handler never
    /// knows a range that is not mapped.
    File {
        registration: Registration,
        map: Mmap,
        file: Arc<LocalFile>,
    },
    Bytes(Arc<Vec<u8>>),
    Empty,
}

impl Mapped {
    /// Maps `len` bytes of `source` from `offset` on.
    ///
    /// # Errors
    /// [`ReadError::ChangedWhileOpen`] when the range is not inside the file,
    /// [`ReadError::Limit`] when the address space or the table of mappings is too small for it,
    /// [`ReadError::Io`] when the system refuses, [`ReadError::NotMapped`] for an object of a store.
    pub fn new(source: &Source, offset: u64, len: u64) -> Result<Self, ReadError> {
        source.check_range(offset, len)?;
        let limit = |what, limit, need| ReadError::Limit {
            location: source.location().clone(),
            what,
            limit,
            need,
        };
        // `isize::MAX` is the largest slice.
        let mappable = isize::MAX.unsigned_abs();
        let size = usize::try_from(len)
            .ok()
            .filter(|&size| size <= mappable)
            .ok_or_else(|| limit("bytes to map", mappable as u64, len))?;
        let local = source.local();
        let memory = match local.as_deref().map(Source::backing) {
            _ if size == 0 => Memory::Empty,
            None | Some(Backing::Ranges(_)) => {
                return Err(ReadError::NotMapped { location: source.location().clone() });
            }
            Some(Backing::Memory(bytes)) => Memory::Bytes(Arc::clone(bytes)),
            Some(Backing::File(file)) => {
                install_handler().map_err(|error| ReadError::io(source.location(), error))?;
                let open = file.current();
                // SAFETY: the caller of `map` must see to it that the bytes stay valid while they
                // are borrowed. `with` and `slice` lend them only while `self` is borrowed, and
                // with it `map`. A file that shrinks meanwhile is caught by the handler installed
                // above once `Registration` has made the range known, which is before the first
                // borrow, until `registration` is dropped, which no borrow outlives. Bytes that
                // change are in the module's "not promised" paragraph.
                let map = unsafe { MmapOptions::new().offset(offset).len(size).map(&open) }
                    .map_err(|error| ReadError::io(source.location(), error))?;
                let registration = Registration::new(&map).ok_or_else(|| {
                    limit("files mapped at once", MAX_MAPPINGS as u64, MAX_MAPPINGS as u64 + 1)
                })?;
                Memory::File { registration, map, file: Arc::clone(file) }
            }
        };
        Ok(Self { location: source.location().clone(), offset, len: size, memory })
    }

    /// The file's name, as its source has it.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The offset of the mapped part in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of bytes mapped.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether the mapped part is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Calls `read` with `len` bytes of the file from `offset` on (counted from the start of the
    /// file) and returns its result, unless the file turns out to have been cut short.
    ///
    /// The bytes may change while `read` looks at them if another process writes to the file.
    ///
    /// # Errors
    /// [`ReadError::ChangedWhileOpen`] when the range is not inside the mapped part, or when the
    /// file is too short for it now or was at any earlier access; [`ReadError::Io`] with EIO when
    /// a page of an unchanged file could not be read.
    pub fn with<R>(
        &self,
        offset: u64,
        len: u64,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, ReadError> {
        let bytes = self.range(offset, len)?;
        let Memory::File { registration, .. } = &self.memory else { return Ok(read(bytes)) };
        let result = call_opaque(read, bytes);
        let reaches_end = self.reaches_end(offset, len);
        if registration.is_damaged() {
            return Err(self.damaged(offset, len));
        }
        if !reaches_end {
            self.check_file_len(offset, len)?;
        }
        Ok(result)
    }

    /// `len` bytes of the file from `offset` on (counted from the start of the file), without
    /// looking at them. They stay readable whatever happens to the file, and are those of the file
    /// as long as [`is_damaged`](Self::is_damaged) and a second `slice` of the range say so.
    ///
    /// The bytes may change at any moment if another process writes to the file.
    ///
    /// # Errors
    /// [`ReadError::ChangedWhileOpen`] when the range is not inside the mapped part, or when the
    /// file is too short for it now or was at any earlier access; [`ReadError::Io`] with EIO when
    /// a page of an unchanged file could not be read.
    pub fn slice(&self, offset: u64, len: u64) -> Result<&[u8], ReadError> {
        let bytes = self.range(offset, len)?;
        if let Memory::File { registration, .. } = &self.memory {
            if registration.is_damaged() {
                return Err(self.damaged(offset, len));
            }
            self.check_file_len(offset, len)?;
        }
        Ok(bytes)
    }

    /// As [`slice`](Self::slice), without a look at the file: a caller that lends many ranges calls
    /// [`check`](Self::check) once, after what it needs of them was copied. `None` outside the mapped
    /// part.
    pub fn lend(&self, offset: u64, len: u64) -> Option<&[u8]> {
        self.range(offset, len).ok()
    }

    /// Whether the file still has all of the mapped part, and so had it whenever bytes of it were
    /// looked at before.
    ///
    /// # Errors
    /// [`ReadError::ChangedWhileOpen`], [`ReadError::Io`].
    pub fn check(&self) -> Result<(), ReadError> {
        // What was read before this stays before it, as in `call_opaque`.
        compiler_fence(SeqCst);
        self.with(self.offset, self.len as u64, |_| ())
    }

    /// The mapped bytes of a range, whether or not the file still has them.
    fn range(&self, offset: u64, len: u64) -> Result<&[u8], ReadError> {
        let mapped = match &self.memory {
            Memory::Empty => &[][..],
            Memory::Bytes(bytes) => {
                let base = usize::try_from(self.offset).ok();
                let mapped = base.and_then(|base| bytes.get(base..)?.get(..self.len));
                mapped.ok_or_else(|| self.changed(offset, len))?
            }
            Memory::File { map, .. } => &map[..],
        };
        let start = offset.checked_sub(self.offset).and_then(|start| usize::try_from(start).ok());
        let range = start.zip(usize::try_from(len).ok());
        let bytes = range.and_then(|(start, len)| mapped.get(start..)?.get(..len));
        bytes.ok_or_else(|| self.changed(offset, len))
    }

    /// Fills `bytes` from the file, starting at `offset` (counted from the start of the file).
    ///
    /// # Errors
    /// As for [`with`](Self::with).
    pub fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), ReadError> {
        self.with(offset, bytes.len() as u64, |mapped| bytes.copy_from_slice(mapped))
    }

    /// Whether a page could not be read at some access, because the file was cut short or its disk
    /// failed. Every later access fails.
    pub fn is_damaged(&self) -> bool {
        match &self.memory {
            Memory::File { registration, .. } => registration.is_damaged(),
            Memory::Bytes(_) | Memory::Empty => false,
        }
    }

    /// Tells the processor that the range will be read within microseconds, so that it brings the
    /// range into its caches meanwhile. A hint, on x86-64 alone, which reads nothing: pages that are
    /// not in memory stay where they are.
    pub fn prefetch(&self, offset: u64, len: u64) {
        prefetch::prefetch(self.range(offset, len).unwrap_or_default());
    }

    /// Tells the operating system that the range will be read soon. A hint, as
    /// [`Source::will_need`].
    pub fn will_need(&self, offset: u64, len: u64) {
        let Memory::File { map, .. } = &self.memory else { return };
        let Ok(bytes) = self.range(offset, len) else { return };
        let start = bytes.as_ptr().addr() - map.as_ptr().addr();
        // Advice may be refused; the read does not depend on it.
        drop(map.advise_range(memmap2::Advice::WillNeed, start, bytes.len()));
    }
}

/// Runs `read` so that none of its loads can move past the check for damage that follows: a
/// call that is not inlined, on a slice whose origin the compiler does not know.
#[inline(never)]
fn call_opaque<R>(read: impl FnOnce(&[u8]) -> R, bytes: &[u8]) -> R {
    let result = read(black_box(bytes));
    compiler_fence(SeqCst);
    result
}

/// One mapped range as the handler sees it. `sequence` is odd while `start` and `end` change, so
/// a slot that reads the same even number before and after holds a matching pair.
struct Slot {
    taken: AtomicBool,
    damaged: AtomicBool,
    sequence: AtomicU64,
    start: AtomicUsize,
    end: AtomicUsize,
}

impl Slot {
    const fn new() -> Self {
        Self {
            taken: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            sequence: AtomicU64::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
        }
    }

    fn set_range(&self, start: usize, end: usize) {
        self.sequence.fetch_add(1, SeqCst);
        self.start.store(start, SeqCst);
        self.end.store(end, SeqCst);
        self.sequence.fetch_add(1, SeqCst);
    }

    /// The range's end if it contains `address` and did not change while it was read.
    fn end_if_contains(&self, address: usize) -> Option<usize> {
        let before = self.sequence.load(SeqCst);
        let start = self.start.load(SeqCst);
        let end = self.end.load(SeqCst);
        let stable = before.is_multiple_of(2) && self.sequence.load(SeqCst) == before;
        (stable && start <= address && address < end).then_some(end)
    }
}

static SLOTS: [Slot; MAX_MAPPINGS] = [const { Slot::new() }; MAX_MAPPINGS];

/// The smallest number of slots that contains every one ever taken: the handler looks no further.
static SLOTS_USED: AtomicUsize = AtomicUsize::new(0);

/// A mapping's place in the table that the handler searches.
#[derive(Debug)]
struct Registration {
    slot: usize,
}

impl Registration {
    /// `None` when the table is full.
    fn new(map: &Mmap) -> Option<Self> {
        let page = page_bytes();
        let first = map.as_ptr().addr();
        let start = first - first % page;
        // A mapping ends inside the address space, and so does its last page.
        let end = (first + map.len()).next_multiple_of(page);
        let slot = SLOTS.iter().position(|slot| !slot.taken.swap(true, SeqCst))?;
        SLOTS_USED.fetch_max(slot + 1, SeqCst);
        SLOTS[slot].damaged.store(false, SeqCst);
        SLOTS[slot].set_range(start, end);
        Some(Self { slot })
    }

    fn is_damaged(&self) -> bool {
        SLOTS[self.slot].damaged.load(SeqCst)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        SLOTS[self.slot].set_range(0, 0);
        SLOTS[self.slot].taken.store(false, SeqCst);
    }
}

fn page_bytes() -> usize {
    static PAGE_BYTES: OnceLock<usize> = OnceLock::new();
    *PAGE_BYTES.get_or_init(|| {
        // SAFETY: `sysconf` takes any name and touches no memory of ours.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        // POSIX requires an answer of at least 1; 4096 is the smallest page in use.
        usize::try_from(page_bytes).unwrap_or(4096).max(1)
    })
}

/// The handler that was in force before ours, for every fault outside our mappings.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

fn install_handler() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    INSTALLED
        .get_or_init(|| install().map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL)))
        .map_err(io::Error::from_raw_os_error)
}

fn install() -> io::Result<()> {
    page_bytes();
    // SAFETY: `sigaction` is plain old data for which all zeros is a valid value.
    let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action only queries; `previous` is valid for writes.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut previous) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Known before the handler can run. Only `install_handler` calls this, once.
    PREVIOUS.get_or_init(|| previous);
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
    action.sa_sigaction = handler as libc::sighandler_t;
    // On the alternate stack that Rust gives its threads, as the previous handler expects.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `on_sigbus` has the signature that SA_SIGINFO asks for and calls only functions that
    // are safe in a handler (see there); `action` is valid for reads.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The SIGBUS handler. It runs on the thread whose read faulted, in the middle of that read, so it
/// uses atomics, `mmap` and `sigaction` only: no allocation, no lock, no panic.
extern "C" fn on_sigbus(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let errno = errno_location();
    // SAFETY: `errno_location` is the calling thread's own variable.
    let saved_errno = unsafe { *errno };
    // SAFETY: the kernel passes a valid `siginfo_t` to a handler with SA_SIGINFO.
    let info_ref = unsafe { &*info };
    let code = info_ref.si_code;
    // Only a fault carries an address; a signal sent by `kill` has other data in its place.
    let covered = code == libc::BUS_ADRERR && {
        // SAFETY: BUS_ADRERR is one of the codes for which the kernel fills in the address.
        cover_fault(unsafe { info_ref.si_addr() }.addr())
    };
    if !covered {
        call_previous(signal, info, context, code);
    }
    // SAFETY: as above.
    unsafe { *errno = saved_errno };
}

/// Marks the mapping that contains `address` as damaged and puts zero pages over it from that page
/// to its end. Returns whether there was such a mapping and the pages are in place.
///
/// The faulting read borrows its mapping, so that mapping's slot cannot change meanwhile and is
/// found; a slot that does change belongs to another mapping and is passed over.
fn cover_fault(address: usize) -> bool {
    let page = page_bytes();
    for slot in SLOTS.iter().take(SLOTS_USED.load(SeqCst)) {
        let Some(end) = slot.end_if_contains(address) else { continue };
        slot.damaged.store(true, SeqCst);
        let start = address - address % page;
        // SAFETY: MAP_FIXED replaces what is mapped at `start..end`. That range lies inside one
        // live mapping of this module (`end_if_contains`), which belongs to one `Mapped`, is only
        // ever read, and is unmapped as a whole by `Mmap`. Pages of it that still had contents are
        // not missed: from now on the damage mark makes every access to this mapping fail.
        let zeros = unsafe {
            libc::mmap(
                std::ptr::with_exposed_provenance_mut(start),
                end - start,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        return zeros != libc::MAP_FAILED;
    }
    false
}

/// Hands a SIGBUS from outside our mappings to the handler installed before ours.
fn call_previous(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
    code: libc::c_int,
) {
    let Some(previous) = PREVIOUS.get() else { return };
    let sent_by_a_process = code <= 0;
    match previous.sa_sigaction {
        libc::SIG_IGN if sent_by_a_process => {}
        // The kernel does not let a fault be ignored either.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: `sigaction` is plain old data for which all zeros is valid: SIG_DFL.
            let default: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: `default` is valid for reads. A fault happens again when this handler
            // returns, now with the default action.
            unsafe { libc::sigaction(signal, &raw const default, std::ptr::null_mut()) };
            if sent_by_a_process {
                // SAFETY: `raise` takes any signal number; it takes effect after the return.
                unsafe { libc::raise(signal) };
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the program that installed it set SA_SIGINFO, so it has this signature.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without SA_SIGINFO, `sa_handler` shares the field and has this signature.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

fn errno_location() -> *mut libc::c_int {
    #[cfg(any(target_os = "linux", target_os = "emscripten"))]
    // SAFETY: takes no arguments and returns a pointer that is valid for the thread's life.
    return unsafe { libc::__errno_location() };
    #[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
    // SAFETY: as above.
    return unsafe { libc::__errno() };
    #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
    // SAFETY: as above.
    return unsafe { libc::__error() };
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    /// A fault in somebody else's mapping, with our handler in force: the process has to end by
    /// SIGBUS as it would have without us.
    #[test]
    fn a_fault_outside_our_mappings_still_ends_the_process() {
        const CHILD: &str = "TBL_IO_FAULTING_CHILD";
        if std::env::var_os(CHILD).is_none() {
            let name = "mmap::tests::a_fault_outside_our_mappings_still_ends_the_process";
            let mut child = Command::new(std::env::current_exe().unwrap());
            let status = child.args(["--exact", name]).env(CHILD, "1").status().unwrap();
            assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
            return;
        }
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        install_handler().unwrap();
        // SAFETY: reading it is meant to raise SIGBUS, which ends this process.
        let foreign = unsafe { MmapOptions::new().len(4096).map(&file) }.unwrap();
        file.set_len(0).unwrap();
        black_box(foreign[0]);
    }
}
