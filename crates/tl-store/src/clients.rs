//! Clients of `object_store`, with the credentials that were given and with no others.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::Uri;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::signer::Signer;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use reqwest::Url;

use crate::address::Store;
use crate::gate::{self, Hosts};
use crate::options::{Common, OptionError, Pair};
use crate::profile::{Profile, ProfileFiles};

/// The address of machines' metadata servers, and of containers' ones.
const METADATA: [&str; 3] =
    ["http://169.254.169.254", "http://metadata", "http://metadata.google.internal"];
const CONTAINER: &str = "http://169.254.170.2";

/// A client that signs, and what belongs to it.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) pages: Arc<dyn PaginatedListStore>,
    pub(crate) parts: Arc<dyn MultipartStore>,
    kind: Store,
    /// For further requests to S3, with credentials.
    pub(crate) signed: Option<Signed>,
    /// The address of the store, unless it is the usual one.
    pub(crate) endpoint: Option<String>,
    pub(crate) unpinned: bool,
    /// Whether requests are signed.
    pub(crate) has_credentials: bool,
}

/// A client of S3, for requests that `object_store` does not make.
#[derive(Clone)]
pub(crate) struct Signed {
    pub(crate) signer: Arc<dyn Signer>,
    pub(crate) http: HttpClient,
}

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signed")
    }
}

impl Client {
    /// Whether it speaks the protocol of S3.
    pub(crate) fn is_s3(&self) -> bool {
        self.kind == Store::S3
    }
}

/// Makes a client; `connector` gets the hosts that it may ask.
pub(crate) fn client<C: HttpConnector>(
    store: Store,
    bucket: &str,
    options: &BTreeMap<String, String>,
    connector: impl FnOnce(Hosts) -> C,
) -> Result<Client, OptionError> {
    let instance = std::env::var("TL_CREDENTIALS").ok();
    let (common, options) = Common::split(options, instance.as_deref())?;
    match store {
        Store::S3 => s3(bucket, common, &options, connector),
        Store::Gcs => gcs(bucket, common, &options, connector),
        Store::Azure => azure(bucket, common, &options, connector),
    }
}

/// Whether web servers may be asked without encryption, and read without a version.
pub(crate) fn web(
    url: &Url,
    options: &BTreeMap<String, String>,
) -> Result<(bool, bool), OptionError> {
    let (common, options) = Common::split(options, None)?;
    if let Some((name, _)) = options.first() {
        return Err(OptionError::unknown(name, "web servers", &[]));
    }
    // The path and the query of a URL may be secret.
    Endpoint::parse(&url.origin().ascii_serialization(), common)?;
    Ok((common.allow_http, common.unpinned))
}

/// Repetitions are this crate's own.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// The gate decides what may be asked without encryption.
fn client_options() -> ClientOptions {
    ClientOptions::new().with_allow_http(true)
}

/// Refuses the settings of `object_store`'s own connections, which requests of this crate do not use.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other setting has a counterpart")]
fn connection_setting(name: &str, key: ClientConfigKey) -> OptionError {
    let instead = match key {
        ClientConfigKey::ProxyUrl => "set HTTPS_PROXY",
        ClientConfigKey::ProxyExcludes => "set NO_PROXY",
        ClientConfigKey::Timeout
        | ClientConfigKey::ConnectTimeout
        | ClientConfigKey::ReadTimeout => "set deadline, the time after which a read has failed",
        ClientConfigKey::AllowInvalidCertificates
        | ClientConfigKey::NoSystemCertificates
        | ClientConfigKey::ProxyCaCertificate => {
            "set ca_certificate, the path of the store's root certificate"
        }
        ClientConfigKey::AllowHttp => "set allow_http=true",
        _ => "leave it out",
    };
    OptionError::Unsupported { name: name.to_owned(), instead }
}

