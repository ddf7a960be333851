//! Everything that is logged, at any level.

use std::{
    cell::RefCell,
    io,
    sync::{Arc, LazyLock, Mutex, Once},
};

use tracing::{
    Dispatch, Event, Metadata, Subscriber,
    level_filters::LevelFilter,
    span,
    subscriber::{DefaultGuard, Interest, NoSubscriber},
};

/// While there is only one subscriber, `tracing` asks that of the thread which comes to a span first whether anybody is
/// interested, for all threads: one without a subscriber says no for good.
static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// Makes this the subscriber of the thread, until the guard is dropped.
pub fn listened(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    LazyLock::force(&ANOTHER);
    // That one more has come lets all spans ask again.
    tracing::subscriber::set_default(subscriber)
}

/// Collects what is logged on the thread that made it, until it is asked for it.
#[derive(Debug)]
pub struct Log(Lines);

#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

thread_local! {
    /// The listener of this thread.
    static LINES: RefCell<Option<Lines>> = const { RefCell::new(None) };
}

impl Log {
    /// Begins to collect.
    ///
    /// # Panics
    /// Another listener for the whole process is installed.
    #[must_use]
    pub fn of_this_thread() -> Self {
        static LISTENING: Once = Once::new();
        LISTENING.call_once(|| {
            let writer = || LINES.with_borrow(|lines| lines.clone().unwrap_or_default());
            let format = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE);
            let chosen = OfSomeThreads(format.with_writer(writer).finish());
            tracing::subscriber::set_global_default(chosen).expect("nobody else listens");
        });
        let lines = Lines::default();
        LINES.set(Some(lines.clone()));
        Self(lines)
    }

    /// What was logged.
    ///
    /// # Panics
    /// It is not text.
    #[must_use]
    pub fn text(self) -> String {
        LINES.take();
        let bytes = std::mem::take(&mut *self.0.0.lock().unwrap());
        String::from_utf8(bytes).unwrap()
    }
}

/// Passes on what comes from threads that are listened to.
///
/// One subscriber for the process, because with one for each thread, what a thread without any has come past first may
/// be taken for uninteresting to all.
struct OfSomeThreads<S>(S);

impl<S: Subscriber> Subscriber for OfSomeThreads<S> {
    fn register_callsite(&self, of: &'static Metadata<'static>) -> Interest {
        self.0.register_callsite(of);
        Interest::sometimes()
    }
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        LINES.with_borrow(Option::is_some) && self.0.enabled(of)
    }
    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.0.max_level_hint()
    }
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        self.0.new_span(span)
    }
    fn record(&self, span: &span::Id, values: &span::Record<'_>) {
        self.0.record(span, values);
    }
    fn record_follows_from(&self, span: &span::Id, follows: &span::Id) {
        self.0.record_follows_from(span, follows);
    }
    fn event(&self, event: &Event<'_>) {
        self.0.event(event);
    }
    fn enter(&self, span: &span::Id) {
        self.0.enter(span);
    }
    fn exit(&self, span: &span::Id) {
        self.0.exit(span);
    }
    fn clone_span(&self, span: &span::Id) -> span::Id {
        self.0.clone_span(span)
    }
    fn try_close(&self, span: span::Id) -> bool {
        self.0.try_close(span)
    }
}
