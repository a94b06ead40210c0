//! Profile files of the AWS tools: the keys and the settings of one profile.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::options::OptionError;

/// Settings that say where other tools get the keys of a profile from.
const ELSEWHERE: [&str; 6] = [
    "credential_process",
    "sso_session",
    "sso_start_url",
    "sso_account_id",
    "login_session",
    "web_identity_token_file",
];

/// One profile, with the settings of both files.
#[derive(Default)]
pub(crate) struct Profile {
    pub(crate) access_key_id: Option<String>,
    pub(crate) secret_access_key: Option<String>,
    pub(crate) session_token: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint_url: Option<String>,
}

/// The places of the files, and the name of the profile if the user gave one.
pub(crate) struct ProfileFiles {
    config: Option<PathBuf>,
    credentials: Option<PathBuf>,
    name: Option<String>,
}

impl ProfileFiles {
    /// The files that the AWS tools read: `~/.aws/config` and `~/.aws/credentials`, unless
    /// `AWS_CONFIG_FILE` and `AWS_SHARED_CREDENTIALS_FILE` name others, and the profile `AWS_PROFILE`.
    pub(crate) fn of_environment() -> Self {
        let path = |variable: &str, name: &str| {
            let given = std::env::var_os(variable).map(PathBuf::from);
            given.or_else(|| Some(std::env::home_dir()?.join(".aws").join(name)))
        };
        Self {
            config: path("AWS_CONFIG_FILE", "config"),
            credentials: path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            name: std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty()),
        }
    }

    /// Reads the profile: the named one, or `default`, which may be missing.
    ///
    /// # Errors
    /// A file that cannot be read, a named profile that is in no file, and one whose keys are to come
    /// from elsewhere.
    pub(crate) fn read(&self) -> Result<Profile, OptionError> {
        let name = self.name.as_deref().unwrap_or("default");
        let config = text(self.config.as_deref())?;
        let credentials = text(self.credentials.as_deref())?;
        let mut settings = BTreeMap::new();
        // Of a setting that both files have, the second one counts.
        let is_config = |section: &str| match section.strip_prefix("profile ") {
            Some(section) => section.trim() == name,
            None => section == "default" && name == "default",
        };
        let is_known = [
            take(&config, is_config, &mut settings),
            take(&credentials, |section| section == name, &mut settings),
        ];
        if self.name.is_some() && is_known == [false; 2] {
            return Err(OptionError::NoProfile { profile: name.to_owned() });
        }
        let has_keys = settings.contains_key("aws_access_key_id");
        let others: &[&str] = if has_keys { &[] } else { &ELSEWHERE };
        let elsewhere = ["role_arn"].iter().chain(others);
        if let Some(&setting) = elsewhere.into_iter().find(|name| settings.contains_key(**name)) {
            return Err(OptionError::Profile { profile: name.to_owned(), setting });
        }
        let mut value = |name: &str| settings.remove(name).map(str::to_owned);
        Ok(Profile {
            access_key_id: value("aws_access_key_id"),
            secret_access_key: value("aws_secret_access_key"),
            session_token: value("aws_session_token"),
            region: value("region"),
            endpoint_url: value("endpoint_url"),
        })
    }
}

/// The text of a file; empty if it does not exist.
fn text(path: Option<&Path>) -> Result<String, OptionError> {
    let Some(path) = path else { return Ok(String::new()) };
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(OptionError::ProfileFile {
            path: path.display().to_string().escape_debug().to_string(),
            message: error.to_string(),
        }),
    }
}

