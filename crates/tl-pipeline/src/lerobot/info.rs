//! `meta/info.json`: the rate, the features and the paths of files.

use serde_json::{Map, Value as Json, json};
use tbl_format::path::RelativePath;

use crate::error::LeRobotDefect;

/// The content of `meta/info.json`.
#[derive(Debug)]
pub(super) struct Info {
    pub(super) fps: f64,
    data_path: String,
    video_path: String,
    /// The names of features that are videos.
    pub(super) videos: Vec<String>,
    /// The names of features that are numbers, with their shapes.
    pub(super) numbers: Vec<Numbers>,
    /// The number of all episodes, if it is stated.
    pub(super) episode_count: Option<u64>,
    /// The number of all rows, if it is stated.
    pub(super) row_count: Option<u64>,
}

/// A feature of numbers.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
}

/// The place of a file: its folder, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileNumber {
    pub(super) chunk: u64,
    pub(super) file: u64,
}

impl Info {
    /// Reads the JSON.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, LeRobotDefect> {
        let info: Json = serde_json::from_slice(bytes)?;
        let version = text(&info, "/codebase_version")?;
        if !version.starts_with("v3.") {
            return Err(LeRobotDefect::Version { found: version.to_owned() });
        }
        let expected = "a positive number";
        let fps = info.pointer("/fps").and_then(Json::as_f64);
        let fps = fps.filter(|fps| fps.is_finite() && *fps > 0.0);
        let fps = fps.ok_or_else(|| missing("/fps", expected))?;
        let features = info.pointer("/features").and_then(Json::as_object);
        let features = features.ok_or_else(|| missing("/features", "an object"))?;
        let mut videos = Vec::new();
        let mut numbers = Vec::new();
        for (name, feature) in features {
            let pointer = |end: &str| format!("/features/{}/{end}", name.replace('/', "~1"));
            let dtype = feature.get("dtype").and_then(Json::as_str);
            let dtype = dtype.ok_or_else(|| missing(&pointer("dtype"), "a text"))?;
            match dtype {
                "video" => videos.push(name.clone()),
                // Texts do not fit a batch array.
                "string" | "language" => {}
                "bool" | "int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32"
                | "uint64" | "float16" | "float32" | "float64" => {
                    let shape = shape(feature);
                    let shape =
                        shape.ok_or_else(|| missing(&pointer("shape"), "a list of sizes"))?;
                    numbers.push(Numbers { name: name.clone(), shape });
                }
                found => {
                    let found = found.to_owned();
                    return Err(LeRobotDefect::Feature { name: name.clone(), found });
                }
            }
        }
        if videos.is_empty() {
            return Err(LeRobotDefect::NoVideos);
        }
        let data_path = text(&info, "/data_path")?.to_owned();
        let video_path = text(&info, "/video_path")?.to_owned();
        let episode_count = total(&info, "/total_episodes")?;
        let row_count = total(&info, "/total_frames")?;
        Ok(Self { fps, data_path, video_path, videos, numbers, episode_count, row_count })
    }

    /// The path of a file of rows, below the folder.
    pub(super) fn data_file(&self, number: FileNumber) -> Result<RelativePath, LeRobotDefect> {
        filled(&self.data_path, "", number)
    }

    /// The path of a file of videos, below the folder.
    pub(super) fn video_file(
        &self,
        camera: &str,
        number: FileNumber,
    ) -> Result<RelativePath, LeRobotDefect> {
        filled(&self.video_path, camera, number)
    }

    /// The features of lists in the words of `datasets`, whose sizes Parquet files need not state.
    pub(super) fn lists(&self) -> String {
        let lists = self.numbers.iter().filter(|numbers| !numbers.shape.is_empty());
        let lists = lists.map(|Numbers { name, shape }| (name.clone(), json!({ "shape": shape })));
        let lists: Map<String, Json> = lists.collect();
        json!({ "info": { "features": lists } }).to_string()
    }
}

