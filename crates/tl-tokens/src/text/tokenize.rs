//! Texts into a file of tokens, on several threads.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use tbl_io::{ConvertError, Location, Placement, ReadError, Stores, TokensDefect};

use super::TextOptions;
use super::blocks::{Block, Blocks};
use super::draft::Draft;
use super::files::TextFiles;
use super::line::Line;
use super::target::TokenTarget;
use super::tokenizer::Tokenizer;
use crate::number::TokenType;

/// Blocks per thread that may be in memory: one that is tokenized, and one that waits to be written.
const BLOCKS_PER_THREAD: usize = 2;

/// The handling of texts that cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnBadText {
    /// Stops with the error of the first one. No file is written.
    #[default]
    Raise,
    /// Leaves them out, counts them, and reports each as an event.
    Skip,
}

/// Tokenizes texts into a file of tokens.
///
/// Texts are strings in JSON Lines, files, or the rows of a column; files may be compressed by gzip or
/// Zstandard. The order is that of the files and of the texts in them, so the bytes of the result do
/// not depend on the number of threads.
#[derive(Clone, Debug)]
pub struct Tokenize<'a> {
    /// The tokenizer.
    pub tokenizer: &'a Tokenizer,
    /// The texts in the files, and the tokens around each.
    pub text: TextOptions,
    /// The format to write.
    pub to: TokenTarget,
    /// The handling of texts that cannot be used.
    pub on_bad: OnBadText,
    /// The number of threads.
    pub workers: NonZeroUsize,
    /// The operation that gives the files their names.
    pub placement: Placement,
}

/// An event of the work.
#[derive(Debug)]
#[non_exhaustive]
pub enum TokenizeEvent<'e> {
    /// So many bytes of the files were read, and their tokens written.
    Progress {
        /// The bytes so far.
        bytes: u64,
        /// Those of all files.
        of: u64,
    },
    /// A text that is left out.
    Skipped(&'e ReadError),
}

/// The result of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenizeSummary {
    /// The number of documents, those without tokens included.
    pub documents: u64,
    /// The number of tokens.
    pub tokens: u64,
    /// The type of the tokens.
    pub number: TokenType,
    /// The number of texts that were left out.
    pub skipped: u64,
    /// The number of files that were read.
    pub files: u64,
    /// The number of files in folders whose names are not those of texts.
    pub left_out: u64,
    /// The bytes of all files that were written.
    pub bytes: u64,
}

impl<'a> Tokenize<'a> {
    /// To the files of Megatron-LM, on one thread.
    #[must_use]
    pub fn new(tokenizer: &'a Tokenizer) -> Self {
        Self {
            tokenizer,
            text: TextOptions::default(),
            to: TokenTarget::default(),
            on_bad: OnBadText::default(),
            workers: NonZeroUsize::MIN,
            placement: Placement { overwrite: false, sync: true },
        }
    }

    /// Writes the tokens of the texts in `inputs`: files, and folders of them. The tokens are in
    /// `output`, and the documents of Megatron-LM in the file next to it that ends with `.idx`.
    ///
    /// # Errors
    /// Those of reading and writing; [`ReadError::List`] with file, line and byte for a text;
    /// [`ConvertError::Stopped`] if `on_event` breaks. No file is written then.
    pub fn run(
        &self,
        stores: &Stores,
        inputs: &[Location],
        output: &Path,
        on_event: &mut dyn FnMut(TokenizeEvent<'_>) -> ControlFlow<()>,
    ) -> Result<TokenizeSummary, ConvertError> {
        let number = self.to.number(self.tokenizer.vocabulary());
        let files = TextFiles::find(stores, inputs)?;
        let mut summary = TokenizeSummary {
            documents: 0,
            tokens: 0,
            number,
            skipped: 0,
            files: files.files.len() as u64,
            left_out: files.left_out,
            bytes: 0,
        };
        let of = files.bytes;
        let mut draft = Draft::create(output, self.to, number, self.placement)?;
        let blocks = Blocks::new(stores, &self.text, files);
        let mut report = |event: TokenizeEvent<'_>| match on_event(event) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ConvertError::Stopped),
        };
        self.each(blocks, number, &mut |block: Encoded| {
            for error in &block.bad {
                summary.skipped += 1;
                report(TokenizeEvent::Skipped(error))?;
            }
            draft.write(&block.tokens, &block.lengths)?;
            summary.documents += block.lengths.len() as u64;
            summary.tokens += (block.tokens.len() / number.bytes()) as u64;
            report(TokenizeEvent::Progress { bytes: block.done, of })
        })?;
        summary.bytes = draft.finish()?;
        Ok(summary)
    }

    /// Calls `write` with the tokens of each block, in order.
    fn each(
        &self,
        blocks: Blocks<'_>,
        number: TokenType,
        write: &mut dyn FnMut(Encoded) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let workers = self.workers.get();
        let most_blocks = workers.saturating_mul(BLOCKS_PER_THREAD);
        let (permits, permitted) = sync_channel(most_blocks);
        let (sender, results) = channel();
        let feed = Mutex::new(Feed { blocks, permitted, next: 0, is_over: false });
        let feed = &feed;
        thread::scope(|scope| {
            // Threads end when permits run out, also where this closure is left early.
            let permits = permits;
            let permit = || permits.send(()).unwrap_or(());
            (0..most_blocks).for_each(|_| permit());
            for worker in 0..workers {
                let results = sender.clone();
                let work = move || self.work(feed, number, &results);
                thread::Builder::new()
                    .spawn_scoped(scope, work)
                    .map_err(|source| ConvertError::WorkerNotStarted { worker, workers, source })?;
            }
            drop(sender);
            let mut waiting = BTreeMap::new();
            let mut next = 0;
            for (place, result) in results {
                waiting.insert(place, result);
                while let Some(result) = waiting.remove(&next) {
                    next += 1;
                    write(result?)?;
                    permit();
                }
            }
            Ok(())
        })
    }

