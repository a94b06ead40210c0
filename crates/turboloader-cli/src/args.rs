//! Arguments that several commands share. The help texts here and in the commands are the only
//! description of each option.

mod cache;
mod damage;
mod decode_mode;
mod fields;
mod item;
mod key;
mod loader;
mod memory;
mod policy;
mod recipe;
mod sampler;
mod shard;

use clap::ValueEnum;

pub(crate) use damage::DamageChoice;
pub(crate) use decode_mode::{DecodeModeArgs, NO_DECODE_MODE};
pub(crate) use item::{ItemName, item_name};
pub(crate) use key::KeyArgs;
pub(crate) use loader::LoaderArgs;
pub(crate) use recipe::{BenchRecipe, RecipeName};

/// Options every subcommand takes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Colour the output
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    /// Hide the progress bar and the closing line
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// The condition for coloured output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
