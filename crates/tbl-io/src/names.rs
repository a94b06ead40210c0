//! Many path names in little memory: each distinct folder once, all base names in one buffer.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};

/// Path names by number. A name costs 8 bytes and its base name; a folder costs its name and 12
/// bytes once, however many names lie in it.
#[derive(Debug)]
pub(crate) struct Names {
    entries: Vec<NameEntry>,
    bases: Vec<u8>,
    folders: Interner,
}

#[derive(Clone, Copy, Debug)]
struct NameEntry {
    folder: u32,
    /// The offset of the base name in `bases`; it ends where the next one starts.
    start: u32,
}

/// The names do not fit: there are 2^32 of them, or 4 GiB of base names or folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyNames;

impl Names {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), bases: Vec::new(), folders: Interner::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of text held.
    pub(crate) fn text_bytes(&self) -> u64 {
        (self.bases.len() + self.folders.text.len()) as u64
    }

    pub(crate) fn push(&mut self, path: &[u8]) -> Result<(), TooManyNames> {
        let slash = path.iter().rposition(|&byte| byte == b'/');
        let (folder, base) = path.split_at(slash.map_or(0, |at| at + 1));
        let start = u32::try_from(self.bases.len()).map_err(|_| TooManyNames)?;
        // The end of the last name has to be a u32 as well, and no name has the number `NONE`.
        u32::try_from(self.bases.len() + base.len()).map_err(|_| TooManyNames)?;
        if self.entries.len() >= NONE as usize {
            return Err(TooManyNames);
        }
        let folder = match self.entries.last() {
            Some(last) if self.folders.name(last.folder) == folder => last.folder,
            _ => self.folders.intern(folder)?,
        };
        self.bases.extend_from_slice(base);
        self.entries.push(NameEntry { folder, start });
        Ok(())
    }

    /// The path up to and including its last slash; empty without one.
    pub(crate) fn folder(&self, name: u32) -> &[u8] {
        self.folders.name(self.entries[name as usize].folder)
    }

    pub(crate) fn folder_id(&self, name: u32) -> u32 {
        self.entries[name as usize].folder
    }

    /// The path after its last slash.
    pub(crate) fn base(&self, name: u32) -> &[u8] {
        let index = name as usize;
        let end = self.entries.get(index + 1).map_or(self.bases.len(), |next| next.start as usize);
        &self.bases[self.entries[index].start as usize..end]
    }

    pub(crate) fn path(&self, name: u32) -> Cow<'_, [u8]> {
        match self.folder(name) {
            [] => Cow::Borrowed(self.base(name)),
            folder => Cow::Owned([folder, self.base(name)].concat()),
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
        self.bases.shrink_to_fit();
        self.folders.shrink_to_fit();
    }
}

/// Distinct byte strings, numbered in the order of their first appearance.
#[derive(Debug)]
struct Interner {
    text: Vec<u8>,
    ends: Vec<u32>,
    table: HashTable,
}

impl Interner {
    fn new() -> Self {
        Self { text: Vec::new(), ends: Vec::new(), table: HashTable::new() }
    }

    fn name(&self, id: u32) -> &[u8] {
        name_of(&self.text, &self.ends, id)
    }

    fn intern(&mut self, name: &[u8]) -> Result<u32, TooManyNames> {
        let Self { text, ends, table } = self;
        let id = u32::try_from(ends.len()).map_err(|_| TooManyNames)?;
        // Before the table changes, so that it never knows a name without text.
        let end = u32::try_from(text.len() + name.len()).map_err(|_| TooManyNames)?;
        let found = table.find_or_insert(&name, id, |id| name_of(text, ends, id));
        if found == id {
            text.extend_from_slice(name);
            ends.push(end);
        }
        Ok(found)
    }

    fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

fn name_of<'a>(text: &'a [u8], ends: &[u32], id: u32) -> &'a [u8] {
    let index = id as usize;
    let start = index.checked_sub(1).map_or(0, |previous| ends[previous]);
    &text[start as usize..ends[index] as usize]
}

/// The number that stands for "no entry" wherever entries are numbered by `u32`.
pub(crate) const NONE: u32 = u32::MAX;

/// Numbers found by the bytes they stand for, which the caller keeps: 4 bytes per slot and at
/// least two slots per entry. Hashing is keyed, so that no archive can be made to collide.
#[derive(Debug)]
pub(crate) struct HashTable {
    slots: Vec<u32>,
    count: usize,
    hasher: RandomState,
}

impl HashTable {
    pub(crate) fn new() -> Self {
        Self { slots: vec![NONE; 16], count: 0, hasher: RandomState::new() }
    }

    /// The number whose key equals `key`, or `new` after entering it. `key_of` gives the key of
    /// any number entered before.
    pub(crate) fn find_or_insert<K: std::hash::Hash + Eq>(
        &mut self,
        key: &K,
        new: u32,
        key_of: impl Fn(u32) -> K,
    ) -> u32 {
        if (self.count + 1) * 2 > self.slots.len() {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![NONE; old.len() * 2];
            for id in old.into_iter().filter(|&id| id != NONE) {
                let slot = self.probe(&key_of(id), |_| false);
                self.slots[slot] = id;
            }
        }
        let slot = self.probe(key, |id| key_of(id) == *key);
        if self.slots[slot] == NONE {
            self.slots[slot] = new;
            self.count += 1;
        }
        self.slots[slot]
    }

    /// The first slot on the path of `key` that is empty or whose number `matches`.
    fn probe<K: std::hash::Hash>(&self, key: &K, matches: impl Fn(u32) -> bool) -> usize {
        let mask = self.slots.len() - 1;
        #[expect(clippy::cast_possible_truncation, reason = "the low bits of a hash will do")]
        let mut slot = self.hasher.hash_one(key) as usize & mask;
        while self.slots[slot] != NONE && !matches(self.slots[slot]) {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were_pushed() {
        let paths: Vec<Vec<u8>> =
            [&b""[..], b"/", b"a", b"a/", b"a/b", b"a//b", b"./a.jpg", b"\xff/\0"]
                .into_iter()
                .map(<[u8]>::to_vec)
                .chain((0..5000).map(|number| format!("{}/{number}", number % 700).into_bytes()))
                .collect();
        let mut names = Names::new();
        for path in &paths {
            names.push(path).unwrap();
        }
        names.shrink_to_fit();
        assert_eq!(names.len(), paths.len());
        for (number, path) in (0..).zip(&paths) {
            assert_eq!(names.path(number).as_ref(), path);
        }
        assert_eq!(names.folders.ends.len(), 6 + 700);
    }
}
