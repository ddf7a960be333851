//! What is done with recipes by which nothing is held: barriers, groups, leaders that are looked at, nodes that come back.

use std::time::Duration;

use zk_client::{Client, bytes::Bytes};
use zk_locks::{
    Barrier, DoubleBarrier, Election, Follow, Group, GroupMember, Lost, Participation,
    PersistentNode, ReadError,
};
use zk_tests::network::pass;

use crate::combinations::{
    cell::{Named, Play},
    scene::{Beside, IN_TROUBLE, SOON, Scene, ensure, well, within},
    trouble::Stage,
};

pub(crate) fn plays() -> impl Iterator<Item = Play> {
    let plays: &[Named] = &[
        ("Barrier", "waits", |scene| Box::pin(barrier_waits(scene))),
        ("Barrier", "sets", |scene| Box::pin(barrier_sets(scene))),
        ("DoubleBarrier", "is the first", |scene| Box::pin(double_barrier(scene, true))),
        ("DoubleBarrier", "is the last", |scene| Box::pin(double_barrier(scene, false))),
        ("DoubleBarrier", "hears a deletion", |scene| Box::pin(double_barrier_lost(scene))),
        ("DoubleBarrier", "gives up", |scene| Box::pin(double_barrier_given_up(scene))),
        ("Group", "is a member", |scene| Box::pin(group_member(scene))),
        ("Group", "hears a deletion", |scene| Box::pin(group_lost(scene))),
        ("Group", "follows", |scene| Box::pin(group_follows(scene))),
        ("Election", "observes", |scene| Box::pin(observes(scene))),
        ("PersistentNode", "is kept", |scene| Box::pin(persistent_node(scene))),
    ];
    plays.iter().map(Play::named)
}

fn waits_at(client: &Client, path: &str) -> Beside<Result<(), zk_locks::AcquireError>> {
    let barrier = Barrier::new(client, path);
    Beside::new(async move { barrier.wait().await })
}

