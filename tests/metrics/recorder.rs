//! A recorder that remembers the lowest and the highest of each value.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// What was described and recorded on this thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Recording(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    described: BTreeMap<String, Described>,
    series: BTreeMap<Key, (&'static str, Arc<Series>)>,
}

/// What a recorder was told of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Described {
    pub(super) kind: &'static str,
    pub(super) unit: Option<Unit>,
    pub(super) help: String,
}

/// One series: name, kind, labels, values.
pub(super) type Recorded = (String, &'static str, Vec<(String, String)>, Values);

/// The values of one metric with one set of labels.
#[derive(Debug, Default)]
pub(super) struct Series(Mutex<Values>);

/// Lowest, highest and latest value, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Values {
    pub(super) lowest: f64,
    pub(super) highest: f64,
    pub(super) latest: f64,
    pub(super) count: u64,
}

impl Recording {
    pub(super) fn described(&self) -> BTreeMap<String, Described> {
        self.0.lock().unwrap().described.clone()
    }

    /// Every series.
    pub(super) fn series(&self) -> Vec<Recorded> {
        let state = self.0.lock().unwrap();
        let labels = |key: &Key| {
            let pairs = key.labels().map(|it| (it.key().to_owned(), it.value().to_owned()));
            pairs.collect::<Vec<_>>()
        };
        let series = state.series.iter().map(|(key, (kind, series))| {
            (key.name().to_owned(), *kind, labels(key), *series.0.lock().unwrap())
        });
        series.collect()
    }

    /// The sum of the latest values of all series of this name that have these labels.
    pub(super) fn latest(&self, name: &str, wanted: &[(&str, &str)]) -> f64 {
        let has = |labels: &[(String, String)]| {
            wanted.iter().all(|(k, v)| labels.iter().any(|it| it.0 == *k && it.1 == *v))
        };
        let series =
            self.series().into_iter().filter(|(it, _, labels, _)| it == name && has(labels));
        series.map(|(.., values)| values.latest).sum()
    }

    fn describe(&self, name: KeyName, kind: &'static str, unit: Option<Unit>, help: SharedString) {
        let it = Described { kind, unit, help: help.into_owned() };
        let before = self.0.lock().unwrap().described.insert(name.as_str().into(), it.clone());
        assert!(before.is_none_or(|before| before == it), "{name:?} was described differently");
    }

    fn register(&self, key: &Key, kind: &'static str) -> Arc<Series> {
        let mut state = self.0.lock().unwrap();
        let (known, series) =
            state.series.entry(key.clone()).or_insert_with(|| (kind, Arc::default()));
        assert_eq!(*known, kind, "{key}");
        series.clone()
    }
}

impl Recorder for Recording {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(name, "counter", unit, help);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(name, "gauge", unit, help);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(name, "histogram", unit, help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.register(key, "counter"))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.register(key, "gauge"))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.register(key, "histogram"))
    }
}

impl Series {
    fn change(&self, to: impl FnOnce(f64) -> f64) {
        let mut values = self.0.lock().unwrap();
        let latest = to(values.latest);
        *values = Values {
            lowest: values.lowest.min(latest),
            highest: values.highest.max(latest),
            latest,
            count: values.count + 1,
        };
    }
}

#[expect(clippy::cast_precision_loss, reason = "tests count to a few thousand")]
impl CounterFn for Series {
    fn increment(&self, value: u64) {
        self.change(|latest| latest + value as f64);
    }

    fn absolute(&self, value: u64) {
        self.change(|_| value as f64);
    }
}

impl GaugeFn for Series {
    fn increment(&self, value: f64) {
        self.change(|latest| latest + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|latest| latest - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        self.change(|_| value);
    }
}
