//! Plain nodes: reads, writes, versions, watches, transactions, and creates that must happen once.

use zk_client::{
    CreateMode, Created, ReadError, SessionId, SessionState, Stat, Watch, WriteError, bytes::Bytes,
};

use super::{Over, Worker};
use crate::sim::check::{Armed, UNIQUE, Write};

/// Nodes that all clients read and write.
const REGISTERS: usize = 4;

fn register(number: usize) -> String {
    format!("/kv/r{number}")
}

/// The worker, and what it waits to hear.
struct Nodes {
    worker: Worker,
    armed: Vec<Armed>,
    session: SessionId,
    /// Versions seen last.
    versions: [i32; REGISTERS],
}

pub(super) async fn work(worker: Worker) {
    let session = worker.client.session().id();
    let mut nodes = Nodes { worker, armed: Vec::new(), session, versions: [0; REGISTERS] };
    if nodes.prepare().await.is_ok() {
        loop {
            let pause = nodes.worker.rng.scaled(5, 20_000);
            if !nodes.worker.think(pause).await || nodes.step().await.is_err() {
                break;
            }
        }
    }
    nodes.finish().await;
}

impl Nodes {
    async fn prepare(&self) -> Result<(), Over> {
        for path in
            ["/kv".to_owned(), "/eph".to_owned()].into_iter().chain((0..REGISTERS).map(register))
        {
            over(self.worker.client.create(&path, b"").await.err())?;
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<(), Over> {
        let number = self.worker.rng.index(REGISTERS);
        match self.worker.rng.below(12) {
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

    fn saw(&mut self, number: usize, data: &Bytes, stat: &Stat) {
        let seat = &self.worker.seat;
        let path = register(number);
        seat.judge.at(seat.now()).read(seat.number, self.session, &path, data, stat);
        self.versions[number] = stat.version;
        self.look(&path, stat);
    }

    /// After a read: what is armed on this path must have fired if the read shows something new.
    fn look(&mut self, path: &str, stat: &Stat) {
        let seat = &self.worker.seat;
        let mut bench = seat.judge.at(seat.now());
        for armed in std::mem::take(&mut self.armed) {
            if armed.path == path {
                self.armed.extend(bench.watched(seat.number, armed, stat));
            } else {
                self.armed.push(armed);
            }
        }
    }

    async fn read(&mut self, number: usize) -> Result<(), Over> {
        match self.worker.client.get(&register(number)).await {
            Ok((data, stat)) => {
                self.saw(number, &data, &stat);
                Ok(())
            }
            Err(error) => over_read(&error),
        }
    }

    async fn read_watched(&mut self, number: usize) -> Result<(), Over> {
        match self.worker.client.get(&register(number)).watch().await {
            Ok(((data, stat), watch)) => {
                self.saw(number, &data, &stat);
                self.arm(register(number), stat.mzxid, watch, false);
                Ok(())
            }
            Err(error) => over_read(&error),
        }
    }

    async fn children_watched(&mut self) -> Result<(), Over> {
        match self.worker.client.children("/kv").watch().await {
            Ok(((_, stat), watch)) => {
                self.look("/kv", &stat);
                self.arm("/kv".to_owned(), stat.pzxid, watch, true);
                Ok(())
            }
            Err(error) => over_read(&error),
        }
    }

    fn arm(&mut self, path: String, known: zk_client::Zxid, watch: Watch, children: bool) {
        // Some are never looked at again.
        if !self.worker.rng.one_in(8) {
            let state = self.worker.client.session().state();
            // Its server may be gone by now, and have been one of a minority.
            let read_only = state != SessionState::Connected { read_only: false };
            self.armed.push(Armed { path, known, watch, children, read_only });
        }
    }

    fn data(&mut self) -> Vec<u8> {
        format!("{}-{:016x}", self.worker.seat.number, self.worker.rng.next()).into_bytes()
    }

    async fn write(&mut self, number: usize, any_version: bool) -> Result<(), Over> {
        let data = self.data();
        let path = register(number);
        let set = self.worker.client.set(&path, &data);
        let set = if any_version { set } else { set.version(self.versions[number]) };
        match set.await {
            Ok(stat) => {
                let seat = &self.worker.seat;
                seat.judge.at(seat.now()).wrote(seat.number, self.session, &path, &data, &stat);
                self.versions[number] = stat.version;
                self.look(&path, &stat);
                Ok(())
            }
            Err(error) => over(Some(error)),
        }
    }

    async fn transaction(&mut self, number: usize) -> Result<(), Over> {
        let data = self.data();
        let (one, other) = (register(number), register((number + 1) % REGISTERS));
        let multi = self.worker.client.multi().set(&one, &data).set(&other, &data).check("/kv");
        match multi.await {
            Ok(Ok(results)) => {
                for (path, result) in [&one, &other].into_iter().zip(results) {
                    if let zk_client::OpResult::Set(stat) = result {
                        let seat = &self.worker.seat;
                        let mut bench = seat.judge.at(seat.now());
                        bench.wrote(seat.number, self.session, path, &data, &stat);
                        drop(bench);
                        self.look(path, &stat);
                    }
                }
                Ok(())
            }
            Ok(Err(_)) => Ok(()),
            Err(error) => over(Some(error)),
        }
    }

    async fn create_once(&mut self) -> Result<(), Over> {
        let data = self.data();
        let path = format!("{UNIQUE}{}", String::from_utf8_lossy(&data));
        let created = self.worker.client.create(&path, &data).await;
        let seat = &self.worker.seat;
        let write = Write::of(&created, |created| created.stat.czxid);
        seat.judge.at(seat.now()).created(seat.number, self.session, &path, write);
        over(created.err())
    }

    async fn create_protected(&mut self) -> Result<(), Over> {
        let data = self.data();
        let create =
            self.worker.client.create("/eph/n-", &data).mode(CreateMode::EphemeralSequential);
        match create.protected().await {
            Ok(Created { owned: Some(node), .. }) if self.worker.rng.one_in(2) => {
                over(node.delete().await.err())
            }
            Ok(node) => {
                let time = self.worker.rng.scaled(1, 10_000);
                let _ = self.worker.think(time).await;
                drop(node);
                Ok(())
            }
            Err(error) => over(Some(error)),
        }
    }

    /// Answers come in the order of asking, whatever is in between.
    async fn pipeline(&mut self) -> Result<(), Over> {
        let cork = self.worker.client.cork();
        let paths: Vec<String> = (0..REGISTERS).map(register).collect();
        let reads: Vec<_> = paths.iter().map(|path| cork.get(path).submit()).collect();
        drop(cork);
        for (number, read) in reads.into_iter().enumerate() {
            match read.await {
                Ok((data, stat)) => self.saw(number, &data, &stat),
                Err(error) => over_read(&error)?,
            }
        }
        Ok(())
    }

    async fn settle(&self) -> Result<(), Over> {
        match self.worker.client.resolve_in_doubt().await {
            Ok(_) => Ok(()),
            Err(error) => over_read(&error),
        }
    }

    /// Checks what is still armed: either nothing has happened, or the event must have been delivered.
    async fn finish(mut self) {
        if self.settle().await.is_ok() {
            for number in 0..REGISTERS {
                if self.read(number).await.is_err() {
                    break;
                }
            }
        }
        let Self { worker, armed, .. } = self;
        let ended = matches!(worker.client.session().state(), SessionState::Ended(_));
        if ended {
            let mut bench = worker.seat.judge.at(worker.seat.now());
            for armed in armed {
                bench.session_over(worker.seat.number, armed);
            }
        }
    }
}

fn over(error: Option<WriteError>) -> Result<(), Over> {
    match error.and_then(|error| error.session_end()) {
        Some(_) => Err(Over),
        None => Ok(()),
    }
}

fn over_read(error: &ReadError) -> Result<(), Over> {
    match error.session_end() {
        Some(_) => Err(Over),
        None => Ok(()),
    }
}
