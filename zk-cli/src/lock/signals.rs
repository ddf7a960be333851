//! Signals that we are sent.

use std::{future::poll_fn, task::Poll, time::Duration};

use rustix::process::{Signal, getpid, kill_process};
use tokio::{
    signal::unix::{self, SignalKind},
    task::yield_now,
    time::timeout,
};

use crate::exit::Failure;

/// Signals meant for the command as much as for us: passed on to it while it runs, and the end of the wait
/// before that.
pub(crate) const FOR_THE_COMMAND: &[Signal] =
    &[Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// The shell's job control, by which we would stop without the command if it is in a group of its own.
pub(crate) const JOB_CONTROL: &[Signal] = &[Signal::TSTP, Signal::CONT];

/// Ignored by default, and not used by us otherwise.
const MARK: Signal = Signal::URG;

/// How long to wait for a mark: a parent may have blocked even that.
const MARK_MAX: Duration = Duration::from_secs(1);

/// Catches signals from the call on, for the rest of the process's life.
#[derive(Debug, Default)]
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Catches these too, but for those that are being ignored: a parent that has started us with `nohup`, or as
    /// a background job of a script, does not want us to hear them, nor the command.
    pub(crate) fn catch(&mut self, signals: &[Signal]) -> Result<(), Failure> {
        let ignored = ignored();
        for &signal in signals.iter().filter(|signal| !contains(ignored, **signal)) {
            let caught = unix::signal(SignalKind::from_raw(signal.as_raw()));
            self.0.push((signal, caught.map_err(Failure::local("signals"))?));
        }
        Ok(())
    }

    /// The next one. Several of a kind in quick succession may count as one, as usual with signals.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            for (signal, stream) in &mut self.0 {
                if stream.poll_recv(cx).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Forgets those that have come.
    pub(crate) async fn forget(&mut self) {
        settled().await;
        poll_fn(|cx| {
            for (_, stream) in &mut self.0 {
                while stream.poll_recv(cx).is_ready() {}
            }
            Poll::Ready(())
        })
        .await;
    }
}

/// Waits until all streams have been told of signals that were handled before. A signal that ends a command also ends our
/// wait for it, and its end may be told first: the two come by different ways.
pub(crate) async fn settled() {
    let Ok(mut marks) = unix::signal(SignalKind::from_raw(MARK.as_raw())) else { return };
    let marked = async {
        // Twice: the first may be told by a turn that had been past a lower signal before that came.
        for _ in 0..2 {
            let _ = kill_process(getpid(), MARK);
            marks.recv().await;
        }
    };
    let _ = timeout(MARK_MAX, marked).await;
    // The shell polls its signals before this: let it do so once more.
    yield_now().await;
}

/// The set of signals that this process ignores, as far as the system tells: Linux does.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status).unwrap_or_default()
}

fn ignored_in(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

/// Signal 1 is the lowest bit.
fn contains(set: u64, signal: Signal) -> bool {
    u32::try_from(signal.as_raw() - 1).is_ok_and(|bit| set.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
            mpsc,
        },
    };

    use tokio::sync::oneshot;

    use super::*;

    /// With nothing that could hear them for a moment, as on a busy machine.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn signals_are_heard_before_marks() {
        let mut signals = Signals::default();
        signals.catch(&[Signal::USR1]).unwrap();
        // Handlers run in the order of their registration.
        let handled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(Signal::USR1.as_raw(), handled.clone()).unwrap();
        for turn in 0..20 {
            let ((busy, is_busy), (release, released)) = (oneshot::channel(), mpsc::channel());
            tokio::spawn(async move {
                let _ = busy.send(());
                let _ = released.recv();
            });
            is_busy.await.unwrap();
            kill_process(getpid(), Signal::USR1).unwrap();
            // Another thread may handle it.
            while !handled.swap(false, Ordering::SeqCst) {
                std::thread::yield_now();
            }
            tokio::join!(settled(), async { release.send(()).unwrap() });
            let mut heard = pin!(signals.next());
            let heard = poll_fn(|cx| Poll::Ready(heard.as_mut().poll(cx).is_ready())).await;
            assert!(heard, "{turn}");
        }
    }

    #[test]
    fn ignored_signals_are_parsed_bit_by_bit() {
        let set = ignored_in("Name:\tzk\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001003\n");
        let set = set.unwrap();
        assert!(contains(set, Signal::HUP) && contains(set, Signal::INT));
        assert!(contains(set, Signal::PIPE));
        assert!(!contains(set, Signal::QUIT) && !contains(set, Signal::TERM));
        assert_eq!(ignored_in("Name:\tzk\n"), None);
    }
}
