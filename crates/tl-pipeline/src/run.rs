//! A run: workers that continue from one epoch to the next, and the state that they share with the
//! consumer.
//!
//! Rows are numbered through all epochs of a run, and so are batches: every epoch of a loader has
//! equally many. So one ring bounds the batches in flight, the first batches of the next epoch are
//! prepared while the current one ends, and no thread is started in between.

use std::convert::Infallible;
use std::ops::Range;
use std::time::Duration;

use tl_handoff::permits::{HeldBatch, RunTicket};
use tl_handoff::pool::Lease;
use tl_handoff::recent::RecentCache;
use tl_handoff::ring::Ring;
use tl_handoff::sync::{Arc, AtomicBool, Ordering};
use tl_handoff::window::Window;
use tl_transform::Draw;

use crate::audit::AuditEntry;
use crate::batch::Batch;
use crate::batching::Batching;
use crate::bucket;
use crate::bucketing::{self, Bucketing};
use crate::cache::{Caches, Wanted};
use crate::config::LoaderConfig;
use crate::dataset::Dataset;
use crate::error::PipelineError;
use crate::layout::BatchLayout;
use crate::memory_limits::MemoryLimits;
use crate::metrics::WorkerMetrics;
use crate::order::{Order, Ordered};
use crate::row::RowExtras;
use crate::schedule::Slot;
use crate::shared::Shared;
use crate::stage::Stage;

/// The number of orders in use at once: of the epoch that ends, of the next, and of the one after
/// it, which caches look into.
const ORDERS: usize = 3;

/// One epoch of a run.
pub(crate) struct EpochOrder {
    pub(crate) number: u32,
    pub(crate) order: Order,
    /// The bucketing of samples, if images are padded.
    bucketing: Option<Bucketing>,
}

/// The state that workers and consumer share.
pub(crate) struct Run {
    pub(crate) ring: Ring<Arc<Lease<RowExtras>>, Filled, PipelineError>,
    first_epoch: u32,
    /// The orders of the epochs that workers have reached, and of the next one for caches that look
    /// ahead.
    orders: RecentCache<EpochOrder>,
    /// Set when nobody is going to receive anything any more.
    is_over: AtomicBool,
    /// The right to begin batches; `None` while another run has it and memory is bounded.
    ticket: Option<RunTicket>,
    /// The window of rows that readers have read ahead, with readers.
    window: Option<Arc<Window>>,
    /// The rows of all batches.
    pub(crate) rows: Range<u64>,
    shared: Arc<Shared>,
}

/// A published batch and the findings about its samples.
pub(crate) struct Filled {
    pub(crate) batch: Result<Batch, PipelineError>,
    /// The number of rows that it has or would have, without padding.
    pub(crate) rows: u64,
    /// The faults of their samples.
    pub(crate) audit: Vec<AuditEntry>,
    /// The place of its last row, if a device may have decoded images by wrong row indexes.
    pub(crate) unchecked: Option<Place>,
    /// Counts the memory of a batch that failed until this is dropped. A worker must not drop it
    /// before it hands the failure over: a thread that takes over the memory would wait for this
    /// worker with the ring locked.
    pub(crate) held: Option<Arc<HeldBatch>>,
}

/// A row of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The row's number in the run.
    pub(crate) run_row: u64,
    pub(crate) epoch: u32,
    /// The batch's number in the run, by which the ring knows it.
    pub(crate) serial: u64,
    /// The batch's number in its epoch.
    pub(crate) batch: u64,
    pub(crate) row: u64,
}

impl Run {
    /// A run through the batches with these numbers, of which `epoch` has the first.
    pub(crate) fn new(shared: Arc<Shared>, epoch: u32, batches: Range<u64>) -> Self {
        let schedule = &shared.schedule;
        let config = &shared.config;
        let row = |serial: u64| {
            let epochs = serial / schedule.batches();
            let batch = serial % schedule.batches();
            let rows = epochs.saturating_mul(schedule.rows());
            rows.saturating_add(batch * config.batch_size as u64)
        };
        let first = batches.start;
        let rows = row(first)..row(batches.end);
        let ring = Ring::new(rows.clone(), batches, config.prefetch);
        let window = config.readers.read_ahead().then(|| {
            let counters = Arc::clone(&shared.counters.readers.window);
            Arc::new(Window::new(rows.clone(), config.read_ahead_bytes).counting(counters))
        });
        let ticket = shared.memory.permits.begin(first);
        if ticket.is_none() {
            ring.fail(PipelineError::EpochRunning);
        }
        let orders = RecentCache::new(ORDERS);
        let is_over = AtomicBool::new(false);
        Self { ring, first_epoch: epoch, orders, is_over, ticket, window, rows, shared }
    }

