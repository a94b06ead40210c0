//! Labels that sources already have in other data sets.

use super::boxes::BoxClasses;
use super::merge::{self, Named};
use super::{LabelOrigin, Labels, noted};
use crate::error::ReadError;
use crate::note::Note;
use crate::sample::SampleSource;

impl Labels {
    /// The labels that `sources` have in other data sets, joined by class name as by
    /// [`resolve`](Self::resolve). Each source has a part: the labels of its data set and the number
    /// of the source there. The origin is [`LabelOrigin::Given`].
    ///
    /// # Errors
    /// [`ReadError::UnnamedLabels`] and [`ReadError::LabelWithoutClass`], as for
    /// [`resolve`](Self::resolve).
    ///
    /// # Panics
    /// If there are not as many parts as sources.
    pub fn joined<S: AsRef<dyn SampleSource>>(
        sources: &[S],
        parts: &[(&Self, usize)],
    ) -> Result<Self, ReadError> {
        assert_eq!(sources.len(), parts.len(), "a part for each source");
        let sources: Vec<&dyn SampleSource> = sources.iter().map(AsRef::as_ref).collect();
        let mut named = Vec::new();
        let mut labels = Vec::new();
        let mut unreadable = Vec::new();
        let mut notes: Vec<Note> = Vec::new();
        for (number, &(part, of_part)) in parts.iter().enumerate() {
            named.push(Named { location: sources[number].location(), names: &part.class_names });
            labels.push(part.labels.get(of_part).cloned().unwrap_or_default());
            let of_source = part.unreadable.iter().filter(|&&(source, _)| source == of_part);
            unreadable.extend(of_source.map(|&(_, index)| (number, index)));
            for note in &part.notes {
                // Samples without a label are counted below, over all sources.
                if !matches!(note, Note::PartlyLabelled { .. }) && !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
        }
        let class_names = merge::by_name(&named, &mut labels)?;
        let boxes = BoxClasses::of(&sources);
        let mut joined =
            Self { labels, unreadable, class_names, origin: LabelOrigin::Given, notes, boxes };
        if let Some((samples, (number, index))) = joined.unlabelled(&sources) {
            let first = noted(sources[number], index);
            joined.notes.push(Note::PartlyLabelled { samples, first });
        }
        Ok(joined)
    }

    /// True if the samples of source number `source` have the labels that those of number
    /// `of_other` have in `other`: classes of the same names, or the same numbers without names.
    pub fn has_same(&self, source: usize, other: &Self, of_other: usize) -> bool {
        let count = |labels: &Self, source| labels.labels.get(source).map_or(0, Vec::len);
        let samples = count(self, source).max(count(other, of_other)) as u64;
        (0..samples).all(|index| match (self.label(source, index), other.label(of_other, index)) {
            (Some(a), Some(b)) => match (self.class_name(a), other.class_name(b)) {
                (None, None) => a == b,
                (a, b) => a == b,
            },
            (a, b) => a == b,
        })
    }

    fn class_name(&self, label: i64) -> Option<&str> {
        let class = usize::try_from(label).ok()?;
        self.class_names.get(class).map(String::as_str)
    }
}
