//! The metadata of arrays and groups: `zarr.json` of the Zarr core specification, version 3.

use serde_json::{Map, Value};

use super::codec::Codec;
use super::fill::fill;
use crate::table::ColumnType;

/// More dimensions than NumPy allows.
const MOST_DIMENSIONS: usize = 64;

/// The members of an array's metadata that are read or do not change its numbers.
const KNOWN: [&str; 12] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
    "consolidated_metadata",
];

/// An array or a group.
#[derive(Debug)]
pub(super) enum Node {
    Array(Box<Metadata>),
    /// The metadata of the nodes directly below it by their names, if the group has them.
    Group {
        members: Option<Vec<(String, Value)>>,
    },
}

/// The metadata of an array.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) shape: Vec<u64>,
    /// The reason why the numbers cannot be read, if there is one.
    pub(super) layout: Result<Layout, String>,
}

/// The storage of an array's numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) number: ColumnType,
    pub(super) is_big_endian: bool,
    /// The dimensions of a chunk, each at least 1.
    pub(super) chunk_shape: Vec<u64>,
    pub(super) keys: Keys,
    /// The number of places without a chunk, as it is stored.
    pub(super) fill: Vec<u8>,
    /// The compression and checksums of a chunk in the order of writing.
    pub(super) codecs: Vec<Codec>,
    pub(super) shards: Option<Shards>,
}

/// Files that have several chunks each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shards {
    /// Chunks of a shard in each dimension.
    pub(super) chunks: Vec<u64>,
    pub(super) index_is_first: bool,
    pub(super) index_has_checksum: bool,
    pub(super) index_is_big_endian: bool,
}

/// The names of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// True if they start with `c`.
    pub(super) has_prefix: bool,
    pub(super) separator: char,
}

impl Keys {
    /// The path of a chunk below the folder of its array.
    pub(super) fn path(self, chunk: &[u64]) -> String {
        let mut path = if self.has_prefix { "c".to_owned() } else { String::new() };
        for number in chunk {
            if !path.is_empty() {
                path.push(self.separator);
            }
            path.push_str(&number.to_string());
        }
        path
    }
}

/// A type with its settings: an object with `name` and `configuration`, or the name alone.
struct Named<'v> {
    name: &'v str,
    settings: Option<&'v Map<String, Value>>,
}

impl<'v> Named<'v> {
    fn of(value: &'v Value) -> Option<Self> {
        if let Some(name) = value.as_str() {
            return Some(Self { name, settings: None });
        }
        let name = value.get("name")?.as_str()?;
        let settings = match value.get("configuration") {
            None => None,
            Some(settings) => Some(settings.as_object()?),
        };
        Some(Self { name, settings })
    }

    fn get(&self, key: &str) -> Option<&'v Value> {
        self.settings?.get(key)
    }
}

impl Node {
    /// Parses metadata.
    ///
    /// # Errors
    /// The defect.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        let object = value.as_object().ok_or("expected an object")?;
        let version = object.get("zarr_format").and_then(Value::as_u64);
        if version != Some(3) {
            let found = object.get("zarr_format").map_or("nothing".to_owned(), Value::to_string);
            return Err(format!("zarr_format is {found}, expected 3"));
        }
        match object.get("node_type").and_then(Value::as_str) {
            Some("array") => Metadata::parse(object).map(|array| Self::Array(Box::new(array))),
            Some("group") => Ok(Self::Group { members: members(object)? }),
            _ => Err("expected the node_type array or group".to_owned()),
        }
    }
}

/// The nodes directly below a group that has their metadata.
fn members(group: &Map<String, Value>) -> Result<Option<Vec<(String, Value)>>, String> {
    let consolidated = match group.get("consolidated_metadata") {
        None | Some(Value::Null) => return Ok(None),
        Some(consolidated) => consolidated,
    };
    let members = consolidated.get("metadata").and_then(Value::as_object);
    let members = members.ok_or("consolidated_metadata: expected an object with metadata")?;
    let is_name =
        |name: &str| !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    let direct = members.iter().filter(|(name, _)| is_name(name));
    let mut direct: Vec<_> = direct.map(|(name, value)| (name.clone(), value.clone())).collect();
    direct.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Some(direct))
}

/// The sides of a shape.
fn sides(value: Option<&Value>, name: &str) -> Result<Vec<u64>, String> {
    let sides = value
        .and_then(Value::as_array)
        .and_then(|sides| sides.iter().map(Value::as_u64).collect::<Option<Vec<_>>>());
    let sides = sides.filter(|sides| sides.len() <= MOST_DIMENSIONS);
    sides.ok_or_else(|| format!("{name}: expected at most {MOST_DIMENSIONS} whole numbers"))
}

