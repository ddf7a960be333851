//! Everything that is logged, at any level.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing::{level_filters::LevelFilter, subscriber::DefaultGuard};

/// Collects what is logged on the thread that made it, until it is asked for it.
#[derive(Debug)]
pub struct Log {
    lines: Lines,
    listening: DefaultGuard,
}

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

impl Log {
    /// Begins to collect.
    #[must_use]
    pub fn of_this_thread() -> Self {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        Self { lines, listening: tracing::subscriber::set_default(subscriber) }
    }

    /// What was logged.
    ///
    /// # Panics
    /// It is not text.
    #[must_use]
    pub fn text(self) -> String {
        drop(self.listening);
        let bytes = std::mem::take(&mut *self.lines.0.lock().unwrap());
        String::from_utf8(bytes).unwrap()
    }
}
