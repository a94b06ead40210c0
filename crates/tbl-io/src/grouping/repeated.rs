//! Groups in which names occur twice.

use super::{Group, NO_GROUP, Rank, Runs};
use crate::names::{HashTable, NONE};

/// Takes groups apart in which names occur twice. A run with a name that its group has already
/// starts a new group, and so does such a file inside a run. Every part has a file as good as the
/// whole group's best: files after the last such part are newer versions of its fields, those
/// before the first one older ones. Without an image, every repetition starts a new group.
///
/// Returns the files that a later file of the same name in the same group replaces, each with that
/// file.
pub(super) fn split(
    runs: &Runs<'_>,
    groups: &mut Vec<Group>,
    group_of: &mut [u32],
) -> Vec<(u32, u32)> {
    let whole_groups = groups.len();
    let best = best_ranks(runs, groups, group_of);
    // By whole group, the part of it that files are added to; by part, the one before it; by the
    // first file of a name, the last part with that name.
    let mut open: Vec<u32> = (0..).take(whole_groups).collect();
    let mut before: Vec<u32> = Vec::new();
    let mut is_whole: Vec<bool> = vec![false; whole_groups];
    let mut part_with: Vec<u32> = vec![NONE; group_of.len()];
    let mut table = HashTable::new();
    let mut first_file_of =
        |file| table.find_or_insert(&runs.name(file), file, |file| runs.name(file)) as usize;
    let mut start = 0;
    while start < group_of.len() {
        let group = group_of[start];
        let same_run = (start + 1..group_of.len()).take_while(|&file| {
            group_of[file] == group && !u32::try_from(file).is_ok_and(|f| runs.starts_archive(f))
        });
        let run = start..start + 1 + same_run.count();
        start = run.end;
        if group == NO_GROUP || !groups[group as usize].may_repeat {
            continue;
        }
        let key_bytes = groups[group as usize].key_bytes;
        let best = best[group as usize];
        let files = || run.clone().zip(u32::try_from(run.start).unwrap_or(NONE)..);
        let part = open[group as usize];
        let mut repeats = files().any(|(_, file)| part_with[first_file_of(file)] == part);
        for (index, file) in files() {
            let name = first_file_of(file);
            let mut part = open[group as usize];
            repeats |= part_with[name] == part;
            if repeats && is_whole[part as usize] {
                before.push(part);
                part = u32::try_from(groups.len()).unwrap_or(NONE);
                groups.push(Group::starting_at(file, key_bytes));
                is_whole.push(false);
                open[group as usize] = part;
            }
            repeats = false;
            is_whole[part as usize] |= Rank::of(runs.names.base(file), key_bytes) <= best;
            part_with[name] = part;
            group_of[index] = part;
        }
    }
    for group in group_of.iter_mut().filter(|group| **group != NO_GROUP) {
        if let Some(part) = (*group as usize).checked_sub(whole_groups)
            && !is_whole[*group as usize]
        {
            *group = before[part];
        }
    }
    // By the first file of a name, the last file with that name.
    let mut last_with: Vec<u32> = vec![NONE; group_of.len()];
    let mut replaced = Vec::new();
    for (file, &group) in (0..).zip(&*group_of) {
        let is_part = group != NO_GROUP && group as usize >= whole_groups;
        if is_part || groups.get(group as usize).is_some_and(|group| group.may_repeat) {
            let last = std::mem::replace(&mut last_with[first_file_of(file)], file);
            if group_of.get(last as usize) == Some(&group) {
                replaced.push((last, file));
            }
        }
    }
    replaced
}

/// The best rank in each group whose names may repeat.
fn best_ranks(runs: &Runs<'_>, groups: &[Group], group_of: &[u32]) -> Vec<Rank> {
    let mut best = vec![Rank::Other; groups.len()];
    for (file, &group) in (0..).zip(group_of) {
        if let Some(Group { key_bytes, may_repeat: true, .. }) = groups.get(group as usize) {
            let rank = Rank::of(runs.names.base(file), *key_bytes);
            best[group as usize] = best[group as usize].min(rank);
        }
    }
    best
}
