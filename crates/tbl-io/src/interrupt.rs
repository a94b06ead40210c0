//! Reads that end early because nobody waits for their bytes any more.

use std::cell::RefCell;

type IsOver = Box<dyn Fn() -> bool>;

thread_local! {
    static IS_OVER: RefCell<Option<IsOver>> = const { RefCell::new(None) };
}

/// Does `work` on this thread, where a read of a store ends with
/// [`RangeFault::Interrupted`](crate::RangeFault::Interrupted) soon after `is_over` becomes true.
///
/// A store that has stopped answering keeps a thread for minutes otherwise, and whoever joins the
/// thread as well. Reads of files are not interrupted. `is_over` is called from time to time during
/// a read and must return at once.
///
/// ```
/// let is_interrupted = tbl_io::interruptible(|| true, tbl_io::is_interrupted);
/// assert!(is_interrupted && !tbl_io::is_interrupted());
/// ```
pub fn interruptible<T>(is_over: impl Fn() -> bool + 'static, work: impl FnOnce() -> T) -> T {
    /// Restores what an outer call has set, also after a panic.
    struct Restore(Option<IsOver>);

    impl Drop for Restore {
        fn drop(&mut self) {
            IS_OVER.set(self.0.take());
        }
    }

    let _restore = Restore(IS_OVER.replace(Some(Box::new(is_over))));
    work()
}

/// Whether a read of this thread should end. Stores ask while they wait.
pub fn is_interrupted() -> bool {
    IS_OVER.with_borrow(|is_over| is_over.as_ref().is_some_and(|is_over| is_over()))
}
