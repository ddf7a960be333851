//! A watch that goes on: no version of a register is left out between two gaps that it tells of.

use std::collections::BTreeSet;

use zk_client::{EventType, NodeEvent, WatchEnd, WatchItem, WatchStream, Zxid};

use super::{
    layout,
    session::Seat,
    shared::{Phase, Stop, count},
};

/// A task that follows everything by a recursive watch.
#[derive(Debug, Default)]
pub(super) struct Follower {
    spans: Vec<Span>,
}

/// What was heard between two gaps.
#[derive(Debug)]
pub(super) struct Span {
    /// The transaction by which each register had been written, as it was read behind the gap.
    base: Vec<Zxid>,
    /// By which transactions it was said to be written.
    events: Vec<Vec<Zxid>>,
    /// What there is, as far as it was heard of.
    paths: BTreeSet<String>,
    /// Whether nothing has changed since.
    is_last: bool,
}

impl Follower {
    pub(super) fn into_spans(self) -> Vec<Span> {
        self.spans
    }

    pub(super) async fn run(&mut self, seat: &Seat) -> Result<(), Stop> {
        let mut stream = seat.zk.watch(layout::ROOT).recursive().await?;
        self.begin(seat).await?;
        loop {
            let item = tokio::select! {
                biased;
                item = stream.next() => item,
                () = seat.shared.reached(Phase::Quiet) => break,
            };
            self.hear(seat, &stream, item).await?;
        }
        // A server tells of all that was before it answers this.
        seat.zk.sync("/").await?;
        while let Some(item) = stream.try_next() {
            self.hear(seat, &stream, Some(item)).await?;
        }
        if let Some(span) = self.spans.last_mut() {
            span.is_last = true;
        }
        Ok(())
    }

    async fn hear(
        &mut self,
        seat: &Seat,
        stream: &WatchStream,
        item: Option<WatchItem>,
    ) -> Result<(), Stop> {
        match item {
            // What a watch for one event had missed is reported by this; the gap was reported before.
            Some(WatchItem::Event(event)) if event.zxid.is_none() => {
                seat.shared.count(count::MISSED);
                Ok(())
            }
            Some(WatchItem::Event(event)) => {
                seat.shared.count(count::EVENTS);
                self.spans.last_mut().map_or(Ok(()), |span| span.add(event))
            }
            Some(WatchItem::Resync(_)) => {
                seat.shared.count(count::GAPS);
                self.begin(seat).await
            }
            None => {
                let end = match stream.end() {
                    Some(WatchEnd::Session(end)) => Some(end),
                    _ => None,
                };
                Err(Stop::by(end, "stream", &stream.end()))
            }
            other => Err(Stop::Broken(format!("{other:?}"))),
        }
    }

    /// Reads everything anew.
    async fn begin(&mut self, seat: &Seat) -> Result<(), Stop> {
        let writers = seat.registers.len();
        let pending: Vec<_> =
            (0..writers).map(|writer| seat.zk.get(&layout::register(writer)).submit()).collect();
        let mut base = Vec::new();
        for (writer, read) in pending.into_iter().enumerate() {
            let (_, stat) = read.await?;
            seat.has_seen(writer, stat.mzxid);
            base.push(stat.mzxid);
        }
        let paths = layout::listing(&seat.zk).await?.into_iter().collect();
        self.spans.push(Span { base, events: vec![Vec::new(); writers], paths, is_last: false });
        Ok(())
    }
}

impl Span {
    fn add(&mut self, event: NodeEvent) -> Result<(), Stop> {
        match event.kind {
            EventType::NODE_CREATED => drop(self.paths.insert(event.path)),
            EventType::NODE_DELETED => drop(self.paths.remove(&event.path)),
            EventType::NODE_DATA_CHANGED => {
                if let Some((writer, zxid)) = layout::writer_of(&event.path).zip(event.zxid) {
                    self.events[writer].push(zxid);
                }
            }
            _ => return Err(Stop::Broken(format!("{event:?} of a recursive watch"))),
        }
        Ok(())
    }

    /// What should have been heard: of each register, by which transactions it was written, and at the end what there is.
    pub(super) fn judge(&self, histories: &[&[Zxid]], there: &BTreeSet<String>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (writer, history) in histories.iter().enumerate() {
            let heard = &self.events[writer];
            let Some(read) = history.iter().position(|zxid| *zxid == self.base[writer]) else {
                wrong.push(format!("register {writer} was read as {}", self.base[writer]));
                continue;
            };
            // Those from before the read may have been delivered too.
            let first = heard.first().and_then(|first| history.iter().position(|it| it == first));
            let from = first.unwrap_or(read + 1);
            let expected = &history[from..];
            let is_sound = from <= read + 1
                && expected.starts_with(heard)
                && (!self.is_last || heard.len() == expected.len());
            if !is_sound {
                let heard_first = heard.iter().zip(expected).position(|(one, other)| one != other);
                wrong.push(format!(
                    "a stream heard {} of {} writes of register {writer}, wrong from {heard_first:?} on",
                    heard.len(),
                    expected.len(),
                ));
            }
        }
        if self.is_last && self.paths != *there {
            let differ: Vec<_> = self.paths.symmetric_difference(there).collect();
            wrong.push(format!("a stream has these nodes too many or too few: {differ:?}"));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(events: &[i64], is_last: bool) -> usize {
        let events = vec![events.iter().map(|zxid| Zxid(*zxid)).collect()];
        let paths = BTreeSet::new();
        let span = Span { base: vec![Zxid(4)], events, paths: paths.clone(), is_last };
        let history = [1, 3, 4, 6, 9].map(Zxid);
        span.judge(&[&history], &paths).len()
    }

    #[test]
    fn a_version_that_was_left_out_is_missed() {
        for heard in [&[6, 9][..], &[4, 6, 9], &[3, 4, 6, 9]] {
            assert_eq!((wrong(heard, false), wrong(heard, true)), (0, 0), "{heard:?}");
        }
        assert_eq!((wrong(&[], false), wrong(&[], true)), (0, 1));
        assert_eq!((wrong(&[6], false), wrong(&[6], true)), (0, 1));
        for heard in [&[9][..], &[3, 6, 9], &[6, 6, 9], &[4, 9], &[6, 7, 9]] {
            assert_eq!((wrong(heard, false), wrong(heard, true)), (1, 1), "{heard:?}");
        }
    }
}
