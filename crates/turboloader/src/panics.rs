//! Panics of libraries as errors.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use tbl_io::Escaped;

/// A panic of a library on data that it does not expect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CaughtPanic {
    /// The panic's message, on one line.
    message: String,
}

thread_local! {
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread becomes an error of a conversion, so that a panic hook has
/// nothing to report.
#[must_use]
pub fn catches() -> bool {
    CATCHES.get()
}

/// Calls a library. A panic of this thread within it becomes an error, and the panic hook is not
/// called for it. The hook that is installed at the first call still gets all other panics.
///
/// Values that `library` changed are in an unknown state after a panic: drop them.
pub(crate) fn catch<T>(library: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !catches() {
                report(info);
            }
        }));
    });
    let before = CATCHES.replace(true);
    let result = catch_unwind(AssertUnwindSafe(library));
    CATCHES.set(before);
    result.map_err(|payload| CaughtPanic { message: message(&*payload) })
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Escaped(text.unwrap_or("no message").as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_panic_is_an_error_of_its_thread_alone() {
        assert_eq!(catch(|| 7), Ok(7));
        let inner = catch(|| {
            assert!(catches());
            assert!(!thread::spawn(catches).join().unwrap());
            let error = catch(|| panic!("line\nline {}", 2)).unwrap_err();
            assert!(catches());
            error
        });
        assert_eq!(inner.unwrap().to_string(), r"line\x0aline 2");
        assert!(!catches());
    }
}
