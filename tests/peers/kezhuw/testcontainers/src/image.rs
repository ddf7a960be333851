//! What a server is to be started with.

use std::{collections::BTreeMap, marker::PhantomData, time::Duration};

/// An image by its name and tag.
pub struct GenericImage {
    tag: String,
    variables: BTreeMap<String, String>,
}

impl GenericImage {
    pub fn new(_name: impl Into<String>, tag: impl Into<String>) -> Self {
        Self { tag: tag.into(), variables: BTreeMap::new() }
    }

    pub fn with_env_var(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Servers are healthy as soon as their port is open, which is waited for in any case.
    pub fn with_healthcheck(self, _check: Healthcheck) -> Self {
        self
    }

    pub fn with_wait_for(self, _what: WaitFor) -> Self {
        self
    }
}

/// An image with all that belongs to one container.
pub struct RunnableImage<T> {
    pub(crate) tag: String,
    pub(crate) variables: BTreeMap<String, String>,
    /// What paths of the container are on this machine.
    pub(crate) volumes: BTreeMap<String, String>,
    /// Whether its ports are those of this machine.
    pub(crate) is_on_host: bool,
    _of: PhantomData<T>,
}

impl From<GenericImage> for RunnableImage<GenericImage> {
    fn from(image: GenericImage) -> Self {
        Self {
            tag: image.tag,
            variables: image.variables,
            volumes: BTreeMap::new(),
            is_on_host: false,
            _of: PhantomData,
        }
    }
}

impl<T> RunnableImage<T> {
    pub fn with_volume(mut self, (here, there): (impl Into<String>, impl Into<String>)) -> Self {
        self.volumes.insert(there.into(), here.into());
        self
    }

    pub fn with_network(mut self, name: impl Into<String>) -> Self {
        self.is_on_host = name.into() == "host";
        self
    }
}

#[derive(Default)]
pub struct Healthcheck;

impl Healthcheck {
    pub fn with_cmd<T>(self, _words: impl Iterator<Item = T>) -> Self {
        self
    }

    pub fn with_interval(self, _interval: Duration) -> Self {
        self
    }

    pub fn with_retries(self, _retries: u32) -> Self {
        self
    }
}

pub enum WaitFor {
    Healthcheck,
}