fn refused(store: &'static str, error: &object_store::Error) -> OptionError {
    OptionError::Client { store, message: error.to_string().escape_debug().to_string() }
}

/// The address of a store that is not the usual one of its kind.
pub(crate) struct Endpoint {
    /// `SCHEME://HOST[:PORT]`, for requests.
    pub(crate) origin: String,
    /// The origin with the path, for versions.
    pub(crate) name: String,
}

impl Endpoint {
    /// Reads an endpoint, if credentials may be sent there.
    pub(crate) fn parse(given: &str, common: Common) -> Result<Self, OptionError> {
        let expected = "https://HOST[:PORT] without a user, a password or a query";
        let uri: Option<Uri> = given.parse().ok();
        let is_plain = |uri: &Uri| {
            let authority = uri.authority().map_or("@", |authority| authority.as_str());
            uri.scheme().is_some() && !authority.contains('@') && uri.query().is_none()
        };
        let uri = uri.filter(is_plain).ok_or(OptionError::Value { name: "endpoint", expected })?;
        let origin = gate::origin(&uri);
        let host = uri.host().unwrap_or_default();
        if gate::is_metadata(host) {
            return Err(OptionError::LinkLocal { endpoint: origin });
        }
        if uri.scheme_str() != Some("https") && !gate::is_loopback(host) && !common.allow_http {
            return Err(OptionError::NotEncrypted { endpoint: origin });
        }
        let name = format!("{origin}{}", uri.path().trim_end_matches('/'));
        Ok(Self { origin, name })
    }
}

/// Whether a flag of `object_store` is on. Its client refuses other values than flags have.
fn is_set(flag: Option<String>) -> bool {
    let on = ["1", "true", "on", "yes", "y"];
    flag.is_some_and(|flag| on.iter().any(|on| flag.eq_ignore_ascii_case(on)))
}

fn instance_hosts(common: Common) -> Vec<String> {
    let hosts: &[&str] = if common.instance { &METADATA } else { &[] };
    hosts.iter().map(|&host| host.to_owned()).collect()
}

