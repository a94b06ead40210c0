//! From the name of a recipe to the recipe: built in, or read from a file.

use std::io;

use tbl_io::ReadError;
use tl_transform::Recipe;
use turboloader::{RecipeFileError, read_recipe};

use crate::args::RecipeName;
use crate::failure::Failure;

/// The side of the imagenet recipes, as nearly everybody trains.
const DEFAULT_SIZE: u32 = 224;

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
        RecipeName::File(path) => read_recipe(path).map_err(named)?,
    }))
}

/// The failure of what is neither a file nor a name, or of the file.
fn named(error: RecipeFileError) -> Failure {
    if let RecipeFileError::Read(ReadError::Io { location, source }) = &error
        && source.kind() == io::ErrorKind::NotFound
    {
        let names = RecipeName::BUILT_IN.map(|name| name.to_string()).join(", ");
        let missing = "no such file, and no recipe of this name";
        return Failure::setting(format_args!("{location}: {missing} ({names})"));
    }
    error.into()
}
