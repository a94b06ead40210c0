//! Several files of one input.

use std::io;

use tbl_io::{Location, Object, ReadError, Source, Storage};

/// A store of files by the ends of their names.
#[derive(Debug)]
pub(crate) struct Files(pub(crate) Vec<(&'static str, Vec<u8>)>);

impl Storage for Files {
    fn open(&self, object: &Location, _: Option<&Object>) -> Result<Source, ReadError> {
        let name = object.as_os_str().as_encoded_bytes();
        match self.0.iter().find(|(end, _)| name.ends_with(end.as_bytes())) {
            Some((_, bytes)) => Ok(Source::from_bytes(object, bytes.clone())),
            None => {
                let source = io::ErrorKind::NotFound.into();
                Err(ReadError::Io { location: object.clone(), source })
            }
        }
    }

    fn list(&self, _: &Location) -> Result<Vec<Object>, ReadError> {
        Ok(Vec::new())
    }
}

/// The texts of an input and the bytes after them, with a zero byte between the two.
pub(crate) fn split(data: &[u8]) -> (&[u8], &[u8]) {
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    (&data[..end], data.get(end + 1..).unwrap_or_default())
}
