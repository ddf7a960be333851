//! Protected creates of several nodes in one transaction.

use zk_client::{Client, CreateMode, MultiError, OpCode, OwnedNode, Rejection};
use zk_testkit::proxy::Match;
use zk_tests::{
    patience::{LIMIT, within},
    test_with,
};

use crate::api::{Place, behind_proxy, client, on_each_release};

const QUEUES: [&str; 2] = ["/a", "/b"];

/// Two nodes under the one parent, and one under the other.
async fn create(zk: &Client) -> Result<Vec<OwnedNode>, MultiError> {
    let seat = |path| zk.create(path, b"who").mode(CreateMode::EphemeralSequential).protected();
    zk.create_all_protected(["/a/s-", "/b/s-", "/a/t-"].map(seat)).await.unwrap()
}

async fn queues(zk: &Client) {
    for queue in QUEUES {
        zk.create(queue, b"").await.unwrap();
    }
}

/// Waits until no queue has a child, as a client sees it that may have left some.
async fn emptied(zk: &Client) {
    for queue in QUEUES {
        loop {
            let ((names, _), changed) = zk.children(queue).watch().await.unwrap();
            if names.is_empty() {
                break;
            }
            let in_time = tokio::time::timeout(LIMIT, changed).await;
            assert!(in_time.is_ok(), "{names:?} in {queue}");
        }
    }
}

/// They are what the creates have made, and all that there is.
async fn are_all(zk: &Client, nodes: &[OwnedNode]) {
    let mut there = Vec::new();
    for queue in QUEUES {
        let (names, _) = zk.children(queue).await.unwrap();
        there.extend(names.into_iter().map(|name| format!("{queue}/{name}")));
    }
    there.sort();
    let mut paths: Vec<&str> = nodes.iter().map(OwnedNode::path).collect();
    paths.sort_unstable();
    assert_eq!(there, paths);
    for node in nodes {
        let stat = zk.exists(node.path()).await.unwrap().unwrap();
        assert_eq!(stat.czxid, node.stat().czxid);
        assert_eq!(stat.czxid, nodes[0].stat().czxid, "one transaction");
        assert_eq!(stat.ephemeral_owner, node.stat().ephemeral_owner);
        assert!(node.path().ends_with(&format!("{:010}", node.sequence().unwrap())));
    }
}

#[test_with(on_each_release)]
async fn create_all_is_one_request(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    queues(&zk).await;
    let mark = proxy.mark();
    let nodes = create(&zk).await.unwrap();
    let requests = proxy.frames_since(mark).requests();
    assert_eq!((requests.len(), requests[0].op), (1, Some(OpCode::MULTI)));
    are_all(&zk, &nodes).await;
    assert!(nodes[0].name().starts_with("_c_") && nodes[0].name().contains("-s-"));
    drop(nodes);
    emptied(&zk).await;
    assert!(zk.create_all_protected([]).await.unwrap().unwrap().is_empty());
}

#[test_with(on_each_release)]
async fn missing_parent_prevents_every_create(server: &Place) {
    let zk = client(server).await;
    zk.create("/a", b"").await.unwrap();
    let missing = MultiError { index: 1, rejection: Rejection::NoNode };
    assert_eq!(create(&zk).await.map(drop), Err(missing));
    zk.create("/b", b"").await.unwrap();
    are_all(&zk, &[]).await;
}

#[test_with(on_each_release)]
async fn single_node_behaves_like_several(server: &Place) {
    let zk = client(server).await;
    let seat = || zk.create("/a/b/s-", b"").mode(CreateMode::EphemeralSequential);
    let missing = MultiError { index: 0, rejection: Rejection::NoNode };
    let refused = zk.create_all_protected([seat().protected()]).await.unwrap();
    assert_eq!(refused.map(drop), Err(missing));
    let below = || seat().parents().protected();
    let submitted = zk.create_all_protected([below()]).await.unwrap().unwrap();
    zk.delete(submitted[0].path()).await.unwrap();
    for path in ["/a/b", "/a"] {
        zk.delete(path).await.unwrap();
    }
    let followed = zk.create_all_protected([below()]).followed_by(|_| ()).await.unwrap();
    assert_eq!(followed.unwrap().0.len(), 1);
}

/// A create that knows that parents are missing does not try without them.
#[test_with(on_each_release)]
async fn parents_are_created_first_if_they_are_known_to_be_missing(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    for (root, tries) in [("a", 2), ("b", 1)] {
        let paths = ["x", "y"].map(|parent| format!("/{root}/{parent}/s-"));
        let seat = |path| {
            let seat = zk.create(path, b"").mode(CreateMode::EphemeralSequential);
            seat.parents().protected()
        };
        let mark = proxy.mark();
        let creates = zk.create_all_protected(paths.iter().map(|path| seat(path)));
        let creates = if tries == 1 { creates.parents_first() } else { creates };
        assert_eq!(creates.await.unwrap().unwrap().len(), 2);
        let frames = proxy.frames_since(mark);
        let multis = frames.iter().filter(|frame| frame.is_request(OpCode::MULTI)).count();
        assert_eq!(multis, tries, "{frames}");
    }
}

