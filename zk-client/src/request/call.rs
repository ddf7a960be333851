//! The way of a request: from its builder to the future that awaits its reply.

use zk_proto::{
    frame::RequestFrame,
    session::{OnLoss, WatchIntent},
};

use crate::{
    carry::level::Level,
    error::CallError,
    request::{
        answer::{ReadAnswer, ReplyContext},
        asked::Asked,
        call_options::Admission,
        pending::{Pending, Start},
        target::Target,
        watch_stream::Attached,
    },
    watch::Listener,
};

/// A request and how to interpret its reply.
pub(crate) struct Call<T> {
    pub(crate) frame: RequestFrame,
    pub(crate) on_loss: OnLoss,
    pub(crate) watch: Option<(Box<WatchIntent<Listener>>, Attached)>,
    /// The alternative if a server does not know this request: see [`Unread::Again`](super::answer::Unread::Again).
    pub(crate) instead: Option<RequestFrame>,
    pub(crate) read: ReadAnswer<T>,
}

impl Target<'_> {
    /// Submits a request. Never blocks, never fails: errors are returned by the [`Pending`].
    pub(crate) fn call<T, E: CallError>(
        self,
        call: Call<T>,
        admission: Admission,
    ) -> Pending<T, E> {
        self.call_asking(call, Asked::default(), admission)
    }

    /// As `call`, for a request whose reply is checked against it.
    #[inline(always)]
    pub(crate) fn call_asking<T, E: CallError>(
        self,
        call: Call<T>,
        asked: Asked,
        admission: Admission,
    ) -> Pending<T, E> {
        let Call { frame, on_loss, watch, instead, read } = call;
        let (intent, watch) = match watch {
            Some((intent, watch)) => (Some(intent), watch),
            None => (None, Attached::Nothing),
        };
        let context = ReplyContext {
            op: frame.op(),
            chroot: self.handle.chroot.clone(),
            level: Level::is_told_by(frame.op()).then(|| self.handle.shared.level.clone()),
            watch,
            has_alternative: instead.is_some(),
            asked,
        };
        Pending::start(self, Start { frame, on_loss, intent, instead }, context, read, admission)
    }
}
