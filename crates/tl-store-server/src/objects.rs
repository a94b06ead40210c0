//! The stored objects.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Objects by bucket and key.
#[derive(Debug, Default)]
pub struct Objects(Mutex<BTreeMap<String, Object>>);

/// An object in one version.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    content: Content,
    len: u64,
    version: u64,
    /// The `ETag` of an object whose content decides it.
    tag: Option<String>,
}

#[derive(Clone, Debug)]
enum Content {
    Memory(Bytes),
    File(Arc<File>),
}

impl Object {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// A range inside the object; nothing where a file has become shorter.
    pub(crate) fn bytes(&self, range: Range<u64>) -> Bytes {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        match &self.content {
            Content::Memory(bytes) => {
                let start = usize::try_from(range.start).unwrap_or(usize::MAX);
                bytes.slice(start..start + len)
            }
            Content::File(file) => {
                let mut bytes = vec![0; len];
                let read = file.read_exact_at(&mut bytes, range.start);
                read.map_or_else(|_| Bytes::new(), |()| bytes.into())
            }
        }
    }

    /// An `ETag` with its quotes.
    pub(crate) fn tag(&self) -> String {
        let number = self.version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.tag.clone().unwrap_or_else(|| format!("\"{number:016x}-{}\"", self.version))
    }

    /// A version number as Google has it.
    pub(crate) fn generation(&self) -> u64 {
        1_700_000_000_000_000 + self.version
    }
}

impl Objects {
    /// Stores an object, in a new version if there is one already. `name` is `BUCKET/KEY`.
    pub fn put(&self, name: &str, bytes: impl Into<Bytes>) {
        self.put_tagged(name, bytes.into(), None);
    }

    /// As [`put`](Self::put), with an `ETag` of the content.
    pub(crate) fn put_tagged(&self, name: &str, bytes: Bytes, tag: Option<String>) {
        let len = bytes.len() as u64;
        self.insert(name, Content::Memory(bytes), len, tag);
    }

    fn insert(&self, name: &str, content: Content, len: u64, tag: Option<String>) {
        let mut objects = self.lock();
        let version = objects.get(name).map_or(1, |object| object.version + 1);
        objects.insert(name.to_owned(), Object { content, len, version, tag });
    }

    /// The bytes of an object; `None` if there is none.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Bytes> {
        self.get(name).map(|object| object.bytes(0..object.len()))
    }

    /// Removes an object.
    pub fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Stores all files below a folder, which stay on disk. Their names begin with `prefix`, unless
    /// that is empty.
    ///
    /// # Errors
    /// When a file cannot be opened, or its name is not UTF-8.
    pub fn put_folder(&self, prefix: &str, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().into_string();
            let name = name.map_err(|_| io::Error::other("a name is not UTF-8"))?;
            let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            if entry.path().is_dir() {
                self.put_folder(&name, &entry.path())?;
            } else {
                let file = File::open(entry.path())?;
                let len = file.metadata()?.len();
                self.insert(&name, Content::File(Arc::new(file)), len, None);
            }
        }
        Ok(())
    }

    pub(crate) fn get(&self, name: &str) -> Option<Object> {
        self.lock().get(name).cloned()
    }

    /// Whether anything is stored in a bucket.
    pub(crate) fn has_bucket(&self, bucket: &str) -> bool {
        let prefix = format!("{bucket}/");
        self.lock()
            .range(prefix.clone()..)
            .next()
            .is_some_and(|(name, _)| name.starts_with(&prefix))
    }

    /// The keys of a bucket that begin with `prefix`, after the key `after`.
    pub(crate) fn keys(&self, bucket: &str, prefix: &str, after: &str) -> Vec<(String, Object)> {
        let start = format!("{bucket}/");
        let objects = self.lock();
        let found = objects.range(format!("{start}{prefix}")..);
        let found = found.map_while(|(name, object)| Some((name.strip_prefix(&start)?, object)));
        found
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter(|(key, _)| *key > after)
            .map(|(key, object)| (key.to_owned(), object.clone()))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Object>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
