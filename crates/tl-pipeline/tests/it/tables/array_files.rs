//! The same array in every format, written by the tests.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::write::{DeflateEncoder, GzEncoder};
use serde_json::{Value, json};
use tbl_format::checksum::crc32c;

/// Types by their names in `.npy`, safetensors and Zarr files, with the bytes of a number.
const TYPES: [(&str, &str, &str, usize); 12] = [
    ("b1", "BOOL", "bool", 1),
    ("u1", "U8", "uint8", 1),
    ("i1", "I8", "int8", 1),
    ("u2", "U16", "uint16", 2),
    ("i2", "I16", "int16", 2),
    ("f2", "F16", "float16", 2),
    ("u4", "U32", "uint32", 4),
    ("i4", "I32", "int32", 4),
    ("f4", "F32", "float32", 4),
    ("u8", "U64", "uint64", 8),
    ("i8", "I64", "int64", 8),
    ("f8", "F64", "float64", 8),
];

/// Random numbers of a case.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number less than `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let next =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 = next;
        (next >> 33) as usize % end
    }
}

/// An array in files of every format.
pub(super) struct Written {
    pub(super) npy: PathBuf,
    pub(super) others: Vec<PathBuf>,
    pub(super) rows: usize,
    /// Its numbers, the least significant byte first.
    pub(super) data: Vec<u8>,
}

/// An array in memory.
struct Array {
    number: (&'static str, &'static str, &'static str, usize),
    shape: Vec<usize>,
    data: Vec<u8>,
}

impl Written {
    /// A random array in files below `root`.
    pub(super) fn random(root: &Path, case: u64) -> Self {
        let mut random = Random(case);
        random.below(2);
        let number = TYPES[random.below(TYPES.len())];
        let sides = 1 + random.below(4);
        let mut shape: Vec<usize> = (0..sides).map(|_| 1 + random.below(5)).collect();
        shape[0] = 1 + random.below(14);
        let bytes = number.3 * shape.iter().product::<usize>();
        let most = if number.0 == "b1" { 2 } else { 256 };
        // Half of the bytes are zero, so that whole chunks are.
        let byte = |_| (random.below(2) * random.below(most)).to_le_bytes()[0];
        let data: Vec<u8> = (0..bytes).map(byte).collect();
        let array = Array { number, shape, data };
        let mut others = Vec::new();
        let mut add = |name: &str, bytes: Vec<u8>| {
            fs::write(root.join(name), bytes).unwrap();
            others.push(root.join(name));
        };
        add("big.npy", array.npy(true));
        for (name, deflated) in [("stored.npz", false), ("deflated.npz", true)] {
            let member = ("array.npy".to_owned(), array.npy(random.below(2) == 0));
            add(name, zip(&[member], deflated, random.below(2) == 0));
        }
        add("a.safetensors", array.safetensors());
        for (name, codecs) in [
            ("plain", &[][..]),
            ("gzip", &["gzip"]),
            ("zstd", &["zstd", "crc32c"]),
            ("both", &["gzip", "zstd"]),
        ] {
            for shards in [false, true] {
                let path = root.join(format!("{name}_{shards}.zarr"));
                array.zarr(&path, codecs, shards, &mut random);
                others.push(path);
            }
        }
        let npy = root.join("a.npy");
        fs::write(&npy, array.npy(false)).unwrap();
        Self { npy, others, rows: array.shape[0], data: array.data }
    }
}

/// Numbers with the most significant byte first.
fn reversed(data: &[u8], bytes: usize) -> Vec<u8> {
    data.chunks_exact(bytes).flat_map(|number| number.iter().rev().copied()).collect()
}

impl Array {
    fn npy(&self, is_big: bool) -> Vec<u8> {
        let order = match (self.number.3, is_big) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        let sides: Vec<String> = self.shape.iter().map(|side| format!("{side},")).collect();
        let (name, shape) = (self.number.0, sides.concat());
        let header =
            format!("{{'descr': '{order}{name}', 'fortran_order': False, 'shape': ({shape}), }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:<117}\n").bytes());
        bytes.extend(if is_big { reversed(&self.data, self.number.3) } else { self.data.clone() });
        bytes
    }

