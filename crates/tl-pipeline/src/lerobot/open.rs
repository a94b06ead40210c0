//! Opening: from the files of a folder to its rows.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;

use tbl_io::{Location, ReadError, Source, Stores};

use super::info::{FileNumber, Info};
use super::npy;
use super::places::{Episodes, OF_EPISODES, Place};
use super::read::{self, Column, Memory};
use super::{
    CameraSpec, Episode, FieldContent, FieldSpec, LeRobot, LeRobotOptions, Part, VideoFile,
};
use crate::error::{LeRobotDefect, PipelineError};
use crate::table::ColumnType;

/// Bytes of the largest `meta/info.json` that is read.
const MOST_INFO: u64 = 16 << 20;

/// The most distances of a feature.
const MOST_DELTAS: usize = 1 << 16;

/// The column of the number of a row in its episode.
const FRAME_INDEX: &str = "frame_index";

/// The column of the number of a row in the data set.
const INDEX: &str = "index";

/// A folder that is being opened.
struct Folder<'a> {
    stores: &'a Stores,
    root: Location,
    info: Info,
    options: &'a LeRobotOptions,
}

impl LeRobot {
    /// Opens a folder with `meta`, `data` and `videos`. Its descriptions and numbers are read, and no
    /// video.
    ///
    /// # Errors
    /// [`PipelineError::LeRobot`] with the file and what is wrong with it, such as another version or a
    /// video that does not exist; [`PipelineError::Open`] for a file that cannot be read, and for more
    /// than 64 GiB of numbers.
    pub fn open(
        stores: &Stores,
        root: impl AsRef<OsStr>,
        options: &LeRobotOptions,
    ) -> Result<Self, PipelineError> {
        let root = Location::new(root);
        let location = root.join(b"meta/info.json");
        let source = stores.open_file(location.as_os_str())?;
        let source = source.ok_or_else(|| no_file(&location))?;
        let info = Info::parse(&whole(&source)?).map_err(|source| defect(&location, source))?;
        let folder = Folder { stores, root, info, options };
        folder.check().map_err(|source| defect(&folder.root, source))?;
        let episodes = folder.episodes()?;
        let columns = folder.columns(&episodes)?;
        folder.made(&episodes, columns)
    }
}

