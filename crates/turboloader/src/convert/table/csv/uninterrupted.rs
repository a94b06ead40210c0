//! Reads that a signal does not end.

use std::io::{self, Read};

/// Repeats reads that a signal interrupted: readers of CSV return those as errors.
#[derive(Debug)]
pub(super) struct Uninterrupted<R>(pub(super) R);

impl<R: Read> Read for Uninterrupted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interrupts every other read, and reads one byte at a time.
    struct Interrupting<'a> {
        bytes: &'a [u8],
        interrupts: bool,
    }

    impl Read for Interrupting<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.interrupts = !self.interrupts;
            if self.interrupts {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let len = bytes.len().min(1);
            self.bytes.read(&mut bytes[..len])
        }
    }

    #[test]
    fn csv_is_read_past_interrupts() {
        let source = || Interrupting { bytes: b"a,b\n1,2\n3,4\n", interrupts: false };
        let rows = |read: Box<dyn Read>| {
            let mut reader = csv::Reader::from_reader(read);
            reader.records().collect::<Result<Vec<_>, _>>()
        };
        assert!(rows(Box::new(source())).is_err());
        let rows = rows(Box::new(Uninterrupted(source()))).unwrap();
        assert_eq!(rows, [vec!["1", "2"], vec!["3", "4"]]);
    }
}