    fn safetensors(&self) -> Vec<u8> {
        let tensor = json!({"dtype": self.number.1, "shape": self.shape,
            "data_offsets": [0, self.data.len()]});
        let header = json!({ "array": tensor }).to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &self.data].concat()
    }

    /// Writes a folder in the format Zarr 3.
    fn zarr(&self, folder: &Path, codecs: &[&str], has_shards: bool, random: &mut Random) {
        let inner: Vec<usize> = self.shape.iter().map(|_| 1 + random.below(4)).collect();
        let per_shard: Vec<usize> = inner.iter().map(|_| 1 + random.below(2)).collect();
        let outer: Vec<usize> = inner.iter().zip(&per_shard).map(|(a, b)| a * b).collect();
        let is_big = random.below(2) == 0;
        let is_first = random.below(2) == 0;
        let has_prefix = random.below(2) == 0;
        let separator = ["/", "."][random.below(2)];
        let endian = if is_big { "big" } else { "little" };
        let mut chain = vec![json!({"name": "bytes", "configuration": {"endian": endian}})];
        chain.extend(codecs.iter().map(|name| json!({"name": name})));
        let index_codecs =
            json!([{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"]);
        let sharding = json!([{"name": "sharding_indexed", "configuration": {
            "chunk_shape": inner, "codecs": chain, "index_codecs": index_codecs,
            "index_location": if is_first { "start" } else { "end" },
        }}]);
        let kind = self.number.2;
        let fill = if kind == "bool" { json!(false) } else { json!(0) };
        let encoding = if has_prefix { "default" } else { "v2" };
        let metadata = json!({
            "zarr_format": 3, "node_type": "array", "shape": self.shape, "data_type": kind,
            "chunk_grid": {"name": "regular",
                "configuration": {"chunk_shape": if has_shards { &outer } else { &inner }}},
            "chunk_key_encoding": {"name": encoding, "configuration": {"separator": separator}},
            "fill_value": fill,
            "codecs": if has_shards { sharding } else { Value::from(chain) },
        });
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("zarr.json"), metadata.to_string()).unwrap();
        let grid = if has_shards { &outer } else { &inner };
        let encode = |chunk| self.encode(chunk, codecs, is_big);
        for place in places(&counts(&self.shape, grid)) {
            let bytes = if has_shards {
                self.shard(&place, &inner, &per_shard, is_first, &encode)
            } else {
                self.chunk(&place, &inner).map(&encode)
            };
            let Some(bytes) = bytes else { continue };
            let numbers: Vec<String> = place.iter().map(usize::to_string).collect();
            let prefix = if has_prefix { format!("c{separator}") } else { String::new() };
            let path = folder.join(prefix + &numbers.join(separator));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    /// The numbers of a chunk, zeros outside the array; `None` if all are zero.
    fn chunk(&self, place: &[usize], chunk: &[usize]) -> Option<Vec<u8>> {
        let size = self.number.3;
        let mut bytes = Vec::new();
        for within in places(chunk) {
            let at: Vec<usize> =
                within.iter().zip(place).zip(chunk).map(|((w, p), c)| p * c + w).collect();
            let is_inside = at.iter().zip(&self.shape).all(|(at, side)| at < side);
            let number =
                at.iter().zip(&self.shape).fold(0, |number, (at, side)| number * side + at);
            let zero = vec![0; size];
            bytes.extend(if is_inside { &self.data[number * size..][..size] } else { &zero });
        }
        bytes.iter().any(|&byte| byte != 0).then_some(bytes)
    }

    fn shard(
        &self,
        place: &[usize],
        inner: &[usize],
        per_shard: &[usize],
        is_first: bool,
        encode: &dyn Fn(Vec<u8>) -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        let count: usize = per_shard.iter().product();
        let front = if is_first { count * 16 + 4 } else { 0 };
        let mut chunks: Vec<u8> = Vec::new();
        let mut index: Vec<u8> = Vec::new();
        for within in places(per_shard) {
            let at: Vec<usize> =
                within.iter().zip(place).zip(per_shard).map(|((w, p), c)| p * c + w).collect();
            let entry = self.chunk(&at, inner).map_or((u64::MAX, u64::MAX), |chunk| {
                let chunk = encode(chunk);
                let start = (front + chunks.len()) as u64;
                chunks.extend(&chunk);
                (start, chunk.len() as u64)
            });
            index.extend(entry.0.to_le_bytes());
            index.extend(entry.1.to_le_bytes());
        }
        index.extend(crc32c(&index).to_le_bytes());
        let parts = if is_first { [index, chunks.clone()] } else { [chunks.clone(), index] };
        (!chunks.is_empty()).then(|| parts.concat())
    }

    fn encode(&self, chunk: Vec<u8>, codecs: &[&str], is_big: bool) -> Vec<u8> {
        let chunk = if is_big { reversed(&chunk, self.number.3) } else { chunk };
        codecs.iter().fold(chunk, |bytes, &codec| match codec {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(&bytes).unwrap();
                encoder.finish().unwrap()
            }
            "zstd" => zstd::bulk::compress(&bytes, 1).unwrap(),
            _ => {
                let crc = crc32c(&bytes).to_le_bytes();
                [bytes, crc.to_vec()].concat()
            }
        })
    }
}

/// Parts of a size in each dimension.
fn counts(shape: &[usize], part: &[usize]) -> Vec<usize> {
    shape.iter().zip(part).map(|(side, part)| side.div_ceil(*part)).collect()
}

/// All places in an array of this shape, the last dimension first.
fn places(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![Vec::new()], |places, &side| {
        let with = |place: &Vec<usize>, at| [&place[..], &[at]].concat();
        places.iter().flat_map(|place| (0..side).map(move |at| with(place, at))).collect()
    })
}

/// A ZIP archive; with the numbers of 64 bits that NumPy writes for large ones if `has_64`.
pub(super) fn zip(members: &[(String, Vec<u8>)], deflated: bool, has_64: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let mut directory = Vec::new();
    for (name, content) in members {
        let packed = if deflated {
            let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        } else {
            content.clone()
        };
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let sizes = [content.len() as u64, packed.len() as u64, file.len() as u64];
        let method = if deflated { 8_u16 } else { 0 };
        let extra = if has_64 {
            [&[1, 0, 24, 0][..], &sizes.map(u64::to_le_bytes).concat()].concat()
        } else {
            Vec::new()
        };
        let size = |at: usize| {
            if has_64 { u32::MAX } else { u32::try_from(sizes[at]).unwrap() }.to_le_bytes()
        };
        let name_bytes = (name.len() as u16).to_le_bytes();
        let facts = |version: &[u8]| {
            let mut facts = version.to_vec();
            facts.extend([0, 0]);
            facts.extend(method.to_le_bytes());
            facts.extend([0; 4]);
            facts.extend(crc.sum().to_le_bytes());
            facts.extend([size(1), size(0)].concat());
            facts.extend(name_bytes);
            facts
        };
        directory.extend(b"PK\x01\x02\x2d\x00");
        directory.extend(facts(&[45, 0]));
        directory.extend((extra.len() as u16).to_le_bytes());
        directory.extend([0; 10]);
        directory.extend(size(2));
        directory.extend(name.bytes());
        directory.extend(&extra);
        file.extend(b"PK\x03\x04");
        file.extend(facts(&[45, 0]));
        file.extend([0, 0]);
        file.extend(name.bytes());
        file.extend(packed);
    }
    let start = file.len() as u64;
    let bytes = directory.len() as u64;
    file.extend(directory);
    let end = file.len() as u64;
    if has_64 {
        file.extend(b"PK\x06\x06");
        let count = members.len() as u64;
        file.extend([44_u64.to_le_bytes(), 0x2d_002d_u64.to_le_bytes()].concat().split_at(12).0);
        file.extend([0; 8]);
        file.extend([count, count, bytes, start].map(u64::to_le_bytes).concat());
        file.extend(b"PK\x06\x07\0\0\0\0");
        file.extend(end.to_le_bytes());
        file.extend([1, 0, 0, 0]);
    }
    file.extend(b"PK\x05\x06\0\0\0\0");
    let count = if has_64 { u16::MAX } else { members.len() as u16 }.to_le_bytes();
    file.extend([count, count].concat());
    let size =
        |size: u64| if has_64 { u32::MAX } else { u32::try_from(size).unwrap() }.to_le_bytes();
    file.extend([size(bytes), size(start)].concat());
    file.extend([0, 0]);
    file
}
