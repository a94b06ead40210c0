//! Arguments that several commands share. The help texts here and in the commands are the only
//! description of each option.

mod cache;
mod damage;
mod decode_mode;
mod device;
mod exif;
mod fields;
mod item;
mod job;
mod key;
mod lists;
mod loader;
mod memory;
mod policy;
mod recipe;
mod sampler;
mod shard;
#[cfg(feature = "remote")]
mod store;
mod tokens;
mod view;

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::ValueEnum;
use tbl_io::{ReadError, SampleSource, Stores, Unpack};
use tl_pipeline::Dataset;

pub(crate) use damage::DamageChoice;
pub(crate) use decode_mode::{DecodeModeArgs, NO_DECODE_MODE};
pub(crate) use device::DeviceName;
pub(crate) use exif::ExifChoice;
pub(crate) use item::{ItemName, item_name, sample_number};
pub(crate) use job::JobArgs;
pub(crate) use key::KeyArgs;
use lists::ListArgs;
pub(crate) use loader::LoaderArgs;
pub(crate) use recipe::{BenchRecipe, RecipeName};
#[cfg(feature = "remote")]
use store::StoreArgs;
use tokens::TokenArgs;
pub(crate) use view::ViewArgs;

use crate::failure::Failure;

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

    #[command(flatten)]
    lists: ListArgs,

    #[command(flatten)]
    tokens: TokenArgs,

    #[cfg(feature = "remote")]
    #[command(flatten)]
    stores: StoreArgs,
}

impl GlobalArgs {
    /// The stores that URLs may name.
    pub(crate) fn stores(&self) -> Stores {
        let stores = self.without_remote();
        #[cfg(feature = "remote")]
        let stores = self.remote().add_to(stores);
        stores
    }

    /// No store, with the options for lists of samples and for compressed archives.
    pub(crate) fn without_remote(&self) -> Stores {
        let stores = tl_pipeline::stores().with_list_options(self.lists.options());
        match &self.unpack {
            Some(folder) => stores.unpacking(Unpack::Keep(folder.clone())),
            None => stores,
        }
    }

    /// Opens what `paths` stand for, in these stores.
    pub(crate) fn open_sources<P: AsRef<OsStr>>(
        &self,
        stores: &Stores,
        paths: &[P],
    ) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
        self.tokens.open(stores, paths).unwrap_or_else(|| tbl_io::open_all_in(stores, paths))
    }

    /// Opens what `paths` stand for as one data set, tables included, with the labels that are given
    /// for it.
    pub(crate) fn open<P: AsRef<OsStr>>(
        &self,
        stores: &Stores,
        paths: &[P],
    ) -> Result<Dataset, Failure> {
        let dataset = match self.tokens.open(stores, paths) {
            Some(sources) => Dataset::from_sources(sources?)?,
            None => Dataset::open_in(stores, paths)?,
        };
        self.labelled(dataset)
    }

    /// True if data sets are files of tokens.
    pub(crate) fn has_tokens(&self) -> bool {
        self.tokens.is_given()
    }

    /// The data set with the labels that are given for it, if any are.
    pub(crate) fn labelled(&self, dataset: Dataset) -> Result<Dataset, Failure> {
        match self.lists.labels(&self.stores())? {
            Some(labels) => Ok(dataset.with_labels(&labels)?),
            None => Ok(dataset),
        }
    }

    /// Whether the labels are those of a file.
    pub(crate) fn gives_labels(&self) -> bool {
        self.lists.gives_labels()
    }

    /// Whether labels, or options of lists of samples, are given.
    pub(crate) fn has_list_options(&self) -> bool {
        self.lists.is_given()
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
