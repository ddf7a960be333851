//! What a client asks for.

use zk_client::{Acl, AclList, CallOptions, CreateMode};
use zk_tests::network::pass;

use crate::stages::{
    fate::Moment,
    play::{BRIEF, PATH, Play, awaits, says},
};

pub(crate) async fn reads(play: &Play) {
    let zk = &play.subject;
    let hasty = zk.with(CallOptions::new().fail_fast());
    for moment in Moment::ALL {
        play.reach(moment).await;
        awaits!(play, hasty.exists(PATH));
        awaits!(play, zk.get(PATH).timeout(BRIEF / 2));
        awaits!(play, zk.exists(PATH));
        awaits!(play, zk.exists("/none"));
        awaits!(play, zk.get(PATH));
        awaits!(play, zk.children(PATH));
        awaits!(play, zk.children(PATH).packed());
        awaits!(play, zk.acl(PATH));
        awaits!(play, zk.descendant_count(PATH));
        awaits!(play, zk.ephemerals(PATH));
        awaits!(play, zk.sync(PATH));
        awaits!(play, zk.who_am_i());
        awaits!(play, zk.multi_read().get(PATH).children("/none"));
        awaits!(play, zk.resolve_in_doubt());
    }
}

pub(crate) async fn writes(play: &Play) {
    let zk = &play.subject;
    let hasty = zk.with(CallOptions::new().fail_fast());
    for moment in Moment::ALL {
        play.reach(moment).await;
        awaits!(play, hasty.set(PATH, b"hasty"));
        awaits!(play, zk.set(PATH, b"brief").timeout(BRIEF / 2));
        awaits!(play, zk.set(PATH, b"data"));
        awaits!(play, zk.set(PATH, b"data").version(0));
        awaits!(play, zk.create("/place/made", b""));
        awaits!(play, zk.delete("/place/made").version(7));
        awaits!(play, zk.delete("/place/made"));
        awaits!(play, zk.delete("/place/made").if_exists());
        awaits!(play, zk.multi().check(PATH).set(PATH, b"all").delete("/none"));
        awaits!(
            play,
            zk.multi().create("/place/of-all", b"", CreateMode::Persistent).delete("/place/of-all")
        );
        let open = AclList::from_iter([Acl::open_unsafe()]);
        awaits!(play, zk.set_acl(PATH, &open).version(7));
        awaits!(play, zk.delete_recursive("/place/deep"));
        awaits!(play, play.keeper.create("/place/deep/er", b"").parents());
        awaits!(play, zk.delete_recursive("/place/deep"));
    }
}

pub(crate) async fn creates(play: &Play) {
    let zk = &play.subject;
    for moment in Moment::ALL {
        play.reach(moment).await;
        let name = format!("/place/{moment:?}");
        awaits!(play, zk.create(&name, b""));
        awaits!(play, zk.create(&name, b"").or_exists());
        awaits!(play, zk.create(&format!("{name}/a/b"), b"").parents());
        awaits!(play, zk.create(&format!("{name}/c/d"), b"").containers());
        awaits!(play, zk.create(&format!("{name}/s-"), b"").mode(CreateMode::PersistentSequential));
        awaits!(play, zk.create(&format!("{name}/e"), b"").mode(CreateMode::Ephemeral));
        let prefix = format!("{name}/p-");
        let protected = zk.create(&prefix, b"").mode(CreateMode::EphemeralSequential).protected();
        awaits!(play, protected);
        awaits!(
            play,
            zk.create(&format!("{name}/t"), b"").mode(CreateMode::Ephemeral).timeout(BRIEF)
        );
        awaits!(play, zk.create(&format!("{name}/f"), b"").fail_fast());
        let create = |path| zk.create(path, b"").mode(CreateMode::Ephemeral);
        let both = [create("/place/one"), create("/place/two")];
        let made = awaits!(play, zk.create_all_protected(both).parents_first());
        if let Some(Ok(Ok(made))) = made {
            for node in made {
                awaits!(play, node.delete());
            }
        }
    }
}

pub(crate) async fn session(play: &Play) {
    let zk = &play.subject;
    let mut session = zk.session();
    let epoch = session.epoch();
    for moment in Moment::ALL {
        play.reach(moment).await;
        says!(play, session.state());
        says!(play, session.lease_left());
        says!(play, session.timeout());
        awaits!(play, session.changed());
        awaits!(play, session.changed());
        says!(play, session.lease_left());
        says!(play, session.epoch() - epoch);
        awaits!(play, session.ended());
        awaits!(play, zk.add_auth("digest", "user:secret"));
        let _ = says!(play, zk.unique_id());
        let _ = says!(play, zk.update_servers("server,other"));
        awaits!(play, zk.exists(PATH));
        pass(BRIEF).await;
        says!(play, session.state());
    }
    awaits!(play, zk.close());
    awaits!(play, zk.close());
    awaits!(play, zk.close_within(BRIEF));
    says!(play, session.state());
    awaits!(play, zk.clone().detach());
}
