//! The names of recipes on the command line.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tbl_io::Escaped;

/// The work on each sample: a built-in recipe, or a recipe file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecipeName {
    /// Decode to RGB at full size
    Decode,
    /// Read the stored bytes
    Raw,
    /// Random resized crop, random horizontal flip, normalise, f32 planes
    ImagenetTrain,
    /// Resize of the short side, centre crop, normalise, f32 planes
    ImagenetEval,
    /// The recipe in this file
    File(PathBuf),
}

impl RecipeName {
    /// The built-in recipes.
    pub(crate) const BUILT_IN: [Self; 4] =
        [Self::Decode, Self::Raw, Self::ImagenetTrain, Self::ImagenetEval];

    fn built_in(&self) -> Option<&'static str> {
        match self {
            Self::Decode => Some("decode"),
            Self::Raw => Some("raw"),
            Self::ImagenetTrain => Some("imagenet-train"),
            Self::ImagenetEval => Some("imagenet-eval"),
            Self::File(_) => None,
        }
    }

    /// Whether images are made smaller, so that there is a choice of how to decode for it.
    pub(crate) const fn resizes(&self) -> bool {
        !matches!(self, Self::Decode | Self::Raw)
    }
}

/// The work of `tl bench` on each sample, or on each row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BenchRecipe {
    /// Read columns of a table
    Columns,
    /// Read sequences of tokens
    Tokens,
    /// Anything else
    Samples(RecipeName),
}

const COLUMNS: &str = "columns";
const TOKENS: &str = "tokens";

impl BenchRecipe {
    /// As [`RecipeName::resizes`].
    pub(crate) const fn resizes(&self) -> bool {
        match self {
            Self::Columns | Self::Tokens => false,
            Self::Samples(recipe) => recipe.resizes(),
        }
    }
}

impl From<OsString> for BenchRecipe {
    fn from(name: OsString) -> Self {
        if name == COLUMNS {
            Self::Columns
        } else if name == TOKENS {
            Self::Tokens
        } else {
            Self::Samples(name.into())
        }
    }
}

impl fmt::Display for BenchRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Columns => f.write_str(COLUMNS),
            Self::Tokens => f.write_str(TOKENS),
            Self::Samples(recipe) => recipe.fmt(f),
        }
    }
}

impl From<OsString> for RecipeName {
    fn from(name: OsString) -> Self {
        let built_in = Self::BUILT_IN.into_iter().find(|known| {
            known.built_in().is_some_and(|built_in| name.as_bytes() == built_in.as_bytes())
        });
        built_in.unwrap_or_else(|| Self::File(name.into()))
    }
}

impl fmt::Display for RecipeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.built_in()) {
            (_, Some(name)) => f.write_str(name),
            (Self::File(path), None) => Escaped(path.as_os_str().as_bytes()).fmt(f),
            (_, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_names_are_taken_before_files() {
        for name in RecipeName::BUILT_IN {
            assert_eq!(RecipeName::from(OsString::from(name.to_string())), name);
        }
        assert_eq!(
            RecipeName::from(OsString::from("raw.json")),
            RecipeName::File("raw.json".into())
        );
    }
}
