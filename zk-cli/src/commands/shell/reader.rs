//! Lines, typed at a prompt or read from a script, by a thread of their own: one at a time, and only when asked for, so that
//! commands can read what follows.

use std::{
    io::{self, IsTerminal as _},
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::{
    CompletionType, Config, Editor,
    error::ReadlineError,
    history::{FileHistory, History as _},
};
use tokio::sync::mpsc as channel;

use super::{
    complete::Helper,
    history::{self, LINES_MAX},
};
use crate::exit::Failure;

/// What was read.
#[derive(Debug)]
pub(crate) enum Read {
    Line(String),
    /// Given up.
    Interrupted,
    End,
    Failed(String),
}

/// Who reads lines.
#[derive(Debug)]
pub(crate) struct Reader {
    prompts: Sender<String>,
    lines: channel::UnboundedReceiver<Read>,
    /// How the terminal was, and is to be again however this ends.
    terminal: Option<Termios>,
}

impl Reader {
    /// At a prompt, with completion and history.
    pub(crate) fn typed(helper: Helper) -> Result<Self, Failure> {
        let failed = |error: ReadlineError| Failure::local("terminal")(io::Error::other(error));
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_space(true)
            .max_history_size(LINES_MAX)
            .map_err(failed)?
            .build();
        let mut editor = Editor::<Helper, FileHistory>::with_config(config).map_err(failed)?;
        editor.set_helper(Some(helper));
        let file = history::file();
        if let Some(file) = &file {
            // The first shell finds none.
            let _ = editor.load_history(file);
        }
        Ok(Self::start(move |prompt| {
            let line = match editor.readline(prompt) {
                Ok(line) => line,
                // The library hears of interrupts that were for a command, too, and says so afterwards.
                Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {
                    return Read::Interrupted;
                }
                Err(ReadlineError::Eof) => return Read::End,
                Err(error) => return Read::Failed(error.to_string()),
            };
            let is_new =
                history::is_kept(&line) && editor.history_mut().add(&line).unwrap_or(false);
            if let Some(file) = file.as_ref().filter(|_| is_new) {
                // At once, so that a shell that is killed has not forgotten what it did.
                let _ = editor.append_history(file);
            }
            Read::Line(line)
        }))
    }

    /// From standard input, as it is.
    pub(crate) fn script() -> Self {
        Self::start(|_| {
            let mut line = String::new();
            match io::stdin().read_line(&mut line) {
                Ok(0) => Read::End,
                Ok(_) => Read::Line(line),
                Err(error) => Read::Failed(error.to_string()),
            }
        })
    }

    fn start(mut read: impl FnMut(&str) -> Read + Send + 'static) -> Self {
        let (prompts, asked): (_, Receiver<String>) = mpsc::channel();
        let (sender, lines) = channel::unbounded_channel();
        thread::spawn(move || {
            for prompt in asked {
                if sender.send(read(&prompt)).is_err() {
                    return;
                }
            }
        });
        let stdin = io::stdin();
        let terminal = stdin.is_terminal().then(|| tcgetattr(&stdin).ok()).flatten();
        Self { prompts, lines, terminal }
    }

    /// The next line. Not to be dropped while it waits, but with the reader.
    pub(crate) async fn next(&mut self, prompt: &str) -> Read {
        // A thread that has ended before we have has panicked, and said so.
        let _ = self.prompts.send(prompt.to_owned());
        self.lines.recv().await.unwrap_or_else(|| Read::Failed("the prompt is gone".to_owned()))
    }

    /// Gives the terminal back as it was: whatever ends the shell, or runs in it, may have left it otherwise.
    pub(crate) fn restore(&self) {
        if let Some(before) = &self.terminal {
            let _ = tcsetattr(io::stdin(), OptionalActions::Drain, before);
        }
    }
}
