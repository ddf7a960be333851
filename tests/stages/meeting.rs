//! Where clients meet.

use zk_locks::{Barrier, DoubleBarrier, Group, NodeState, PersistentNode};
use zk_tests::network::pass;

use crate::stages::{
    fate::Moment,
    guards::guard,
    play::{BRIEF, Play, awaits, says},
};

pub(crate) async fn barrier(play: &Play) {
    let barrier = play.build(Barrier::builder(&play.subject, "/place/barrier"));
    for moment in Moment::ALL {
        awaits!(play, barrier.set());
        play.reach(moment).await;
        awaits!(play, barrier.is_set());
        awaits!(play, barrier.wait_timeout(BRIEF));
        awaits!(play, barrier.set());
        awaits!(play, barrier.remove());
        awaits!(play, barrier.remove());
        awaits!(play, barrier.is_set());
        awaits!(play, barrier.wait());
    }
}

pub(crate) async fn double_barrier(play: &Play) {
    let path = "/place/barrier";
    let barrier = play.build(DoubleBarrier::builder(&play.subject, path)).of(2);
    let theirs = play.build_other(DoubleBarrier::builder(&play.rival, path)).of(2);
    let (ours, theirs) = tokio::join!(barrier.enter(), theirs.enter_timeout(BRIEF));
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return };
    let theirs = tokio::spawn(async move { theirs.leave().await });
    for moment in Moment::ALL {
        play.reach(moment).await;
        guard(play, &ours).await;
        // One that comes too late counts together with the one that is still inside.
        awaits!(play, barrier.enter_timeout(BRIEF));
    }
    awaits!(play, ours.leave_timeout(BRIEF));
    awaits!(play, theirs);
    awaits!(play, barrier.enter_timeout(BRIEF));
}

pub(crate) async fn group(play: &Play) {
    let path = "/place/group";
    let group = play.build(Group::builder(&play.subject, path));
    let Some(Ok(member)) = awaits!(play, group.join(b"ours")) else { return };
    let _other = play.build_other(Group::builder(&play.rival, path)).join(b"theirs").await;
    let mut following = group.follow();
    for moment in Moment::ALL {
        play.reach(moment).await;
        let names = |it: Vec<zk_locks::GroupMember>| {
            it.into_iter().map(|it| (it.name, it.data)).collect::<Vec<_>>()
        };
        play.awaits("group.members()", async { group.members().await.map(names) }).await;
        play.awaits("following.next()", async { following.next().await.map(names) }).await;
        guard(play, &member).await;
    }
    awaits!(play, member.release());
    awaits!(play, group.join(b"once more"));
}

pub(crate) async fn persistent_node(play: &Play) {
    let path = "/place/node";
    let Some(Ok(node)) = awaits!(play, PersistentNode::start(play.options(), path, b"data")) else {
        return;
    };
    let mut states = node.subscribe();
    awaits!(play, node.present());
    for moment in Moment::ALL {
        // It has a session of its own.
        let session = match node.state() {
            NodeState::Present { session, .. } => session,
            _ => play.subject.session().id(),
        };
        play.reach_with(moment, session).await;
        awaits!(play, node.present());
        says!(play, node.state());
        says!(play, node.set_data(b"other"));
        pass(BRIEF).await;
        says!(play, play.nodes_below("/node"));
        for _ in 0..3 {
            if awaits!(play, states.changed()).is_some() {
                says!(play, states.borrow_and_update().clone());
            }
        }
    }
    awaits!(play, node.close());
    awaits!(play, states.changed());
    says!(play, states.borrow().clone());
    says!(play, play.nodes_below("/node"));
}
