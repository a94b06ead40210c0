//! Recipes in JSON and TOML files.

use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use tbl_io::{ErrorKind, ErrorPlace, Location, ReadError};
use tl_pipeline::Fault;
use tl_transform::{Op, Recipe};

/// Far above any recipe, which has at most 256 operations.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// An error of a file with a recipe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum RecipeFileError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The name ends neither in `.json` nor in `.toml`.
    #[error("{location}: the name of a recipe file ends in .json or .toml")]
    Extension { location: Location },
    /// The file is not JSON, or not a recipe.
    #[error("{location}: {source}")]
    Json { location: Location, source: serde_json::Error },
    /// The file is not TOML, or not a recipe.
    #[error("{location}: {}{}", source.message(), At(*at))]
    Toml {
        location: Location,
        source: Box<toml::de::Error>,
        /// Line and column, from 1.
        at: Option<(usize, usize)>,
    },
}

impl Fault for RecipeFileError {
    fn kind(&self) -> ErrorKind {
        if let Self::Read(error) = self { error.kind() } else { ErrorKind::Setting }
    }

    fn place(&self) -> ErrorPlace {
        match self {
            Self::Read(error) => error.place(),
            Self::Extension { location }
            | Self::Json { location, .. }
            | Self::Toml { location, .. } => ErrorPlace::at(location),
        }
    }
}

/// Reads the recipe of a JSON or TOML file.
///
/// # Errors
/// [`RecipeFileError`] when the file cannot be read or has no recipe.
pub fn read_recipe(path: &Path) -> Result<Recipe, RecipeFileError> {
    let failed = |source| ReadError::Io { location: path.into(), source };
    let file = tbl_io::open_file(path)?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(failed(io::ErrorKind::FileTooLarge.into()).into());
    }
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Recipe, RecipeFileError> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => serde_json::from_str(text)
            .map_err(|source| RecipeFileError::Json { location: path.into(), source }),
        Some("toml") => toml::from_str(text).map_err(|error| {
            let (source, offset) = in_operation(text).unwrap_or_else(|| {
                let offset = error.span().map(|span| span.start);
                (error, offset)
            });
            let at = offset.map(|offset| line_and_column(text, offset));
            RecipeFileError::Toml { location: path.into(), source: Box::new(source), at }
        }),
        _ => Err(RecipeFileError::Extension { location: path.into() }),
    }
}

/// The first invalid operation, and its offset: the parser of the whole says where the list
/// begins.
fn in_operation(text: &str) -> Option<(toml::de::Error, Option<usize>)> {
    #[derive(Deserialize)]
    struct Ops {
        ops: Vec<toml::Spanned<toml::Value>>,
    }
    let Ops { ops } = toml::from_str(text).ok()?;
    ops.into_iter().find_map(|op| {
        let offset = op.span().start;
        Some((Op::deserialize(op.into_inner()).err()?, Some(offset)))
    })
}

/// Both from 1, the column in characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.split('\n').count();
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
    (line, column + 1)
}

/// ` at line 1 column 2`, as the JSON parser says it.
struct At(Option<(usize, usize)>);

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((line, column)) = self.0 else { return Ok(()) };
        write!(f, " at line {line} column {column}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"ops": [
        {"op": "random_horizontal_flip"},
        {"op": "center_crop", "size": [8, 9]}],
        "output": {"dtype": "u8", "layout": "hwc"}}"#;
    const TOML: &str = "output = {dtype = 'u8', layout = 'hwc'}\n\n[[ops]]\n\
        op = 'random_horizontal_flip'\n[[ops]]\nop = 'center_crop'\nsize = [8, 9]\n";

    fn read_as(name: &str, text: &str) -> Result<Recipe, RecipeFileError> {
        parse(Path::new(name), text)
    }

    #[test]
    fn both_forms_say_the_same() {
        let recipe = read_as("a.json", JSON).unwrap();
        assert_eq!(recipe.output_size(), Some((9, 8)));
        assert_eq!(read_as("a.toml", TOML).unwrap(), recipe);
        assert!(matches!(read_as("a.yaml", JSON), Err(RecipeFileError::Extension { .. })));
    }

    #[test]
    fn what_is_wrong_has_a_line() {
        let check = |name, text: &str, expected: &str| {
            let error = read_as(name, text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("a.json", &JSON.replace("}],", "}"), "at line 4 column 9");
        check("a.json", &JSON.replace("\"size\"", "\"sise\""), "unknown field `sise`");
        check("a.json", &JSON.replace("\"size\"", "\"sise\""), "at line 3");
        check("a.json", &JSON.replace(" 9]", " 0]"), "operation 1: CenterCrop: size is 0");
        check("a.toml", &TOML.replace("= [8, 9]", "= nine"), "at line 7 column 8");
        check("a.toml", &TOML.replace("size", "sise"), "unknown field `sise`");
        check("a.toml", &TOML.replace("size", "sise"), "at line 5 column 1");
    }
}
