//! A metric: what it is called, what it counts, how it is labelled.

use metrics::{
    Counter, Gauge, Histogram, Key, Label, Level, Metadata, SharedString, Unit, with_recorder,
};

/// A metric. Its name follows Prometheus's conventions: base units, `_total` for what only grows.
///
/// ```
/// use zk_client::metrics::{Kind, LIST};
///
/// for metric in LIST {
///     println!("{} ({}): {}", metric.name, metric.labels.join(", "), metric.help);
/// }
/// assert!(LIST.iter().all(|it| it.kind != Kind::Counter || it.name.ends_with("_total")));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What is done with its values.
    pub kind: Kind,
    /// The unit of its values.
    pub unit: Unit,
    /// The names of its labels. Each has few values: a name that the program gives, or a word from a fixed list.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub help: &'static str,
}

/// What is done with a metric's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// They are added up.
    Counter,
    /// The latest one counts.
    Gauge,
    /// They are counted in buckets. These upper limits, in seconds, suit it; an exporter has to be told.
    Histogram(&'static [f64]),
}

/// Where they come from, for recorders that filter by it.
const METADATA: Metadata<'static> =
    Metadata::new("zookeeper", Level::INFO, Some(env!("CARGO_PKG_NAME")));

impl Metric {
    /// A count of things that happened.
    #[must_use]
    pub const fn counter(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Counter, unit: Unit::Count, labels, help }
    }

    /// A value that goes up and down.
    #[must_use]
    pub const fn gauge(
        name: &'static str,
        unit: Unit,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Gauge, unit, labels, help }
    }

    /// Durations, in buckets with these upper limits in seconds.
    #[must_use]
    pub const fn durations(
        name: &'static str,
        limits: &'static [f64],
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Histogram(limits), unit: Unit::Seconds, labels, help }
    }

    /// Tells the recorder what this metric is.
    pub fn describe(&self) {
        let (name, unit, help) = (self.name.into(), Some(self.unit), self.help.into());
        with_recorder(|recorder| match self.kind {
            Kind::Counter => recorder.describe_counter(name, unit, help),
            Kind::Gauge => recorder.describe_gauge(name, unit, help),
            Kind::Histogram(_) => recorder.describe_histogram(name, unit, help),
        });
    }

    /// Returns the counter with these values of the labels.
    ///
    /// # Panics
    /// If there are more values than labels, or fewer.
    pub fn count<const N: usize>(&self, values: [&SharedString; N]) -> Counter {
        with_recorder(|recorder| recorder.register_counter(&self.key(values), &METADATA))
    }

    /// Returns the gauge with these values of the labels.
    ///
    /// # Panics
    /// As [`count`](Self::count).
    pub fn level<const N: usize>(&self, values: [&SharedString; N]) -> Gauge {
        with_recorder(|recorder| recorder.register_gauge(&self.key(values), &METADATA))
    }

    /// Returns the histogram with these values of the labels.
    ///
    /// # Panics
    /// As [`count`](Self::count).
    pub fn histogram<const N: usize>(&self, values: [&SharedString; N]) -> Histogram {
        with_recorder(|recorder| recorder.register_histogram(&self.key(values), &METADATA))
    }

    fn key<const N: usize>(&self, values: [&SharedString; N]) -> Key {
        assert_eq!(self.labels.len(), N, "each label of {} has a value", self.name);
        let labels = self.labels.iter().zip(values);
        let labels = labels.map(|(name, value)| Label::new(*name, value.clone()));
        Key::from_parts(self.name, labels.collect::<Vec<_>>())
    }
}