impl Metadata {
    fn parse(object: &Map<String, Value>) -> Result<Self, String> {
        let shape = sides(object.get("shape"), "shape")?;
        for key in ["data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"] {
            if !object.contains_key(key) {
                return Err(format!("no {key}"));
            }
        }
        let layout = Layout::parse(object, &shape)?;
        Ok(Self { shape, layout })
    }
}

/// Names a part of the metadata that is not read.
fn unknown(what: &str, found: &str, expected: &str) -> String {
    format!("{what} `{}`, expected {expected}", found.escape_debug())
}

impl Layout {
    /// The inner error is the reason why a well-formed array is not read.
    fn parse(object: &Map<String, Value>, shape: &[u64]) -> Result<Result<Self, String>, String> {
        if let Some(name) = extension(object) {
            return Ok(Err(unknown("extension", name, "none")));
        }
        let data_type = named(object, "data_type")?;
        let Some(number) = number(data_type.name) else {
            return Ok(Err(format!("numbers of type {}", data_type.name.escape_debug())));
        };
        let grid = named(object, "chunk_grid")?;
        if grid.name != "regular" {
            return Ok(Err(unknown("chunk grid", grid.name, "regular")));
        }
        let chunk_shape = chunk_shape(grid.get("chunk_shape"), shape)?;
        let keys = match keys(&named(object, "chunk_key_encoding")?) {
            Ok(keys) => keys,
            Err(reason) => return Ok(Err(reason)),
        };
        let codecs = object.get("codecs").and_then(Value::as_array);
        let codecs = codecs.ok_or("codecs: expected a list")?;
        let chain = match Chain::parse(codecs, number)? {
            Ok(chain) => chain,
            Err(reason) => return Ok(Err(reason)),
        };
        let Chain { is_big_endian, codecs, shards } = chain;
        let (chunk_shape, shards) = match shards {
            None => (chunk_shape, None),
            Some((inner, shards)) => {
                let inner = self::chunk_shape(Some(&inner), shape)?;
                let shards = shards.of(&chunk_shape, &inner)?;
                (inner, Some(shards))
            }
        };
        let value = object.get("fill_value").unwrap_or(&Value::Null);
        let fill = fill(number, value, is_big_endian);
        let fill =
            fill.ok_or_else(|| format!("fill_value: expected a number of type {}", number.name()))?;
        Ok(Ok(Self { number, is_big_endian, chunk_shape, keys, fill, codecs, shards }))
    }
}

/// A member that a reader must know, and this one does not.
fn extension(object: &Map<String, Value>) -> Option<&str> {
    let transformers = object.get("storage_transformers").and_then(Value::as_array);
    if transformers.is_some_and(|transformers| !transformers.is_empty()) {
        return Some("storage_transformers");
    }
    let may_be_ignored =
        |value: &Value| value.get("must_understand").and_then(Value::as_bool) == Some(false);
    let mut members = object.iter();
    let found = members.find(|(name, value)| !KNOWN.contains(&&***name) && !may_be_ignored(value));
    found.map(|(name, _)| &**name)
}

fn named<'v>(object: &'v Map<String, Value>, key: &str) -> Result<Named<'v>, String> {
    object.get(key).and_then(Named::of).ok_or_else(|| format!("{key}: expected a name"))
}

fn chunk_shape(value: Option<&Value>, shape: &[u64]) -> Result<Vec<u64>, String> {
    let sides = sides(value, "chunk_shape")?;
    if sides.len() != shape.len() || sides.contains(&0) {
        return Err(format!("chunk_shape: expected {} numbers of at least 1", shape.len()));
    }
    Ok(sides)
}

fn keys(encoding: &Named<'_>) -> Result<Keys, String> {
    let has_prefix = match encoding.name {
        "default" => true,
        "v2" => false,
        name => return Err(unknown("chunk key encoding", name, "default or v2")),
    };
    let separator = match encoding.get("separator").map(Value::as_str) {
        None => {
            if has_prefix {
                '/'
            } else {
                '.'
            }
        }
        Some(Some("/")) => '/',
        Some(Some(".")) => '.',
        Some(_) => return Err("a separator of chunk keys other than `/` and `.`".to_owned()),
    };
    Ok(Keys { has_prefix, separator })
}

/// The codecs of an array.
struct Chain {
    is_big_endian: bool,
    codecs: Vec<Codec>,
    /// The shape of the chunks in shards, and the form of those.
    shards: Option<(Value, Shards)>,
}

