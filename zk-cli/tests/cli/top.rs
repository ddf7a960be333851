//! `zk top`.

use rustix::process::Signal;
use zk_client::{Client, CreateMode};
use zk_locks::DurableLock;
use zk_testkit::{
    TestServer,
    real::{Ensemble, Release},
};

use crate::{
    screen::Screen,
    support::{Running, World, must, run, zk},
    tmux::Tmux,
};

const TOP: [&str; 3] = ["top", "--interval", "1s"];

#[tokio::test]
async fn evicting_names_the_holder_and_asks() {
    let world = World::new().await;
    let holder =
        world.lock(&["--description", "web-7 pid 4711"], "/locks/a", "echo held; read -r x");
    let mut holder = holder;
    holder.line().await;
    let mut waiter =
        world.lock(&["--description", "web-8 pid 4712"], "/locks/a", "echo held; read -r x");
    world.queue_of("/locks/a", 2).await;
    let mut screen = Screen::start(&world.server.connect_string(), &TOP, 30, 120);
    screen.see("Queue of /locks/a: 1 holds, 1 waits").await;
    screen
        .until("holder, process, waiters", |text| {
            let line = text.lines().find(|line| line.starts_with("/locks/a"));
            line.is_some_and(|line| line.contains("web-7") && line.contains("4711"))
        })
        .await;

    screen.press("e");
    screen.see("Evict web-7 pid 4711 from /locks/a?").await;
    screen.press("n");
    screen.until("the question is gone", |text| !text.contains("Evict web-7")).await;
    assert_eq!(world.queue_of("/locks/a", 2).await[0].description(), "web-7 pid 4711");

    screen.press("e");
    screen.see("Evict web-7 pid 4711 from /locks/a?").await;
    screen.press("y");
    screen.see("web-7 pid 4711 was evicted from /locks/a").await;
    assert_eq!(holder.ended().await.code, Some(123));
    assert_eq!(waiter.line().await, "held");
    screen.see("Queue of /locks/a: 1 holds, 0 wait").await;
    screen.press("q");
    assert_eq!(screen.ended().await, Some(0));
    assert!(screen.is_cooked() && !screen.screen().alternate_screen());
    waiter.close_input();
}

#[tokio::test]
async fn revoked_lock_is_given_back() {
    let world = World::new().await;
    let args = ["--revocable", "--description", "web-7 pid 4711"];
    let mut holder = world.lock(&args, "/locks/a", "echo held; read -r x");
    holder.line().await;
    let mut screen = Screen::start(&world.server.connect_string(), &TOP, 30, 120);
    screen.see("Queue of /locks/a: 1 holds").await;
    // Chosen in the queue.
    screen.press("\rr");
    screen.see("Ask web-7 pid 4711 to give /locks/a back?").await;
    screen.press("y");
    screen.see("web-7 pid 4711 was asked for /locks/a").await;
    assert_eq!(holder.ended().await.code, Some(123));
}

#[tokio::test]
async fn stopped_member_and_lost_session_show() {
    let args = ["serve", "--port", "0", "--members", "3", "--control"];
    let mut serve = Running::start(zk("").args(args));
    let servers = serve.line().await;
    serve.line().await;
    let mut screen = Screen::start(&servers, &TOP, 24, 130);
    screen.see("3 of 3 serve").await;
    screen.see("session 0x").await;
    let session = screen.text();
    let (_, session) = session.split_once("session ").unwrap();
    let session = session.split_whitespace().next().unwrap().to_owned();
    serve.tell(&format!("expire {session}")).await;
    screen.see("1 lost before").await;
    screen
        .until("another session", |text| text.contains("session 0x") && !text.contains(&session))
        .await;
    serve.tell("stop 0").await;
    screen.see("2 of 3 SERVE").await;
    screen.see("DOWN").await;
    serve.tell("start 0").await;
    screen.see("3 of 3 serve").await;
    screen.signal(Signal::TERM).await;
    assert_eq!(screen.ended().await, Some(143));
    assert!(screen.is_cooked() && !screen.screen().alternate_screen(), "{}", screen.text());
}

