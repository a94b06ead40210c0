//! Parameters that files have in more than one form.

use serde::{Deserialize, Deserializer};

/// Reads a parameter that is a number, a list of one as torchvision has it too, or a longer list.
macro_rules! forms {
    (
        $name:ident: $one:ident($item:ty), $list:ident([_; $length:literal])
        $(, $named:ident($kind:ty))?; $expected:literal
    ) => {
        const _: () = {
            #[derive(serde::Deserialize)]
            #[serde(untagged, expecting = $expected)]
            enum Form {
                One($item),
                Listed([$item; 1]),
                List([$item; $length]),
                $($named($kind),)?
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    Ok(match <Form as serde::Deserialize>::deserialize(from)? {
                        Form::One(one) | Form::Listed([one]) => Self::$one(one),
                        Form::List(list) => Self::$list(list),
                        $(Form::$named(name) => Self::$named(name),)?
                    })
                }
            }
        };
    };
}

pub(crate) use forms;

/// Reads a list, or one number for a list of it.
pub(crate) fn one_or_list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number from 1 to 65535, or a list of such")]
    enum Form {
        One(u32),
        List(Vec<u32>),
    }
    Ok(match Form::deserialize(from)? {
        Form::One(one) => vec![one],
        Form::List(list) => list,
    })
}
