//! The settings of stores.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The settings of all stores that one call opens.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Options by name, as `object_store` has them for each kind of store: `region`, `endpoint`,
    /// `access_key_id`, .., and for the Hugging Face hub `token` and `endpoint`. Beyond those, all kinds
    /// know `anonymous`, `allow_http`, `ca_certificate` (a PEM file of further root certificates),
    /// `credentials` (`auto`, or `instance` to ask the machine's metadata server), and `unpinned`.
    /// They take precedence over the environment.
    pub options: BTreeMap<String, String>,
    /// The most requests under way at once for a bucket. The default of 256 is more than any store
    /// has needed; the number in use is found by measuring.
    pub connections: usize,
    /// Bytes that are requested before they are read, where readers announce them. Default 256 MiB:
    /// half a second of 4 Gbit/s.
    pub read_ahead: u64,
    /// The time after which a range has failed, from its first request on and repetitions included.
    /// Default 180 s.
    pub deadline: Duration,
    /// Whether requests that are late are sent once more, at most 2 in 100. Default true.
    pub hedge: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            options: BTreeMap::new(),
            connections: 256,
            read_ahead: 256 << 20,
            deadline: Duration::from_secs(180),
            hedge: true,
        }
    }
}

impl fmt::Debug for StoreOptions {
    /// Values of options may be secret: only their names are written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("options", &self.options.keys())
            .field("connections", &self.connections)
            .field("read_ahead", &self.read_ahead)
            .field("deadline", &self.deadline)
            .field("hedge", &self.hedge)
            .finish()
    }
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum OptionError {
    /// The kind of store has no such option.
    #[error("unknown option {name:?} for {store}: expected {}", known.join(", "))]
    Unknown { name: String, store: &'static str, known: Vec<&'static str> },
    /// An option of `object_store` that has no effect here.
    #[error("option {name:?} is not supported: {instead}")]
    Unsupported { name: String, instead: &'static str },
    /// The value cannot be used. It may be secret, so it is not repeated.
    #[error("invalid value of option {name:?}: expected {expected}")]
    Value { name: &'static str, expected: &'static str },
    /// An option that the store cannot do without.
    #[error("missing option {name:?} for {store}: {hint}")]
    Missing { name: &'static str, store: &'static str, hint: &'static str },
    /// No source of credentials is configured.
    #[error(
        "no credentials for {store}: set its options or environment variables, anonymous=true for \
         public data, or credentials=instance to ask the machine's metadata server"
    )]
    NoCredentials { store: &'static str },
    /// The profile that `AWS_PROFILE` names is in neither of the profile files.
    #[error(
        "unknown profile {profile:?}: expected AWS_PROFILE to name one of ~/.aws/config or ~/.aws/credentials"
    )]
    NoProfile { profile: String },
    /// The keys of a profile are to come from elsewhere.
    #[error(
        "the profile {profile:?} has {setting}, which is not supported: expected keys in the \
         environment (`aws configure export-credentials --format env` prints them), or \
         anonymous=true for public data"
    )]
    Profile { profile: String, setting: &'static str },
    /// A profile file cannot be read.
    #[error("{path}: {message}")]
    ProfileFile { path: String, message: String },
    /// The endpoint would send credentials and data unencrypted.
    #[error("the endpoint {endpoint} is not encrypted: expected https:// or allow_http=true")]
    NotEncrypted { endpoint: String },
    /// The endpoint is the machine's metadata server.
    #[error("the endpoint {endpoint} is an address of the local link, where no store can be")]
    LinkLocal { endpoint: String },
    /// The root certificates cannot be used.
    #[error(
        "invalid value of option \"ca_certificate\": {message}, expected a PEM file with certificates"
    )]
    Certificates { message: String },
    /// The client refused the settings.
    #[error("{store}: {message}")]
    Client { store: &'static str, message: String },
}

impl OptionError {
    /// The error of an option that is neither one of `own`, those of the store that users need most,
    /// nor known to all stores.
    pub(crate) fn unknown(name: &str, store: &'static str, own: &[&'static str]) -> Self {
        let known = [own, &COMMON].concat();
        Self::Unknown { name: name.to_owned(), store, known }
    }
}

/// The names of the options that all kinds of stores have.
const COMMON: [&str; 5] = ["anonymous", "allow_http", "ca_certificate", "credentials", "unpinned"];

/// The name of an option, and its value.
pub(crate) type Pair<'a> = (&'a str, &'a str);

/// The options that all kinds of stores have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Common {
    pub(crate) anonymous: bool,
    pub(crate) allow_http: bool,
    pub(crate) instance: bool,
    pub(crate) unpinned: bool,
}

impl Common {
    /// Separates the common options from those of one kind of store.
    pub(crate) fn split<'a>(
        options: &'a BTreeMap<String, String>,
        instance: Option<&str>,
    ) -> Result<(Self, Vec<Pair<'a>>), OptionError> {
        let mut common =
            Self { instance: credentials(instance.unwrap_or("auto"))?, ..Self::default() };
        let mut others = Vec::new();
        for (name, value) in options {
            match name.as_str() {
                "anonymous" => common.anonymous = flag("anonymous", value)?,
                "allow_http" => common.allow_http = flag("allow_http", value)?,
                "unpinned" => common.unpinned = flag("unpinned", value)?,
                // Connections use it.
                "ca_certificate" => {}
                "credentials" => common.instance = credentials(value)?,
                name => others.push((name, value.as_str())),
            }
        }
        Ok((common, others))
    }
}

fn flag(name: &'static str, value: &str) -> Result<bool, OptionError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(OptionError::Value { name, expected: "true or false" }),
    }
}

fn credentials(value: &str) -> Result<bool, OptionError> {
    match value {
        "auto" => Ok(false),
        "instance" => Ok(true),
        _ => Err(OptionError::Value { name: "credentials", expected: "auto or instance" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_written() {
        let mut options = StoreOptions::default();
        options.options.insert("secret_access_key".into(), "hush".into());
        let text = format!("{options:?}");
        assert!(text.contains("secret_access_key") && !text.contains("hush"), "{text}");
    }

    #[test]
    fn all_stores_know_the_common_options() {
        let options = COMMON.map(|name| (name.to_owned(), String::new()));
        for (name, value) in options {
            let options = [(name.clone(), value)].into();
            let split = Common::split(&options, None);
            assert!(split.is_err() || split.is_ok_and(|(_, others)| others.is_empty()), "{name}");
        }
    }

    #[test]
    fn common_options_are_taken_out() {
        let options = [("anonymous", "true"), ("region", "eu"), ("credentials", "instance")];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let (common, others) = Common::split(&options, None).unwrap();
        let expected = Common { anonymous: true, instance: true, ..Common::default() };
        assert_eq!((common, others), (expected, vec![("region", "eu")]));
        let wrong = [("anonymous".to_owned(), "secret".to_owned())].into();
        let error = Common::split(&wrong, None).unwrap_err().to_string();
        assert_eq!(error, "invalid value of option \"anonymous\": expected true or false");
        assert!(Common::split(&BTreeMap::new(), Some("instance")).unwrap().0.instance);
    }
}