async fn barrier_waits(scene: &Scene) -> Result<(), String> {
    let path = format!("{}/barrier", scene.path);
    let barrier = Barrier::new(&scene.rivals[0], &path);
    well(SOON, "set", barrier.set()).await?;
    scene.stage(Stage::Acquiring);
    let waits = waits_at(&scene.subject, &path);
    scene.rest().await;
    ensure(!waits.is_done(), "the wait ends at a barrier that is set")?;
    scene.stage(Stage::Waiting);
    // What another client writes there is no sign.
    well(SOON, "a write", scene.rivals[0].set(&path, b"still")).await?;
    scene.rest().await;
    ensure(!waits.is_done(), "the wait ends at a barrier that is set")?;
    well(SOON, "remove", barrier.remove()).await?;
    waits.done(IN_TROUBLE, "the wait").await?;
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

async fn barrier_sets(scene: &Scene) -> Result<(), String> {
    let path = format!("{}/barrier", scene.path);
    let barrier = Barrier::new(&scene.subject, &path);
    scene.stage(Stage::Acquiring);
    well(IN_TROUBLE, "set", barrier.set()).await?;
    let waits = waits_at(&scene.rivals[0], &path);
    scene.stage(Stage::Held);
    ensure(well(IN_TROUBLE, "is_set", barrier.is_set()).await?, "set, and not set")?;
    pass(SOON).await;
    ensure(!waits.is_done(), "the wait ends at a barrier that is set")?;
    scene.stage(Stage::Releasing);
    well(IN_TROUBLE, "remove", barrier.remove()).await?;
    waits.done(SOON, "the wait").await?;
    scene.stage(Stage::After);
    ensure(!well(SOON, "is_set", barrier.is_set()).await?, "removed, and set")?;
    scene.nothing_is_left().await
}

fn enters(client: &Client, path: &str) -> Beside<Result<Participation, zk_locks::AcquireError>> {
    let barrier = DoubleBarrier::new(client, path, 2);
    Beside::new(async move { barrier.enter().await })
}

/// Both enter, and both leave, the subject first or last.
async fn double_barrier(scene: &Scene, first: bool) -> Result<(), String> {
    let path = scene.path.clone();
    let rival = scene.rivals[0].clone();
    let (subject, other) = if first {
        scene.stage(Stage::Acquiring);
        let subject = enters(&scene.subject, &path);
        scene.rest().await;
        ensure(!subject.is_done(), "entered alone")?;
        scene.stage(Stage::Waiting);
        (subject, enters(&rival, &path))
    } else {
        let other = enters(&rival, &path);
        pass(SOON).await;
        ensure(!other.is_done(), "entered alone")?;
        scene.stage(Stage::Acquiring);
        (enters(&scene.subject, &path), other)
    };
    let subject = subject.done(IN_TROUBLE, "to enter").await?;
    let other = other.done(IN_TROUBLE, "to enter beside the subject").await?;
    scene.stage(Stage::Held);
    pass(SOON).await;
    let (subject, other) = if first {
        scene.stage(Stage::Releasing);
        let subject = Beside::new(subject.leave());
        scene.rest().await;
        ensure(!subject.is_done(), "left alone")?;
        (subject, Beside::new(other.leave()))
    } else {
        let other = Beside::new(other.leave());
        pass(SOON).await;
        ensure(!other.is_done(), "left alone")?;
        scene.stage(Stage::Releasing);
        (Beside::new(subject.leave()), other)
    };
    subject.done(IN_TROUBLE, "to leave").await?;
    other.done(IN_TROUBLE, "to leave beside the subject").await?;
    scene.stage(Stage::After);
    scene.nothing_is_left().await?;
    let left = scene.names_below(&path);
    ensure(left.is_empty(), &format!("{left:?} is left behind"))?;
    // Once more, with nothing in the way.
    let (subject, other) = (enters(&scene.subject, &path), enters(&rival, &path));
    let subject = subject.done(SOON, "to enter once more").await?;
    let other = other.done(SOON, "to enter once more").await?;
    let (subject, other) = (Beside::new(subject.leave()), Beside::new(other.leave()));
    subject.done(SOON, "to leave once more").await?;
    other.done(SOON, "to leave once more").await
}

async fn double_barrier_lost(scene: &Scene) -> Result<(), String> {
    let path = scene.path.clone();
    let other = enters(&scene.rivals[0], &path);
    scene.stage(Stage::Acquiring);
    let subject = enters(&scene.subject, &path).done(IN_TROUBLE, "to enter").await?;
    let other = other.done(IN_TROUBLE, "to enter beside the subject").await?;
    scene.stage(Stage::Held);
    hears_a_deletion(scene, &subject).await?;
    drop(subject);
    well(SOON, "to leave after the other has lost", other.leave()).await?;
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

async fn hears_a_deletion(scene: &Scene, guard: &zk_locks::Guard) -> Result<(), String> {
    let deleted = async {
        scene.rest().await;
        let path = guard.path().to_owned();
        well(SOON, "a delete", scene.rivals[1].delete(&path)).await?;
        pass(SOON).await;
        Err("not within 4s: word of it".to_owned())
    };
    tokio::select! {
        biased;
        lost = guard.lost() => {
            ensure(lost == Lost::NodeDeleted, &format!("word of {lost:?}"))?;
            let is_there = scene.tree(|tree| tree.get(&format!("{}{}", scene.root, guard.path())).is_some());
            ensure(!is_there, "a loss is told of too early")
        }
        deleted = deleted => deleted,
    }
}

async fn double_barrier_given_up(scene: &Scene) -> Result<(), String> {
    let path = scene.path.clone();
    scene.stage(Stage::Acquiring);
    let patience = scene.draw(|rng| *rng.pick(&[2, 5, 700, 2_000].map(Duration::from_millis)));
    let enters = enters(&scene.subject, &path);
    pass(patience).await;
    ensure(!enters.is_done(), "entered alone, or failed")?;
    scene.stage(Stage::GivingUp);
    drop(enters);
    scene.rest().await;
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

/// Prints what it is given.
fn names(members: Result<Vec<GroupMember>, ReadError>) -> Result<Vec<Bytes>, ReadError> {
    Ok(members?.into_iter().map(|member| member.data).collect())
}

/// Follows until these are there.
async fn sees(
    members: &mut Follow<Vec<GroupMember>>,
    wanted: &[&'static [u8]],
) -> Result<(), ReadError> {
    loop {
        if names(members.next().await)? == wanted {
            return Ok(());
        }
    }
}

async fn group_member(scene: &Scene) -> Result<(), String> {
    let mut seen = Group::new(&scene.rivals[0], &scene.path).follow();
    let group = Group::new(&scene.subject, &scene.path);
    scene.stage(Stage::Acquiring);
    let membership = well(IN_TROUBLE, "join", group.join(b"subject")).await?;
    well(SOON, "to be seen", sees(&mut seen, &[b"subject"])).await?;
    scene.stage(Stage::Held);
    let members = names(within(IN_TROUBLE, "members", group.members()).await?);
    ensure(members == Ok(vec!["subject".into()]), &format!("members are {members:?}"))?;
    scene.rest().await;
    scene.stage(Stage::Releasing);
    if scene.draw(|rng| rng.one_in(2)) {
        well(IN_TROUBLE, "leave", membership.release()).await?;
    } else {
        drop(membership);
    }
    well(IN_TROUBLE, "not to be seen", sees(&mut seen, &[])).await?;
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

async fn group_lost(scene: &Scene) -> Result<(), String> {
    let group = Group::new(&scene.subject, &scene.path);
    scene.stage(Stage::Acquiring);
    let membership = well(IN_TROUBLE, "join", group.join(b"subject")).await?;
    scene.stage(Stage::Held);
    hears_a_deletion(scene, &membership).await?;
    drop(membership);
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

async fn group_follows(scene: &Scene) -> Result<(), String> {
    let rivals = [0, 1].map(|rival| Group::new(&scene.rivals[rival], &scene.path));
    scene.stage(Stage::Acquiring);
    let mut members = Group::new(&scene.subject, &scene.path).follow();
    well(IN_TROUBLE, "the first look", sees(&mut members, &[])).await?;
    scene.stage(Stage::Waiting);
    let first = well(SOON, "join", rivals[0].join(b"first")).await?;
    well(IN_TROUBLE, "a first member", sees(&mut members, &[b"first"])).await?;
    let second = well(SOON, "join", rivals[1].join(b"second")).await?;
    well(IN_TROUBLE, "a second member", sees(&mut members, &[b"first", b"second"])).await?;
    well(SOON, "leave", first.release()).await?;
    well(IN_TROUBLE, "one member less", sees(&mut members, &[b"second"])).await?;
    well(SOON, "leave", second.release()).await?;
    well(IN_TROUBLE, "nobody", sees(&mut members, &[])).await?;
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

async fn observes(scene: &Scene) -> Result<(), String> {
    let rivals = [0, 1].map(|rival| Election::new(&scene.rivals[rival], &scene.path));
    scene.stage(Stage::Acquiring);
    let mut leaders = Election::new(&scene.subject, &scene.path).follow();
    let mut sees = async |wanted: Option<&'static [u8]>, what| {
        let seen = async {
            loop {
                let leader = leaders.next().await?;
                if leader.map(|leader| leader.data).as_deref() == wanted {
                    return Ok::<_, ReadError>(());
                }
            }
        };
        well(IN_TROUBLE, what, seen).await
    };
    sees(None, "no leader").await?;
    scene.stage(Stage::Waiting);
    let first = well(SOON, "campaign", rivals[0].campaign(b"first")).await?;
    sees(Some(b"first"), "a first leader").await?;
    well(SOON, "proclaim", first.proclaim(b"new")).await?;
    sees(Some(b"new"), "what it proclaims").await?;
    let (second, resigned) = tokio::join!(rivals[1].campaign(b"second"), async {
        pass(Duration::from_secs(1)).await;
        first.resign().await
    });
    resigned.map_err(|error| error.to_string())?;
    let second = second.map_err(|error| error.to_string())?;
    sees(Some(b"second"), "a second leader").await?;
    well(SOON, "resign", second.resign()).await?;
    sees(None, "no leader").await?;
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

async fn persistent_node(scene: &Scene) -> Result<(), String> {
    let path = format!("{}/kept", scene.path);
    let full = format!("{}{path}", scene.root);
    let is = |scene: &Scene, data: &[u8]| {
        scene.tree(|tree| tree.get(&full).and_then(|node| node.data().cloned()))
            == Some(data.to_vec().into())
    };
    let comes = async |scene: &Scene, data: &'static [u8], time, what: &str| {
        let there = async {
            while !is(scene, data) {
                pass(Duration::from_millis(10)).await;
            }
        };
        within(time, what, there).await
    };
    let options = scene.options();
    scene.stage(Stage::Acquiring);
    let node = well(IN_TROUBLE, "start", PersistentNode::start(options, &path, b"1")).await?;
    within(IN_TROUBLE, "present", node.present()).await?;
    ensure(is(scene, b"1"), "present, and not there")?;
    scene.stage(Stage::Held);
    scene.rest().await;
    ensure(is(scene, b"1"), "it has gone")?;
    scene.stage(Stage::Waiting);
    well(SOON, "a delete", scene.rivals[0].delete(&path)).await?;
    comes(scene, b"1", IN_TROUBLE, "that it comes back").await?;
    node.set_data(b"2");
    comes(scene, b"2", IN_TROUBLE, "that it is written").await?;
    scene.rest().await;
    well(SOON, "a write", scene.rivals[0].set(&path, b"3")).await?;
    comes(scene, b"2", IN_TROUBLE, "that it is written back").await?;
    let owner = scene.tree(|tree| tree.get(&full).map(|node| node.stat().ephemeral_owner));
    scene.network.expire(owner.ok_or("it has gone")?);
    comes(scene, b"2", IN_TROUBLE, "that it comes back in another session").await?;
    scene.stage(Stage::Releasing);
    within(IN_TROUBLE, "close", node.close()).await?;
    scene.stage(Stage::After);
    scene.rest().await;
    ensure(!scene.tree(|tree| tree.get(&full).is_some()), "closed, and there")
}
