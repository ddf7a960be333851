//! Settings of a connection that have a name, in a file.

use std::{collections::BTreeMap, env, fs, path::PathBuf, time::Duration};

use serde::{Deserialize, Deserializer, de};

use crate::{
    duration,
    exit::{Exit, Failure},
    security::SecurityArgs,
};

/// What the file holds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    profile: BTreeMap<String, Profile>,
}

/// Settings of a connection, as far as they are there.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    pub(crate) server: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    pub(crate) session_timeout: Option<Duration>,
    #[serde(default, deserialize_with = "seconds")]
    pub(crate) connect_timeout: Option<Duration>,
    #[serde(default)]
    pub(crate) read_only: bool,
    #[serde(default)]
    pub(crate) security: SecurityArgs,
}

impl Profile {
    /// The profile of this name.
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        let path = path().ok_or_else(|| {
            Failure::new(Exit::Usage, "--profile: neither ZK_CONFIG nor HOME is set")
        })?;
        let shown = path.display();
        let text = fs::read_to_string(&path)
            .map_err(|error| Failure::new(Exit::Usage, format_args!("{shown}: {error}")))?;
        in_text(&text, name)
            .map_err(|error| Failure::new(Exit::Usage, format_args!("{shown}: {error}")))
    }
}

fn in_text(text: &str, name: &str) -> Result<Profile, String> {
    // The whole of the message would show the line, which may hold a password.
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().and_then(|span| text.get(..span.start));
        let line = line.map_or(1, |before| before.matches('\n').count() + 1);
        format!("line {line}: {}", error.message())
    })?;
    let known = file.profile.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let mut profiles = file.profile;
    profiles.remove(name).ok_or_else(|| format!("there is no profile {name} (but: {known})"))
}

/// Where the file is, if anywhere.
fn path() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = || set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
    set("ZK_CONFIG").or_else(|| Some(own()?.join("zk").join("config.toml")))
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    duration::seconds(&text).map(Some).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [profile.one]
        server = "a:1,b:2/app"
        security = { auth_file = "id", sasl_user = "ann" }
        session_timeout = "1m"
        [profile.two]
    "#;

    #[test]
    fn profile_has_its_settings_and_no_others() {
        let one = in_text(TEXT, "one").unwrap();
        assert_eq!(one.server.as_deref(), Some("a:1,b:2/app"));
        assert_eq!(one.session_timeout, Some(Duration::from_secs(60)));
        let two = in_text(TEXT, "two").unwrap();
        assert!(two.server.is_none() && two.connect_timeout.is_none());
    }

    #[test]
    fn what_is_wrong_is_said_without_the_secret() {
        let missing = in_text(TEXT, "three").unwrap_err();
        assert_eq!(missing, "there is no profile three (but: one, two)");
        let text = "[profile.x.security]\nauth = digest:u:sesame";
        let wrong = in_text(text, "x").unwrap_err();
        assert!(wrong.starts_with("line 2: ") && !wrong.contains("sesame"), "{wrong}");
        for text in ["[profile.x]\nsevrer = 1", "[profile.x.security]\nauht = 1"] {
            assert!(in_text(text, "x").unwrap_err().contains("unknown field"), "{text}");
        }
        assert!(in_text("[profile.x]\nsession_timeout = \"soon\"", "x").is_err());
    }
}
