//! Reads, which have to show what the model has.

use std::{borrow::Cow, time::Duration};

use zk_client::{CallOptions, Cause, ReadError, ReadResult, Rejection, Retry, Stat, WatchKind};

use super::{Errands, Over, View, lists};
use crate::sim::patience::Patience;

/// Reads at once, at most.
const TOGETHER_MAX: u64 = 6;

/// Reads that are given up at once.
const GIVEN_UP: usize = 3;

impl Errands {
    /// Metadata of a node, as it is now.
    pub(super) fn stat(&mut self, what: &str, path: &str, stat: &Stat) {
        let node = self.there.as_ref().map(|there| there.node(path));
        // A server without a quorum gives a session another name at first.
        let session = self.worker.client.session().id();
        let fits = node.is_none_or(|node| node.is_ok_and(|node| node.fits(stat, session)));
        if !fits {
            self.surprised(format_args!("{what} of {path} tells {stat:?}"));
        }
    }

    /// Data, or that there is none.
    fn data_of(&mut self, what: &str, path: &str, got: Result<(&[u8], &Stat), Rejection>) {
        self.worker.ctx.count("own nodes checked");
        let Some(there) = &self.there else { return };
        let found = there.node(path);
        match (got, found) {
            (Ok((data, stat)), Ok(node)) if node.data == data => self.stat(what, path, stat),
            (Err(told), Err(expected)) if told == expected => {}
            (got, _) => self.surprised(format_args!("{what} of {path} tells {got:?}")),
        }
    }

    fn names_of(&mut self, what: &str, path: &str, got: Result<Vec<String>, Rejection>) {
        self.worker.ctx.count("own nodes checked");
        let Some(there) = &self.there else { return };
        let mut got = got;
        if let Ok(names) = &mut got {
            names.sort_unstable();
        }
        let mut names = there.children(path);
        names.sort_unstable();
        let expected = there.node(path).map(|_| names);
        let fits = match (&got, expected) {
            (Ok(got), Ok(expected)) => *got == expected,
            (Err(got), Err(expected)) => *got == expected,
            _ => false,
        };
        if !fits {
            self.surprised(format_args!("{what} of {path} lists {got:?}"));
        }
    }

    /// One node, in one of the ways there are.
    pub(super) async fn read(&mut self) -> Result<(), Over> {
        let (path, view) = (self.any(), self.view());
        let absolute = view.path(&path);
        let client = &view.client;
        match self.worker.rng.below(5) {
            0 => {
                let read = client.get(&absolute).await;
                let Some(read) = self.told(read)? else { return Ok(()) };
                let read = read.as_ref().map(|(data, stat)| (&**data, stat));
                self.data_of("a read", &path, read.map_err(|rejection| *rejection));
            }
            1 => {
                let found = client.exists(&absolute).await;
                let Some(Ok(found)) = self.told(found)? else { return Ok(()) };
                let expected = self.there.as_ref().map(|there| there.node(&path).is_ok());
                match found {
                    Some(stat) => self.stat("a look", &path, &stat),
                    None if expected == Some(true) => {
                        self.surprised(format_args!("a look finds no {path}"));
                    }
                    None => {}
                }
            }
            2 => self.read_permissions(&view, &path).await?,
            3 => {
                let listed = client.children(&absolute).packed().await;
                let Some(listed) = self.told(listed)? else { return Ok(()) };
                if let Ok((_, stat)) = &listed {
                    self.stat("a packed list", &path, stat);
                }
                let names = |(names, _): (zk_client::ChildNames, Stat)| {
                    names.iter().map(Cow::into_owned).collect()
                };
                self.names_of("a packed list", &path, listed.map(names));
            }
            _ => {
                let listed = client.children(&absolute).await;
                let Some(listed) = self.told(listed)? else { return Ok(()) };
                self.names_of("a list", &path, listed.map(|(names, _)| names));
            }
        }
        Ok(())
    }

    /// Reads that are given up, some of them while they wait for room: those behind go on.
    pub(super) async fn read_in_vain(&mut self) -> Result<(), Over> {
        let view = self.view();
        let client = view.client.patient();
        let paths: Vec<String> = (0..GIVEN_UP).map(|_| view.path(&self.any())).collect();
        let reads: Vec<_> = paths.iter().map(|path| client.get(path).submit()).collect();
        let patience = Patience::drawn(&mut self.worker.rng, 50);
        let given_up = async {
            let mut reads = reads.into_iter();
            drop(patience.wait(reads.next().expect("there are some")).await);
        };
        tokio::join!(biased; given_up, self.read()).1
    }