#[tokio::test]
async fn tree_shows_data_and_watches_tell() {
    let world = World::new().await;
    world.run(["create", "--parents", "/app/config", "answer=42"]).await.ok();
    let mut screen = Screen::start(&world.server.connect_string(), &TOP, 24, 100);
    screen.press("2");
    screen.see("▸ app").await;
    screen.press("j\r");
    screen.see("▸ config").await;
    screen.press("j");
    screen.see("answer=42").await;
    screen.press("w3");
    screen.see("watching /app/config").await;
    world.run(["set", "/app/config", "answer=43"]).await.ok();
    screen.see("written  /app/config").await;
    screen.press("2");
    screen.see("answer=43").await;
    screen.press("?");
    screen.see("evict: take").await;
}

#[tokio::test]
async fn thousands_of_children_and_a_tiny_screen() {
    let world = World::new().await;
    world.client.create("/many", b"").await.unwrap();
    for chunk in (0..3_000).collect::<Vec<_>>().chunks(500) {
        let cork = world.client.cork();
        let made: Vec<_> =
            chunk.iter().map(|n| cork.create(&format!("/many/n{n:05}"), b"").submit()).collect();
        drop(cork);
        for made in made {
            made.await.unwrap();
        }
    }
    let mut screen = Screen::start(&world.server.connect_string(), &TOP, 9, 40);
    // More nodes than one search looks at.
    screen.see("zk top /").await;
    screen.press("2");
    screen.see("▸ many").await;
    screen.press("j\r");
    screen.see("▸ n00000").await;
    screen.press("G");
    screen.see("\n/zookeeper").await;
    screen.press("k");
    screen.see("n02999").await;
    screen.press("q");
    assert_eq!(screen.ended().await, Some(0));
    let once = world.run(["top", "--once"]).await;
    assert!(once.stdout.contains("only the first 2000 nodes searched"), "{once:?}");
}

#[tokio::test]
async fn one_frame_tells_scripts_what_is_down() {
    let ensemble = Ensemble::start(Release::V3_9).await.unwrap();
    let servers = ensemble.connect_string();
    let mut holder = Running::start(zk(&servers).args([
        "elect",
        "/elections/main",
        "--",
        "sh",
        "-c",
        "echo led; read -r x",
    ]));
    holder.line().await;
    let once = run(zk(&servers).args(TOP).env("COLUMNS", "120")).await;
    assert_eq!((once.code, &*once.stderr), (Some(0), ""), "{once:?}");
    assert!(once.stdout.contains("3 of 3 serve") && !once.stdout.contains('\x1b'), "{once:?}");
    let line = once.stdout.lines().find(|line| line.starts_with("/elections/main"));
    assert!(line.is_some_and(|line| line.contains("election")), "{}", once.stdout);
    let follower = ensemble.followers().await[0];
    ensemble.kill(follower).await.unwrap();
    let once = run(zk(&servers).args(TOP).arg("--once")).await;
    assert_eq!(once.code, Some(1), "{once:?}");
    assert!(once.stdout.contains("2 of 3 SERVE") && once.stdout.contains("DOWN"), "{once:?}");
    holder.close_input();
}

