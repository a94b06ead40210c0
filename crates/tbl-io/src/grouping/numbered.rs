//! Numbered images: `cat.0.jpg`, `cat.1.jpg`, which agree up to the first dot and are not fields
//! of one sample.
//!
//! A group is taken apart if it has several images, each has a digit between key and format, and no
//! file has an extension without a further dot. `a.left.jpg` and `a.right.jpg` stay one sample, and
//! so do `a.0.jpg`, `a.1.jpg` and `a.json`. Keys then reach up to the next dot, and the same
//! question is asked of each of the new groups. It depends on no other group and on no order.

use std::collections::BTreeMap;

use tbl_format::SampleFormat;

use super::{Group, NO_GROUP};
use crate::names::{NONE, Names};

/// A file of a group that may be taken apart.
#[derive(Clone, Copy)]
struct Member {
    file: u32,
    /// Position of the last dot in its base name.
    last_dot: usize,
    /// Position of the last digit before that dot.
    last_digit: Option<usize>,
    is_image: bool,
}

impl Member {
    fn new(file: u32, base: &[u8]) -> Self {
        let last_dot = base.iter().rposition(|&byte| byte == b'.').unwrap_or(base.len());
        let last_digit = base[..last_dot].iter().rposition(u8::is_ascii_digit);
        let is_image = SampleFormat::from_file_name(base).is_image();
        Self { file, last_dot, last_digit, is_image }
    }

    fn is_numbered(&self, key_bytes: usize) -> bool {
        self.last_digit.is_some_and(|digit| digit > key_bytes)
    }
}

/// Counts that decide whether a group is taken apart.
#[derive(Clone, Copy, Default)]
struct Census {
    images: u32,
    /// Images with a number.
    numbered: u32,
    /// The first file that makes the group one sample: an image without a number, or a file with
    /// nothing but a format after the key.
    makes_one_sample: Option<u32>,
    /// Whether there is an image with nothing but a format after the key.
    has_plain_image: bool,
}

/// Numbered images that are not separate samples, because another file makes their group one
/// sample, and none of its images lacks a further dot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JoinedImages {
    pub(crate) images: u64,
    /// The samples that they are part of.
    pub(crate) samples: u64,
    /// The first such file.
    pub(crate) because: Option<u32>,
}

impl JoinedImages {
    fn add(&mut self, census: Census) {
        if let Some(because) = census.makes_one_sample
            && census.numbered > 1
            && !census.has_plain_image
        {
            self.images += u64::from(census.numbered);
            self.samples += 1;
            self.because = Some(self.because.map_or(because, |first| first.min(because)));
        }
    }
}

impl Census {
    fn add(&mut self, member: Member, key_bytes: usize) {
        self.images = self.images.saturating_add(u32::from(member.is_image));
        let is_plain = member.last_dot <= key_bytes;
        let is_numbered = member.is_numbered(key_bytes);
        self.numbered += u32::from(member.is_image && is_numbered);
        self.has_plain_image |= member.is_image && is_plain;
        if is_plain || (member.is_image && !is_numbered) {
            self.makes_one_sample.get_or_insert(member.file);
        }
    }

    fn is_numbered(self) -> bool {
        self.images > 1 && self.makes_one_sample.is_none()
    }
}

/// Takes apart the groups of numbered images. Returns the numbered images that stay together.
pub(super) fn split(names: &Names, groups: &mut Vec<Group>, group_of: &mut [u32]) -> JoinedImages {
    let mut joined = JoinedImages::default();
    let mut census = vec![Census::default(); groups.len()];
    for (file, &group) in (0..).zip(&*group_of).filter(|&(_, &group)| group != NO_GROUP) {
        let key_bytes = groups[group as usize].key_bytes;
        census[group as usize].add(Member::new(file, names.base(file)), key_bytes);
    }
    census.iter().for_each(|&census| joined.add(census));
    if !census.iter().any(|census| census.is_numbered()) {
        return joined;
    }
    let mut members: BTreeMap<u32, Vec<Member>> = BTreeMap::new();
    for (file, &group) in (0..).zip(&*group_of) {
        if census.get(group as usize).is_some_and(|census| census.is_numbered()) {
            members.entry(group).or_default().push(Member::new(file, names.base(file)));
        }
    }
    drop(census);
    let mut pending: Vec<(usize, Vec<Member>)> = members
        .into_iter()
        .map(|(group, members)| (groups[group as usize].key_bytes, members))
        .collect();
    while let Some((key_bytes, members)) = pending.pop() {
        for (key_bytes, members) in with_longer_keys(names, key_bytes, &members) {
            let mut census = Census::default();
            members.iter().for_each(|&member| census.add(member, key_bytes));
            if census.is_numbered() {
                pending.push((key_bytes, members));
                continue;
            }
            joined.add(census);
            let group = u32::try_from(groups.len()).unwrap_or(NONE);
            groups.extend(members.first().map(|first| Group::starting_at(first.file, key_bytes)));
            for member in members {
                group_of[member.file as usize] = group;
            }
        }
    }
    joined
}

/// The members by keys that reach up to the next dot, each with the length of that key.
fn with_longer_keys<'a>(
    names: &'a Names,
    key_bytes: usize,
    members: &[Member],
) -> impl Iterator<Item = (usize, Vec<Member>)> + use<'a> {
    let mut groups: BTreeMap<&[u8], Vec<Member>> = BTreeMap::new();
    for &member in members {
        let rest = names.base(member.file).get(key_bytes + 1..).unwrap_or_default();
        let part = rest.split(|&byte| byte == b'.').next().unwrap_or(rest);
        groups.entry(part).or_default().push(member);
    }
    groups.into_iter().map(move |(part, members)| (key_bytes + 1 + part.len(), members))
}
