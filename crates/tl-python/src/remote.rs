//! The stores that paths may name, with the settings that Python gives.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
#[cfg(feature = "remote")]
use std::sync::Arc;

use pyo3::prelude::*;
use tbl_io::{Stores, Unpack};

use crate::detached::detached;
use crate::error::Error;

/// The credentials that need no option.
const AUTO: &str = "auto";

/// `Store` of Python, whose default this has too.
#[derive(PartialEq, FromPyObject)]
pub(crate) struct StoreSettings {
    /// Options by name.
    options: BTreeMap<String, String>,
    credentials: String,
    connections: Option<usize>,
    read_ahead: Option<u64>,
    deadline: Option<f64>,
    hedge: bool,
    /// The folder for plain copies of compressed archives.
    unpack_to: Option<PathBuf>,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            options: BTreeMap::new(),
            credentials: AUTO.to_owned(),
            connections: None,
            read_ahead: None,
            deadline: None,
            hedge: true,
            unpack_to: None,
        }
    }
}

/// The paths and URLs, a pattern of a store as the objects that it means.
#[pyfunction]
#[pyo3(signature = (
    paths: "list[str]", stores: "Store | None" = None
) -> "list[str]")]
pub(crate) fn expand(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    stores: Option<StoreSettings>,
) -> Result<Vec<OsString>, Error> {
    let stores = DataStores::new(&stores.unwrap_or_default())?.stores();
    detached(py, || {
        let mut found = Vec::new();
        for path in paths {
            let expanded = stores.expand(path)?;
            found.extend(expanded.iter().map(|location| location.as_os_str().to_owned()));
        }
        Ok(found)
    })?
}

/// The stores that the paths of a data set may name.
pub(crate) struct DataStores {
    /// The stores that open paths, and after them those of data sets that were joined.
    #[cfg(feature = "remote")]
    remotes: Vec<Arc<turboloader::RemoteStores>>,
    unpack_to: Option<PathBuf>,
    /// The bytes of samples that loaders read ahead; none for a number of their own.
    pub(crate) read_ahead: Option<u64>,
}

impl DataStores {
    pub(crate) fn stores(&self) -> Stores {
        let stores = tl_pipeline::stores();
        #[cfg(feature = "remote")]
        let stores = match self.remotes.first() {
            Some(remote) => remote.add_to(stores),
            None => stores,
        };
        match &self.unpack_to {
            Some(folder) => stores.unpacking(Unpack::Keep(folder.clone())),
            None => stores,
        }
    }
}

#[cfg(feature = "remote")]
impl DataStores {
    pub(crate) fn new(settings: &StoreSettings) -> Result<Self, Error> {
        let mut options = turboloader::StoreOptions::default();
        options.options.extend(settings.options.clone());
        if settings.credentials != AUTO {
            options.options.insert("credentials".to_owned(), settings.credentials.clone());
        }
        options.hedge = settings.hedge;
        if let Some(connections) = settings.connections {
            options.connections = connections;
        }
        if let Some(read_ahead) = settings.read_ahead {
            options.read_ahead = read_ahead;
        }
        if let Some(deadline) = settings.deadline {
            let refused = || Error::setting(&"deadline: expected seconds, more than 0");
            let seconds = std::time::Duration::try_from_secs_f64(deadline).ok();
            options.deadline =
                seconds.filter(|deadline| !deadline.is_zero()).ok_or_else(refused)?;
        }
        let unpack_to = settings.unpack_to.clone();
        let remotes = vec![Arc::new(turboloader::RemoteStores::new(options))];
        Ok(Self { remotes, unpack_to, read_ahead: settings.read_ahead })
    }

    /// The stores of data sets that are joined, each once. The first opens paths, and the largest
    /// lead is that of all.
    pub(crate) fn joined<'s>(all: impl IntoIterator<Item = &'s Self>) -> Self {
        let mut joined = Self { remotes: Vec::new(), unpack_to: None, read_ahead: None };
        for stores in all {
            joined.read_ahead = joined.read_ahead.max(stores.read_ahead);
            joined.unpack_to = joined.unpack_to.or_else(|| stores.unpack_to.clone());
            for remote in &stores.remotes {
                if !joined.remotes.iter().any(|known| Arc::ptr_eq(known, remote)) {
                    joined.remotes.push(Arc::clone(remote));
                }
            }
        }
        joined
    }

    /// The stores that open paths.
    pub(crate) fn remote(&self) -> Option<&turboloader::RemoteStores> {
        self.remotes.first().map(|remote| &**remote)
    }

    /// Requests and bytes so far, by name.
    pub(crate) fn stats(&self) -> Vec<(&'static str, u64)> {
        let each = self.remotes.iter().map(|remote| remote.stats());
        let stats = each.reduce(turboloader::StoreStats::plus).unwrap_or_default();
        vec![
            ("gets", stats.gets),
            ("heads", stats.heads),
            ("others", stats.others),
            ("throttled", stats.throttled),
            ("refused", stats.refused),
            ("retries", stats.retries),
            ("resumed", stats.resumed),
            ("hedges", stats.hedges),
            ("hedges_won", stats.hedges_won),
            ("received_bytes", stats.received),
            ("wasted_bytes", stats.wasted),
            ("connections", stats.connections),
            ("saturated", stats.saturated),
            (
                "first_byte_us",
                stats
                    .first_byte()
                    .map_or(0, |mean| mean.as_micros().try_into().unwrap_or(u64::MAX)),
            ),
        ]
    }
}

#[cfg(not(feature = "remote"))]
impl DataStores {
    pub(crate) fn new(settings: &StoreSettings) -> Result<Self, Error> {
        let StoreSettings {
            options,
            credentials,
            connections,
            read_ahead,
            deadline,
            hedge,
            unpack_to,
        } = settings;
        let is_default = options.is_empty() && credentials == AUTO && *hedge;
        if is_default && connections.is_none() && deadline.is_none() {
            return Ok(Self { unpack_to: unpack_to.clone(), read_ahead: *read_ahead });
        }
        Err(Error::setting(&"options of stores: this build lacks the feature `remote`"))
    }

    pub(crate) fn joined<'s>(all: impl IntoIterator<Item = &'s Self>) -> Self {
        all.into_iter().fold(Self { unpack_to: None, read_ahead: None }, |joined, stores| Self {
            unpack_to: joined.unpack_to.or_else(|| stores.unpack_to.clone()),
            read_ahead: joined.read_ahead.max(stores.read_ahead),
        })
    }

    pub(crate) fn stats(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
