//! Requests of whole blocks, for a cache.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use tl_handoff::sync::Arc;

use super::{Requester, Rest};
use crate::cache::{Assembly, Begun, Layout};
use crate::reader::plan::Part;
use crate::reader::requests::{Target, requests_of, start};

/// Blocks of which rows of the first batch are requested. The others follow once all of that batch is
/// requested, so that it does not wait for them.
#[derive(Debug, Default)]
pub(super) struct HeldBack(Vec<Begin>);

/// A block that was begun.
#[derive(Debug)]
struct Begin {
    block: Arc<Layout>,
    assembly: Arc<Assembly>,
    /// The samples that are requested.
    requested: HashSet<u64>,
}

impl HeldBack {
    /// True if the other samples of the block of this one are held back.
    pub(super) fn has(&self, sample: u64) -> bool {
        self.0.iter().any(|begun| begun.block.place(sample).is_some())
    }

    fn of(&mut self, block: &Layout) -> Option<&mut Begin> {
        self.0.iter_mut().find(|begun| begun.block.number == block.number)
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        self.0.iter().for_each(|begun| begun.assembly.fail());
    }
}

impl Requester<'_> {
    /// Requests the whole block of some rows, if it can be kept. `takes_extra` tells whether samples of
    /// other rows may come with them at once.
    pub(super) fn start_block(
        &mut self,
        block: &Arc<Layout>,
        takes_extra: bool,
        parts: Vec<Part>,
        needed_in: Option<Duration>,
    ) -> Rest {
        let is_member = |part: &Part| block.place(part.wanted.sample).is_some();
        let (own, others): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(is_member);
        let known = self.held_back.of(block).map(|begun| Arc::clone(&begun.assembly));
        let begun = known.map_or_else(|| self.begin(block, &own, takes_extra), Begun::Here);
        let assembly = match begun {
            Begun::Here(assembly) => assembly,
            Begun::Elsewhere => {
                // Their workers find them there.
                own.iter().for_each(|part| self.window.complete(part.row, None));
                return Rest { parts: others, is_kept: true };
            }
            Begun::Nowhere => {
                return Rest { parts: own.into_iter().chain(others).collect(), is_kept: false };
            }
        };
        let is_now = |target: &Target| takes_extra || target.row.is_some();
        for targets in requests_of(block, &own, is_now) {
            self.start_part(&assembly, targets, needed_in);
        }
        if !takes_extra {
            let begin = || Begin { block: Arc::clone(block), assembly, requested: HashSet::new() };
            if self.held_back.of(block).is_none() {
                self.held_back.0.push(begin());
            }
            let requested = self.held_back.of(block).map(|begun| &mut begun.requested);
            requested.into_iter().for_each(|requested| {
                requested.extend(own.iter().map(|part| part.wanted.sample));
            });
        }
        Rest { parts: others, is_kept: takes_extra }
    }

    fn begin(&mut self, block: &Layout, own: &[Part], takes_extra: bool) -> Begun {
        let blocks = self.run.caches().blocks();
        // A block that was refused or lost is not begun again: what came of it would come twice.
        let Some(blocks) = blocks.filter(|blocks| !blocks.has_failed(block.number)) else {
            return Begun::Nowhere;
        };
        let bytes = own.iter().map(|part| part.wanted.range.end - part.wanted.range.start);
        let extra = block.bytes.saturating_sub(bytes.sum());
        // The first batch waits for no room: it is requested alone where there is none.
        let begun = blocks.begin(block, extra, &|| !takes_extra || self.run.is_over());
        match &begun {
            Begun::Here(assembly) => {
                if self.begun.len() == self.begun.capacity() {
                    self.begun.retain(|assembly| assembly.is_open());
                }
                self.begun.push(Arc::clone(assembly));
            }
            Begun::Nowhere if takes_extra => blocks.refuse(block.number),
            Begun::Elsewhere | Begun::Nowhere => {}
        }
        begun
    }

    /// Requests the samples that were held back.
    pub(super) fn start_held_back(&mut self) {
        for Begin { block, assembly, requested } in std::mem::take(&mut self.held_back.0) {
            let is_left = |target: &Target| !requested.contains(&target.sample);
            for targets in requests_of(&block, &[], is_left) {
                self.start_part(&assembly, targets, None);
            }
        }
    }

    fn start_part(
        &self,
        assembly: &Arc<Assembly>,
        targets: VecDeque<Target>,
        needed_in: Option<Duration>,
    ) {
        let has_rows = targets.iter().any(|target| target.row.is_some());
        let log = Some(&self.log);
        let read = start(self.run, self.window, log, targets, needed_in, Some(assembly));
        if let Some(read) = read {
            assembly.hold(read, has_rows);
        }
    }
}

impl Drop for Requester<'_> {
    fn drop(&mut self) {
        // What has begun to arrive is kept.
        if self.run.is_over() {
            self.begun.iter().for_each(|assembly| assembly.fail_if_empty());
        }
    }
}