impl Folder<'_> {
    /// Refuses options that do not go with the features.
    fn check(&self) -> Result<(), LeRobotDefect> {
        let Self { info, options, .. } = self;
        let tolerance = options.tolerance;
        if !(tolerance.is_finite() && tolerance >= 0.0) {
            return Err(LeRobotDefect::Tolerance { seconds: tolerance });
        }
        let numbers = info.numbers.iter().map(|numbers| &numbers.name);
        let known: Vec<&str> = info.videos.iter().chain(numbers).map(String::as_str).collect();
        for deltas in &options.deltas {
            let name = deltas.feature.clone();
            if !known.contains(&&*deltas.feature) {
                return Err(LeRobotDefect::UnknownFeature { name, known: known.join(", ") });
            }
            let count = deltas.seconds.len();
            if !(1..=MOST_DELTAS).contains(&count) {
                return Err(LeRobotDefect::DeltaCount { name, count, most: MOST_DELTAS });
            }
        }
        Ok(())
    }

    /// The distances of a feature in rows; `None` if the options do not name it.
    fn deltas(&self, name: &str) -> Result<Option<Vec<i64>>, LeRobotDefect> {
        let LeRobotOptions { deltas, tolerance, .. } = self.options;
        let Some(deltas) = deltas.iter().find(|deltas| deltas.feature == name) else {
            return Ok(None);
        };
        let fps = self.info.fps;
        let tolerance = *tolerance;
        let rows = |&seconds: &f64| {
            let frames = seconds * fps;
            let row = frames.round();
            // Beyond 2^31 rows no episode has one.
            if !(frames.abs() < 2_147_483_648.0 && (frames - row).abs() <= tolerance * fps) {
                let name = name.to_owned();
                return Err(LeRobotDefect::Delta { name, seconds, frames, fps, tolerance });
            }
            #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^31")]
            let row = row as i64;
            Ok(row)
        };
        deltas.seconds.iter().map(rows).collect::<Result<_, _>>().map(Some)
    }

    /// The files of episodes, in order.
    fn episode_files(&self) -> Result<Vec<Location>, PipelineError> {
        let folder = self.root.join(b"meta/episodes");
        if let Some(url) = folder.url() {
            return Ok(self.stores.expand(format!("{url}/*/*.parquet"))?);
        }
        let mut files = Vec::new();
        for chunk in names(&folder)? {
            let chunk = folder.join(&chunk);
            if !std::fs::metadata(chunk.as_os_str()).is_ok_and(|found| found.is_dir()) {
                continue;
            }
            let names = names(&chunk)?.into_iter().filter(|name| name.ends_with(b".parquet"));
            files.extend(names.map(|name| chunk.join(&name)));
        }
        if files.is_empty() {
            return Err(defect(&folder, LeRobotDefect::NoEpisodes));
        }
        Ok(files)
    }

    /// The places of all episodes, in order.
    fn episodes(&self) -> Result<Vec<Place>, PipelineError> {
        let mut names: Vec<String> = OF_EPISODES.map(str::to_owned).to_vec();
        for camera in &self.info.videos {
            for value in ["chunk_index", "file_index", "from_timestamp"] {
                names.push(format!("videos/{camera}/{value}"));
            }
        }
        let mut episodes = Vec::new();
        let mut end = 0;
        for location in self.episode_files()? {
            let source = self.source(&location)?;
            let columns = read::columns(&source, &names, None, &mut Memory::default())?;
            let table = Episodes::of(&columns).map_err(|source| defect(&location, source))?;
            for row in 0..table.count() {
                let number = i64::try_from(episodes.len()).unwrap_or(i64::MAX);
                let place = table.place(row, number, end);
                let place = place.map_err(|source| defect(&location, source))?;
                end = place.to;
                episodes.push(place);
            }
        }
        let count = episodes.len() as u64;
        self.check_totals(count, u64::try_from(end).unwrap_or_default())?;
        let mut wanted = self.options.episodes.iter().flatten();
        match wanted.find(|episode| **episode >= count) {
            Some(&episode) => {
                Err(defect(&self.root, LeRobotDefect::UnknownEpisode { episode, count }))
            }
            None => Ok(episodes),
        }
    }

    /// Refuses a folder that lacks files of episodes, or has more than it states.
    fn check_totals(&self, episodes: u64, rows: u64) -> Result<(), PipelineError> {
        let check = |what, found, stated: Option<u64>| match stated {
            Some(expected) if expected != found => Err(defect(
                &self.root.join(b"meta/episodes"),
                LeRobotDefect::Total { what, found, expected },
            )),
            Some(_) | None => Ok(()),
        };
        check("episodes", episodes, self.info.episode_count)?;
        check("rows", rows, self.info.row_count)
    }

    fn source(&self, location: &Location) -> Result<Source, PipelineError> {
        let source = self.stores.open_file(location.as_os_str())?;
        source.ok_or_else(|| no_file(location))
    }

    /// The numbers of all rows.
    fn columns(&self, episodes: &[Place]) -> Result<Vec<Column>, PipelineError> {
        let names: Vec<String> = self.info.numbers.iter().map(|one| one.name.clone()).collect();
        let lists = self.info.lists();
        let mut columns: Vec<Column> = Vec::new();
        let mut memory = Memory::default();
        for part in episodes.chunk_by(|one, other| one.data == other.data) {
            let path = self.info.data_file(part[0].data);
            let path = path.map_err(|source| defect(&self.root, source))?;
            let location = self.root.join(path.as_bytes());
            let source = self.source(&location)?;
            let mut read = read::columns(&source, &names, Some(&lists), &mut memory)?;
            check_rows(part, &read).map_err(|source| defect(&location, source))?;
            keep_ends_of_index(&mut read, &mut memory);
            if columns.is_empty() {
                columns = read;
                continue;
            }
            for (column, more) in columns.iter_mut().zip(read) {
                column.append(&more).map_err(|source| defect(&location, source))?;
            }
            keep_ends_of_index(&mut columns, &mut memory);
        }
        Ok(columns)
    }

    /// The data set of these episodes.
    fn made(self, places: &[Place], columns: Vec<Column>) -> Result<LeRobot, PipelineError> {
        let fail = |source| defect(&self.root, source);
        let cameras = self.cameras().map_err(fail)?;
        let fields = self.fields(&cameras, &columns).map_err(fail)?;
        let is_frame_index = |column: &Column| column.name == FRAME_INDEX && column.is_integers();
        let frame_index = columns.iter().position(is_frame_index).ok_or_else(|| {
            fail(LeRobotDefect::Info {
                pointer: format!("/features/{FRAME_INDEX}"),
                expected: "a feature of integers",
            })
        })?;
        let wanted = self.options.episodes.as_ref();
        let wanted: Option<HashSet<u64>> = wanted.map(|all| all.iter().copied().collect());
        let mut files = Files::default();
        let mut episodes = Vec::with_capacity(places.len());
        for (place, number) in places.iter().zip(0_u64..) {
            let is_wanted = wanted.as_ref().is_none_or(|wanted| wanted.contains(&number));
            let mut videos = Vec::with_capacity(cameras.len());
            for (camera, video) in place.videos.iter().enumerate() {
                let file = files.number(&self, camera, video.file)?;
                if is_wanted {
                    files.find(&self, file, number)?;
                }
                videos.push(Part { file, from: video.from });
            }
            let start = u64::try_from(place.from).unwrap_or_default();
            let end = u64::try_from(place.to).unwrap_or_default();
            episodes.push(Episode { number, start, end, videos });
        }
        let Self { root, info, options, .. } = self;
        let fps = info.fps;
        let tolerance = options.tolerance;
        let files = files.all.into_iter().map(|file| file.file).collect();
        Ok(LeRobot { root, fps, tolerance, cameras, fields, columns, frame_index, episodes, files })
    }

    fn cameras(&self) -> Result<Vec<CameraSpec>, LeRobotDefect> {
        let spec = |name: &String| {
            let deltas = self.deltas(name)?;
            Ok(CameraSpec { name: name.clone(), deltas })
        };
        self.info.videos.iter().map(spec).collect()
    }

    /// The fields of rows: their numbers, and whether those of deltas are outside of the episode.
    fn fields(
        &self,
        cameras: &[CameraSpec],
        columns: &[Column],
    ) -> Result<Vec<FieldSpec>, LeRobotDefect> {
        let mut fields = Vec::new();
        let mut pads = Vec::new();
        for camera in cameras {
            if let Some(deltas) = &camera.deltas {
                pads.push((camera.name.clone(), deltas.clone()));
            }
        }
        for (place, Column { name, number, shape, .. }) in columns.iter().enumerate() {
            // Batches have the numbers of samples, which are these.
            if name == INDEX {
                continue;
            }
            let deltas = self.deltas(name)?;
            if let Some(deltas) = &deltas {
                pads.push((name.clone(), deltas.clone()));
            }
            let count = deltas.as_ref().map(Vec::len);
            let shape: Vec<usize> = count.into_iter().chain(shape.iter().copied()).collect();
            let header = npy::header(*number, &shape).ok_or_else(|| LeRobotDefect::Column {
                column: name.clone(),
                found: number.name().to_owned(),
                expected: "numbers that NumPy has",
            })?;
            let content = FieldContent::Column { column: place, deltas };
            fields.push(FieldSpec { name: name.clone(), header, content });
        }
        for (name, deltas) in pads {
            let header = npy::header(ColumnType::Bool, &[deltas.len()]).unwrap_or_default();
            let content = FieldContent::IsPad { deltas };
            fields.push(FieldSpec { name: format!("{name}_is_pad"), header, content });
        }
        Ok(fields)
    }
}

