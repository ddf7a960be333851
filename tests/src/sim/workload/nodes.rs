//! Plain nodes: reads, writes, versions, watches, transactions, and creates that must happen once.

use std::time::Duration;

use zk_client::{CallOptions, CreateMode, Created, OpResult, SessionId, SessionState, Stat};
use zk_testkit::sim::servers;

use super::{Over, Worker, unless_over, watcher::Watcher};
use crate::sim::{
    check::{Kind, UNIQUE, Write},
    pass,
};

/// Nodes that all clients read and write.
const REGISTERS: usize = 4;

/// Milliseconds within which requests leave that nothing holds back: it may be tried first whether a server is well.
const HELD_BACK_MAX: u64 = 1_000;

/// The length of what is long, in bytes.
const LONG: usize = 20_000;

/// What their paths begin with. What is written there is written once.
pub(crate) const REGISTER: &str = "/kv/r";

fn register(number: usize) -> String {
    format!("{REGISTER}{number}")
}

struct Nodes {
    watcher: Watcher,
    /// Versions seen last.
    versions: [i32; REGISTERS],
}

pub(super) async fn work(worker: Worker) {
    let watcher = Watcher::new(worker, "");
    let mut nodes = Nodes { watcher, versions: [0; REGISTERS] };
    if nodes.prepare().await.is_ok() {
        loop {
            let pause = nodes.watcher.rng.scaled(5, 20_000);
            if !nodes.watcher.think(pause).await || nodes.step().await.is_err() {
                break;
            }
        }
    }
    if nodes.settle().await.is_ok() {
        for number in 0..REGISTERS {
            if nodes.read(number).await.is_err() {
                break;
            }
        }
    }
    nodes.watcher.finish().await;
}

impl Nodes {
    /// The session at this moment: read-only servers give one of their own, and what they show is required of no other.
    fn session(&self) -> SessionId {
        self.watcher.client.session().id()
    }