    /// The place of row `row` of the run.
    pub(crate) fn place(&self, row: u64) -> Place {
        let schedule = &self.shared.schedule;
        let batch_size = self.config().batch_size as u64;
        let run_row = row;
        let ahead = row / schedule.rows();
        let row = row % schedule.rows();
        let batch = row / batch_size;
        Place {
            run_row,
            epoch: self.epoch_ahead(ahead),
            serial: ahead * schedule.batches() + batch,
            batch,
            row: row % batch_size,
        }
    }

    /// The epoch and batch that the consumer receives next.
    pub(crate) fn next(&self) -> (u32, u64) {
        let taken = self.ring.taken();
        let batches = self.shared.schedule.batches();
        (self.epoch_ahead(taken / batches), taken % batches)
    }

    /// Waits for at most `timeout` until there can be memory for the batch that the consumer receives
    /// next; says how long that took.
    pub(crate) fn check_held(&self, timeout: Duration) -> Result<Duration, PipelineError> {
        let Some(ticket) = &self.ticket else { return Ok(Duration::ZERO) };
        Ok(ticket.check_held(self.ring.taken(), timeout)?)
    }

    fn epoch_ahead(&self, ahead: u64) -> u32 {
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        self.first_epoch.saturating_add(ahead)
    }

    /// The grouping of the samples around the batch at `place`, if images are padded.
    pub(crate) fn grouping(
        &self,
        epoch: &EpochOrder,
        place: Place,
    ) -> Result<Option<Arc<bucket::Window>>, PipelineError> {
        let Some(bucketing) = &epoch.bucketing else { return Ok(None) };
        let first = self.shared.schedule.slot(place.batch, 0).place;
        bucketing.window(self, &epoch.order, first).map(Some)
    }

    /// The slot of a row in a batch with this grouping.
    pub(crate) fn slot(&self, grouping: Option<&bucket::Window>, place: Place) -> Slot {
        let schedule = &self.shared.schedule;
        let slot = schedule.slot(place.batch, place.row);
        let grouped = |window: &bucket::Window| schedule.position(window.source(slot.place));
        Slot { position: grouping.map_or(slot.position, grouped), ..slot }
    }

    /// The sample `rows` rows after `place`, if that is in the same epoch. Errors are left to the
    /// row itself.
    pub(crate) fn ahead(&self, epoch: &EpochOrder, place: Place, rows: u64) -> Option<Ordered> {
        let schedule = &self.shared.schedule;
        let batch_size = self.config().batch_size as u64;
        let row = place.batch * batch_size + place.row + rows;
        let ahead = Place { batch: row / batch_size, row: row % batch_size, ..place };
        let grouping = || self.grouping(epoch, ahead).ok();
        let grouping = (row < schedule.rows()).then(grouping)??;
        let position = self.slot(grouping.as_deref(), ahead).position;
        let sample = epoch.order.sample_at(position)?;
        Some(Ordered { epoch: epoch.number, position, sample })
    }

    /// The order of an epoch, made by the first worker to get there.
    pub(crate) fn order(&self, epoch: u32) -> Arc<EpochOrder> {
        let made = self.orders.get(epoch.into(), || {
            let bucketing = match self.config().batching {
                Batching::InOrder => None,
                Batching::Buckets(buckets) => Some(Bucketing::new(&self.shared, epoch, buckets)),
            };
            Ok::<_, Infallible>(EpochOrder {
                number: epoch,
                order: self.shared.order(epoch),
                bucketing,
            })
        });
        let Ok(order) = made;
        order
    }