/// The files of videos, each once.
#[derive(Default)]
struct Files {
    all: Vec<Found>,
    numbers: HashMap<(usize, FileNumber), u32>,
}

struct Found {
    file: VideoFile,
    camera: usize,
    is_checked: bool,
}

impl Files {
    /// The number of a file of a camera.
    fn number(
        &mut self,
        folder: &Folder<'_>,
        camera: usize,
        file: FileNumber,
    ) -> Result<u32, PipelineError> {
        if let Some(number) = self.numbers.get(&(camera, file)) {
            return Ok(*number);
        }
        let path = folder.info.video_file(&folder.info.videos[camera], file);
        let path = path.map_err(|source| defect(&folder.root, source))?;
        let location = folder.root.join(path.as_bytes());
        let number = u32::try_from(self.all.len()).map_err(|_| ReadError::Limit {
            location: folder.root.clone(),
            what: "files of videos",
            limit: u32::MAX.into(),
            need: self.all.len() as u64,
        })?;
        let file_of = VideoFile { location, remote: None };
        self.all.push(Found { file: file_of, camera, is_checked: false });
        self.numbers.insert((camera, file), number);
        Ok(number)
    }

    /// Checks that a file of an episode exists.
    fn find(
        &mut self,
        folder: &Folder<'_>,
        number: u32,
        episode: u64,
    ) -> Result<(), PipelineError> {
        let found = &mut self.all[number as usize];
        if found.is_checked {
            return Ok(());
        }
        found.is_checked = true;
        let location = &found.file.location;
        let Some(source) = folder.stores.open_existing(location)? else {
            let name = folder.info.videos[found.camera].clone();
            return Err(defect(location, LeRobotDefect::NoVideo { episode, name }));
        };
        found.file.remote = location.url().is_some().then_some(source);
        Ok(())
    }
}

