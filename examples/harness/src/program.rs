//! The process of a service.

use std::{
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::{Child, Command},
    sync::mpsc,
};

use crate::patience::within;

/// A process, which is killed when this is dropped, and by the kernel if the test's own process is killed.
#[derive(Debug)]
pub struct Program {
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Program {
    /// Starts a program, from the thread of a test or of its runtime.
    ///
    /// # Panics
    /// That is not possible; it is run by `setpriv`, of util-linux.
    pub fn start(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", program]).args(arguments);
        command.envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().expect("setpriv is there");
        let (sender, lines) = mpsc::unbounded_channel();
        let said = Arc::default();
        let streams: [Option<Box<dyn AsyncRead + Send + Unpin>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as _),
            child.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        for stream in streams.into_iter().flatten() {
            tokio::spawn(listen(stream, sender.clone(), Arc::clone(&said)));
        }
        Self { child, lines, said }
    }

    /// Waits for the next line that contains a text; `None` if the program ends without one.
    ///
    /// # Panics
    /// There is none in time.
    pub async fn says(&mut self, text: &str) -> Option<String> {
        let next = async {
            loop {
                match self.lines.recv().await {
                    Some(line) if !line.contains(text) => {}
                    line => return line,
                }
            }
        };
        within(text, next).await
    }

    /// As [`says`](Self::says), of a program that must say it.
    ///
    /// # Panics
    /// It does not.
    pub async fn line(&mut self, text: &str) -> String {
        let line = self.says(text).await;
        line.unwrap_or_else(|| panic!("ended without {text:?}: {}", self.said()))
    }

    /// All that it has written so far.
    #[must_use]
    pub fn said(&self) -> String {
        self.said.lock().map(|lines| lines.join("\n")).unwrap_or_default()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// It does not end in time.
    pub async fn ended(&mut self) -> ExitStatus {
        let status = within("the end of a program", self.child.wait()).await;
        // The last lines arrive after the end.
        while self.lines.recv().await.is_some() {}
        status.expect("it is our child")
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Stops it (`SIGSTOP`).
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on (`SIGCONT`).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end (`SIGTERM`).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it without warning (`SIGKILL`).
    pub async fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.ended().await;
    }

    /// A process that has ended, and was waited for, has no number any more.
    fn signal(&self, signal: Signal) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        let pid = id.and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // Fails only if it has just ended.
            let _ = kill_process(pid, signal);
        }
    }
}

async fn listen(
    stream: impl AsyncRead + Unpin,
    lines: mpsc::UnboundedSender<String>,
    said: Arc<Mutex<Vec<String>>>,
) {
    let mut stream = BufReader::new(stream).lines();
    while let Ok(Some(line)) = stream.next_line().await {
        if let Ok(mut said) = said.lock() {
            said.push(line.clone());
        }
        // The test may listen no more.
        let _ = lines.send(line);
    }
}
