//! What is seen while the demo runs: a bar on a terminal, a line for each grant elsewhere.

use std::{
    io::{self, Write as _},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

use super::resource::Visitor;

#[derive(Debug)]
pub(crate) struct Progress {
    expected: usize,
    granted: AtomicUsize,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// For so many grants, on standard error.
    pub(crate) fn new(expected: usize) -> Self {
        let bar = io::IsTerminal::is_terminal(&io::stderr()).then(|| {
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} grants, {msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(expected as u64).with_style(style).with_message("waiting")
        });
        Self { expected, granted: AtomicUsize::new(0), bar }
    }

    /// A contender has got the lock.
    pub(crate) fn granted(&self, visitor: &Visitor, now: Duration) {
        let number = self.granted.fetch_add(1, Ordering::Relaxed) + 1;
        let Visitor { contender, token, asked, .. } = *visitor;
        match &self.bar {
            Some(bar) => {
                bar.set_position(number as u64);
                bar.set_message(format!("contender {contender} holds it"));
            }
            None => {
                let (at, waited) = (now.as_secs_f64(), now.saturating_sub(asked).as_secs_f64());
                // Without standard error there is no reader.
                let _ = writeln!(
                    io::stderr(),
                    "{at:8.3}s  {number:>4}/{}  contender {contender:<4}  token {token:<12}  waited {waited:.3}s",
                    self.expected,
                );
            }
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
