//! Signals that we are sent.

use std::{future::poll_fn, task::Poll};

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

use crate::exit::Failure;

/// Signals meant for the command as much as for us: passed on to it while it runs, and the end of the wait
/// before that.
pub(crate) const FOR_THE_COMMAND: &[Signal] =
    &[Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// The shell's job control, by which we would stop without the command if it is in a group of its own.
pub(crate) const JOB_CONTROL: &[Signal] = &[Signal::TSTP, Signal::CONT];

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
    use super::*;

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