/// Also those with several queues: who waits for them holds nothing.
#[tokio::test]
async fn lock_of_several_queues_is_one_line() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let client = Client::connect(&servers).await.unwrap();
    let durable = |who| {
        DurableLock::builder(&client, "/d")
            .description(&format!("{who} pid 7"))
            .build()
            .owned_by(who)
    };
    let _durable = must("the lock", durable("db-1").acquire()).await.unwrap();
    let other = durable("db-2");
    let waiting = tokio::spawn(async move { other.acquire().await.map(drop) });
    must("a waiter", async {
        while !client.children("/d/locks").await.is_ok_and(|(names, _)| names.len() == 1) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // As kazoo's semaphore has them, its permits with a name that ends as those with numbers do.
    let hex = "0123456789abcdef0123450123456789";
    let nodes = [
        (format!("/k/{hex}"), "web-1 pid 7", CreateMode::Ephemeral),
        (format!("/k-__lock__/{hex}__lock__"), "web-2 pid 7", CreateMode::EphemeralSequential),
    ];
    for (path, data, mode) in nodes {
        client.create(&path, data.as_bytes()).parents().mode(mode).await.unwrap();
    }
    let once = run(zk(&servers).args(["top", "--once"])).await;
    let row = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let locks = once.stdout.lines().filter(|line| line.starts_with('/')).map(row);
    // Path, kind, holder, who waits.
    let locks: Vec<_> = locks.map(|row| [0, 1, 2, 5].map(|it| row[it].clone()).join(" ")).collect();
    assert_eq!(locks, ["/d durable db-1 1", "/k semaphore web-1 1"], "{once:?}");
    waiting.abort();
}

#[tokio::test]
async fn without_servers_it_says_why() {
    let once = run(zk("127.0.0.1:1").args(TOP).args(["--connect-timeout", "200ms"])).await;
    assert_eq!(once.code, Some(69), "{once:?}");
    assert!(once.stdout.contains("NO SESSION") && once.stdout.contains("refused"), "{once:?}");
    assert!(once.stdout.lines().all(|line| !line.contains('\u{FFFD}')), "{once:?}");
}

#[tokio::test]
async fn report_says_that_there_is_no_quorum() {
    let args = ["serve", "--port", "0", "--members", "3", "--read-only", "--control"];
    let mut serve = Running::start(zk("").args(args));
    let servers = serve.line().await;
    serve.line().await;
    for order in ["stop 1", "stop 2"] {
        serve.tell(order).await;
        assert_eq!(serve.line().await, "ok");
    }
    let left = servers.split(',').next().unwrap();
    let once = run(zk(left).args(["top", "--once", "--read-only"])).await;
    assert_eq!(once.code, Some(1), "{once:?}");
    assert!(once.stdout.contains("ON A SERVER WITHOUT QUORUM"), "{once:?}");
}

#[tokio::test]
async fn report_names_a_path_that_does_not_exist() {
    let server = TestServer::start().await.unwrap();
    let once = run(zk(&server.connect_string()).args(["top", "--once", "/nowhere"])).await;
    assert!(once.stdout.contains("/nowhere: no such node"), "{once:?}");
    // Without a terminal the time stands behind the session.
    let title = once.stdout.lines().next().unwrap();
    assert!(title.len() < 80 && title.ends_with('Z'), "{title:?}");
}

#[tokio::test]
async fn top_in_tmux_leaves_the_screen_as_it_was() {
    let server = TestServer::start().await.unwrap();
    let (zk, servers) = (env!("CARGO_BIN_EXE_zk"), server.connect_string());
    let line = format!("echo before; {zk} top --server {servers}; echo behind $?; read -r x");
    let tmux = Tmux::start(&line, 100, 24).await;
    let screen = tmux.see("1 of 1 serve, alone").await;
    assert!(!screen.contains("before"), "{screen}");
    tmux.press(&["?"]).await;
    tmux.see("evict: take").await;
    tmux.press(&["Escape", "q"]).await;
    let screen = tmux.see("behind 0").await;
    assert!(screen.starts_with("before\n"), "{screen}");
}

#[tokio::test]
async fn top_is_stopped_and_continued_by_its_shell() {
    let server = TestServer::start().await.unwrap();
    let (zk, servers) = (env!("CARGO_BIN_EXE_zk"), server.connect_string());
    let tmux = Tmux::start("PS1='> ' bash --norc -i", 100, 24).await;
    tmux.write(&format!("{zk} top --server {servers}")).await;
    tmux.press(&["Enter"]).await;
    tmux.see("1 of 1 serve, alone").await;
    tmux.press(&["C-z"]).await;
    let screen = tmux.see("Stopped").await;
    assert!(!screen.contains("1 of 1 serve"), "{screen}");
    // What is typed is shown, as it is in a terminal that was given back.
    tmux.write("echo given back; fg").await;
    tmux.see("> echo given back; fg").await;
    tmux.press(&["Enter"]).await;
    tmux.see("1 of 1 serve, alone").await;
    tmux.press(&["q"]).await;
    let screen = tmux.see("given back\n").await;
    assert!(!screen.contains("1 of 1 serve"), "{screen}");
}

/// With the signal that says so, and without: then there is only the terminal to see it by.
#[tokio::test]
async fn top_ends_with_its_terminal() {
    let server = TestServer::start().await.unwrap();
    let (zk, servers) = (env!("CARGO_BIN_EXE_zk"), server.connect_string());
    let folder = tempfile::tempdir().unwrap();
    let number = folder.path().join("number");
    for heard in ["--default-signal=HUP", "--block-signal=HUP"] {
        let line =
            format!("echo $$ > {}; exec env {heard} {zk} top --server {servers}", number.display());
        let tmux = Tmux::start(&line, 100, 24).await;
        tmux.see("1 of 1 serve, alone").await;
        let pid = std::fs::read_to_string(&number).unwrap();
        drop(tmux);
        let process = std::path::Path::new("/proc").join(pid.trim());
        must(heard, async {
            while process.exists() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}
