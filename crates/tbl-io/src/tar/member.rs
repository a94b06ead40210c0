//! The kinds of an archive's members, and the members that are not samples.

use std::fmt;

/// The types of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberKind {
    /// A file: a sample or a field of one.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    SymbolicLink,
    /// A link to an earlier member.
    HardLink,
    /// A character or block device.
    Device,
    /// A FIFO.
    Fifo,
    /// A file stored without its holes (GNU, PAX).
    Sparse,
    /// The rest of a file that started in an earlier volume.
    MultiVolume,
    /// A type that this version does not know, with its type flag.
    Unknown(u8),
}

impl MemberKind {
    pub(crate) fn of(type_flag: u8, is_sparse: bool, path: &[u8]) -> Self {
        match type_flag {
            b'0' | b'\0' | b'7' if is_sparse => Self::Sparse,
            // V7 had no type for directories; GNU tar and others still read them so.
            b'0' | b'\0' if path.ends_with(b"/") => Self::Directory,
            b'0' | b'\0' | b'7' => Self::Regular,
            b'1' => Self::HardLink,
            b'2' => Self::SymbolicLink,
            b'3' | b'4' => Self::Device,
            b'5' | b'D' => Self::Directory,
            b'6' => Self::Fifo,
            b'S' => Self::Sparse,
            b'M' => Self::MultiVolume,
            other => Self::Unknown(other),
        }
    }

    /// Whether members of this kind have no data in most archives, whatever their size field says,
    /// and some in others (PAX hard links, GNU directory listings). What follows the header
    /// decides.
    pub(crate) fn may_lack_data(self) -> bool {
        match self {
            Self::Directory | Self::SymbolicLink | Self::HardLink | Self::Device | Self::Fifo => {
                true
            }
            Self::Regular | Self::Sparse | Self::MultiVolume | Self::Unknown(_) => false,
        }
    }
}

impl fmt::Display for MemberKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regular => "file",
            Self::Directory => "directory",
            Self::SymbolicLink => "symbolic link",
            Self::HardLink => "hard link",
            Self::Device => "device",
            Self::Fifo => "FIFO",
            Self::Sparse => "sparse file",
            Self::MultiVolume => "part of a multi-volume file",
            Self::Unknown(flag) => return write!(f, "unknown type '{}'", flag.escape_ascii()),
        })
    }
}

/// How many members of each type an archive has; PAX headers and long names are parts of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberCounts {
    /// Files.
    pub regular: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub symbolic_links: u64,
    /// Hard links.
    pub hard_links: u64,
    /// Character and block devices and FIFOs.
    pub devices: u64,
    /// Sparse files.
    pub sparse: u64,
    /// Multi-volume parts and unknown types.
    pub unknown: u64,
    /// The number of hidden files: names with a leading dot, `__MACOSX`, `Thumbs.db`,
    /// `desktop.ini`.
    pub hidden: u64,
    /// The number of files without an image, where others have one.
    pub other_files: u64,
}

impl MemberCounts {
    /// The counts of members by their type, which the headers alone decide.
    pub(super) fn of_kinds(&mut self) -> [&mut u64; 7] {
        [
            &mut self.regular,
            &mut self.directories,
            &mut self.symbolic_links,
            &mut self.hard_links,
            &mut self.devices,
            &mut self.sparse,
            &mut self.unknown,
        ]
    }

    pub(super) fn add(&mut self, kind: MemberKind) {
        *match kind {
            MemberKind::Regular => &mut self.regular,
            MemberKind::Directory => &mut self.directories,
            MemberKind::SymbolicLink => &mut self.symbolic_links,
            MemberKind::HardLink => &mut self.hard_links,
            MemberKind::Device | MemberKind::Fifo => &mut self.devices,
            MemberKind::Sparse => &mut self.sparse,
            MemberKind::MultiVolume | MemberKind::Unknown(_) => &mut self.unknown,
        } += 1;
    }
}

/// A member that holds data but is not a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedMember {
    /// Its name as stored.
    pub path: Vec<u8>,
    /// The reason why it is not a sample.
    pub kind: MemberKind,
    /// The offset of its header.
    pub offset: u64,
}