    /// The loop of each thread.
    fn work(
        &self,
        feed: &Mutex<Feed<'_>>,
        number: TokenType,
        results: &Sender<(u64, Result<Encoded, ConvertError>)>,
    ) {
        let mut ids = Vec::new();
        loop {
            let taken = feed.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(Taken { place, block, done }) = taken else { return };
            let encode = || {
                let out = Encoded { done, ..Encoded::default() };
                let mut worker = Worker { job: self, number, ids: &mut ids, out };
                worker.add_block(block?)?;
                Ok(worker.out)
            };
            let result = catch_unwind(AssertUnwindSafe(encode));
            let result = result.unwrap_or(Err(ConvertError::WorkerPanicked { index: place }));
            if results.send((place, result)).is_err() {
                return;
            }
        }
    }
}

/// The blocks that are not taken yet.
struct Feed<'a> {
    blocks: Blocks<'a>,
    /// One for each block that may be in memory.
    permitted: Receiver<()>,
    next: u64,
    is_over: bool,
}

/// A block, its place among all, and the bytes of files up to its end.
struct Taken {
    place: u64,
    block: Result<Block, ReadError>,
    done: u64,
}

impl Feed<'_> {
    /// Waits for a permit and reads the next block; `None` at the end. Nothing follows an error.
    fn take(&mut self) -> Option<Taken> {
        if self.is_over || self.permitted.recv().is_err() {
            return None;
        }
        // Also if reading panics.
        self.is_over = true;
        let block = self.blocks.next().transpose()?;
        self.is_over = block.is_err();
        let place = self.next;
        self.next += 1;
        Some(Taken { place, block, done: self.blocks.done() })
    }
}

/// The tokens of a block.
#[derive(Debug, Default)]
struct Encoded {
    /// As they are written.
    tokens: Vec<u8>,
    /// The number of tokens of each document.
    lengths: Vec<u32>,
    /// The texts that are left out.
    bad: Vec<ReadError>,
    done: u64,
}

/// The work on one block.
struct Worker<'w> {
    job: &'w Tokenize<'w>,
    number: TokenType,
    ids: &'w mut Vec<u32>,
    out: Encoded,
}

impl Worker<'_> {
    fn add_block(&mut self, block: Block) -> Result<(), ReadError> {
        let options = &self.job.text;
        match block {
            Block::Lines { location, line, offset, bytes } => {
                let mut at = offset;
                for (number, bytes) in (line..).zip(bytes.split_inclusive(|&byte| byte == b'\n')) {
                    let number = Some(number);
                    let line = Line { location: &location, number, offset: at, bytes };
                    at += bytes.len() as u64;
                    if let Some(text) = line.text(options).transpose() {
                        self.add(text, &|defect| line.defect(&defect))?;
                    }
                }
                Ok(())
            }
            Block::Whole { location, bytes } => {
                let text = options.text_of(&location, &bytes);
                self.add(text, &|source| options.defect(&location, source))
            }
            Block::Rows { source, first, count } => {
                let mut bytes = Vec::new();
                (first..first + count).try_for_each(|row| {
                    let text = options.row(&*source, row, &mut bytes);
                    let of_row =
                        |defect| options.defect(source.location(), defect).for_sample(row, None);
                    self.add(text, &of_row)
                })
            }
            Block::Bad(error) => self.settle(Err(error)),
        }
    }

    /// Adds a document; `at` gives an error its place.
    fn add(
        &mut self,
        text: Result<Cow<'_, str>, ReadError>,
        at: &dyn Fn(TokensDefect) -> ReadError,
    ) -> Result<(), ReadError> {
        let added = text.and_then(|text| self.encode(&text).map_err(at));
        self.settle(added)
    }

    fn encode(&mut self, text: &str) -> Result<(), TokensDefect> {
        self.ids.clear();
        self.job.text.encode(self.job.tokenizer, text, self.ids)?;
        let start = self.out.tokens.len();
        self.out.tokens.resize(start + self.ids.len() * self.number.bytes(), 0);
        let ids: Vec<u8> = self.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let written = TokenType::U32.convert(&ids, self.number, &mut self.out.tokens[start..]);
        if let Err((_, value)) = written {
            self.out.tokens.truncate(start);
            return Err(TokensDefect::Value {
                value: value.to_string(),
                wanted: self.number.name(),
            });
        }
        let length = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        self.out.lengths.push(length);
        Ok(())
    }

    /// Keeps the error of a text that is to be left out.
    fn settle(&mut self, added: Result<(), ReadError>) -> Result<(), ReadError> {
        match added {
            Err(error) if self.job.on_bad == OnBadText::Skip && error.is_damage() => {
                self.out.bad.push(error);
                Ok(())
            }
            added => added,
        }
    }
}