impl Chain {
    fn parse(list: &[Value], number: ColumnType) -> Result<Result<Self, String>, String> {
        let mut names = Vec::with_capacity(list.len());
        for value in list {
            names.push(Named::of(value).ok_or("codecs: expected names")?);
        }
        let Some((first, rest)) = names.split_first() else {
            return Err("codecs: expected at least one".to_owned());
        };
        match first.name {
            "bytes" => Ok(bytes(first, rest, number)),
            "sharding_indexed" => Self::sharded(first, rest, number),
            name => Ok(Err(unknown("codec", name, "bytes or sharding_indexed as the first one"))),
        }
    }

    fn sharded(
        codec: &Named<'_>,
        rest: &[Named<'_>],
        number: ColumnType,
    ) -> Result<Result<Self, String>, String> {
        if let Some(after) = rest.first() {
            return Ok(Err(unknown("codec", after.name, "none after sharding_indexed")));
        }
        let inner = codec.get("codecs").and_then(Value::as_array);
        let inner = inner.ok_or("sharding_indexed: expected codecs")?;
        let index = codec.get("index_codecs").and_then(Value::as_array);
        let index = index.ok_or("sharding_indexed: expected index_codecs")?;
        let shape = codec.get("chunk_shape").ok_or("sharding_indexed: expected chunk_shape")?;
        let index_is_first = match codec.get("index_location").map(Value::as_str) {
            None | Some(Some("end")) => false,
            Some(Some("start")) => true,
            Some(_) => return Err("index_location: expected start or end".to_owned()),
        };
        let index = match Self::parse(index, ColumnType::U64)? {
            Ok(Self { is_big_endian, codecs, shards: None })
                if codecs.iter().all(|codec| *codec == Codec::Crc32c) && codecs.len() <= 1 =>
            {
                (is_big_endian, codecs.len() == 1)
            }
            Ok(_) | Err(_) => {
                return Ok(Err("index_codecs other than bytes and crc32c".to_owned()));
            }
        };
        let chain = match Self::parse(inner, number)? {
            Ok(chain) => chain,
            Err(reason) => return Ok(Err(reason)),
        };
        if chain.shards.is_some() {
            return Ok(Err("shards in shards".to_owned()));
        }
        let (index_is_big_endian, index_has_checksum) = index;
        let chunks = Vec::new();
        let shards = Shards { chunks, index_is_first, index_has_checksum, index_is_big_endian };
        Ok(Ok(Self { shards: Some((shape.clone(), shards)), ..chain }))
    }
}

impl Shards {
    /// The shards of this shape, with chunks of the shape `inner`.
    fn of(self, shape: &[u64], inner: &[u64]) -> Result<Self, String> {
        let chunks = shape
            .iter()
            .zip(inner)
            .map(|(&side, &inner)| if side % inner == 0 { Some(side / inner) } else { None });
        let chunks = chunks.collect::<Option<Vec<_>>>();
        let chunks = chunks.ok_or("sharding_indexed: chunks that do not divide the shard")?;
        Ok(Self { chunks, ..self })
    }
}

/// The codec `bytes`, and those of bytes after it.
fn bytes(codec: &Named<'_>, rest: &[Named<'_>], number: ColumnType) -> Result<Chain, String> {
    let is_big_endian = match codec.get("endian").map(Value::as_str) {
        Some(Some("little")) => false,
        Some(Some("big")) => true,
        None | Some(None) if number.bytes() == 1 => false,
        _ => return Err("codec `bytes` without the endian little or big".to_owned()),
    };
    let mut codecs = Vec::with_capacity(rest.len());
    for codec in rest {
        let known = Codec::of(codec.name);
        codecs.push(known.ok_or_else(|| unknown("codec", codec.name, "gzip, zstd or crc32c"))?);
    }
    Ok(Chain { is_big_endian, codecs, shards: None })
}

/// The type of numbers of this name.
fn number(name: &str) -> Option<ColumnType> {
    Some(match name {
        "bool" => ColumnType::Bool,
        "uint8" => ColumnType::U8,
        "int8" => ColumnType::I8,
        "uint16" => ColumnType::U16,
        "int16" => ColumnType::I16,
        "uint32" => ColumnType::U32,
        "int32" => ColumnType::I32,
        "uint64" => ColumnType::U64,
        "int64" => ColumnType::I64,
        "float16" => ColumnType::F16,
        "bfloat16" => ColumnType::Bf16,
        "float32" => ColumnType::F32,
        "float64" => ColumnType::F64,
        _ => return None,
    })
}
