//! Watches that fire once: each that should have fired has.

use zk_client::{EventType, NodeEvent, Watch, Zxid};

use super::{
    layout,
    session::Seat,
    shared::{Phase, Stop, count},
};

/// A task that arms watches and waits for all of them, again and again. One that was lost it would wait for until the
/// end; then it is judged.
#[derive(Debug)]
pub(super) struct OneShots {
    turn: usize,
}

/// What a watch was armed on.
#[derive(Debug)]
struct Armed {
    path: String,
    kind: Kind,
    /// The transaction that had made it what it was.
    at: Zxid,
    watch: Watch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Exists,
    Children,
}

impl OneShots {
    pub(super) const fn new(turn: usize) -> Self {
        Self { turn }
    }

    pub(super) async fn run(&mut self, seat: &Seat) -> Result<(), Stop> {
        let mut pace = seat.shared.pace();
        while seat.shared.phase() < Phase::Quiet {
            pace.tick().await;
            let mut armed = self.arm(seat).await?;
            let over = |stop| {
                seat.shared.count(count::WATCHES_OVER);
                stop
            };
            while let Some(mut one) = armed.pop() {
                let event = tokio::select! {
                    event = &mut one.watch => event,
                    () = seat.shared.reached(Phase::Quiet) => {
                        armed.push(one);
                        return judge(seat, armed).await;
                    }
                };
                let event = event.map_err(|end| Stop::by(Some(end), "watch", &one.path));
                match event {
                    Ok(event) => one.has_fired(seat, &event).await?,
                    Err(stop) => {
                        seat.shared.add(count::WATCHES_OVER, armed.len() as u64);
                        return Err(over(stop));
                    }
                }
            }
        }
        Ok(())
    }

    /// Arms one watch of each kind on each of two writers' nodes.
    async fn arm(&mut self, seat: &Seat) -> Result<Vec<Armed>, Stop> {
        let zk = &seat.zk;
        let mut armed = Vec::new();
        for _ in 0..2 {
            self.turn += 1;
            let writer = self.turn * 7 % seat.registers.len();
            let path = layout::register(writer);
            let ((_, stat), watch) = zk.get(&path).watch().await?;
            seat.has_seen(writer, stat.mzxid);
            armed.push(Armed { path: path.clone(), kind: Kind::Data, at: stat.mzxid, watch });
            let (stat, watch) = zk.exists(&path).watch().await?;
            let at = stat.ok_or_else(|| Stop::Broken(format!("{path} is gone")))?.mzxid;
            armed.push(Armed { path, kind: Kind::Exists, at, watch });
            let path = layout::directory(writer);
            let ((_, stat), watch) = zk.children(&path).watch().await?;
            armed.push(Armed { path, kind: Kind::Children, at: stat.pzxid, watch });
        }
        seat.shared.add(count::ARMED, armed.len() as u64);
        Ok(armed)
    }
}

impl Armed {
    /// It says what it is for, and a read behind it shows that.
    async fn has_fired(&self, seat: &Seat, event: &NodeEvent) -> Result<(), Stop> {
        seat.shared.count(count::FIRED);
        let kind = match self.kind {
            Kind::Data | Kind::Exists => EventType::NODE_DATA_CHANGED,
            Kind::Children => EventType::NODE_CHILDREN_CHANGED,
        };
        let now = self.newest(seat).await?;
        let is_sound = event.kind == kind
            && event.path == self.path
            && event.zxid.is_none_or(|zxid| zxid > self.at)
            && now > self.at
            && event.zxid.is_none_or(|zxid| zxid <= now);
        if is_sound {
            return Ok(());
        }
        Err(Stop::Broken(format!("{self:?} has fired by {event:?}, and a read shows {now}")))
    }

    /// The transaction that has made it what it is.
    async fn newest(&self, seat: &Seat) -> Result<Zxid, Stop> {
        let (_, stat) = seat.zk.get(&self.path).await?;
        Ok(if self.kind == Kind::Children { stat.pzxid } else { stat.mzxid })
    }
}

/// Now that nothing changes any more: those that should have fired have, and no others.
async fn judge(seat: &Seat, armed: Vec<Armed>) -> Result<(), Stop> {
    seat.zk.sync("/").await?;
    for mut one in armed {
        // A server tells of a change before it shows it.
        let has_changed = one.newest(seat).await? > one.at;
        match one.watch.try_event() {
            Some(Ok(event)) if has_changed => one.has_fired(seat, &event).await?,
            None if !has_changed => seat.shared.count(count::UNTOUCHED),
            Some(Err(_)) => seat.shared.count(count::WATCHES_OVER),
            other => {
                let what = format!("{one:?}, changed since: {has_changed}, told: {other:?}");
                return Err(Stop::Broken(what));
            }
        }
    }
    Ok(())
}
