//! The source of bytes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;
use std::fs::File;
use std::io;

/// Bytes that any number of threads read at any position, such as an open file.
///
/// Bytes in memory implement it through `&[u8]`, `Vec<u8>` and `Arc`s of them; blocks that are
/// stored uncompressed are then borrowed from there.
pub trait ReadAt {
    /// How many bytes there are. They are asked once, when a file is opened.
    ///
    /// # Errors
    /// The error of the operating system.
    fn size(&self) -> io::Result<u64>;

    /// Fills `bytes` with those from `offset` on.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] when there are not as many.
    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// The `len` bytes from `offset` on, if they are in memory.
    fn slice(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let _ = (offset, len);
        None
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let found = self.slice(offset, bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(found);
        Ok(())
    }

    fn slice(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.get(usize::try_from(offset).ok()?..)?.get(..len)
    }
}

/// Delegates to what a pointer points to.
macro_rules! by_pointer {
    ($([$($generics:tt)*] $pointer:ty),* $(,)?) => {
        $(impl<$($generics)*> ReadAt for $pointer {
            fn size(&self) -> io::Result<u64> {
                self.deref().size()
            }

            fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
                self.deref().read_exact_at(offset, bytes)
            }

            fn slice(&self, offset: u64, len: usize) -> Option<&[u8]> {
                self.deref().slice(offset, len)
            }
        })*
    };
}

by_pointer!([T: ReadAt + ?Sized] &T, [T: ReadAt + ?Sized] Arc<T>, [] Vec<u8>);

impl ReadAt for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, bytes, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, mut offset: u64, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(self, bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    offset += read as u64;
                    bytes = &mut bytes[read..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
