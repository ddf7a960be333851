//! Changes one behind the other, without waiting for each: they are made in the order in which they were submitted, whenever
//! and in whatever order they are asked about.

use std::pin::Pin;

use zk_client::{Client, Created, Stat, WriteError};
use zk_testkit::real::Release;

use super::{Errands, Over, View, model::Change, writes::wanted};
use crate::sim::pass;

/// Changes in a row, at most.
const ROW_MAX: u64 = 6;

/// The longest time for which nobody asks about a change, in milliseconds.
const UNASKED_MAX: u64 = 100;

/// What a change is answered with.
enum Done {
    Created(Created),
    Set(Stat),
    Deleted,
}

type Answer = Pin<Box<dyn Future<Output = Result<Done, WriteError>> + Send>>;

impl Errands {
    pub(super) async fn change_in_a_row(&mut self) -> Result<(), Over> {
        // Before, creates may be sent again behind what was submitted later.
        if self.worker.ctx.options.release < Release::V3_5 {
            return self.change().await;
        }
        let view = self.view();
        let row = self.row();
        let corked = self.worker.rng.one_in(2).then(|| view.client.cork());
        let client = corked.as_deref().unwrap_or(&view.client);
        let mut asked: Vec<(usize, Answer)> =
            row.iter().map(|change| submitted(client, &view, change)).enumerate().collect();
        drop(corked);
        if self.worker.rng.one_in(2) {
            pass(self.worker.rng.scaled(1, UNASKED_MAX)).await;
        }
        let mut answers: Vec<Option<Result<Done, WriteError>>> = row.iter().map(|_| None).collect();
        while !asked.is_empty() {
            let (number, answer) = asked.swap_remove(self.worker.rng.index(asked.len()));
            answers[number] = Some(answer.await);
        }
        let ctx = &self.worker.ctx;
        // What a busy server has not carried out is sent again, behind the others.
        if ctx.check().was_throttled(ctx.number) {
            self.there = None;
            return Ok(());
        }
        for (change, answer) in row.into_iter().zip(answers.into_iter().flatten()) {
            // What comes behind one that is missing may have had to make parents, when it was asked about.
            let is_told = matches!(answer, Ok(_) | Err(WriteError::Rejected(_)));
            self.judge(&view, &change, answer).await?;
            self.there.take_if(|_| !is_told);
        }
        Ok(())
    }

    /// Changes of which none has parents to make, in any case not if all before it are made.
    fn row(&mut self) -> Vec<Change> {
        let Some(mut there) = self.there.clone() else { return Vec::new() };
        let count = self.worker.rng.within(2, ROW_MAX);
        let mut row = Vec::new();
        for _ in 0..count {
            let mut change = self.any_change();
            match &mut change {
                Change::Check { .. } => continue,
                // A request of its own, for which it has to be waited.
                Change::Create { path, above, .. } if !there.has_parent(path) => *above = None,
                _ => {}
            }
            // What is refused changes nothing.
            let mut next = there.clone();
            if next.apply(&change).is_ok() {
                there = next;
            }
            row.push(change);
        }
        row
    }

    /// One of a row, all before which have been judged.
    async fn judge(
        &mut self,
        view: &View,
        change: &Change,
        answer: Result<Done, WriteError>,
    ) -> Result<(), Over> {
        let Some((next, said)) = self.after(change) else { return Ok(()) };
        let is_mortal = self.is_mortal();
        let expected = said.as_ref().map(drop).map_err(|rejection| *rejection);
        let done = self.settle(format!("{change:?} in a row"), &expected, Some(next), answer)?;
        match (&done, change) {
            (Some(Done::Set(stat)), Change::Set { path, .. }) => self.stat("a write", path, stat),
            (Some(Done::Created(created)), Change::Create { .. }) if !is_mortal => {
                let wanted = said.ok().map(|path| view.path(&path));
                if Some(&created.path) != wanted.as_ref() {
                    self.wrong("S9", format_args!("{} was made, not {wanted:?}", created.path));
                }
            }
            _ => {}
        }
        let is_certain = done.is_some() && !is_mortal;
        self.parents_may_stay(view, change, is_certain).await
    }
}

/// Submits a change.
fn submitted(client: &Client, view: &View, change: &Change) -> Answer {
    let path = view.path(change.path());
    match change {
        Change::Create { data, mode, list, above, .. } => {
            let create = client.create(&path, data).mode(*mode);
            let created = wanted(create, *list, *above).submit();
            Box::pin(async move { created.await.map(Done::Created) })
        }
        Change::Set { data, version, .. } => {
            let set = client.set(&path, data);
            let set = version.iter().fold(set, |set, version| set.version(*version)).submit();
            Box::pin(async move { set.await.map(Done::Set) })
        }
        Change::Delete { version, .. } => {
            let delete = client.delete(&path);
            let deleted =
                version.iter().fold(delete, |delete, version| delete.version(*version)).submit();
            Box::pin(async move { deleted.await.map(|()| Done::Deleted) })
        }
        Change::Check { .. } => unreachable!("there is none by itself"),
    }
}