/// Each create says what may be made above it, and what one makes serves the others, in whatever order they come.
#[test_with(on_each_release)]
async fn parents_of_one_create_serve_the_others(server: &Place) {
    let zk = client(server).await;
    for (pair, root) in ["/a", "/b", "/c", "/d"].into_iter().enumerate() {
        let [one, two] = ["x", "y"].map(|below| format!("{root}/{below}/s-"));
        let here = format!("{root}/s-");
        let seat = |path| zk.create(path, b"").mode(CreateMode::EphemeralSequential);
        let mut creates = match pair / 2 {
            0 => vec![seat(&here), seat(&one).parents()],
            _ => vec![seat(&one).parents_below(root), seat(&two).parents()],
        };
        if pair % 2 == 1 {
            creates.reverse();
        }
        let created = zk.create_all_protected(creates).await.unwrap();
        assert_eq!(created.map(|nodes| nodes.len()), Ok(2), "{pair}");
    }
}

/// They are submitted at once, in the order of all submissions, whether or not anybody waits for them.
#[test_with(on_each_release)]
async fn creates_behind_their_parents_are_submitted_at_once(server: &Place) {
    let zk = client(server).await;
    let seat = zk.create("/q/s-", b"").mode(CreateMode::EphemeralSequential).parents();
    let created = zk.create_all_protected([seat]).parents_first().submit();
    let (names, _) = zk.children("/q").await.unwrap();
    assert_eq!(names.len(), 1);
    assert_eq!(created.await.unwrap().unwrap().len(), 1);

    let cork = zk.cork();
    let path = "/corked/s-";
    let corked = cork.create(path, b"").mode(CreateMode::EphemeralSequential).parents();
    let created = cork.create_all_protected([corked]).parents_first().submit();
    assert_eq!(zk.exists("/corked").await.unwrap(), None, "it is held back");
    drop(cork);
    assert_eq!(created.await.unwrap().unwrap().len(), 1);
}

/// A retry asks for new names; none of the old nodes is left behind.
#[test_with(on_each_release)]
async fn node_deleted_in_doubt_fails_the_create(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let outsider = client(server).await;
    queues(&zk).await;
    let lost = proxy.on(Match::reply(OpCode::MULTI).once()).reset();
    let greeting = proxy.on(Match::connect_response().once()).hold();
    let delete = async {
        greeting.fired().await;
        let (names, _) = outsider.children("/b").await.unwrap();
        outsider.delete(&format!("/b/{}", names[0])).await.unwrap();
        greeting.release();
    };
    let (created, ()) = tokio::join!(create(&zk), delete);
    assert_eq!(lost.times_fired(), 1);
    let missing = MultiError { index: 1, rejection: Rejection::NoNode };
    assert_eq!(created.map(drop), Err(missing));
    emptied(&zk).await;
}

/// The listing has shown all of them, and the reads that follow it tell which one is gone.
#[test_with(on_each_release)]
async fn node_deleted_during_the_search_fails_the_create(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let outsider = client(server).await;
    queues(&zk).await;
    for (known_by_data, read) in [(false, OpCode::EXISTS), (true, OpCode::GET_DATA)] {
        let id = zk.unique_id().unwrap();
        let seat = |path| {
            let seat = zk.create(path, id.as_bytes()).mode(CreateMode::EphemeralSequential);
            if known_by_data { seat.protected_by_its_data() } else { seat.protected() }
        };
        let lost = proxy.on(Match::reply(OpCode::MULTI).once()).reset();
        let reads = proxy.on(Match::request(read).once()).hold();
        let create = zk.create_all_protected(["/a/s-", "/b/s-", "/a/t-"].map(seat));
        let delete = async {
            within(reads.fired()).await;
            let (names, _) = outsider.children("/b").await.unwrap();
            outsider.delete(&format!("/b/{}", names[0])).await.unwrap();
            reads.release();
        };
        let (created, ()) = tokio::join!(within(create), delete);
        assert_eq!(lost.times_fired(), 1);
        let missing = MultiError { index: 1, rejection: Rejection::NoNode };
        assert_eq!(created.unwrap().map(drop), Err(missing));
        emptied(&zk).await;
    }
}

#[test_with(on_each_release)]
async fn replacing_nodes_is_one_transaction(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    queues(&zk).await;
    let mode = CreateMode::EphemeralSequential;
    for part in [None, Some(Match::reply(OpCode::MULTI)), Some(Match::request(OpCode::MULTI))] {
        let old = zk.create("/a/old-", b"").mode(mode).protected().await.unwrap().owned.unwrap();
        let _lost = part.map(|part| proxy.on(part.once()).reset());
        let new = zk.create("/b/new-", b"").mode(mode).protected();
        let new = zk.create_all_protected([new]).replacing(old).await.unwrap().unwrap();
        are_all(&zk, &new).await;
        drop(new);
        emptied(&zk).await;
    }
    // It goes as well if nothing comes of the transaction.
    let old = zk.create("/a/old-", b"").mode(mode).protected().await.unwrap().owned.unwrap();
    let nowhere = zk.create("/c/new-", b"").mode(mode).protected();
    let refused = zk.create_all_protected([nowhere]).replacing(old).await.unwrap();
    assert_eq!(refused.map(drop).unwrap_err().rejection, Rejection::NoNode);
    emptied(&zk).await;
    // Unless it is taken back.
    let old = zk.create("/a/old-", b"").mode(mode).protected().await.unwrap().owned.unwrap();
    let nowhere = zk.create("/c/new-", b"").mode(mode).protected();
    let mut refused = zk.create_all_protected([nowhere]).replacing(old).submit();
    assert!((&mut refused).await.unwrap().is_err());
    let old = refused.take_back().unwrap();
    assert!(refused.take_back().is_none());
    drop(refused);
    assert!(zk.exists(old.path()).await.unwrap().is_some());
    drop(old);
    emptied(&zk).await;
    assert_eq!(proxy.counts().requests(OpCode::DELETE), 6 - 1);
}
