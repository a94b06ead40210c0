//! Test data that is too large for the repository: the folder that `TURBOLOADER_DATA` names, or
//! `shared/data` next to the checkout.
//!
//! A test that needs it says so, and the harness reports the test as ignored without the data:
//!
//! ```ignore
//! #[tl_testdata::needs("formats/tbf")]
//! #[test]
//! fn columns_are_those_of_the_reference() {
//!     let folder = tl_testdata::path!("formats/tbf");
//! }
//! ```
//!
//! The compiler decides. A change of the variable compiles the tests again; data that appears or
//! disappears without one does not, and a test then fails because its files are missing.

#![forbid(unsafe_code)]

use std::env;
use std::path::{Path, PathBuf};

use proc_macro::{TokenStream, TokenTree};

/// Ignores the test if the given path inside the data folder does not exist. Stands before
/// `#[test]`, which looks among the attributes after it.
#[proc_macro_attribute]
pub fn needs(path: TokenStream, test: TokenStream) -> TokenStream {
    let path = match literal(path) {
        Ok(path) => path,
        Err(error) => return error,
    };
    if !test.to_string().contains("[test]") {
        return parsed("compile_error!(\"expected `needs` before `#[test]`\");");
    }
    if data_path(&path).exists() {
        return test;
    }
    let reason = format!("needs {path} of the test data: set TURBOLOADER_DATA");
    let mut ignored = parsed(&format!("# [ignore = {reason:?}]"));
    ignored.extend(test);
    ignored
}

/// The given path inside the data folder, as a `PathBuf`.
#[proc_macro]
pub fn path(path: TokenStream) -> TokenStream {
    let path = match literal(path) {
        Ok(path) => data_path(&path),
        Err(error) => return error,
    };
    // `option_env` makes the variable one that cargo watches.
    parsed(&format!(
        "{{ const _: Option<&str> = option_env!(\"TURBOLOADER_DATA\"); \
         ::std::path::PathBuf::from({path:?}) }}"
    ))
}

fn data_path(path: &str) -> PathBuf {
    let data = env::var_os("TURBOLOADER_DATA").filter(|data| !data.is_empty());
    let data = data.map(PathBuf::from).unwrap_or_else(|| {
        let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
        Path::new(&package).join("../../../shared/data")
    });
    data.join(path)
}

/// The text of a string literal without escapes, or an error of the compiler.
fn literal(tokens: TokenStream) -> Result<String, TokenStream> {
    let mut tokens = tokens.into_iter();
    let text = match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Literal(literal)), None) => literal.to_string(),
        _ => String::new(),
    };
    let path = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let path = path.filter(|path| !path.contains('\\')).map(str::to_owned);
    path.ok_or_else(|| parsed("compile_error!(\"expected a path in quotes, without escapes\");"))
}

fn parsed(source: &str) -> TokenStream {
    source.parse().unwrap_or_default()
}
