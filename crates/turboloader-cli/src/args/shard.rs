//! Arguments that select a process's part of every global batch.

use clap::{Args, ValueEnum};
use tl_pipeline::{Shard, Tail};

/// The part of every global batch that this process gets, when several train together.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Ranks")]
pub(crate) struct ShardArgs {
    /// This process's number, from 0
    #[arg(long, value_name = "R", requires = "world")]
    rank: Option<u32>,

    /// How many processes train together. A global batch is W times --batch-size samples, and each
    /// process gets its part of every one
    #[arg(long, value_name = "W", requires = "rank")]
    world: Option<u32>,

    /// Handling of an incomplete last global batch (default: uneven for one process,
    /// pad for several)
    #[arg(long, value_enum, value_name = "TAIL")]
    tail: Option<TailChoice>,
}

/// The values of `--tail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TailChoice {
    /// Leave it out
    Drop,
    /// Fill it up from the start of the order, with rows that do not count
    Pad,
    /// Keep it short: the last processes get fewer rows or none
    Uneven,
}

impl From<TailChoice> for Tail {
    fn from(choice: TailChoice) -> Self {
        match choice {
            TailChoice::Drop => Self::Drop,
            TailChoice::Pad => Self::Pad,
            TailChoice::Uneven => Self::Uneven,
        }
    }
}

impl ShardArgs {
    /// The loader's configuration of ranks.
    pub(super) fn shard(&self) -> Shard {
        let alone = Shard::default();
        Shard {
            rank: self.rank.unwrap_or(alone.rank),
            world: self.world.unwrap_or(alone.world),
            tail: self.tail.map(Tail::from),
        }
    }
}