/// Takes the settings of the sections that `is_meant`, and returns whether there is one.
fn take<'a>(
    text: &'a str,
    is_meant: impl Fn(&str) -> bool,
    settings: &mut BTreeMap<String, &'a str>,
) -> bool {
    let mut is_inside = false;
    let mut is_known = false;
    for line in text.lines() {
        // Indented lines belong to the setting before them, such as `s3 =`.
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let section = section.split_once(']').map_or(section, |(section, _)| section);
            is_inside = is_meant(section.trim());
            is_known |= is_inside;
        } else if is_inside && let Some((name, value)) = line.split_once('=') {
            // A comment follows a space, because keys may contain `#`.
            let end = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| value.find(mark)).min();
            let value = value.get(..end.unwrap_or(value.len())).unwrap_or_default().trim();
            if !value.is_empty() {
                settings.insert(name.trim().to_ascii_lowercase(), value);
            }
        }
    }
    is_known
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The profile in these files.
    fn read(config: &str, credentials: &str, name: Option<&str>) -> Result<Profile, OptionError> {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = root.path().join(name);
            // A file without text is missing.
            if !text.is_empty() {
                std::fs::write(&path, text).unwrap();
            }
            Some(path)
        };
        let config = file("config", config);
        let credentials = file("credentials", credentials);
        ProfileFiles { config, credentials, name: name.map(str::to_owned) }.read()
    }

    const CONFIG: &str = "# a comment\n[default]\nregion = eu-west-1 ; another\ns3 =\n    region = x\n\n\
        [profile lab]\nregion=us-west-2\nENDPOINT_URL = https://lab.test:9000\naws_access_key_id = old\n\
        [profile sso]\nsso_session = corp\n[profile role]\nrole_arn = arn:aws:iam::1:role/r\n\
        source_profile = default\n[profile process]\ncredential_process = /bin/keys\n";
    const CREDENTIALS: &str = "[default]\naws_access_key_id = AKID\naws_secret_access_key = se#cret/+=\n\
        [ lab ]\naws_access_key_id=LAB\naws_secret_access_key=hush\naws_session_token=token==\n";

    #[test]
    fn the_default_profile_has_keys_and_a_region() {
        let profile = read(CONFIG, CREDENTIALS, None).unwrap();
        assert_eq!(profile.access_key_id.as_deref(), Some("AKID"));
        assert_eq!(profile.secret_access_key.as_deref(), Some("se#cret/+="));
        assert_eq!(profile.region.as_deref(), Some("eu-west-1"));
        assert_eq!((profile.session_token, profile.endpoint_url), (None, None));
    }

    #[test]
    fn a_named_profile_is_in_either_file() {
        let profile = read(CONFIG, CREDENTIALS, Some("lab")).unwrap();
        assert_eq!(profile.access_key_id.as_deref(), Some("LAB"), "credentials come last");
        assert_eq!(profile.session_token.as_deref(), Some("token=="));
        assert_eq!(profile.endpoint_url.as_deref(), Some("https://lab.test:9000"));
        assert_eq!(profile.region.as_deref(), Some("us-west-2"));
    }

    #[test]
    fn files_may_be_missing_but_not_a_named_profile() {
        assert!(read("", "", None).unwrap().access_key_id.is_none());
        let missing = read(CONFIG, CREDENTIALS, Some("other")).err().unwrap();
        assert_eq!(missing, OptionError::NoProfile { profile: "other".to_owned() });
        let text = missing.to_string();
        assert!(text.contains("\"other\"") && text.contains("AWS_PROFILE"), "{text}");
    }

    #[test]
    fn keys_from_elsewhere_are_refused_by_name() {
        let cases =
            [("sso", "sso_session"), ("role", "role_arn"), ("process", "credential_process")];
        for (name, setting) in cases {
            let refused = read(CONFIG, CREDENTIALS, Some(name)).err().unwrap();
            assert_eq!(refused, OptionError::Profile { profile: name.to_owned(), setting });
        }
        let both = "[default]\naws_access_key_id=a\naws_secret_access_key=b\nsso_session=corp\n";
        assert!(read(both, "", None).is_ok(), "the keys are there");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let root = tempfile::tempdir().unwrap();
        let credentials = Some(root.path().to_owned());
        let files = ProfileFiles { config: None, credentials, name: None };
        let text = files.read().err().unwrap().to_string();
        assert!(text.starts_with(&root.path().display().to_string()), "{text}");
    }
}
