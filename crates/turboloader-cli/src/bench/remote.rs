//! The requests to stores that the measured epochs made, and what they cost.

use std::fmt;

use serde::Serialize;
use tbl_io::Stores;
use tl_pipeline::LoaderStats;
use turboloader::{RemoteStores, StoreStats};

use crate::args::GlobalArgs;
use crate::figures::rounded;

/// Prices of a store, in any currency. None is assumed: they differ, and change.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct PriceArgs {
    /// The price of one GET request to the store, such as 4e-7, to print what an epoch costs
    #[arg(long, value_name = "PRICE", value_parser = price)]
    price_get: Option<f64>,

    /// The price of 10^9 bytes from the store, such as 0.09, to print what an epoch costs
    #[arg(long, value_name = "PRICE", value_parser = price)]
    price_gb: Option<f64>,
}

fn price(text: &str) -> Result<f64, &'static str> {
    let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.ok_or("expected a number, 0 or more")
}

/// The stores of a measurement.
pub(super) struct Remote {
    remote: RemoteStores,
    stores: Stores,
}

impl Remote {
    pub(super) fn new(global: &GlobalArgs) -> Self {
        let remote = global.remote();
        let stores = remote.add_to(global.without_remote());
        Self { remote, stores }
    }

    pub(super) fn stores(&self) -> Stores {
        self.stores.clone()
    }

    pub(super) fn stats(&self) -> StoreStats {
        self.remote.stats()
    }

    /// The requests after `before`; `None` where all data is local. `loaded` has the samples that
    /// they were made for.
    pub(super) fn result(
        &self,
        before: &StoreStats,
        loaded: &LoaderStats,
        prices: PriceArgs,
    ) -> Option<RemoteResult> {
        (self.stats().gets > 0).then(|| {
            let stats = self.stats().since(before);
            RemoteResult::new(&stats, loaded, prices)
        })
    }
}

/// The requests of the measured epochs.
#[derive(Debug, Serialize)]
pub(super) struct RemoteResult {
    gets: u64,
    gets_per_1000_samples: f64,
    /// Requests that repeated one that failed.
    retries: u64,
    /// Answers that asked for fewer requests.
    throttled: u64,
    /// Requests that were sent next to a slow one, and those that were faster.
    hedges: u64,
    hedges_won: u64,
    received_bytes: u64,
    /// The bytes of the samples that were loaded.
    used_bytes: u64,
    /// The price of a thousand samples, with the prices that were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    price_of_1000_samples: Option<f64>,
}

impl RemoteResult {
    #[expect(clippy::cast_precision_loss, reason = "figures for reading")]
    fn new(stats: &StoreStats, loaded: &LoaderStats, prices: PriceArgs) -> Self {
        let PriceArgs { price_get, price_gb } = prices;
        let thousands = loaded.processed.max(1) as f64 / 1000.0;
        let price = stats.gets as f64 * price_get.unwrap_or(0.0)
            + stats.received as f64 / 1e9 * price_gb.unwrap_or(0.0);
        Self {
            gets: stats.gets,
            gets_per_1000_samples: rounded(stats.gets as f64 / thousands, 1),
            retries: stats.retries,
            throttled: stats.throttled,
            hedges: stats.hedges,
            hedges_won: stats.hedges_won,
            received_bytes: stats.received,
            used_bytes: loaded.bytes_read,
            price_of_1000_samples: (price_get.or(price_gb)).map(|_| price / thousands),
        }
    }
}

impl fmt::Display for RemoteResult {
    #[expect(clippy::cast_precision_loss, reason = "figures for reading")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gets, gets_per_1000_samples, retries, throttled, hedges, hedges_won, .. } = self;
        write!(
            f,
            "store: {gets} GETs ({gets_per_1000_samples} per 1000 samples), {retries} retries \
             ({throttled} throttled), {hedges} hedges ({hedges_won} won); {:.1} MB received for \
             {:.1} MB of samples",
            self.received_bytes as f64 / 1e6,
            self.used_bytes as f64 / 1e6,
        )?;
        match self.price_of_1000_samples {
            Some(price) => write!(f, ", price of 1000 samples: {price:.3e}"),
            None => Ok(()),
        }
    }
}
