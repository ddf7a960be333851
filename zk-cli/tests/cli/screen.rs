//! A terminal whose screen can be read: what programs that draw have drawn.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    process::Stdio,
};

use rustix::{
    fs::OFlags,
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use tokio::{
    process::{Child, Command},
    sync::mpsc,
};

use crate::support::{HEARING, must};

/// A terminal with a program in its foreground.
pub(crate) struct Screen {
    keys: File,
    drawn: mpsc::UnboundedReceiver<Vec<u8>>,
    parser: vt100::Parser,
    child: Child,
    /// The program's end, which stays open behind it.
    end: File,
}

impl Screen {
    /// Starts `zk` with these arguments, in the foreground of a terminal of this size.
    pub(crate) fn start(server: &str, args: &[&str], rows: u16, columns: u16) -> Self {
        Self::with(server, args, rows, columns, |_| {})
    }

    /// The same, with more of an environment.
    pub(crate) fn with(
        server: &str,
        args: &[&str],
        rows: u16,
        columns: u16,
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let end = other_end(&name);
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).args(HEARING).arg(env!("CARGO_BIN_EXE_zk")).args(args);
        command.env("ZK_SERVER", server).env("TERM", "xterm-256color");
        for name in ["ZK_AUTH", "ZK_PROFILE", "NO_COLOR", "COLUMNS"] {
            command.env_remove(name);
        }
        let side = || Stdio::from(end.try_clone().unwrap());
        command.stdin(side()).stdout(side()).stderr(side()).kill_on_drop(true);
        change(&mut command);
        let child = command.spawn().unwrap();
        let keys = File::from(terminal);
        let mut output = keys.try_clone().unwrap();
        let (shown, drawn) = mpsc::unbounded_channel();
        // Ends when the other end is closed everywhere.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len) = output.read(&mut bytes) {
                let _ = shown.send(bytes[..len].to_vec());
            }
        });
        Self { keys, drawn, parser: vt100::Parser::new(rows, columns, 0), child, end }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// What is on the screen now, as far as it has been waited for.
    pub(crate) fn text(&self) -> String {
        self.parser.screen().contents()
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Waits until the screen is so.
    pub(crate) async fn until(&mut self, what: &str, is_so: impl Fn(&str) -> bool) {
        let seen = must(what, async {
            while !is_so(&self.text()) {
                match self.drawn.recv().await {
                    Some(bytes) => self.parser.process(&bytes),
                    None => return false,
                }
            }
            true
        });
        // A wait that is over says what there was instead.
        let seen = tokio::time::timeout(std::time::Duration::from_secs(45), seen).await;
        assert_eq!(seen, Ok(true), "never seen: {what}, on\n{}", self.text());
    }

    /// Waits until this is on the screen.
    pub(crate) async fn see(&mut self, text: &str) {
        self.until(text, |screen| screen.contains(text)).await;
    }

    /// Sends a signal to the program, which is a child of `setsid`.
    pub(crate) async fn signal(&self, signal: Signal) {
        let parent = self.child.id().unwrap();
        let children = format!("/proc/{parent}/task/{parent}/children");
        let children = std::fs::read_to_string(children).unwrap();
        // Where it has not forked, it is the program by now.
        let pid = children.split_whitespace().next().map_or(parent, |pid| pid.parse().unwrap());
        kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits for the program's end; returns its code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let status = must("the end", self.child.wait()).await.unwrap();
        // Behind all that the program has drawn.
        let bells = self.screen().audible_bell_count();
        self.end.write_all(b"\x07").unwrap();
        while self.screen().audible_bell_count() == bells {
            let bytes = must("the last that was drawn", self.drawn.recv()).await.unwrap();
            self.parser.process(&bytes);
        }
        status.code()
    }

    /// Whether lines are edited by the terminal, as they are for programs that do not draw.
    pub(crate) fn is_cooked(&self) -> bool {
        tcgetattr(&self.end).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }
}

/// Opens the end for programs, without making it the terminal of this one.
fn other_end(name: &str) -> File {
    let no_controlling_terminal = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(no_controlling_terminal);
    options.open(name).unwrap()
}
