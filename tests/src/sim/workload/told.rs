//! Watches of all kinds on nodes that come and go, many at once and with long names, and for every other
//! client through a root of its own.

use zk_client::{Client, CreateMode, EventType, SessionState, Watch, WriteError, Zxid};

use super::{Over, Worker};

/// Where the nodes are. A root has the name of what is below it, so that removing it twice is
/// found out.
const ROOT: &str = "/told";

/// How many nodes there are.
const NODES: usize = 24;

/// What a watch is armed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A node that is missing.
    Missing,
    /// A node's data.
    Data,
    /// A node's children.
    Children,
}

/// A watch, and what was known when it was armed.
struct Armed {
    node: usize,
    kind: Kind,
    known: Zxid,
    watch: Watch,
}

struct Told {
    worker: Worker,
    client: Client,
    /// What stands in front of the nodes' names for this client.
    prefix: &'static str,
    armed: Vec<Armed>,
}

pub(super) async fn work(worker: Worker) {
    let rooted = worker.seat.number % 2 == 0;
    let client = worker.client.clone();
    // The nodes are below the root's namesake.
    let (client, prefix) = match rooted {
        true => (client.chrooted(ROOT).expect("it is a path"), ROOT),
        false => (client, "/told/told"),
    };
    let mut told = Told { worker, client, prefix, armed: Vec::new() };
    loop {
        let pause = told.worker.rng.scaled(5, 5_000);
        if !told.worker.think(pause).await || told.step().await.is_err() {
            break;
        }
    }
    told.finish().await;
}

impl Told {
    fn path(&self, node: usize) -> String {
        format!("{}/n{node}-{}", self.prefix, "x".repeat(80))
    }

    async fn step(&mut self) -> Result<(), Over> {
        let node = self.worker.rng.index(NODES);
        match self.worker.rng.below(12) {
            0 => self.come(node).await,
            1 => self.go(node).await,
            2 => self.write(node).await,
            3 => self.child(node).await,
            4 => self.together(node).await,
            5 | 6 => self.look(node).await,
            7 => self.arm_children(node).await,
            8 => self.arm_data(node).await,
            _ => self.arm_exists(node).await,
        }
    }

    async fn come(&self, node: usize) -> Result<(), Over> {
        let path = self.path(node);
        let created = self.client.create(&path, b"").await;
        if let Err(WriteError::Rejected(zk_client::Rejection::NoNode)) = created {
            for above in [ROOT, "/told/told"] {
                over(self.worker.client.create(above, b"").await.err())?;
            }
        }
        over(created.err())
    }

    async fn go(&self, node: usize) -> Result<(), Over> {
        let path = self.path(node);
        over(self.client.delete(&format!("{path}/child")).await.err())?;
        over(self.client.delete(&path).await.err())
    }

    async fn write(&self, node: usize) -> Result<(), Over> {
        over(self.client.set(&self.path(node), b"written").await.err())
    }

    async fn child(&self, node: usize) -> Result<(), Over> {
        let path = format!("{}/child", self.path(node));
        let created = self.client.create(&path, b"").mode(CreateMode::Persistent).await;
        if created.is_err() {
            over(self.client.delete(&path).await.err())?;
        }
        over(created.err())
    }

    /// Several changes in one transaction.
    async fn together(&self, node: usize) -> Result<(), Over> {
        let paths: Vec<String> = (node..node + 4).map(|node| self.path(node % NODES)).collect();
        let multi = paths.iter().fold(self.client.multi(), |multi, path| multi.set(path, b"all"));
        over(multi.await.err())
    }

    fn arm(&mut self, node: usize, kind: Kind, known: Zxid, watch: Watch) {
        self.worker.seat.count("watches told of");
        self.armed.push(Armed { node, kind, known, watch });
    }

    async fn arm_exists(&mut self, node: usize) -> Result<(), Over> {
        let outcome = self.client.exists(&self.path(node)).watch().await;
        let (stat, watch) = outcome.map_err(|_| Over)?;
        self.saw(node, stat.as_ref());
        match stat {
            Some(stat) => self.arm(node, Kind::Data, stat.mzxid, watch),
            None => self.arm(node, Kind::Missing, Zxid(0), watch),
        }
        Ok(())
    }

