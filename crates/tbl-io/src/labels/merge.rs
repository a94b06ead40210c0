//! Joining the class numbers of several sources.

use std::collections::{BTreeSet, HashMap};

use super::NONE;
use crate::error::ReadError;
use crate::location::Location;

/// A source and the names of its classes; none for plain numbers.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) location: &'a Location,
    pub(super) names: &'a [String],
}

/// Brings the class numbers of several sources to one list of names, which it returns. Sources with
/// equal lists keep their numbers; different ones are renumbered by the sorted union of their
/// names. There a negative label, which many writers mean as none, becomes none.
///
/// # Errors
/// [`ReadError::UnnamedLabels`] for numbers without names alongside names,
/// [`ReadError::LabelWithoutClass`] for a number beyond the names of its source.
pub(super) fn by_name(
    sources: &[Named<'_>],
    labels: &mut [Vec<i64>],
) -> Result<Vec<String>, ReadError> {
    let names_of = |number: usize| sources[number].names;
    let has_any = |labels: &[i64]| labels.iter().any(|&label| label != NONE);
    let labelled: Vec<usize> = (0..sources.len()).filter(|&n| has_any(&labels[n])).collect();
    let mut lists = labelled.iter().map(|&number| names_of(number));
    let first = lists.next().unwrap_or_default();
    if lists.all(|list| list == first) {
        return Ok(first.to_vec());
    }
    if let Some(&other) = labelled.iter().find(|&&number| !names_of(number).is_empty()) {
        for &number in labelled.iter().filter(|&&number| names_of(number).is_empty()) {
            check_unlabelled(sources[number], &labels[number], sources[other])?;
        }
    }
    let union: BTreeSet<&str> =
        labelled.iter().flat_map(|&number| names_of(number)).map(String::as_str).collect();
    let place: HashMap<&str, i64> = union.iter().copied().zip(0..).collect();
    for &number in &labelled {
        let names = names_of(number);
        for (index, label) in (0..).zip(&mut labels[number]) {
            let Ok(class) = usize::try_from(*label) else {
                *label = NONE;
                continue;
            };
            let merged = names.get(class).and_then(|name| place.get(name.as_str()));
            *label = *merged.ok_or_else(|| ReadError::LabelWithoutClass {
                location: sources[number].location.clone(),
                index,
                label: *label,
                class_count: names.len(),
            })?;
        }
    }
    Ok(union.into_iter().map(str::to_owned).collect())
}

/// Fails for numbers without names, unless all of them mean none.
fn check_unlabelled(source: Named<'_>, labels: &[i64], other: Named<'_>) -> Result<(), ReadError> {
    match (0..).zip(labels).find(|&(_, &label)| label >= 0) {
        None => Ok(()),
        Some((index, &label)) => Err(ReadError::UnnamedLabels {
            location: source.location.clone(),
            index,
            label,
            other: other.location.clone(),
        }),
    }
}