    /// The sample of a draw as the caches see it: with the epoch in which it is used next. Where in
    /// that epoch makes no difference, because every sample is used once in each
    /// (`docs/pipeline/caches.md`, "What is kept"). Which rank uses it is not known where samples
    /// change places by their sizes.
    pub(crate) fn wanted(&self, Draw { epoch, sample, .. }: Draw) -> Wanted<'_> {
        let next = epoch.saturating_add(1);
        let position = self.order(next).order.position_of(sample);
        let schedule = &self.shared.schedule;
        let served = position.map(|position| schedule.is_served(position));
        let is_known = !self.is_padded() || schedule.is_alone();
        let time = |is_served: bool| if is_served { u64::from(next) } else { u64::MAX };
        Wanted {
            dataset: self.dataset(),
            sample,
            next_here: served.filter(|_| is_known).map(|(own, _)| time(own)),
            next_anywhere: served.map(|(_, any)| time(any)),
        }
    }

    pub(crate) fn caches(&self) -> &Caches {
        &self.shared.caches
    }

    pub(crate) fn memory(&self) -> &MemoryLimits {
        &self.shared.memory
    }

    /// The window of rows that readers have read ahead, with readers.
    pub(crate) fn window(&self) -> Option<&Arc<Window>> {
        self.window.as_ref()
    }

    /// True if no batch will be received any more, so that rows can be given up.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// True if the run may begin batches.
    pub(crate) fn has_ticket(&self) -> bool {
        self.ticket.is_some()
    }

    /// Ends the run: nobody receives anything from now on, and every sleeper wakes.
    pub(crate) fn close(&self) {
        // Before the locks that wake the sleepers are taken, so that those see it.
        self.is_over.store(true, Ordering::Relaxed);
        self.ring.close();
        if let Some(ticket) = &self.ticket {
            ticket.close();
        }
        self.close_window();
    }

    /// Lets the workers read, unless the run is over.
    pub(crate) fn close_window(&self) {
        if let Some(window) = &self.window {
            window.close();
        }
    }

    pub(crate) fn config(&self) -> &LoaderConfig {
        &self.shared.config
    }

    pub(crate) fn dataset(&self) -> &Arc<Dataset> {
        &self.shared.dataset
    }

    /// True if images are padded, so that the layout of a batch depends on its epoch's order.
    pub(crate) fn is_padded(&self) -> bool {
        self.config().batching.pads()
    }

    /// The layout of the batch at `place`, which is grouped like this.
    pub(crate) fn layout(
        &self,
        grouping: Option<&bucket::Window>,
        place: Place,
    ) -> Result<BatchLayout, PipelineError> {
        match (self.config().batching, grouping) {
            (Batching::Buckets(buckets), Some(window)) => {
                bucketing::layout(&self.shared, buckets, window, place.batch)
            }
            _ => Ok(self.shared.layout.clone()),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The slab of the batch at `place`, waiting until it may be filled; `None` when the run is over.
    pub(crate) fn enter(
        &self,
        place: Place,
        layout: &BatchLayout,
        metrics: &mut WorkerMetrics,
    ) -> Option<Arc<Lease<RowExtras>>> {
        metrics.lap(Stage::Overhead);
        let ticket = self.ticket.as_ref()?;
        let waited = ticket.wait(place.serial);
        let (lease, slept) = self.ring.enter(place.serial, || {
            if layout.is_padded {
                self.memory().check(place.epoch, place.batch, layout.shape.bytes() as u64)?;
            }
            let permit = ticket.permit();
            let charged = if layout.is_padded { layout.shape.bytes() as u64 } else { 0 };
            permit.charge(charged);
            let lease = self.slab(place, layout)?;
            let permit = permit.with_beside(lease.bytes() as u64 - charged);
            Ok(Arc::new(lease.with_permit(Arc::new(permit))))
        });
        if !(waited + slept).is_zero() {
            metrics.lap_asleep(place.batch);
        }
        lease
    }

    /// A slab for the batch at `place`, without a permit.
    pub(crate) fn slab(
        &self,
        place: Place,
        layout: &BatchLayout,
    ) -> Result<Lease<RowExtras>, PipelineError> {
        let Shared { pool, schedule, .. } = &*self.shared;
        let rows = usize::try_from(schedule.rows_of(place.batch));
        let rows = rows.expect("at most the batch size, which is a `usize`");
        let bytes = layout.shape.bytes() as u64;
        let lease = pool.take(&layout.shape, rows);
        let mut lease = lease.ok_or(PipelineError::OutOfMemory { bytes })?;
        self.memory().trim(&mut lease);
        Ok(lease)
    }
}

#[cfg(test)]
#[cfg(feature = "shuttle")]
mod schedules;
