//! Remarks on a conversion that are not errors, as `tl` prints them and Python warns of them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tbl_io::{ConvertEvent, ConvertSummary, Escaped, Labels, Note, SampleSource};

/// Samples without dimensions or index that are named one by one.
const MAX_NAMED: u64 = 10;

/// The remarks on one conversion, one line each.
#[derive(Debug, Default)]
pub struct ConversionNotes {
    named: Vec<String>,
}

impl ConversionNotes {
    /// The remarks on the sources and their labels, except usual ones such as hidden files.
    #[must_use]
    pub fn of_sources<S: AsRef<dyn SampleSource>>(sources: &[S], labels: &Labels) -> Vec<String> {
        let mut lines = Vec::new();
        for source in sources.iter().map(AsRef::as_ref) {
            let location = source.location();
            let notes = source.notes().into_iter().filter(|note| !note.is_usual());
            lines.extend(notes.map(|note| format!("{location}: {note}")));
        }
        lines.extend(labels.notes().iter().map(Note::to_string));
        lines
    }

    /// Takes note of an event.
    pub fn add(&mut self, event: &ConvertEvent<'_>) {
        let (what, location, index, key, reason) = match event {
            ConvertEvent::Unmeasured { location, index, key, reason } => {
                ("dimensions", location, index, key, reason)
            }
            ConvertEvent::Unindexed { location, index, key, reason } => {
                ("index", location, index, key, reason)
            }
            ConvertEvent::Written { .. } | _ => return,
        };
        if (self.named.len() as u64) < MAX_NAMED {
            let key = Escaped(key.unwrap_or_default());
            let line = format!("{location}: sample {index} ({key}): kept without {what}: {reason}");
            self.named.push(line);
        }
    }

    /// The remarks on samples that were kept without dimensions or index.
    #[must_use]
    pub fn of_samples(self, summary: &ConvertSummary) -> Vec<String> {
        let mut lines = self.named;
        let lacking = summary.unmeasured_samples.saturating_add(summary.unindexed_samples);
        let unnamed = lacking.saturating_sub(lines.len() as u64);
        if unnamed > 0 {
            lines.push(format!("{unnamed} more samples kept without dimensions or index"));
        }
        lines
    }

    /// The remarks on data that the new file cannot store.
    #[must_use]
    pub fn of_destination(destination: &Path, summary: &ConvertSummary) -> Vec<String> {
        let destination = Escaped(destination.as_os_str().as_bytes());
        let unstored = summary.unstored;
        let mut lines = Vec::new();
        if unstored.renamed > 0 {
            let renamed = unstored.renamed;
            lines.push(format!("{destination}: {renamed} samples renamed: names were taken"));
        }
        if unstored.passed_over > 0 {
            let samples = unstored.passed_over;
            lines.push(format!(
                "{destination}: {samples} samples have hidden names, or are not images while others \
                 are; readers pass them over"
            ));
        }
        let parts = [
            (unstored.keys, "names"),
            (unstored.labels, "labels"),
            (unstored.fields, "sidecar fields"),
            (unstored.class_names, "class names"),
            (unstored.box_class_names, "names of box classes"),
            (unstored.metadata_blocks, "metadata blocks"),
        ];
        let parts = parts.into_iter().filter(|&(count, _)| count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        if !parts.is_empty() {
            lines.push(format!("{destination}: cannot store {}", parts.join(", ")));
        }
        let unreachable = summary.unreachable_metadata;
        if unreachable > 0 {
            lines.push(format!(
                "{destination}: left out {unreachable} metadata blocks of samples that do not \
                 exist, or of a later version of tl"
            ));
        }
        lines
    }
}