fn s3<C: HttpConnector>(
    bucket: &str,
    common: Common,
    options: &[Pair<'_>],
    connector: impl FnOnce(Hosts) -> C,
) -> Result<Client, OptionError> {
    const STORE: &str = "S3";
    const OPTIONS: [&str; 5] =
        ["region", "endpoint", "access_key_id", "secret_access_key", "token"];
    let mut builder = AmazonS3Builder::from_env();
    for (name, value) in options {
        let unknown = |_| OptionError::unknown(name, STORE, &OPTIONS);
        let key: AmazonS3ConfigKey = name.parse().map_err(unknown)?;
        if let AmazonS3ConfigKey::Client(key) = key {
            return Err(connection_setting(name, key));
        }
        // Besides `AWS_ENDPOINT_URL` there is `AWS_ENDPOINT_URL_S3`, which is stronger. An option is
        // stronger than both.
        let is_endpoint = key == AmazonS3ConfigKey::Endpoint;
        let key = if is_endpoint { AmazonS3ConfigKey::S3Endpoint } else { key };
        builder = builder.with_config(key, *value);
    }
    builder = builder
        .with_bucket_name(bucket)
        .with_client_options(client_options())
        .with_retry(no_retries());
    let has = |key| builder.get_config_value(&key).is_some_and(|value| !value.is_empty());
    let mut has_keys =
        has(AmazonS3ConfigKey::AccessKeyId) || has(AmazonS3ConfigKey::SecretAccessKey);
    let has_web_identity =
        has(AmazonS3ConfigKey::WebIdentityTokenFile) && has(AmazonS3ConfigKey::RoleArn);
    let has_container = has(AmazonS3ConfigKey::ContainerCredentialsFullUri)
        || has(AmazonS3ConfigKey::ContainerCredentialsRelativeUri);
    if !(common.anonymous || has_keys || has_web_identity || has_container || common.instance) {
        builder = with_profile(builder, ProfileFiles::of_environment().read()?);
        let id = builder.get_config_value(&AmazonS3ConfigKey::AccessKeyId);
        has_keys = id.is_some_and(|id| !id.is_empty());
    }
    let value = |key| builder.get_config_value(&key);
    if is_set(value(AmazonS3ConfigKey::S3Express)) {
        let instead = "copy the data to a bucket that is not a directory bucket";
        return Err(OptionError::Unsupported { name: "s3_express".to_owned(), instead });
    }
    let is_anonymous = common.anonymous || is_set(value(AmazonS3ConfigKey::SkipSignature));
    let region = value(AmazonS3ConfigKey::Region).unwrap_or_else(|| "us-east-1".to_owned());
    let given = value(AmazonS3ConfigKey::S3Endpoint).or(value(AmazonS3ConfigKey::Endpoint));
    let endpoint = given.map(|given| Endpoint::parse(&given, common)).transpose()?;
    let container = value(AmazonS3ConfigKey::ContainerCredentialsFullUri);
    let mut hosts = instance_hosts(common);
    match &endpoint {
        Some(endpoint) => hosts.push(endpoint.origin.clone()),
        None => hosts.extend([
            format!("https://s3.{region}.amazonaws.com"),
            format!("https://{bucket}.s3.{region}.amazonaws.com"),
        ]),
    }
    if has_web_identity && !has_keys {
        hosts.push(match value(AmazonS3ConfigKey::StsEndpoint) {
            Some(given) => Endpoint::parse(&given, common)?.origin,
            None => format!("https://sts.{region}.amazonaws.com"),
        });
    } else if has_container && !has_keys {
        hosts.push(CONTAINER.to_owned());
        hosts.extend(container.and_then(|uri| uri.parse().ok()).map(|uri| gate::origin(&uri)));
    }
    if is_anonymous {
        builder = builder.with_skip_signature(true);
    } else if !(has_keys || has_web_identity || has_container || common.instance) {
        return Err(OptionError::NoCredentials { store: STORE });
    } else {
        check_keys(&builder, STORE)?;
    }
    let connector = connector(Hosts::Only(hosts));
    let http = connector.connect(&client_options()).map_err(|error| refused(STORE, &error))?;
    let store = builder.with_http_connector(connector).build();
    let store = Arc::new(store.map_err(|error| refused(STORE, &error))?);
    Ok(Client {
        pages: store.clone(),
        parts: store.clone(),
        kind: Store::S3,
        signed: (!is_anonymous).then(|| Signed { signer: store.clone(), http }),
        store,
        endpoint: endpoint.map(|endpoint| endpoint.name),
        unpinned: common.unpinned,
        has_credentials: !is_anonymous,
    })
}

/// Refuses half a key and an empty one, which requests would be signed with whatever else there is.
fn check_keys(builder: &AmazonS3Builder, store: &'static str) -> Result<(), OptionError> {
    let keys = [
        (AmazonS3ConfigKey::AccessKeyId, "access_key_id"),
        (AmazonS3ConfigKey::SecretAccessKey, "secret_access_key"),
    ];
    let given = keys.map(|(key, name)| (builder.get_config_value(&key), name));
    if given.iter().all(|(value, _)| value.is_none()) {
        return Ok(());
    }
    let is_missing = |value: &Option<String>| value.as_ref().is_none_or(|value| value.is_empty());
    match given.iter().find(|(value, _)| is_missing(value)) {
        Some(&(_, name)) => {
            Err(OptionError::Missing { name, store, hint: "a key has an ID and a secret" })
        }
        None => Ok(()),
    }
}

/// Adds the settings of a profile to those that were given.
fn with_profile(mut builder: AmazonS3Builder, profile: Profile) -> AmazonS3Builder {
    let has = |key| builder.get_config_value(&key).is_some();
    let has_region = has(AmazonS3ConfigKey::Region);
    let has_endpoint = has(AmazonS3ConfigKey::Endpoint) || has(AmazonS3ConfigKey::S3Endpoint);
    let settings = [
        (AmazonS3ConfigKey::AccessKeyId, profile.access_key_id),
        (AmazonS3ConfigKey::SecretAccessKey, profile.secret_access_key),
        (AmazonS3ConfigKey::Token, profile.session_token),
        (AmazonS3ConfigKey::Region, profile.region.filter(|_| !has_region)),
        (AmazonS3ConfigKey::Endpoint, profile.endpoint_url.filter(|_| !has_endpoint)),
    ];
    for (key, value) in settings {
        if let Some(value) = value {
            builder = builder.with_config(key, value);
        }
    }
    builder
}

fn gcs<C: HttpConnector>(
    bucket: &str,
    common: Common,
    options: &[Pair<'_>],
    connector: impl FnOnce(Hosts) -> C,
) -> Result<Client, OptionError> {
    const STORE: &str = "Google Cloud Storage";
    const OPTIONS: [&str; 4] =
        ["service_account", "service_account_key", "bearer_token", "endpoint"];
    const TOKENS: [&str; 3] = [
        "https://oauth2.googleapis.com",
        "https://accounts.google.com",
        "https://www.googleapis.com",
    ];
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (name, value) in options {
        let name = if *name == "endpoint" { "base_url" } else { name };
        let unknown = |_| OptionError::unknown(name, STORE, &OPTIONS);
        let key: GoogleConfigKey = name.parse().map_err(unknown)?;
        if let GoogleConfigKey::Client(key) = key {
            return Err(connection_setting(name, key));
        }
        builder = builder.with_config(key, *value);
    }
    builder = builder
        .with_bucket_name(bucket)
        .with_client_options(client_options())
        .with_retry(no_retries());
    let value = |key| builder.get_config_value(&key);
    let given = value(GoogleConfigKey::BaseUrl);
    let endpoint = given.map(|given| Endpoint::parse(&given, common)).transpose()?;
    let mut hosts = instance_hosts(common);
    hosts.push(match &endpoint {
        Some(endpoint) => endpoint.origin.clone(),
        None => "https://storage.googleapis.com".to_owned(),
    });
    hosts.extend(TOKENS.map(str::to_owned));
    let given = [
        GoogleConfigKey::ServiceAccount,
        GoogleConfigKey::ServiceAccountKey,
        GoogleConfigKey::ApplicationCredentials,
        GoogleConfigKey::BearerToken,
    ];
    let is_anonymous = common.anonymous || is_set(value(GoogleConfigKey::SkipSignature));
    let default = std::env::home_dir()
        .map(|home| home.join(".config/gcloud/application_default_credentials.json"));
    let has_any = given.into_iter().any(|key| value(key).is_some())
        || default.is_some_and(|file| file.exists());
    if is_anonymous {
        builder = builder.with_skip_signature(true);
    } else if !(has_any || common.instance) {
        return Err(OptionError::NoCredentials { store: STORE });
    }
    let store = builder.with_http_connector(connector(Hosts::Only(hosts))).build();
    let store = Arc::new(store.map_err(|error| refused(STORE, &error))?);
    let endpoint = endpoint.map(|endpoint| endpoint.name);
    let unpinned = common.unpinned;
    let parts = store.clone();
    Ok(Client {
        pages: store.clone(),
        parts,
        kind: Store::Gcs,
        signed: None,
        store,
        endpoint,
        unpinned,
        has_credentials: !is_anonymous,
    })
}

fn azure<C: HttpConnector>(
    container: &str,
    common: Common,
    options: &[Pair<'_>],
    connector: impl FnOnce(Hosts) -> C,
) -> Result<Client, OptionError> {
    const STORE: &str = "Azure";
    const OPTIONS: [&str; 5] =
        ["account_name", "access_key", "sas_key", "bearer_token", "endpoint"];
    let mut builder = MicrosoftAzureBuilder::from_env();
    for (name, value) in options {
        let unknown = |_| OptionError::unknown(name, STORE, &OPTIONS);
        let key: AzureConfigKey = name.parse().map_err(unknown)?;
        if let AzureConfigKey::Client(key) = key {
            return Err(connection_setting(name, key));
        }
        builder = builder.with_config(key, *value);
    }
    // The account that the URL names is meant, whatever the environment says.
    let (container, account) = container
        .split_once('@')
        .map_or((container, None), |(name, account)| (name, Some(account)));
    if let Some(account) = account {
        let is_other = |&(name, value): &Pair<'_>| {
            name.parse().is_ok_and(|key: AzureConfigKey| key == AzureConfigKey::AccountName)
                && value != account
        };
        if options.iter().any(is_other) {
            return Err(OptionError::Value { name: "account_name", expected: "the URL's account" });
        }
        builder = builder.with_account(account);
    }
    builder = builder
        .with_container_name(container)
        .with_client_options(client_options())
        .with_retry(no_retries());
    let value = |key| builder.get_config_value(&key);
    let account = value(AzureConfigKey::AccountName).ok_or(OptionError::Missing {
        name: "account_name",
        store: STORE,
        hint: "the name of the storage account",
    })?;
    let given = value(AzureConfigKey::Endpoint);
    let endpoint = given.map(|given| Endpoint::parse(&given, common)).transpose()?;
    let mut hosts = instance_hosts(common);
    match &endpoint {
        Some(endpoint) => hosts.push(endpoint.origin.clone()),
        None => hosts.extend([
            format!("https://{account}.blob.core.windows.net"),
            format!("https://{account}.blob.fabric.microsoft.com"),
        ]),
    }
    hosts.push(match value(AzureConfigKey::AuthorityHost) {
        Some(given) => Endpoint::parse(&given, common)?.origin,
        None => "https://login.microsoftonline.com".to_owned(),
    });
    let given = [
        AzureConfigKey::AccessKey,
        AzureConfigKey::SasKey,
        AzureConfigKey::Token,
        AzureConfigKey::ClientSecret,
        AzureConfigKey::FederatedTokenFile,
    ];
    let uses_cli = is_set(value(AzureConfigKey::UseAzureCli));
    let has_any = uses_cli || given.into_iter().any(|key| value(key).is_some());
    let is_anonymous = common.anonymous || is_set(value(AzureConfigKey::SkipSignature));
    if is_anonymous {
        builder = builder.with_skip_signature(true);
    } else if !(has_any || common.instance) {
        return Err(OptionError::NoCredentials { store: STORE });
    }
    let store = builder.with_http_connector(connector(Hosts::Only(hosts))).build();
    let store = Arc::new(store.map_err(|error| refused(STORE, &error))?);
    let endpoint = endpoint.map(|endpoint| endpoint.name);
    let unpinned = common.unpinned;
    let parts = store.clone();
    Ok(Client {
        pages: store.clone(),
        parts,
        kind: Store::Azure,
        signed: None,
        store,
        endpoint,
        unpinned,
        has_credentials: !is_anonymous,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_no_secret() {
        let common = Common { allow_http: true, ..Common::default() };
        for given in
            ["https://key:planted-secret@h", "http://planted-secret@h", "https://h?planted-secret"]
        {
            let refused = Endpoint::parse(given, common).err().unwrap();
            let text = format!("{refused} {refused:?}");
            assert!(matches!(refused, OptionError::Value { .. }), "{text}");
            assert!(!text.contains("planted-secret"), "{text}");
        }
        let good = Endpoint::parse("http://H:9000/a/", common).unwrap();
        assert_eq!((&*good.origin, &*good.name), ("http://h:9000", "http://h:9000/a"));
    }
}
