//! A terminal that people use: tmux, with a server of its own.

use std::path::PathBuf;

use tempfile::TempDir;
use tokio::process::Command;

use crate::support::{must, run};

/// A window with one program in it. It ends with this.
pub(crate) struct Tmux {
    folder: TempDir,
}

impl Tmux {
    /// Runs a line of a shell in a window of this size.
    pub(crate) async fn start(line: &str, columns: u16, rows: u16) -> Self {
        let tmux = Self { folder: tempfile::tempdir().unwrap() };
        let size = [columns.to_string(), rows.to_string()];
        let args = ["new-session", "-d", "-x", &size[0], "-y", &size[1], line];
        tmux.tell(&args).await;
        tmux
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("tmux")
    }

    /// What tmux answers.
    async fn tell(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-f").arg("/dev/null").arg("-S").arg(self.socket()).args(args);
        command.env_remove("TMUX").env_remove("ZK_AUTH").env_remove("ZK_PROFILE");
        let is_there = Command::new("tmux").arg("-V").output().await;
        assert!(is_there.is_ok(), "tmux is missing: .ci/packages tmux installs it");
        run(&mut command).await.ok()
    }

    /// Presses keys, by tmux' names for them.
    pub(crate) async fn press(&self, keys: &[&str]) {
        let args: Vec<_> = ["send-keys"].into_iter().chain(keys.iter().copied()).collect();
        self.tell(&args).await;
    }

    /// Types a text as it is.
    pub(crate) async fn write(&self, text: &str) {
        self.tell(&["send-keys", "-l", text]).await;
    }

    /// Waits until this is on the screen; returns all of it.
    pub(crate) async fn see(&self, text: &str) -> String {
        must(text, async {
            loop {
                let screen = self.tell(&["capture-pane", "-p"]).await;
                if screen.contains(text) {
                    return screen;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = std::process::Command::new("tmux");
        // A window that has been closed has taken it along.
        let _ = command.arg("-S").arg(self.socket()).arg("kill-server").output();
    }
}