/// The shape of a feature's rows; a single number has none.
fn shape(feature: &Json) -> Option<Vec<usize>> {
    let sides = feature.get("shape")?.as_array()?.iter();
    let side = |side: &Json| usize::try_from(side.as_u64()?).ok().filter(|side| *side > 0);
    let shape: Vec<usize> = sides.map(side).collect::<Option<_>>()?;
    Some(if shape == [1] { Vec::new() } else { shape })
}

fn text<'a>(info: &'a Json, pointer: &str) -> Result<&'a str, LeRobotDefect> {
    let text = info.pointer(pointer).and_then(Json::as_str);
    text.ok_or_else(|| missing(pointer, "a text"))
}

/// A total, if it is stated.
fn total(info: &Json, pointer: &str) -> Result<Option<u64>, LeRobotDefect> {
    let Some(total) = info.pointer(pointer) else { return Ok(None) };
    let total = total.as_u64();
    total.map(Some).ok_or_else(|| missing(pointer, "a whole number from 0"))
}

fn missing(pointer: &str, expected: &'static str) -> LeRobotDefect {
    LeRobotDefect::Info { pointer: pointer.to_owned(), expected }
}

/// A path with the name of a camera and numbers in the place of their names, each of which may have a
/// width: `{file_index:03d}`.
fn filled(path: &str, camera: &str, number: FileNumber) -> Result<RelativePath, LeRobotDefect> {
    let fail = || LeRobotDefect::Path { path: path.to_owned() };
    let mut filled = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let field = after.split_once('}').ok_or_else(fail)?;
        rest = field.1;
        let (name, form) = field.0.split_once(':').unwrap_or((field.0, "d"));
        let width = form.strip_suffix('d').ok_or_else(fail)?;
        let width = if width.is_empty() { 0 } else { width.parse::<u8>().map_err(|_| fail())? };
        match name {
            "video_key" => filled.push_str(camera),
            "chunk_index" => filled.push_str(&padded(number.chunk, width)),
            "file_index" => filled.push_str(&padded(number.file, width)),
            _ => return Err(fail()),
        }
    }
    filled.push_str(rest);
    RelativePath::new(filled.as_bytes()).map_err(|_| LeRobotDefect::Path { path: filled })
}

fn padded(number: u64, width: u8) -> String {
    format!("{number:0width$}", width = usize::from(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: FileNumber = FileNumber { chunk: 1, file: 23 };

    #[test]
    fn paths_have_names_and_numbers() {
        let path = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index}.mp4";
        let found = filled(path, "observation.images.top", NUMBER).unwrap();
        let expected = b"videos/observation.images.top/chunk-001/file-23.mp4";
        assert_eq!(found.as_bytes(), expected);
        for path in ["../{file_index}", "a/{episode}", "a/{file_index", "a/{file_index:x}", "/a"] {
            assert!(filled(path, "b", NUMBER).is_err(), "{path}");
        }
        assert!(filled("a/{video_key}", "../../b", NUMBER).is_err());
    }

    #[test]
    fn features_are_videos_and_numbers() {
        let text = r#"{"codebase_version": "v3.0", "fps": 10, "data_path": "d", "video_path": "v",
            "features": {"a": {"dtype": "video", "shape": [4, 6, 3]},
            "b": {"dtype": "float32", "shape": [2]}, "c": {"dtype": "int64", "shape": [1]}}}"#;
        let info = Info::parse(text.as_bytes()).unwrap();
        assert_eq!((info.fps, &info.videos[..]), (10.0, &["a".to_owned()][..]));
        let shapes: Vec<&[usize]> = info.numbers.iter().map(|numbers| &*numbers.shape).collect();
        assert_eq!(shapes, [&[2][..], &[]]);
        assert_eq!(info.lists(), r#"{"info":{"features":{"b":{"shape":[2]}}}}"#);
        for (from, to, expected) in [
            ("v3.0", "v2.1", "version `v2.1` of the format"),
            ("10", "0", "`/fps` is missing or not a positive number"),
            ("video\"", "image\"", "feature `a` is of type `image`"),
            ("[2]", "[0]", "`/features/b/shape` is missing"),
            ("}}}", "}}", "not JSON"),
        ] {
            let error = Info::parse(text.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
