//! Changes one behind the other, without waiting for each: they are made in the order in which they were submitted, whenever
//! and in whatever order they are asked about.

use zk_client::WriteError;
use zk_testkit::real::Release;

use super::{
    Errands, Over,
    model::Change,
    request::{Answer, Sent},
};
use crate::sim::pass;

/// Changes in a row, at most.
const ROW_MAX: u64 = 6;

/// The longest time for which nobody asks about a change, in milliseconds.
const UNASKED_MAX: u64 = 100;

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
        let submitted = |change| {
            let path = view.target(change);
            Sent::of(client, &path, change).map(Sent::submitted)
        };
        let mut asked: Vec<(usize, Answer)> =
            row.iter().filter_map(submitted).enumerate().collect();
        drop(corked);
        if self.worker.rng.one_in(2) {
            pass(self.worker.rng.scaled(1, UNASKED_MAX)).await;
        }
        let mut answers: Vec<Option<_>> = row.iter().map(|_| None).collect();
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
            let may_make_parents =
                self.is_mortal() && matches!(change, Change::Create { above: Some(_), .. });
            let is_certain = self.judge(&view, &change, answer)?;
            self.there.take_if(|_| !is_told || !is_certain && may_make_parents);
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
}
