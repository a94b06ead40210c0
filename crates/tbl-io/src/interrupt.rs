//! Reads that end early because their bytes are not needed any more.

use std::cell::RefCell;
use std::sync::Arc;

type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

thread_local! {
    static IS_OVER: RefCell<Option<IsOver>> = const { RefCell::new(None) };
}

/// Does `work` on this thread, where a read of a store ends with
/// [`RangeFault::Interrupted`](crate::RangeFault::Interrupted) soon after `is_over` becomes true.
///
/// A store that has stopped answering keeps a thread for minutes otherwise, and any thread that
/// joins it as well. The pass over the headers of a local archive ends as well; other reads of
/// files are not interrupted. `is_over` is called from time to time during a read and must return
/// at once, also on other threads that do a part of the work.
///
/// ```
/// let is_interrupted = tbl_io::interruptible(|| true, tbl_io::is_interrupted);
/// assert!(is_interrupted && !tbl_io::is_interrupted());
/// ```
pub fn interruptible<T>(
    is_over: impl Fn() -> bool + Send + Sync + 'static,
    work: impl FnOnce() -> T,
) -> T {
    Interrupt(Some(Arc::new(is_over))).during(work)
}

/// The reason for which reads of a thread end early, if there is one.
#[derive(Clone)]
pub(crate) struct Interrupt(Option<IsOver>);

impl Interrupt {
    /// That of this thread, for another one that does a part of its work.
    pub(crate) fn of_this_thread() -> Self {
        Self(IS_OVER.with_borrow(Clone::clone))
    }

    /// Does `work` on this thread, where reads end early for this reason.
    pub(crate) fn during<T>(self, work: impl FnOnce() -> T) -> T {
        let _restore = Restore(IS_OVER.replace(self.0));
        work()
    }
}

/// Restores what an outer call has set, also after a panic.
struct Restore(Option<IsOver>);

impl Drop for Restore {
    fn drop(&mut self) {
        IS_OVER.set(self.0.take());
    }
}

/// Whether a read of this thread should end. Stores ask while they wait.
pub fn is_interrupted() -> bool {
    IS_OVER.with_borrow(|is_over| is_over.as_ref().is_some_and(|is_over| is_over()))
}
