//! TAR archives that are compressed as a whole: made plain once, since their members cannot be read
//! by position. No sample is ever decompressed on its own.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use flate2::bufread::GzDecoder;
use rustix::fs::{FlockOperation, flock};

use crate::atomic_file::{AtomicFile, Placement};
use crate::error::ReadError;
use crate::identity::Told;
use crate::interrupt::is_interrupted;
use crate::source::Source;

/// The place of plain copies of compressed TAR archives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unpack {
    /// Files in this folder, which is created if it does not exist. Later openings of the same archive
    /// find them; a changed archive gets another one. Processes that open one archive at the same
    /// time unpack it once. The copy of an archive that was changed in the last two seconds, or whose
    /// version cannot be told, is discarded as those of [`Discard`](Self::Discard).
    Keep(PathBuf),
    /// Files without a name in this folder, for as long as the data set is open.
    Discard(PathBuf),
}

/// Bytes read and written at a time.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// The largest window of a Zstandard frame, 128 MiB: that of `zstd` without `--ultra` or `--long=28`.
pub(crate) const MAX_WINDOW_LOG: u32 = 27;

/// The time between two looks at a lock that another process holds.
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

/// The compression of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compressor {
    Gzip,
    Zstd,
}

impl Compressor {
    pub(crate) fn of(source: &Source) -> Result<Option<Self>, ReadError> {
        let mut magic = [0; 4];
        if source.len() < magic.len() as u64 {
            return Ok(None);
        }
        source.read_exact_at(0, &mut magic)?;
        Ok(match magic {
            [0x1f, 0x8b, 8, _] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd] => Some(Self::Zstd),
            _ => None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// A plain copy of `source` if it is compressed, with the same location; otherwise `source`.
///
/// # Errors
/// [`ReadError::Compressed`] with the offset in the compressed file, [`ReadError::Io`].
pub(crate) fn unpacked(source: Source, place: &Unpack) -> Result<Source, ReadError> {
    let Some(compressor) = Compressor::of(&source)? else { return Ok(source) };
    let file = match place {
        Unpack::Keep(folder) => keep(&source, compressor, folder)?,
        Unpack::Discard(folder) => {
            let target = folder.join(".unpacked.tar");
            let draft = make(&source, compressor, &target, false)?;
            draft.file().try_clone().map_err(|error| ReadError::io(folder, error))?
        }
    };
    Source::of_file(source.location(), file)
}

/// Opens the copy in `folder`, which is made unless it is there.
fn keep(source: &Source, compressor: Compressor, folder: &Path) -> Result<File, ReadError> {
    fs::create_dir_all(folder).map_err(|error| ReadError::io(folder, error))?;
    let mut id = Vec::new();
    let told = source.content_id(&mut id);
    let target = folder.join(copy_name(source, &id));
    let open = || File::options().read(true).open(&target);
    // A file that was changed in the last seconds may change again without a sign: its copy cannot be
    // found again by the id.
    let is_known = told == Some(Told::ByTimes);
    if is_known && let Ok(file) = open() {
        return Ok(file);
    }
    let _lock = Lock::take(&target)?;
    if is_known && let Ok(file) = open() {
        return Ok(file);
    }
    let io_error = |error| ReadError::io(&target, error);
    let draft = make(source, compressor, &target, is_known)?;
    let file = draft.file().try_clone().map_err(io_error)?;
    let mut id_after = Vec::new();
    let told_after = source.content_id(&mut id_after);
    if is_known && told_after == told && id_after == id {
        draft.commit().map_err(io_error)?;
    }
    Ok(file)
}

/// The file's name without the compressor's extension, and a number made from `id`.
fn copy_name(source: &Source, id: &[u8]) -> PathBuf {
    /// Names of files have 255 bytes at most.
    const MAX_STEM_BYTES: usize = 200;
    let name = Path::new(source.location().as_os_str()).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let name = name.split(['?', '#']).next().unwrap_or_default();
    let stem = [".gz", ".zst", ".zstd", ".tgz", ".tzst"].iter().find_map(|end| {
        let at = name.len().checked_sub(end.len())?;
        name.get(at..)?.eq_ignore_ascii_case(end).then(|| name.get(..at))?
    });
    let stem = stem.unwrap_or(name);
    let stem = stem.strip_suffix(".tar").unwrap_or(stem);
    let most = (0..=MAX_STEM_BYTES).rev().find(|&end| stem.is_char_boundary(end)).unwrap_or(0);
    let stem = stem.get(..most).unwrap_or(stem);
    format!("{stem}.{:016x}.tar", fnv1a(id)).into()
}

/// FNV-1a with 64 bits: the same in every version of this library.
fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Keeps other processes from unpacking the same archive. Without it they do the same work.
struct Lock {
    path: PathBuf,
    _file: Option<File>,
}

impl Lock {
    fn take(target: &Path) -> Result<Self, ReadError> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{name}.lock"));
        let opened = File::options().create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(|error| ReadError::io(&path, error))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK) if is_interrupted() => {
                    return Err(ReadError::io(&path, io::ErrorKind::Interrupted.into()));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => thread::sleep(LOCK_INTERVAL),
                Ok(()) => return Ok(Self { path, _file: Some(file) }),
                // Some network file systems have no locks.
                Err(_) => return Ok(Self { path, _file: None }),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A process that still waits for it finds the copy.
        fs::remove_file(&self.path).unwrap_or(());
    }
}

/// Writes the plain archive into a file that will be called `target`.
fn make(
    source: &Source,
    compressor: Compressor,
    target: &Path,
    sync: bool,
) -> Result<AtomicFile, ReadError> {
    let io_error = |error| ReadError::io(target, error);
    let draft =
        AtomicFile::create(target, Placement { overwrite: true, sync }).map_err(io_error)?;
    let input = Input::new(source);
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let mut out = Output { inner: draft.file(), fault: None };
    let done = match compressor {
        Compressor::Gzip => gunzip(&mut input, &mut out),
        Compressor::Zstd => unzstd(&mut input, &mut out),
    };
    let Err(error) = done else { return Ok(draft) };
    Err(out.fault.map_or_else(|| input_error(input, compressor, error), io_error))
}

/// The error of `source`, or of the compressed data.
fn input_error(input: BufReader<Input>, compressor: Compressor, error: io::Error) -> ReadError {
    let offset = input.get_ref().at - input.buffer().len() as u64;
    let Input { source, fault, .. } = input.into_inner();
    let location = source.location().clone();
    let by = compressor.name();
    fault.unwrap_or(ReadError::Compressed { location, offset, by, source: error })
}

/// The first four bytes of what gzip compressed in `source`; `None` if it did not compress it, or if
/// these cannot be unpacked.
pub(crate) fn gunzipped_front(source: &Source) -> Result<Option<[u8; 4]>, ReadError> {
    if Compressor::of(source)? != Some(Compressor::Gzip) {
        return Ok(None);
    }
    let mut input = BufReader::new(Input::new(source));
    let mut front = [0; 4];
    let read = GzDecoder::new(&mut input).read_exact(&mut front);
    match input.into_inner().fault {
        Some(fault) => Err(fault),
        None => Ok(read.is_ok().then_some(front)),
    }
}

/// A file that is compressed by gzip in memory, with the same location. It may have at most `limit`
/// bytes.
///
/// # Errors
/// [`ReadError::Compressed`] with the offset in the compressed file, [`ReadError::Limit`].
pub(crate) fn gunzipped(source: &Source, limit: u64) -> Result<Source, ReadError> {
    let input = Input::new(source);
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let mut out = Output { inner: Limited { bytes: Vec::new(), limit }, fault: None };
    if let Err(error) = gunzip(&mut input, &mut out) {
        if out.fault.is_none() {
            return Err(input_error(input, Compressor::Gzip, error));
        }
        let location = source.location().clone();
        let what = "bytes to hold in memory";
        return Err(ReadError::Limit { location, what, limit, need: limit.saturating_add(1) });
    }
    Ok(Source::from_bytes(source.location(), out.inner.bytes))
}

/// Memory that grows with what arrives, up to a limit.
struct Limited {
    bytes: Vec<u8>,
    limit: u64,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let need = self.bytes.len() as u64 + bytes.len() as u64;
        if need > self.limit || self.bytes.try_reserve(bytes.len()).is_err() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Unpacks members one after the other, as `gzip -d` does: zeros after the last one are padding.
fn gunzip(input: &mut BufReader<Input>, out: &mut Output<impl Write>) -> io::Result<()> {
    loop {
        copy(&mut GzDecoder::new(&mut *input), out)?;
        loop {
            let next = input.fill_buf()?;
            match next.iter().position(|&byte| byte != 0) {
                _ if next.is_empty() => return Ok(()),
                Some(0) => break,
                Some(zeros) => {
                    input.consume(zeros);
                    let text = "bytes after the padding at the end";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
                None => {
                    let zeros = next.len();
                    input.consume(zeros);
                }
            }
        }
    }
}

fn unzstd(input: &mut BufReader<Input>, out: &mut Output<impl Write>) -> io::Result<()> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    copy(&mut decoder, out)
}

fn copy(from: &mut impl Read, out: &mut Output<impl Write>) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let len = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(io::Error::new(error.kind(), "the data ends early"));
            }
            Err(error) => return Err(error),
        };
        if let Err(error) = out.inner.write_all(buffer.get(..len).unwrap_or_default()) {
            let kind = error.kind();
            out.fault = Some(error);
            return Err(kind.into());
        }
    }
}

/// The compressed file from front to end. A decoder passes on errors of `io` alone, so that the
/// source's own is kept aside.
#[derive(Debug)]
pub(crate) struct Input {
    source: Source,
    at: u64,
    fault: Option<ReadError>,
}

impl Input {
    pub(crate) fn new(source: &Source) -> Self {
        Self { source: source.clone(), at: 0, fault: None }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// The bytes that were read.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// The source's own error, if the last read failed with one.
    pub(crate) fn take_fault(&mut self) -> Option<ReadError> {
        self.fault.take()
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len() - self.at;
        let len = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let bytes = bytes.get_mut(..len).unwrap_or_default();
        let read = if is_interrupted() {
            Err(ReadError::io(self.source.location(), io::ErrorKind::Interrupted.into()))
        } else {
            self.source.read_exact_at(self.at, bytes)
        };
        if let Err(error) = read {
            self.fault = Some(error);
            // Not `Interrupted`, which means another try.
            return Err(io::Error::other("reading failed"));
        }
        self.at += len as u64;
        Ok(len)
    }
}

/// The plain bytes. The error of a write is kept aside.
struct Output<W> {
    inner: W,
    fault: Option<io::Error>,
}
