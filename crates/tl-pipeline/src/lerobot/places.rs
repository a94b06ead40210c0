//! Files of episodes: the place of each episode.

use super::info::FileNumber;
use super::read::Column;
use crate::error::LeRobotDefect;

/// The columns with the place of an episode.
pub(super) const OF_EPISODES: [&str; 5] = [
    "episode_index",
    "data/chunk_index",
    "data/file_index",
    "dataset_from_index",
    "dataset_to_index",
];

/// The place of an episode.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) data: FileNumber,
    pub(super) from: i64,
    pub(super) to: i64,
    /// For each camera.
    pub(super) videos: Vec<VideoPlace>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct VideoPlace {
    pub(super) file: FileNumber,
    pub(super) from: f64,
}

/// The columns of a file of episodes.
pub(super) struct Episodes<'a> {
    integers: Vec<Integers<'a>>,
    /// For each camera.
    from: Vec<Vec<f64>>,
}

/// A column of integers.
struct Integers<'a> {
    column: &'a str,
    values: Vec<i64>,
}

impl Integers<'_> {
    /// The number of a row.
    ///
    /// # Errors
    /// [`LeRobotDefect::TooSmall`] below `least`.
    fn at_least(&self, row: usize, least: i64) -> Result<i64, LeRobotDefect> {
        let value = self.values[row];
        if value >= least {
            return Ok(value);
        }
        let row = row as u64;
        Err(LeRobotDefect::TooSmall { row, column: self.column.to_owned(), value, least })
    }

    /// Checks the number of a row.
    fn check(&self, row: usize, expected: i64) -> Result<(), LeRobotDefect> {
        let value = self.values[row];
        if value == expected {
            return Ok(());
        }
        let row = row as u64;
        Err(LeRobotDefect::Value { row, column: self.column.to_owned(), value, expected })
    }
}

impl<'a> Episodes<'a> {
    pub(super) fn of(columns: &'a [Column]) -> Result<Self, LeRobotDefect> {
        let mut integers = Vec::new();
        let mut from = Vec::new();
        for column in columns {
            let fail = |expected| {
                let found = column.number.name().to_owned();
                LeRobotDefect::Column { column: column.name.clone(), found, expected }
            };
            if column.name.ends_with("/from_timestamp") {
                from.push(column.reals().ok_or_else(|| fail("real numbers"))?);
            } else {
                let values = column.integers().ok_or_else(|| fail("integers"))?;
                integers.push(Integers { column: &column.name, values });
            }
        }
        Ok(Self { integers, from })
    }

    pub(super) fn count(&self) -> usize {
        self.integers.first().map_or(0, |integers| integers.values.len())
    }

    /// The place of episode `number`, whose first row in the data set is `start`.
    pub(super) fn place(
        &self,
        row: usize,
        number: i64,
        start: i64,
    ) -> Result<Place, LeRobotDefect> {
        self.integers[0].check(row, number)?;
        self.integers[3].check(row, start)?;
        let to = self.integers[4].at_least(row, start)?;
        let data = self.file(row, 1)?;
        let mut videos = Vec::with_capacity(self.from.len());
        for (camera, from) in self.from.iter().enumerate() {
            let file = self.file(row, OF_EPISODES.len() + 2 * camera)?;
            videos.push(VideoPlace { file, from: from[row] });
        }
        Ok(Place { data, from: start, to, videos })
    }

    /// The file in two columns of integers, from column `first`.
    fn file(&self, row: usize, first: usize) -> Result<FileNumber, LeRobotDefect> {
        let number = |column: usize| -> Result<u64, LeRobotDefect> {
            let number = self.integers[column].at_least(row, 0)?;
            Ok(u64::try_from(number).unwrap_or_default())
        };
        Ok(FileNumber { chunk: number(first)?, file: number(first + 1)? })
    }
}
