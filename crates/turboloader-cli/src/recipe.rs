//! From the name of a recipe to the recipe: built in, or read from a JSON or TOML file.

use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use tbl_io::ReadError;
use tl_transform::{Op, Recipe};

use crate::args::RecipeName;
use crate::failure::Failure;

/// The side of the imagenet recipes, as nearly everybody trains.
const DEFAULT_SIZE: u32 = 224;

/// Far above any recipe, which has at most 256 operations.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Why a file is no recipe.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecipeFileError {
    /// Neither a file nor a name.
    #[error("no such file, and no recipe of this name ({})", built_in())]
    Unknown,
    /// Its name does not say what it is.
    #[error("the name of a recipe file ends in .json or .toml")]
    Extension,
    /// No JSON, or no recipe.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// No TOML, or no recipe.
    #[error("{}{}", .source.message(), At(*.at))]
    Toml {
        /// What is wrong.
        source: Box<toml::de::Error>,
        /// Where, from 1.
        at: Option<(usize, usize)>,
    },
}

/// The recipe of this name, with sides of `size` for the imagenet recipes; `None` for the one that
/// decodes nothing.
pub(crate) fn load(name: &RecipeName, size: Option<u32>) -> Result<Option<Recipe>, Failure> {
    let side = size.unwrap_or(DEFAULT_SIZE);
    Ok(Some(match name {
        RecipeName::Raw => return Ok(None),
        RecipeName::Decode => Recipe::decode(),
        RecipeName::ImagenetTrain => Recipe::imagenet_train(side)?,
        RecipeName::ImagenetEval => Recipe::imagenet_eval(side)?,
        RecipeName::File(_) if size.is_some() => {
            let what = "--size is for the imagenet recipes, a recipe file has its own sizes";
            return Err(Failure::Usage { what });
        }
        RecipeName::File(path) => read(path)?,
    }))
}

fn read(path: &Path) -> Result<Recipe, Failure> {
    let wrong = |source| Failure::RecipeFile { path: path.to_owned(), source };
    let io_failure = |source| Failure::Io { path: path.to_owned(), source };
    let file = match tbl_io::open_file(path) {
        Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(wrong(RecipeFileError::Unknown));
        }
        opened => opened?,
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(io_failure)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io_failure(io::ErrorKind::FileTooLarge.into()));
    }
    parse(path, &text).map_err(wrong)
}

fn parse(path: &Path, text: &str) -> Result<Recipe, RecipeFileError> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Ok(serde_json::from_str(text)?),
        Some("toml") => toml::from_str(text).map_err(|error| {
            let (source, offset) = in_operation(text).unwrap_or_else(|| {
                let offset = error.span().map(|span| span.start);
                (error, offset)
            });
            let source = Box::new(source);
            RecipeFileError::Toml { source, at: offset.map(|offset| line_and_column(text, offset)) }
        }),
        _ => Err(RecipeFileError::Extension),
    }
}

/// The first operation that is none, and its offset: the parser of the whole says where the list
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

fn built_in() -> String {
    RecipeName::BUILT_IN.map(|name| name.to_string()).join(", ")
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
        assert!(matches!(read_as("a.yaml", JSON), Err(RecipeFileError::Extension)));
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
