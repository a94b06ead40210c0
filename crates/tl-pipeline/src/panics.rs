//! Code of others that may panic: sources, decoders, what a user does with batches.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tbl_io::Escaped;

/// Returns the result of `work`, or the message of its panic on one line, empty without one. After
/// a panic the state of the values that it changed is unknown.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Escaped(text.unwrap_or_default().as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_its_message_on_one_line() {
        assert_eq!(catch_panic(|| 7), Ok(7));
        assert_eq!(
            catch_panic(|| panic!("constant\ntext")),
            Err::<(), _>(r"constant\x0atext".into())
        );
        let number = 3;
        assert_eq!(catch_panic(|| panic!("made {number}\x1b")), Err::<(), _>(r"made 3\x1b".into()));
        assert_eq!(catch_panic(|| std::panic::panic_any(5)), Err::<(), _>(String::new()));
    }
}
