//! What Curator's x-discovery writes into the node of an instance, `<base>/<name>/<id>`: its `ServiceInstance` as JSON.

use serde::{Deserialize, Serialize};

/// An instance of a service.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceInstance {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) address: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) ssl_port: Option<u16>,
    /// Any JSON. Objects have the name of their Java class in `@class`.
    pub(crate) payload: Option<serde_json::Value>,
    /// Milliseconds since 1970.
    #[serde(rename = "registrationTimeUTC")]
    pub(crate) registration_time_utc: i64,
    #[serde(default)]
    pub(crate) service_type: ServiceType,
    pub(crate) uri_spec: Option<UriSpec>,
    /// Curator leaves it out too, unless its serializer is told otherwise: old releases refuse what has it.
    #[serde(default = "enabled", skip_serializing_if = "is_enabled")]
    pub(crate) enabled: bool,
}

/// How long an instance is registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum ServiceType {
    /// As long as its session lives.
    #[default]
    Dynamic,
    /// The same, with a number behind the id.
    DynamicSequential,
    Static,
    Permanent,
}

/// How to make a URI of an instance: `{scheme}://{address}:{port}`, in parts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct UriSpec {
    pub(crate) parts: Vec<Part>,
}

/// A literal, or the name of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Part {
    pub(crate) value: String,
    pub(crate) variable: bool,
}

impl UriSpec {
    /// `{scheme}://{address}:{port}`
    pub(crate) fn usual() -> Self {
        let part = |value: &str, variable| Part { value: value.to_owned(), variable };
        let parts = vec![
            part("scheme", true),
            part("://", false),
            part("address", true),
            part(":", false),
            part("port", true),
        ];
        Self { parts }
    }
}

impl ServiceInstance {
    /// Where it is, by its own word; variables that are not known are empty.
    pub(crate) fn uri(&self) -> String {
        let Some(spec) = &self.uri_spec else { return String::new() };
        let port = |port: Option<u16>| port.map(|port| port.to_string()).unwrap_or_default();
        let text = |part: &Part| match (part.variable, &*part.value) {
            (false, literal) => literal.to_owned(),
            (true, "scheme") if self.ssl_port.is_some() => "https".to_owned(),
            (true, "scheme") => "http".to_owned(),
            (true, "name") => self.name.clone(),
            (true, "id") => self.id.clone(),
            (true, "address") => self.address.clone().unwrap_or_default(),
            (true, "port") => port(self.port),
            (true, "ssl-port") => port(self.ssl_port),
            (true, "[") => "{".to_owned(),
            (true, "]") => "}".to_owned(),
            (true, _) => String::new(),
        };
        spec.parts.iter().map(text).collect()
    }
}

const fn enabled() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_enabled(enabled: &bool) -> bool {
    *enabled
}
