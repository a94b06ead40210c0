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
#[cfg(feature = "remote")]
mod store;
mod view;

use std::path::PathBuf;

use clap::ValueEnum;
use tbl_io::{Stores, Unpack};

pub(crate) use damage::DamageChoice;
pub(crate) use decode_mode::{DecodeModeArgs, NO_DECODE_MODE};
pub(crate) use item::{ItemName, item_name, sample_number};
pub(crate) use key::KeyArgs;
pub(crate) use loader::LoaderArgs;
pub(crate) use recipe::{BenchRecipe, RecipeName};
#[cfg(feature = "remote")]
use store::StoreArgs;
pub(crate) use view::ViewArgs;

/// Options every subcommand takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Colour the output
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    /// Hide the progress bar and the closing line
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    /// Unpack TAR archives that are compressed by gzip or zstd into this folder, once; later commands
    /// find the plain archives there. Without it they are refused; `convert` needs no folder
    #[arg(long, global = true, value_name = "DIR")]
    unpack: Option<PathBuf>,

    #[cfg(feature = "remote")]
    #[command(flatten)]
    stores: StoreArgs,
}

impl GlobalArgs {
    /// The stores that URLs may name.
    pub(crate) fn stores(&self) -> Stores {
        let stores = Stores::new();
        #[cfg(feature = "remote")]
        let stores = self.remote().add_to(stores);
        match &self.unpack {
            Some(folder) => stores.unpacking(Unpack::Keep(folder.clone())),
            None => stores,
        }
    }

    /// The remote ones of them, which count requests.
    #[cfg(feature = "remote")]
    pub(crate) fn remote(&self) -> turboloader::RemoteStores {
        self.stores.remote()
    }
}

/// The condition for coloured output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    #[default]
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
