//! What those have who have tickets.

use zk_client::OpCode;
use zk_testkit::proxy::{Direction, Proxy};

use crate::world::{LONG, Process, RELEASES, World, named};

#[tokio::test]
async fn principal_is_known_on_every_connection() {
    for release in RELEASES {
        let world = World::of(release).await;
        let proxy = Proxy::start(world.server.addr()).await.unwrap();
        let addr = named(proxy.addr().port());
        let mut ann =
            world.with_cache(&world.logged_in("ann").await, &[&addr]).await.connected().await;
        let who = ann.ask("whoami").await;
        assert!(who.contains("ann@ZK.TEST"), "{release}: {who}");
        assert_eq!(ann.ask("create /ann ann@ZK.TEST").await, "Ok(())");
        let epoch = ann.ask("epoch").await;
        proxy.reset_all();
        assert_eq!(ann.ask(&format!("after {epoch}")).await, "connected again");
        assert_eq!(ann.ask("get /ann").await, "Ok(())");
        let frames = proxy.frames();
        let last = frames.iter().map(|frame| frame.connection).max().unwrap();
        let told = frames.of_connection(last);
        let told = told.iter().filter(|frame| frame.direction == Direction::ToServer);
        let told: Vec<OpCode> = told.filter_map(|frame| frame.op).collect();
        let told = told.strip_prefix(&[OpCode::CREATE_SESSION]).unwrap_or(&told);
        // A ticket, nothing, and the choice of no layer.
        assert_eq!(told[..3], [OpCode::SASL; 3], "{told:?}");

        let bob = world.logged_in("bob").await;
        let mut bob = world.with_cache(&bob, &[&addr]).await.connected().await;
        assert_eq!(bob.ask("get /ann").await, "Err(Rejected(NoAuth))");
    }
}

#[tokio::test]
async fn resumed_session_authenticates_again() {
    for release in RELEASES {
        let world = World::of(release).await;
        let ann = world.logged_in("ann").await;
        let mut ann = world.with_cache(&ann, &[&world.address()]).await.connected().await;
        assert_eq!(ann.ask("create /ann ann@ZK.TEST").await, "Ok(())");
        assert_eq!(ann.ask("resume").await, "the same");
        assert_eq!(ann.ask("get /ann").await, "Ok(())");
    }
}

#[tokio::test]
async fn keytab_works_and_principal_can_be_chosen() {
    for release in RELEASES {
        let world = World::of(release).await;
        let keytab = world.kdc.keytab(&["ann", "bob/admin"]).await.unwrap();
        let addr = world.address();
        let mut first = world.with_keys(&keytab, &[&addr]).await.connected().await;
        let who = first.ask("whoami").await;
        assert!(who.contains("ann@ZK.TEST"), "{release}: {who}");
        let choice = ["--client-principal", "bob/admin", &addr];
        let mut second = world.with_keys(&keytab, &choice).await.connected().await;
        let who = second.ask("whoami").await;
        assert!(who.contains("bob/admin@ZK.TEST"), "{release}: {who}");
    }
}

#[tokio::test]
async fn server_principal_may_be_overridden() {
    for release in RELEASES {
        let world = World::of(release).await;
        let cache = world.logged_in("ann").await;
        // Its address has no principal.
        let addr = world.server.connect_string();
        for args in [
            &["--server-principal", "zookeeper/localhost", &addr][..],
            &["--server-principal", "zookeeper/localhost@ZK.TEST", &addr],
            &["--service", "zookeeper", "--realm", "ZK.TEST", &world.address()],
        ] {
            let mut ann = world.with_cache(&cache, args).await.connected().await;
            let who = ann.ask("whoami").await;
            assert!(who.contains("ann@ZK.TEST"), "{who}");
        }
    }
}

#[tokio::test]
async fn session_outlives_its_ticket() {
    for release in RELEASES {
        let world = World::of(release).await;
        let proxy = Proxy::start(world.server.addr()).await.unwrap();
        let cache = world.logged_in("ann").await;
        let addr = named(proxy.addr().port());
        let mut ann: Process = world.with_cache(&cache, &[&addr]).await.connected().await;
        assert_eq!(ann.ask("create /ann ann@ZK.TEST").await, "Ok(())");
        world.expire("ann", &cache).await;
        assert_eq!(ann.ask("get /ann").await, "Ok(())");
        let epoch = ann.ask("epoch").await;
        let connections = || proxy.frames().iter().map(|frame| frame.connection).max();
        let before = connections();
        proxy.reset_all();
        ann.tell(&format!("after {epoch}")).await;
        // It has met the expired one twice.
        while connections() < before.map(|last| last + 2) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let keytab = world.kdc.keytab(&["ann"]).await.unwrap();
        world.kdc.log_in("ann", &keytab, LONG, &cache).await.unwrap();
        assert_eq!(ann.says().await, "connected again");
        assert_eq!(ann.ask("get /ann").await, "Ok(())");
    }
}
