//! Options of stores.

use std::num::NonZeroUsize;
use std::time::Duration;

use turboloader::{RemoteStores, StoreOptions};

const STORES: &str = "Stores";

/// The options of the stores that URLs name.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct StoreArgs {
    /// Set an option of the store that a URL names, such as region=eu-west-1, endpoint=URL,
    /// anonymous=true or credentials=instance; repeatable. Keys are better in environment variables,
    /// which other users of the machine cannot list
    #[arg(
        long = "store",
        global = true,
        value_name = "KEY=VALUE",
        value_parser = pair,
        help_heading = STORES
    )]
    options: Vec<(String, Secret)>,

    /// The most requests under way at once for a bucket (default: 256, of which as many are used as
    /// bring more bytes)
    #[arg(long, global = true, value_name = "N", help_heading = STORES)]
    connections: Option<NonZeroUsize>,

    /// The time after which reading a range has failed, repetitions included (default: 180)
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds, help_heading = STORES)]
    deadline: Option<Duration>,

    /// Do not send late requests once more
    #[arg(long, global = true, help_heading = STORES)]
    no_hedge: bool,
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
        options.connections = self.connections.map_or(options.connections, NonZeroUsize::get);
        options.deadline = self.deadline.unwrap_or(options.deadline);
        options.hedge = !self.no_hedge;
        RemoteStores::new(options)
    }
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|seconds| !seconds.is_zero()).ok_or("expected seconds, more than 0")
}

fn pair(text: &str) -> Result<(String, Secret), &'static str> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((name.to_owned(), Secret(value.to_owned())))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        stores: StoreArgs,
    }

    #[test]
    fn arguments_are_settings_of_the_stores() {
        let settings = |arguments: &[&str]| {
            let arguments = ["tl"].iter().chain(arguments);
            format!("{:?}", Command::parse_from(arguments).stores.remote())
        };
        let given = ["--connections", "2", "--deadline", "0.5", "--no-hedge"];
        let expected = "connections: 2, read_ahead: 268435456, deadline: 500ms, hedge: false";
        assert!(settings(&given).contains(expected), "{}", settings(&given));
        assert_eq!(settings(&[]), format!("{:?}", RemoteStores::new(StoreOptions::default())));
    }
}
