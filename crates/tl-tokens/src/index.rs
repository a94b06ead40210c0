//! The `index.json` of LitData and of MosaicML Streaming, which lists files of tokens.

use std::collections::HashMap;

use serde::Deserialize;
use tbl_format::path::RelativePath;
use tbl_io::{Location, ReadError, Source, Stores, TokensDefect};

use crate::file::{TokenFile, TokenOptions};
use crate::format::{Chunk, Config, Mds, Shard, open_chunk, typed};
use crate::layout::defect;
use crate::number::TokenType;

/// The name of the file.
pub(crate) const NAME: &[u8] = b"index.json";

/// The most bytes of an index: it takes some hundred for each file.
const MOST_BYTES: u64 = 1 << 30;

/// The files that an index lists.
#[derive(Debug)]
pub(crate) struct FileIndex {
    files: Vec<Location>,
    entries: HashMap<Location, Entry>,
}

/// The entry of a file.
#[derive(Debug)]
enum Entry {
    Chunk(Chunk, TokenType),
    Shard(Shard),
}

/// The two forms of the file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Json {
    LitData { chunks: Vec<Chunk>, config: Config },
    Mds { shards: Vec<Shard> },
}

impl FileIndex {
    /// The index that `location` is or that is in the folder `location`, if it is one.
    pub(crate) fn find(stores: &Stores, location: &Location) -> Result<Option<Self>, ReadError> {
        let name = location.as_os_str().as_encoded_bytes();
        let is_index = name
            .strip_suffix(NAME)
            .is_some_and(|folder| folder.ends_with(b"/") || folder.is_empty());
        let is_folder = location.path().is_some_and(std::path::Path::is_dir);
        let (folder, index) = match (is_index, is_folder) {
            (true, false) => (location.folder(), stores.open_existing(location)?),
            (_, true) => (location.clone(), stores.open_existing(&location.join(NAME))?),
            (false, false) => return Ok(None),
        };
        index.map(|index| Self::parse(stores, &folder, &index)).transpose()
    }

    fn parse(stores: &Stores, folder: &Location, index: &Source) -> Result<Self, ReadError> {
        let need = index.len();
        if need > MOST_BYTES {
            let location = index.location().clone();
            return Err(ReadError::Limit { location, what: "index", limit: MOST_BYTES, need });
        }
        let damaged = |reason| defect(index, 0, TokensDefect::Index { reason });
        let mut bytes = Vec::new();
        index.read_range_into(0, need, &mut bytes)?;
        let json: Json =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let listed: Vec<(String, Entry)> = match json {
            Json::LitData { chunks, config } => {
                let number = config.number(index)?;
                let entry = |chunk: Chunk| (chunk.filename.clone(), Entry::Chunk(chunk, number));
                chunks.into_iter().map(entry).collect()
            }
            Json::Mds { shards } => {
                let entry = |shard: Shard| (shard.raw_data.basename.clone(), Entry::Shard(shard));
                shards.into_iter().map(entry).collect()
            }
        };
        let mut files = Vec::with_capacity(listed.len());
        let mut entries = HashMap::with_capacity(listed.len());
        for (name, entry) in listed {
            let inside =
                RelativePath::new(name.as_bytes()).map_err(|error| damaged(error.to_string()))?;
            let file = folder.join(inside.as_bytes());
            // Compressed shards can lie there decompressed, as after a run of their own loader.
            if let Entry::Shard(Shard { compression: Some(codec), .. }) = &entry
                && stores.open_existing(&file)?.is_none()
            {
                let codec = codec.clone();
                return Err(defect(index, 0, TokensDefect::Compressed { codec }));
            }
            files.push(file.clone());
            if entries.insert(file, entry).is_some() {
                return Err(damaged(format!("{name:?} is listed twice")));
            }
        }
        Ok(Self { files, entries })
    }

    /// The files, in order.
    pub(crate) fn files(&self) -> &[Location] {
        &self.files
    }

    /// Opens one of the files.
    pub(crate) fn open(
        &self,
        source: Source,
        options: &TokenOptions,
    ) -> Result<TokenFile, ReadError> {
        let file = match self.entries.get(source.location()) {
            Some(Entry::Chunk(chunk, number)) => open_chunk(chunk, *number, source)?,
            Some(Entry::Shard(shard)) => {
                let column = options.column.as_deref();
                let mds = Mds::open(shard, source, column, options.number)?;
                TokenFile::from_records(Box::new(mds))?
            }
            None => return Err(defect(&source, 0, TokensDefect::NoType)),
        };
        typed(file, options)
    }
}