/// Checks that a file of rows has those of its episodes.
fn check_rows(part: &[Place], columns: &[Column]) -> Result<(), LeRobotDefect> {
    let start = part.first().map_or(0, |first| first.from);
    let end = part.last().map_or(0, |last| last.to);
    let expected = u64::try_from(end - start).unwrap_or_default();
    for column in columns {
        let found = column.row_count();
        if found != expected {
            return Err(LeRobotDefect::Rows { found, expected });
        }
    }
    let Some(index) = columns.iter().find(|column| column.name == INDEX) else { return Ok(()) };
    for (row, expected) in (0..index.row_count()).zip(start..) {
        if let Some(value) = index.integer(row)
            && value != expected
        {
            let column = index.name.clone();
            return Err(LeRobotDefect::Value { row, column, value, expected });
        }
    }
    Ok(())
}

/// Drops the numbers of rows, which [`check_rows`] compared, except the first and the last.
fn keep_ends_of_index(columns: &mut [Column], memory: &mut Memory) {
    if let Some(index) = columns.iter_mut().find(|column| column.name == INDEX) {
        index.keep_ends(memory);
    }
}

/// The bytes of a description.
fn whole(source: &Source) -> Result<Vec<u8>, ReadError> {
    let need = source.len();
    if need > MOST_INFO {
        let what = "bytes of a description";
        let location = source.location().clone();
        return Err(ReadError::Limit { location, what, limit: MOST_INFO, need });
    }
    let mut bytes = Vec::new();
    source.read_range_into(0, need, &mut bytes)?;
    Ok(bytes)
}

/// The names in a local folder, sorted.
fn names(folder: &Location) -> Result<Vec<Vec<u8>>, PipelineError> {
    let fault = |source| ReadError::Io { location: folder.clone(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.as_os_str()).map_err(fault)? {
        names.push(entry.map_err(fault)?.file_name().into_encoded_bytes());
    }
    names.sort_unstable();
    Ok(names)
}

fn no_file(location: &Location) -> PipelineError {
    let source = std::io::Error::new(std::io::ErrorKind::IsADirectory, "a folder, expected a file");
    ReadError::Io { location: location.clone(), source }.into()
}

fn defect(location: &Location, source: LeRobotDefect) -> PipelineError {
    PipelineError::LeRobot { location: location.clone(), source }
}
