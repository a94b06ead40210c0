//! Arguments that say which part of every global batch a process gets.

use clap::{Args, ValueEnum};
use tl_pipeline::{Shard, Tail};

/// Which part of every global batch this process gets, when several train together.
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

    /// What becomes of the last global batch when there are not enough samples for it (default:
    /// uneven for one process, pad for several)
    #[arg(long, value_enum, value_name = "TAIL")]
    tail: Option<TailChoice>,
}

/// What `--tail` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TailChoice {
    /// It is left out
    Drop,
    /// It is filled up from the start of the order, with rows that do not count
    Pad,
    /// It is short: the last processes get fewer rows or none
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
    /// What a loader is told.
    pub(super) fn shard(&self) -> Shard {
        let alone = Shard::default();
        Shard {
            rank: self.rank.unwrap_or(alone.rank),
            world: self.world.unwrap_or(alone.world),
            tail: self.tail.map(Tail::from),
        }
    }
}
