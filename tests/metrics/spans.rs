//! Spans of requests, by OpenTelemetry's conventions for clients of databases, as tracing-opentelemetry reads them.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};

use tracing::{
    Instrument as _, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    filter::LevelFilter,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};
use zk_client::{Client, CreateMode, OpCode};
use zk_locks::Lock;
use zk_testkit::{TestServer, proxy::Match};
use zk_tests::{
    log::listened,
    patience::{closed, within},
};

/// The spans of requests that have ended, with the names of their parents.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Ended>>>);

/// The name of a span's parent, and what the span says.
type Ended = (Option<String>, Fields);

#[derive(Clone, Debug, Default, PartialEq)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let before = self.0.insert(field.name().to_owned(), value.to_owned());
        assert_eq!(before, None, "{} has two values for one request", field.name());
    }
}

fn is_request(metadata: &Metadata<'_>) -> bool {
    metadata.target() == "zk_client::request"
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        if is_request(attributes.metadata()) {
            assert_eq!(*attributes.metadata().level(), Level::DEBUG);
            attributes.record(&mut fields);
        }
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        if is_request(span.metadata()) {
            values.record(span.extensions_mut().get_mut::<Fields>().unwrap());
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        if is_request(span.metadata()) {
            let parent = span.parent().map(|parent| parent.name().to_owned());
            let fields = span.extensions().get::<Fields>().unwrap().clone();
            self.0.lock().unwrap().push((parent, fields));
        }
    }
}

impl Spans {
    /// The spans since the last time.
    fn take(&self) -> Vec<Ended> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The only one since the last time.
    fn one(&self) -> BTreeMap<String, String> {
        let mut spans = self.take();
        assert_eq!(spans.len(), 1, "{spans:?}");
        spans.remove(0).1.0
    }
}

/// What each span of a request that a server has answered says.
fn expected(
    server: &TestServer,
    op: &str,
    path: &str,
    more: &[(&str, &str)],
) -> BTreeMap<String, String> {
    let address = server.connect_string();
    let (host, port) = address.split_once(':').unwrap();
    let name = format!("{op} {address}");
    let usual = [
        ("otel.name", &*name),
        ("otel.kind", "client"),
        ("db.system.name", "zookeeper"),
        ("db.operation.name", op),
        ("server.address", host),
        ("server.port", port),
        ("zookeeper.path", path),
    ];
    usual.iter().chain(more).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn listening(filter: LevelFilter) -> (Spans, tracing::subscriber::DefaultGuard) {
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone().with_filter(filter));
    (spans, listened(subscriber))
}

#[tokio::test(flavor = "current_thread")]
async fn requests_have_spans_by_opentelemetry() {
    let (spans, _listening) = listening(LevelFilter::DEBUG);
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    zk.create("/a", b"").await.unwrap();
    assert_eq!(spans.one(), expected(&server, "create2", "/a", &[]));
    zk.get("/a").await.unwrap();
    assert_eq!(spans.one(), expected(&server, "getData", "/a", &[]));
    // Nothing that a caller would call a failure.
    assert!(zk.exists("/b").await.unwrap().is_none());
    assert_eq!(spans.one(), expected(&server, "exists", "/b", &[]));
    zk.get("/b").await.unwrap_err();
    let refused = [
        ("otel.status_code", "ERROR"),
        ("otel.status_description", "rejected: NoNode"),
        ("db.response.status_code", "NoNode"),
        ("error.type", "NoNode"),
    ];
    assert_eq!(spans.one(), expected(&server, "getData", "/b", &refused));
    let seat = zk.create("/seat", b"").mode(CreateMode::Ephemeral).protected().await.unwrap();
    assert_eq!(spans.one(), expected(&server, "create2", "/seat", &[]));
    drop(seat);

    let _cut = server.on(Match::reply(OpCode::SET_DATA).once()).cut();
    let error = within(zk.set("/a", b"new")).await.unwrap_err().to_string();
    let doubtful = [
        ("otel.status_code", "ERROR"),
        ("otel.status_description", &*error),
        ("error.type", "disconnected"),
    ];
    assert!(error.starts_with("setData in doubt: "), "{error}");
    assert_eq!(spans.one(), expected(&server, "setData", "/a", &doubtful));

    // The server is not known before it has answered, and no answer gives it none.
    server.proxy().refuse_connections().await;
    server.drop_connections();
    let mut session = zk.session();
    while matches!(session.state(), zk_client::SessionState::Connected { .. }) {
        within(session.changed()).await;
    }
    let waits = zk.get("/a").submit();
    server.proxy().accept_connections().await;
    within(waits).await.unwrap();
    let mut late = expected(&server, "getData", "/a", &[]);
    late.insert("otel.name".into(), "getData".into());
    assert_eq!(spans.one(), late);
    server.pause();
    within(zk.get("/a").timeout(Duration::from_millis(1))).await.unwrap_err();
    assert_eq!(spans.one()["error.type"], "deadline_exceeded");
    server.resume();
}

#[tokio::test(flavor = "current_thread")]
async fn spans_of_locks_are_in_that_of_the_caller() {
    let (spans, _listening) = listening(LevelFilter::DEBUG);
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    let lock = Lock::new(&zk, "/lock");
    let taken = async { lock.acquire().await.unwrap().release().await.unwrap() };
    within(taken.instrument(tracing::info_span!("caller"))).await;
    let parents: Vec<_> = spans.take().into_iter().map(|(parent, _)| parent).collect();
    assert!(parents.len() >= 2, "{parents:?}");
    assert!(parents.iter().all(|parent| parent.as_deref() == Some("caller")), "{parents:?}");
}

/// The messages of events, each with its level.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let what =
            fields.0.get("message").or_else(|| fields.0.get("lost")).cloned().unwrap_or_default();
        self.0.lock().unwrap().push(format!("{} {what}", event.metadata().level()));
    }
}

#[tokio::test(flavor = "current_thread")]
async fn states_and_grants_are_events() {
    let events = Events::default();
    let subscriber =
        tracing_subscriber::registry().with(events.clone().with_filter(LevelFilter::DEBUG));
    let _listening = listened(subscriber);
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    let guard = within(Lock::new(&zk, "/lock").acquire()).await.unwrap();
    zk.delete(guard.path()).await.unwrap();
    within(guard.lost()).await;
    drop(guard);
    closed(&zk).await;
    let events = events.0.lock().unwrap().clone();
    let expected = [
        "INFO connected",
        "DEBUG granted",
        "WARN lock is lost",
        "DEBUG released",
        "INFO session over",
    ];
    let told: Vec<_> = events.iter().filter(|it| expected.contains(&it.as_str())).collect();
    assert_eq!(told, expected, "{events:#?}");
}

#[tokio::test(flavor = "current_thread")]
async fn no_span_that_no_filter_lets_through() {
    let (spans, _listening) = listening(LevelFilter::INFO);
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    zk.get("/").await.unwrap();
    assert_eq!(spans.take(), []);
}
