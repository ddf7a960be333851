//! `zk lock` in the foreground of a terminal, which a shell has started.

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
};
use tokio::{
    process::{Child, Command},
    sync::mpsc,
};

use crate::{
    signals::stopped,
    support::{HEARING, World, must, run},
};

/// A terminal, as seen by the person in front of it.
struct Terminal {
    keys: File,
    screen: mpsc::UnboundedReceiver<String>,
    seen: String,
    /// The other end, for programs.
    name: String,
    /// Keeps it open between two programs: a program that looks at the screen meanwhile would find that all are gone.
    _open: File,
}

impl Terminal {
    /// One that does not echo, so that all that is seen on it is what programs say.
    async fn open() -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let _open = other_end(&name);
        let quiet = run(Command::new("stty").args(["-F", &name, "-echo"])).await;
        assert_eq!(quiet.code, Some(0), "{quiet:?}");
        let keys = File::from(terminal);
        let mut output = keys.try_clone().unwrap();
        let (shown, screen) = mpsc::unbounded_channel();
        // Ends when the other end is closed everywhere.
        std::thread::spawn(move || {
            let mut bytes = [0; 256];
            while let Ok(len) = output.read(&mut bytes) {
                let _ = shown.send(String::from_utf8_lossy(&bytes[..len]).into_owned());
            }
        });
        Self { keys, screen, seen: String::new(), name, _open }
    }

    /// Starts a program in a session of its own, with this as its terminal.
    fn start(&self, command: &mut Command) -> Child {
        let side = || Stdio::from(other_end(&self.name));
        command.stdin(side()).stdout(side()).stderr(side()).kill_on_drop(true);
        command.spawn().unwrap()
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this has been seen.
    async fn see(&mut self, text: &str) {
        must(text, async {
            while !self.seen.contains(text) {
                self.seen.push_str(&self.screen.recv().await.expect("somebody has it open"));
            }
        })
        .await;
    }
}

/// Opens the end for programs, without making it the terminal of this one.
fn other_end(name: &str) -> File {
    let no_controlling_terminal = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(no_controlling_terminal);
    options.open(name).unwrap()
}

/// `setsid --ctty` (util-linux) makes a terminal the one that `zk` is in the foreground of.
#[tokio::test]
async fn foreground_command_gets_tty_and_sigint() {
    let world = World::new().await;
    let mut terminal = Terminal::open().await;
    let script = "trap 'echo interrupted' INT; trap 'echo USR1' USR1; echo zk is $PPID.; \
                  while ! read -r go; do :; done; echo \"told to $go.\"; exit 6";
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).args(HEARING);
    command.args([env!("CARGO_BIN_EXE_zk"), "lock", "/l"]);
    command.args(["--", "sh", "-c", script]).env("ZK_SERVER", world.server.connect_string());
    let mut child = terminal.start(&mut command);
    terminal.see(".").await;
    let (_, pid) = terminal.seen.trim_end().trim_end_matches('.').rsplit_once(' ').unwrap();
    let pid: i32 = pid.parse().unwrap();
    let zk = Pid::from_raw(pid).unwrap();

    // With `zk` stopped, the interrupt that is seen is the terminal's own. If `zk` passed on another one,
    // it would do that before it passes on the signal that is sent later, and can be waited for.
    kill_process(zk, Signal::STOP).unwrap();
    stopped(pid.try_into().unwrap()).await;
    terminal.press("\x03");
    terminal.see("interrupted").await;
    kill_process(zk, Signal::USR1).unwrap();
    kill_process(zk, Signal::CONT).unwrap();
    terminal.see("USR1").await;
    terminal.press("stop\n");
    terminal.see("told to stop.").await;
    assert_eq!(terminal.seen.matches("interrupted").count(), 1, "{:?}", terminal.seen);
    assert_eq!(must("the end", child.wait()).await.unwrap().code(), Some(6));
}

#[tokio::test]
async fn waiting_says_behind_whom_on_a_terminal() {
    let world = World::new().await;
    let script = "echo ready; read -r go";
    let mut first = world.lock(&["--description", "first"], "/l", script);
    first.line().await;
    let mut second = world.lock(&["--description", "second"], "/l", script);
    world.queue_of("/l", 2).await;
    let mut terminal = Terminal::open().await;
    let mut command = world.zk();
    command.args(["lock", "/l", "--", "echo", "mine"]);
    let mut child = terminal.start(&mut command);
    terminal.see("waiting behind second, third in line").await;
    first.tell("go").await;
    second.line().await;
    terminal.see("waiting behind second, second in line").await;
    second.tell("go").await;
    terminal.see("mine").await;
    assert_eq!(must("the end", child.wait()).await.unwrap().code(), Some(0));
    // In scripts, nothing is said of it.
    first.ended().await.ok();
    second.ended().await.ok();
}