    async fn arm_data(&mut self, node: usize) -> Result<(), Over> {
        match self.client.get(&self.path(node)).watch().await {
            Ok(((_, stat), watch)) => {
                self.saw(node, Some(&stat));
                self.arm(node, Kind::Data, stat.mzxid, watch);
                Ok(())
            }
            Err(error) => over(error.session_end()),
        }
    }

    async fn arm_children(&mut self, node: usize) -> Result<(), Over> {
        match self.client.children(&self.path(node)).watch().await {
            Ok(((_, stat), watch)) => {
                self.saw(node, Some(&stat));
                self.arm(node, Kind::Children, stat.pzxid, watch);
                Ok(())
            }
            Err(error) => over(error.session_end()),
        }
    }

    async fn look(&mut self, node: usize) -> Result<(), Over> {
        match self.client.exists(&self.path(node)).await {
            Ok(stat) => {
                self.saw(node, stat.as_ref());
                Ok(())
            }
            Err(error) => over(error.session_end()),
        }
    }

    /// The node was seen in this state: whatever is armed on an older one must have fired.
    fn saw(&mut self, node: usize, stat: Option<&zk_client::Stat>) {
        for mut armed in std::mem::take(&mut self.armed) {
            if armed.node != node {
                self.armed.push(armed);
                continue;
            }
            let changed = match (armed.kind, stat) {
                (Kind::Missing, stat) => stat.is_some(),
                (_, None) => true,
                (Kind::Data, Some(stat)) => stat.mzxid > armed.known,
                (Kind::Children, Some(stat)) => stat.pzxid > armed.known,
            };
            match armed.watch.try_event() {
                Some(Ok(event)) => self.judge(&armed, &event),
                Some(Err(_)) => {}
                None if changed => {
                    let text = format!("{:?} of node {node}: no event, now {stat:?}", armed.kind);
                    self.shown_wrong("W1", &text);
                }
                None => self.armed.push(armed),
            }
        }
    }

    /// Whether an event can be of this watch.
    fn judge(&self, armed: &Armed, event: &zk_client::NodeEvent) {
        self.worker.seat.count("events judged");
        let fits = match armed.kind {
            Kind::Missing => event.kind == EventType::NODE_CREATED,
            Kind::Data => event.kind != EventType::NODE_CHILDREN_CHANGED,
            Kind::Children => {
                matches!(event.kind, EventType::NODE_CHILDREN_CHANGED | EventType::NODE_DELETED)
            }
        };
        if !fits || event.path != self.path(armed.node) {
            self.shown_wrong("W3", &format!("{:?} of node {}: {event:?}", armed.kind, armed.node));
        }
    }

    fn shown_wrong(&self, rule: &'static str, text: &str) {
        let seat = &self.worker.seat;
        seat.judge.at(seat.now()).shown_wrong(
            seat.number,
            rule,
            format!("c{} {text}", seat.number),
        );
    }

    fn violated(&self, rule: &'static str, text: &str) {
        let seat = &self.worker.seat;
        seat.judge.at(seat.now()).violated(rule, format!("c{} {text}", seat.number));
    }

    /// Sees to what is still armed.
    async fn finish(mut self) {
        if self.client.resolve_in_doubt().await.is_ok() {
            for node in 0..NODES {
                if self.look(node).await.is_err() {
                    break;
                }
            }
        }
        if !matches!(self.client.session().state(), SessionState::Ended(_)) {
            return;
        }
        for mut armed in std::mem::take(&mut self.armed) {
            match armed.watch.try_event() {
                Some(Ok(event)) => self.judge(&armed, &event),
                Some(Err(_)) => {}
                None => self.violated("W2", "waits in a session that is over"),
            }
        }
    }
}

/// Whether there is nothing more to be done.
fn over(error: Option<impl IsOver>) -> Result<(), Over> {
    if error.is_some_and(|error| error.is_over()) { Err(Over) } else { Ok(()) }
}

trait IsOver {
    fn is_over(&self) -> bool;
}

impl IsOver for WriteError {
    fn is_over(&self) -> bool {
        self.session_end().is_some()
    }
}

impl IsOver for zk_client::SessionEnd {
    fn is_over(&self) -> bool {
        true
    }
}