    /// A read that waits for no connection, and is tried again instead: neither more often nor less than was asked for.
    pub(super) async fn read_again(&mut self) -> Result<(), Over> {
        let (path, view) = (self.any(), self.view());
        let absolute = view.path(&path);
        let client = view.client.with(CallOptions::new().fail_fast());
        self.is_patient = false;
        let rng = &mut self.worker.rng;
        let (most, pause) = (rng.within(1, 5) as u32, Duration::from_millis(rng.scaled(1, 2_000)));
        let mut tried = 0;
        let retry = Retry::new().attempts(most).pause(pause);
        let read = retry.run(|| {
            tried += 1;
            client.get(&absolute)
        });
        let read = read.await;
        let is_enough = match &read {
            Ok(_) => tried <= most,
            Err(
                ReadError::Unavailable(
                    Cause::Disconnected(_)
                    | Cause::NotConnected
                    | Cause::DeadlineExceeded
                    | Cause::QueueFull
                    | Cause::Throttled,
                )
                | ReadError::Rejected(Rejection::ReadOnly),
            ) => tried == most,
            Err(_) => tried <= most,
        };
        if !is_enough {
            self.wrong("L4", format_args!("{tried} of {most} attempts: {read:?}"));
        }
        if tried > 1 {
            self.worker.ctx.count("reads tried again");
        }
        if let Some(read) = self.unless_over(read)? {
            self.data_of("a repeated read", &path, Ok((&read.0, &read.1)));
        }
        Ok(())
    }

    pub(super) async fn read_permissions(&mut self, view: &View, path: &str) -> Result<(), Over> {
        let read = view.client.acl(&view.path(path)).await;
        let (Some(read), Some(there)) = (self.told(read)?, &self.there) else { return Ok(()) };
        let lists = lists();
        let expected = there.node(path).map(|node| &lists[node.list()]);
        match (read, expected) {
            (Ok((list, stat)), Ok(expected)) if list == *expected => {
                self.stat("permissions", path, &stat);
            }
            (Err(told), Err(expected)) if told == expected => {}
            (read, expected) => {
                let text = format!("permissions of {path} are {read:?}, not {expected:?}");
                self.surprised(format_args!("{text}"));
            }
        }
        Ok(())
    }

    /// Several nodes at one moment.
    pub(super) async fn read_together(&mut self) -> Result<(), Over> {
        let view = self.view();
        let count = self.worker.rng.below(TOGETHER_MAX);
        let lists = |errands: &mut Self| errands.worker.rng.one_in(2);
        let wanted: Vec<(String, bool)> = (0..count).map(|_| (self.any(), lists(self))).collect();
        let paths: Vec<String> = wanted.iter().map(|(path, _)| view.path(path)).collect();
        let reads = wanted.iter().zip(&paths).fold(
            view.client.multi_read(),
            |reads, ((_, lists), path)| match lists {
                true => reads.children(path),
                false => reads.get(path),
            },
        );
        let reads = reads.await;
        let Some(Ok(results)) = self.told(reads)? else { return Ok(()) };
        if results.len() != wanted.len() {
            self.wrong("S5", format_args!("{results:?} for {wanted:?}"));
            return Ok(());
        }
        for ((path, lists), result) in wanted.iter().zip(results) {
            match result {
                Ok(ReadResult::Children(names)) if *lists => {
                    self.names_of("several reads", path, Ok(names));
                }
                Ok(ReadResult::Data(data, stat)) if !*lists => {
                    self.data_of("several reads", path, Ok((&data, &stat)));
                }
                Err(told) if *lists => self.names_of("several reads", path, Err(told)),
                Err(told) => self.data_of("several reads", path, Err(told)),
                Ok(other) => self.wrong("S5", format_args!("several reads of {path}: {other:?}")),
            }
        }
        Ok(())
    }

    /// How many there are, and which go with the session.
    pub(super) async fn count(&mut self) -> Result<(), Over> {
        let (path, view) = (self.any(), self.view());
        let absolute = view.path(&path);
        if let Some(counted) = self.told(view.client.descendant_count(&absolute).await)? {
            let there = self.there.as_ref();
            let expected = there.map(|it| it.node(&path).map(|_| it.below(&path) as u32));
            if let Some(expected) = expected.filter(|expected| *expected != counted) {
                self.surprised(format_args!("counts {counted:?} below {path}, not {expected:?}"));
            }
        }
        let Some(Ok(mut own)) = self.told(view.client.ephemerals(&absolute).await)? else {
            return Ok(());
        };
        let Some(there) = &self.there else { return Ok(()) };
        let ephemerals = there.ephemerals(&path);
        let mut expected: Vec<String> = ephemerals.iter().map(|path| view.path(path)).collect();
        own.sort_unstable();
        expected.sort_unstable();
        if own != expected {
            let text = format!("is told of {own:?} below {path}, not {expected:?}");
            self.surprised(format_args!("{text}"));
        }
        Ok(())
    }

    pub(super) async fn ask_the_server(&mut self) -> Result<(), Over> {
        let (path, view) = (self.any(), self.view());
        self.unless_over(view.client.who_am_i().await)?;
        self.unless_over(view.client.config().await)?;
        let watched = view.client.check_watches(&view.path(&path), WatchKind::Any).await;
        if self.unless_over(watched)? == Some(true) && !self.is_armed {
            self.wrong("W3", format_args!("is told of a watch on {path}, and there is none"));
        }
        Ok(())
    }
}
