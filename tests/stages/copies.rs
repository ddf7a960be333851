//! What follows the servers' nodes.

use zk_client::{Cache, CacheEvent, WatchItem, WatchKind};
use zk_tests::network::pass;

use crate::stages::{
    fate::Moment,
    play::{BRIEF, PATH, Play, awaits, says},
};

/// Other nodes come, change and go.
async fn change(play: &Play, round: usize) {
    let made = format!("{PATH}/node-{round}");
    // Whatever is in the way of that is a part of the play.
    let _ = play.keeper.create(&made, b"made").await;
    let _ = play.keeper.create(&format!("{made}/below"), b"made").await;
    let _ = play.keeper.set(PATH, format!("round {round}").as_bytes()).await;
    if let Some(before) = round.checked_sub(2) {
        let _ = play.keeper.delete(&format!("{PATH}/node-{before}/below")).await;
        let _ = play.keeper.delete(&format!("{PATH}/node-{before}")).await;
    }
    pass(BRIEF / 10).await;
}

async fn cache(play: &Play, cache: Cache) {
    let mut events = cache.events_from_the_start();
    awaits!(play, cache.ready());
    for (round, moment) in Moment::ALL.into_iter().enumerate() {
        play.reach(moment).await;
        says!(play, cache.state());
        change(play, round).await;
        says!(play, cache.state());
        awaits!(play, cache.ready());
        while says!(play, events.try_next().as_ref().map(briefly)).is_some() {}
        let nodes = || cache.nodes().into_iter().map(|it| (it.path, it.data)).collect::<Vec<_>>();
        says!(play, nodes());
        says!(play, cache.get(PATH).map(|it| it.data));
        says!(play, cache.children_of(PATH).len());
    }
    says!(play, cache.move_to(&play.rival));
    awaits!(play, cache.ready());
    change(play, 4).await;
    says!(play, cache.state());
    says!(play, cache.nodes().len());
    while says!(play, events.try_next().as_ref().map(briefly)).is_some() {}
}

fn briefly(event: &CacheEvent) -> String {
    let text = format!("{event:?}");
    text.split("stat:").next().unwrap_or_default().to_owned()
}

pub(crate) async fn node_cache(play: &Play) {
    cache(play, Cache::node(&play.subject, PATH).start().expect("a path")).await;
}

pub(crate) async fn children_cache(play: &Play) {
    cache(play, Cache::children(&play.subject, PATH).without_data().start().expect("a path")).await;
}

pub(crate) async fn subtree_cache(play: &Play) {
    cache(play, Cache::subtree(&play.subject, PATH).clear_at_end().start().expect("a path")).await;
}

pub(crate) async fn watch_stream(play: &Play) {
    let Some(Ok(mut all)) = awaits!(play, play.subject.watch(PATH).recursive()) else { return };
    let Some(Ok(mut node)) = awaits!(play, play.subject.watch(PATH).capacity(2)) else { return };
    for (round, moment) in Moment::ALL.into_iter().enumerate() {
        play.reach(moment).await;
        change(play, round).await;
        let briefly = |item: WatchItem| format!("{item:?}");
        while says!(play, node.try_next().map(briefly)).is_some() {}
        while says!(play, all.try_next().map(briefly)).is_some() {}
        awaits!(play, async { all.next().await.map(briefly) });
        says!(play, (node.end(), all.end(), all.path()));
        awaits!(play, play.subject.check_watches(PATH, WatchKind::Recursive));
        awaits!(play, play.subject.check_watches(PATH, WatchKind::Any));
    }
    let _ = says!(play, play.subject.remove_watches(PATH, WatchKind::Any));
    pass(BRIEF).await;
    awaits!(play, async { node.next().await.map(|item| format!("{item:?}")) });
    awaits!(play, async { all.next().await.map(|item| format!("{item:?}")) });
    says!(play, (node.end(), all.end()));
}

pub(crate) async fn watches(play: &Play) {
    let Some(Ok((_, mut data))) = awaits!(play, play.subject.get(PATH).watch()) else { return };
    let Some(Ok((_, mut names))) = awaits!(play, play.subject.children(PATH).watch()) else {
        return;
    };
    let Some(Ok((_, mut other))) = awaits!(play, play.subject.exists("/none").watch()) else {
        return;
    };
    for (round, moment) in Moment::ALL.into_iter().enumerate() {
        play.reach(moment).await;
        if round > 0 {
            change(play, round).await;
        }
        // Two calls each: the second one behind what the first has said.
        let fired = (says!(play, data.try_event()), says!(play, names.try_event()));
        says!(play, data.try_event());
        says!(play, names.try_event());
        if fired.0.is_some() {
            let Some(Ok((_, again))) = awaits!(play, play.subject.get(PATH).watch()) else {
                continue;
            };
            data = again;
        }
        if fired.1.is_some() {
            let again = awaits!(play, play.subject.children(PATH).watch());
            let Some(Ok((_, again))) = again else { continue };
            names = again;
        }
        if says!(play, other.try_event()).is_some() {
            let exists = awaits!(play, play.subject.exists("/none").watch());
            let Some(Ok((_, again))) = exists else { return };
            other = again;
        }
        awaits!(play, play.subject.exists(PATH).watch());
    }
    awaits!(play, &mut other);
}
