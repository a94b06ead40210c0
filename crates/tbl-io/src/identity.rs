//! Properties that tell a file from others, and from its earlier versions, without reading it.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use crate::location::Location;
use crate::ranges::Pin;

/// No file system's clock stands still for longer: FAT has ticks of 2 s, ext3 and many network file
/// systems of 1 s, others of a few milliseconds.
const TICK: Duration = Duration::from_secs(2);

/// Appends to `id` what tells this content from others: the file's name without its folders, inode
/// number, length, and the times at which its bytes and its inode were last changed.
///
/// Length and time of change alone are not enough: shards of equally many raw images are equally
/// long, and unpacking sets their times to whole seconds or all to one. The inode's own time
/// cannot be set, so that a file that is written over and given its old time is another one, once
/// the clock has gone on ([`Told`]). The device is left out, because network file systems get a new number whenever they are mounted.
pub(crate) fn push(location: &OsStr, metadata: &Metadata, id: &mut Vec<u8>) {
    for number in [metadata.ino(), metadata.len()] {
        id.extend_from_slice(&number.to_le_bytes());
    }
    for number in [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()]
    {
        id.extend_from_slice(&number.to_le_bytes());
    }
    let name = Path::new(location).file_name().unwrap_or_default().as_bytes();
    id.extend_from_slice(&(name.len() as u64).to_le_bytes());
    id.extend_from_slice(name);
}

/// Appends the identity of an object of a store to `id`: its URL, of which `hidden` is the part that the
/// location leaves out, its length and its version. `None` for an object without a version.
pub(crate) fn push_object(
    location: &Location,
    hidden: &str,
    len: u64,
    pin: &Pin,
    id: &mut Vec<u8>,
) -> Option<Told> {
    let (version, told) = match pin {
        Pin::Version(version) => (version, Told::ByTimes),
        Pin::Weak(version) => (version, Told::ByBytes),
        Pin::Unknown => return None,
    };
    id.extend_from_slice(&len.to_le_bytes());
    for text in [version.as_bytes(), location.as_os_str().as_bytes(), hidden.as_bytes()] {
        id.extend_from_slice(&(text.len() as u64).to_le_bytes());
        id.extend_from_slice(text);
    }
    Some(told)
}

/// Whether its identity tells a file from itself before it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Its times, or the version of an object, would differ if the content did.
    ByTimes,
    /// Only a checksum of the bytes would tell: it was changed so lately that the next change may
    /// get the same time, or its file system stores no times.
    ByBytes,
}

/// Whether a file system writes down when files are changed, once that was asked for.
pub(crate) type Times = OnceLock<bool>;

impl Told {
    /// As `metadata` and the file system say; the latter is asked once.
    pub(crate) fn by_times(
        metadata: &Metadata,
        times: &Times,
        file_system: impl FnOnce() -> rustix::io::Result<rustix::fs::StatFs>,
    ) -> Self {
        let is_settled = is_settled(metadata.ctime(), metadata.ctime_nsec(), SystemTime::now());
        if is_settled && *times.get_or_init(|| has_times(file_system())) {
            Self::ByTimes
        } else {
            Self::ByBytes
        }
    }
}

/// Whether no later change can have the time of this one, in seconds and nanoseconds since 1970. A
/// time in the future comes from a clock that differs, and settles when this clock reaches it.
fn is_settled(seconds: i64, nanoseconds: i64, now: SystemTime) -> bool {
    let Ok(now) = now.duration_since(SystemTime::UNIX_EPOCH) else { return false };
    let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds))
    else {
        // Before 1970.
        return seconds < 0;
    };
    let Some(changed) = Duration::from_secs(seconds).checked_add(TICK) else { return false };
    changed.checked_add(Duration::from_nanos(nanoseconds.into())).is_some_and(|end| end <= now)
}

/// File systems that are made in one piece have the times that their maker gave them, often one for
/// all, and number files in order: the same file of two such images differs in nothing.
#[cfg(target_os = "linux")]
fn has_times(file_system: rustix::io::Result<rustix::fs::StatFs>) -> bool {
    /// squashfs, EROFS, ISO 9660, cramfs, romfs (`linux/magic.h`).
    const IMAGES: [u32; 5] = [0x7371_7368, 0xe0f5_e1e2, 0x9660, 0x28cd_3d45, 0x7275];
    file_system.is_ok_and(|system| {
        // The type is a word of the processor in some systems; the numbers have 32 bits.
        let magic = u32::try_from(i128::from(system.f_type) & 0xffff_ffff);
        magic.is_ok_and(|magic| !IMAGES.contains(&magic))
    })
}

#[cfg(not(target_os = "linux"))]
fn has_times(file_system: rustix::io::Result<rustix::fs::StatFs>) -> bool {
    file_system.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(changed: (i64, i64), now: (u64, u32)) -> bool {
        let now = SystemTime::UNIX_EPOCH + Duration::new(now.0, now.1);
        is_settled(changed.0, changed.1, now)
    }

    #[test]
    fn a_change_is_settled_when_every_clock_has_gone_on() {
        assert!(!settled((1000, 500), (1000, 500)));
        assert!(!settled((1000, 500), (1002, 499)));
        assert!(settled((1000, 500), (1002, 500)));
        assert!(!settled((2000, 0), (1000, 0)), "a clock that is ahead");
        assert!(settled((0, 0), (1000, 0)) && settled((-5, 1), (1000, 0)));
        assert!(!settled((i64::MAX, 999_999_999), (u64::from(u32::MAX), 0)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn images_of_file_systems_have_no_times_of_their_own() {
        let mut system = rustix::fs::statfs("/").unwrap();
        for (magic, expected) in [(0xef53, true), (0x6969, true), (0x7371_7368, false)] {
            system.f_type = magic;
            assert_eq!(has_times(Ok(system)), expected, "{magic:x}");
        }
        assert!(!has_times(Err(rustix::io::Errno::IO)));
    }
}
