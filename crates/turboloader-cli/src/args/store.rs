//! Options of stores.

use turboloader::{RemoteStores, StoreOptions};

/// The options of the stores that URLs name.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct StoreArgs {
    /// Set an option of the store that a URL names, such as region=eu-west-1, endpoint=URL,
    /// anonymous=true or credentials=instance; repeatable. Keys are better in environment variables,
    /// which other users of the machine cannot list
    #[arg(long = "store", global = true, value_name = "KEY=VALUE", value_parser = pair)]
    options: Vec<(String, Secret)>,
}

/// The value of an option, which no message repeats.
#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}

impl StoreArgs {
    /// The stores with these options, and those of the environment.
    pub(crate) fn remote(&self) -> RemoteStores {
        let mut options = StoreOptions::default();
        let given = self.options.iter().map(|(name, Secret(value))| (name.clone(), value.clone()));
        options.options.extend(given);
        RemoteStores::new(options)
    }
}

fn pair(text: &str) -> Result<(String, Secret), &'static str> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((name.to_owned(), Secret(value.to_owned())))
}
