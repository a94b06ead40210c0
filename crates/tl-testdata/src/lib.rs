//! Files for the tests of TurboLoader's crates.
//!
//! [`shipped!`] is the path of a file of this package, which every test can use. Three kinds of
//! files are not in packages: data that is too large for the repository, which is in the folder
//! that `TURBOLOADER_DATA` names or in `shared/data` next to the checkout, and files of the
//! repository itself, such as its documents. A test that needs these says so, and the harness
//! reports it as ignored where they are missing:
//!
//! ```ignore
//! #[tl_testdata::needs("formats/tbf")]
//! #[test]
//! fn columns_are_those_of_the_reference() {
//!     let folder = tl_testdata::path!("formats/tbf");
//! }
//!
//! #[tl_testdata::needs_checkout("docs/transforms.md")]
//! #[test]
//! fn the_documentation_has_every_operation() {
//!     let document = tl_testdata::checkout!("docs/transforms.md");
//! }
//! ```
//!
//! The compiler decides. A change of the variable compiles the tests again; data that appears or
//! disappears without one does not, and a test then fails because its files are missing.

#![forbid(unsafe_code)]

use std::env;
use std::path::{Path, PathBuf};

use proc_macro::{TokenStream, TokenTree};

/// The path of a file or folder of this package, as a `PathBuf`.
#[proc_macro]
pub fn shipped(path: TokenStream) -> TokenStream {
    expand(path, |path| format!("::std::path::PathBuf::from({:?})", shipped_path(path)))
}

/// The content of a file of this package, as a `&'static str`.
#[proc_macro]
pub fn shipped_text(path: TokenStream) -> TokenStream {
    expand(path, |path| format!("::core::include_str!({:?})", shipped_path(path)))
}

/// The content of a file of this package, as a `&'static [u8; N]`.
#[proc_macro]
pub fn shipped_bytes(path: TokenStream) -> TokenStream {
    expand(path, |path| format!("::core::include_bytes!({:?})", shipped_path(path)))
}

/// A file of this package as a module, which is named like the file.
#[proc_macro]
pub fn shipped_module(path: TokenStream) -> TokenStream {
    expand(path, |path| {
        let name = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
        format!("#[path = {:?}] mod {name};", shipped_path(path))
    })
}

/// Ignores the test if the given path inside the data folder does not exist. Stands before
/// `#[test]`, which looks among the attributes after it.
#[proc_macro_attribute]
pub fn needs(path: TokenStream, test: TokenStream) -> TokenStream {
    ignore_without(path, test, data_path, "of the test data: set TURBOLOADER_DATA")
}

/// The given path inside the data folder, as a `PathBuf`.
#[proc_macro]
pub fn path(path: TokenStream) -> TokenStream {
    // `option_env` makes the variable one that cargo watches.
    expand(path, |path| {
        format!(
            "{{ const _: Option<&str> = option_env!(\"TURBOLOADER_DATA\"); \
             ::std::path::PathBuf::from({:?}) }}",
            data_path(path)
        )
    })
}

/// Ignores the test if the given path inside the repository does not exist, as in a package that
/// was unpacked. Stands before `#[test]`.
#[proc_macro_attribute]
pub fn needs_checkout(path: TokenStream, test: TokenStream) -> TokenStream {
    ignore_without(path, test, checkout_path, "of the repository")
}

/// The given path inside the repository, as a `PathBuf`.
#[proc_macro]
pub fn checkout(path: TokenStream) -> TokenStream {
    expand(path, |path| format!("::std::path::PathBuf::from({:?})", checkout_path(path)))
}

/// Packages have the files in `data`, a link in the repository, which does not depend on it: not
/// every system makes links when it checks out files.
fn shipped_path(path: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = package.join("../../testdata");
    if repository.is_dir() { repository.join(path) } else { package.join("data").join(path) }
}

fn data_path(path: &str) -> PathBuf {
    let data = env::var_os("TURBOLOADER_DATA").filter(|data| !data.is_empty());
    data.map_or_else(|| checkout_path("../shared/data"), PathBuf::from).join(path)
}

fn checkout_path(path: &str) -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    Path::new(&package).join("../..").join(path)
}

fn ignore_without(
    path: TokenStream,
    test: TokenStream,
    place: fn(&str) -> PathBuf,
    origin: &str,
) -> TokenStream {
    let path = match literal(path) {
        Ok(path) => path,
        Err(error) => return error,
    };
    if !test.to_string().contains("[test]") {
        return parsed("compile_error!(\"expected this attribute before `#[test]`\");");
    }
    if place(&path).exists() {
        return test;
    }
    let reason = format!("needs {path} {origin}");
    let mut ignored = parsed(&format!("# [ignore = {reason:?}]"));
    ignored.extend(test);
    ignored
}

fn expand(path: TokenStream, source: impl FnOnce(&str) -> String) -> TokenStream {
    literal(path).map_or_else(|error| error, |path| parsed(&source(&path)))
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
