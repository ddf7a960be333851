use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::frame::Frame;
use super::rule::{Forward, Match, Reaction, Rewrite, RuleId, Silence};
use super::shared::Shared;

/// A rule in the making: it knows its frames, and next gets its reaction.
///
/// Every method that names a reaction installs the rule and returns its handle.
#[derive(Debug)]
#[must_use = "a rule needs a reaction"]
pub struct On<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) condition: Match,
    pub(super) forward: Forward,
}

impl On<'_> {
    /// Sends the frame on before the rule ends or silences the connection.
    pub fn after_forwarding(mut self) -> Self {
        self.forward = Forward::Frame;
        self
    }

    /// Sends so many bytes of the frame on before the rule ends or silences the connection; the
    /// length prefix makes four of them.
    pub fn after_forwarding_bytes(mut self, bytes: usize) -> Self {
        self.forward = Forward::Bytes(bytes);
        self
    }

    /// [`Reaction::Delay`].
    pub fn delay(self, delay: Duration) -> RuleHandle {
        self.react(Reaction::Delay(delay))
    }

    /// [`Reaction::Drop`].
    pub fn drop_frame(self) -> RuleHandle {
        self.react(Reaction::Drop)
    }

    /// [`Reaction::Hold`], until [`RuleHandle::release`].
    pub fn hold(self) -> RuleHandle {
        self.react(Reaction::Hold)
    }

    /// [`Reaction::Rewrite`]: changes the contents, which are without the length prefix.
    ///
    /// The change runs inside the proxy and must not call it.
    pub fn rewrite(self, change: impl Fn(&mut Vec<u8>) + Send + Sync + 'static) -> RuleHandle {
        self.react(Reaction::Rewrite(Rewrite::new(change)))
    }

    /// [`Reaction::Rewrite`]: sends these bytes instead, as they are, with whatever length prefix they have or
    /// have not.
    pub fn forge(self, bytes: impl Into<Bytes>) -> RuleHandle {
        self.react(Reaction::Rewrite(Rewrite::forged(bytes)))
    }

    /// [`Reaction::Cut`].
    pub fn cut(self) -> RuleHandle {
        let forward = self.forward;
        self.react(Reaction::Cut(forward))
    }

    /// [`Reaction::Reset`].
    pub fn reset(self) -> RuleHandle {
        let forward = self.forward;
        self.react(Reaction::Reset(forward))
    }

    /// [`Reaction::Silence`] both ways.
    pub fn silence(self) -> RuleHandle {
        let forward = self.forward;
        self.react(Reaction::Silence(Silence::BothWays, forward))
    }

    /// [`Reaction::Silence`] the way of the frame only.
    pub fn silence_this_way(self) -> RuleHandle {
        let forward = self.forward;
        self.react(Reaction::Silence(Silence::ThisWay, forward))
    }

    /// Only counts, and lets tests wait for such a frame: the frame is sent on at once.
    pub fn watch(self) -> RuleHandle {
        self.react(Reaction::Delay(Duration::ZERO))
    }

    /// Any reaction, given as a value.
    pub fn react(self, reaction: Reaction) -> RuleHandle {
        let rule = self.shared.state().install(self.condition, reaction);
        RuleHandle { shared: Arc::clone(self.shared), rule }
    }
}

/// A rule that is in force until this is dropped; frames that it holds are then released.
#[derive(Debug)]
#[must_use = "dropping the handle removes the rule"]
pub struct RuleHandle {
    shared: Arc<Shared>,
    rule: RuleId,
}

impl RuleHandle {
    /// How often the rule has fired.
    pub fn times_fired(&self) -> u64 {
        let state = self.shared.state();
        state.rule(self.rule).map_or(0, |rule| rule.fired)
    }

    /// Waits until the rule has fired, and returns the frame that it fired on last.
    ///
    /// Returns at once if it has fired before. Waits for ever if it never does: put a limit on
    /// the test, not on the rule.
    pub async fn fired(&self) -> Frame {
        self.fired_times(1).await
    }

    /// Waits until the rule has fired so often, and returns the frame that it fired on last.
    pub async fn fired_times(&self, times: u64) -> Frame {
        let mut logged = self.shared.frames_logged();
        loop {
            logged.mark_unchanged();
            if let Some(frame) = self.last_if(times) {
                return frame;
            }
            // The sender lives as long as `self.shared`, so this never fails.
            let _ = logged.changed().await;
        }
    }

    fn last_if(&self, times: u64) -> Option<Frame> {
        let state = self.shared.state();
        let rule = state.rule(self.rule).filter(|rule| rule.fired >= times)?;
        rule.last.clone()
    }

    /// Sends on what the rule holds, and ends the rule. Its count remains.
    pub fn release(&self) {
        self.shared.order(|state| state.release(self.rule));
    }
}

impl Drop for RuleHandle {
    fn drop(&mut self) {
        self.shared.order(|state| state.remove(self.rule));
    }
}