    async fn prepare(&self) -> Result<(), Over> {
        let registers = (0..REGISTERS).map(register);
        for path in ["/kv".to_owned(), "/eph".to_owned()].into_iter().chain(registers) {
            unless_over(self.watcher.client.create(&path, b"").await)?;
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<(), Over> {
        let number = self.watcher.rng.index(REGISTERS);
        let reads_only = self.watcher.ctx.options.only_reads(self.watcher.ctx.number);
        let settings = self.watcher.ctx.options.draws_settings;
        match self.watcher.rng.below(if settings { 14 } else { 12 }) {
            4..=9 if reads_only => self.read(number).await,
            12 => self.move_servers(),
            13 => self.bounded(number).await,
            0 => self.read(number).await,
            1 | 2 => self.read_watched(number).await,
            3 => self.children_watched().await,
            4 => self.write(number, true).await,
            5 => self.write(number, false).await,
            6 => self.transaction(number).await,
            7 | 8 => self.create_once().await,
            9 => self.create_protected().await,
            10 => self.pipeline().await,
            _ => self.settle().await,
        }
    }

    /// A node was read, or written.
    fn saw(&mut self, number: usize, data: &[u8], stat: &Stat) {
        let path = register(number);
        let ctx = &self.watcher.ctx;
        ctx.check().found(ctx.number, self.session(), &path, data, stat);
        self.versions[number] = stat.version;
        self.watcher.saw(&path, Some(stat));
    }

    async fn read(&mut self, number: usize) -> Result<(), Over> {
        let read = self.watcher.client.get(&register(number)).await;
        if let Some((data, stat)) = unless_over(read)? {
            self.saw(number, &data, &stat);
        }
        Ok(())
    }

    async fn read_watched(&mut self, number: usize) -> Result<(), Over> {
        let path = register(number);
        let read = self.watcher.client.get(&path).watch().await;
        if let Some(((data, stat), watch)) = unless_over(read)? {
            self.saw(number, &data, &stat);
            self.arm(path, Kind::Data, stat.mzxid, watch);
        }
        Ok(())
    }

    async fn children_watched(&mut self) -> Result<(), Over> {
        let listed = self.watcher.client.children("/kv").watch().await;
        if let Some(((_, stat), watch)) = unless_over(listed)? {
            self.watcher.saw("/kv", Some(&stat));
            self.arm("/kv".to_owned(), Kind::Children, stat.pzxid, watch);
        }
        Ok(())
    }

    fn arm(&mut self, path: String, kind: Kind, known: zk_client::Zxid, watch: zk_client::Watch) {
        // Some are never looked at again.
        if !self.watcher.rng.one_in(8) {
            self.watcher.arm(path, kind, known, watch);
        }
    }

    fn data(&mut self) -> Vec<u8> {
        let number = self.watcher.rng.next();
        format!("{}-{number:016x}", self.watcher.ctx.number).into_bytes()
    }

    /// Some are long enough to be written in several pieces.
    async fn write(&mut self, number: usize, any_version: bool) -> Result<(), Over> {
        let mut data = self.data();
        if self.watcher.rng.one_in(40) {
            data.resize(LONG, b'.');
        }
        let path = register(number);
        let set = self.watcher.client.set(&path, &data);
        let set = if any_version { set } else { set.version(self.versions[number]) };
        if let Some(stat) = unless_over(set.await)? {
            self.saw(number, &data, &stat);
        }
        Ok(())
    }

    async fn transaction(&mut self, number: usize) -> Result<(), Over> {
        let data = self.data();
        let next = (number + 1) % REGISTERS;
        let (one, other) = (register(number), register(next));
        let multi = self.watcher.client.multi().set(&one, &data).set(&other, &data).check("/kv");
        if let Some(Ok(results)) = unless_over(multi.await)? {
            for (number, result) in [number, next].into_iter().zip(results) {
                if let OpResult::Set(stat) = result {
                    self.saw(number, &data, &stat);
                }
            }
        }
        Ok(())
    }

    async fn create_once(&mut self) -> Result<(), Over> {
        let data = self.data();
        let path = format!("{UNIQUE}{}", String::from_utf8_lossy(&data));
        let ctx = &self.watcher.ctx;
        let since = ctx.now();
        let created = self.watcher.client.create(&path, &data).await;
        let write = Write::of(&created, |created| created.stat.czxid);
        ctx.check().created(ctx.number, self.session(), &path, write, since);
        unless_over(created).map(drop)
    }

    async fn create_protected(&mut self) -> Result<(), Over> {
        let data = self.data();
        let create = self.watcher.client.create("/eph/n-", &data);
        let create = create.mode(CreateMode::EphemeralSequential);
        match unless_over(create.protected().await)? {
            Some(Created { owned: Some(node), .. }) if self.watcher.rng.one_in(2) => {
                unless_over(node.delete().await).map(drop)
            }
            Some(node) => {
                let time = self.watcher.rng.scaled(1, 10_000);
                let _ = self.watcher.think(time).await;
                drop(node);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Goes to other servers, or to fewer.
    fn move_servers(&mut self) -> Result<(), Over> {
        let Worker { ctx, client, rng, .. } = &mut *self.watcher;
        let servers = servers(ctx.options.members);
        let mut servers: Vec<(usize, &str)> = servers.split(',').enumerate().collect();
        rng.shuffle(&mut servers);
        servers.truncate(1 + rng.index(servers.len()));
        ctx.count("servers changed");
        let (members, names): (_, Vec<&str>) = servers.into_iter().unzip();
        ctx.check().goes_to(ctx.number, members);
        client.update_servers(&names.join(",")).expect("they are servers");
        Ok(())
    }

    /// Reads and writes that do not wait for ever, or for no connection.
    async fn bounded(&mut self, number: usize) -> Result<(), Over> {
        let (path, data) = (register(number), self.data());
        let Worker { ctx, client, rng, .. } = &mut *self.watcher;
        // The session's own limit holds for requests that have none.
        let of_session = ctx.check().limit_of(ctx.number).filter(|_| rng.one_in(2));
        let allowed = of_session.unwrap_or_else(|| rng.scaled(1, 5_000));
        let options = CallOptions::new().timeout(Duration::from_millis(allowed));
        let client = match of_session {
            Some(_) => client.clone(),
            None => client.with(if rng.one_in(3) { options.fail_fast() } else { options }),
        };
        let writes = rng.one_in(2) && !ctx.options.only_reads(ctx.number);
        let (began, stalled) = (ctx.now(), ctx.stalled());
        let seen = match writes {
            true => unless_over(client.set(&path, &data).await)?.map(|stat| (data, stat)),
            false => unless_over(client.get(&path).await)?.map(|(data, stat)| (data.into(), stat)),
        };
        let (took, stalled) = (ctx.now() - began, ctx.stalled() - stalled);
        ctx.check().took("a call with a timeout", ctx.number, took, stalled, allowed);
        match seen {
            Some((data, stat)) => self.saw(number, &data, &stat),
            None => self.watcher.ctx.count("calls that timed out or failed"),
        }
        Ok(())
    }

    /// Answers come in the order of asking, whatever is in between. What is held back goes when the last one lets go, also if
    /// several hold it, one within the other.
    async fn pipeline(&mut self) -> Result<(), Over> {
        let cork = self.watcher.client.cork();
        let within = cork.cork();
        let paths: Vec<String> = (0..REGISTERS).map(register).collect();
        let (before, connection) = (self.asked(), self.connection());
        let reads: Vec<_> = paths
            .iter()
            .enumerate()
            .map(|(number, path)| match number % 2 {
                0 => cork.get(path).submit(),
                _ => within.get(path).submit(),
            })
            .collect();
        match self.watcher.rng.one_in(2) {
            true => (drop(within), drop(cork)),
            false => (drop(cork), drop(within)),
        };
        // Elsewhere they may wait for room.
        if !self.watcher.ctx.options.draws_settings {
            pass(HELD_BACK_MAX).await;
            let asked = self.asked() - before;
            // What has cost two connections in a row is looked at first, and what is behind it waits.
            let ctx = &self.watcher.ctx;
            let is_sound = ctx.options.calm || ctx.now() > ctx.options.well_from();
            if is_sound && asked < REGISTERS as u64 && self.connection() == connection {
                let text = format!("asks for {asked} of {REGISTERS} in {HELD_BACK_MAX} ms");
                self.watcher.shown_wrong("L4", &text);
            }
        }
        for (number, read) in reads.into_iter().enumerate() {
            if let Some((data, stat)) = unless_over(read.await)? {
                self.saw(number, &data, &stat);
            }
        }
        Ok(())
    }

    fn asked(&self) -> u64 {
        let ctx = &self.watcher.ctx;
        ctx.check().asked(ctx.number)
    }

    /// What lasts as long as a connection does.
    fn connection(&self) -> (u64, Option<SessionState>, u64) {
        let session = self.watcher.client.session();
        let state =
            Some(session.state()).filter(|state| matches!(state, SessionState::Connected { .. }));
        let unclear = state.map_or_else(|| self.watcher.ctx.now(), |_| 0);
        (session.epoch(), state, self.watcher.ctx.stalled() + unclear)
    }

    async fn settle(&self) -> Result<(), Over> {
        unless_over(self.watcher.client.resolve_in_doubt().await).map(drop)
    }
}
