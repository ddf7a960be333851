//! Who leads.

use zk_locks::Election;

use crate::stages::{
    fate::Moment,
    guards::guard,
    play::{BRIEF, PATH, Play, awaits, says},
};

pub(crate) async fn leadership(play: &Play) {
    let election = play.build(Election::builder(&play.subject, PATH));
    let Some(Ok(leads)) = awaits!(play, election.campaign(b"first")) else { return };
    let mut following = election.follow();
    for moment in Moment::ALL {
        play.reach(moment).await;
        awaits!(play, leads.proclaim(b"news"));
        guard(play, &leads).await;
        awaits!(play, leads.proclaim(b"more"));
        let followed = async { following.next().await.map(|it| it.map(|it| it.data)) };
        awaits!(play, followed);
    }
    awaits!(play, leads.resign());
    awaits!(play, election.campaign_timeout(b"second", BRIEF));
}

pub(crate) async fn leader_latch(play: &Play) {
    let election = play.build(Election::builder(&play.subject, PATH));
    let latch = election.latch(b"latch");
    let mut states = latch.subscribe();
    for moment in Moment::ALL {
        play.reach(moment).await;
        for _ in 0..3 {
            awaits!(play, states.changed());
            says!(play, states.borrow_and_update().clone());
        }
        says!(play, latch.is_leader());
        says!(play, latch.token());
        says!(play, latch.path());
    }
    awaits!(play, latch.resign());
    awaits!(play, states.changed());
    says!(play, states.borrow().clone());
}
