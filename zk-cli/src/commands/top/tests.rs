//! What is on the screen, and which keys do what, with locks of an in-process server.

use std::time::{Duration, Instant};

use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
};
use zk_client::{Client, CreateMode, OpCode, SessionId, Stat};
use zk_locks::{Election, Guard, Lock, Semaphore};
use zk_testkit::TestServer;

use super::{
    board::SHOWN_MAX,
    draw, keys,
    search::{Follower, LOCKS_MAX},
    state::{Action, Effect, Link, Overlay, Pane, State, Update, Verb},
    tree::Listing,
};
use crate::commands::health::{self, Answer};

const SRVR: &str = "Zookeeper version: 3.9.5-abc, built on 2025\nLatency min/avg/max: 0/1.5/20\nReceived: 5\nConnections: 2\nOutstanding: 0\nZxid: 0x200000005\nMode: standalone\nNode count: 7\n";

struct World {
    server: TestServer,
    client: Client,
    follower: Follower,
    state: State,
}

impl World {
    async fn new() -> Self {
        let server = TestServer::start().await.unwrap();
        let client = Client::connect(&server.connect_string()).await.unwrap();
        let mut state = State::new(&["zk1:2181".to_owned()], "/", Duration::from_secs(1));
        let answer = health::understood(SRVR);
        state.hear(Update::Said { member: 0, answer, took: Duration::from_millis(2) });
        state.hear(Update::Link(Link::Connected { session: SessionId(1), read_only: false }));
        Self { server, client, follower: Follower::default(), state }
    }

    async fn hold(&self, path: &str, description: &str) -> Guard {
        let lock = Lock::builder(&self.client, path).description(description).build();
        lock.acquire().await.unwrap()
    }

    /// Nodes in a queue that no one waits for.
    async fn crowd(&self, path: &str, count: usize) {
        let cork = self.client.cork();
        let node = format!("{path}/lock-");
        let create = |_| cork.create(&node, b"x").mode(CreateMode::EphemeralSequential).submit();
        let made: Vec<_> = (0..count).map(create).collect();
        drop(cork);
        for made in made {
            made.await.unwrap();
        }
    }

    /// Nodes that are no contenders.
    async fn create(&self, paths: &[String], mode: CreateMode) {
        for some in paths.chunks(500) {
            let cork = self.client.cork();
            let made: Vec<_> =
                some.iter().map(|path| cork.create(path, b"x").mode(mode).submit()).collect();
            drop(cork);
            for made in made {
                made.await.unwrap();
            }
        }
    }

    async fn look(&mut self) {
        let now = Instant::now();
        let (readings, searched) = self.follower.round(&self.client, "/", now).await.unwrap();
        self.state.hear(Update::Board { readings, searched });
    }

    fn press(&mut self, code: KeyCode) -> Option<Effect> {
        let action = keys::action(&self.state, KeyEvent::new(code, KeyModifiers::NONE));
        action.and_then(|action| self.state.act(action))
    }
}

fn drawn(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::screen(state, frame.area(), frame.buffer_mut())).unwrap();
    draw::lines(terminal.backend().buffer())
}

#[track_caller]
fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    let line = text.lines().find(|line| line.starts_with(begin));
    line.unwrap_or_else(|| panic!("no line begins with {begin:?}:\n{text}"))
}

#[tokio::test]
async fn board_has_locks_of_every_shape() {
    let mut world = World::new().await;
    let _held = world.hold("/locks/report", "web-7 pid 4711").await;
    world.crowd("/locks/report", 2).await;
    let semaphore = Semaphore::builder(&world.client, "/locks/pool").build().with_permits(2);
    let _permits = [semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap()];
    let election = Election::new(&world.client, "/main");
    let _leads = election.campaign(b"db-1 pid 7").await.unwrap();
    // Of a queue that is none of locks, and a group.
    let sequential = CreateMode::PersistentSequential;
    world.client.create("/jobs/job-", b"").parents().mode(sequential).await.unwrap();
    let ephemeral = CreateMode::Ephemeral;
    world.client.create("/group/one", b"10.0.0.1:80").parents().mode(ephemeral).await.unwrap();
    world.client.create("/single", b"web-1 pid 12").mode(ephemeral).await.unwrap();
    world.look().await;
    let text = drawn(&world.state, 120, 40);
    let words = |begin: &str| line(&text, begin).split_whitespace().collect::<Vec<_>>();
    assert_eq!(words("/locks/report")[..4], ["/locks/report", "exclusive", "web-7", "4711"]);
    assert_eq!(words("/locks/report")[5], "2");
    assert_eq!(words("/locks/pool")[..2], ["/locks/pool", "semaphore"]);
    assert!(line(&text, "/locks/pool").contains(" +1"), "{text}");
    assert_eq!(words("/main")[..4], ["/main", "election", "db-1", "7"]);
    assert_eq!(words("/single")[..4], ["/single", "node", "web-1", "12"]);
    assert!(!text.contains("/jobs") && !text.contains("/group"), "{text}");
    assert_eq!(words("zk1:2181")[1..3], ["standalone", "2.0"]);
}

#[tokio::test]
async fn handovers_are_counted_between_rounds() {
    let mut world = World::new().await;
    let held = world.hold("/l", "a pid 1").await;
    world.look().await;
    assert!(line(&drawn(&world.state, 100, 24), "/l").ends_with('-'), "no rate from one look");
    held.release().await.unwrap();
    for _ in 0..4 {
        world.hold("/l", "b pid 2").await.release().await.unwrap();
    }
    let _held = world.hold("/l", "c pid 3").await;
    world.state.now.instant += Duration::from_secs(2);
    world.look().await;
    // Five have left in two seconds.
    let text = drawn(&world.state, 100, 24);
    assert!(line(&text, "/l").ends_with("2.5"), "{text}");
    assert!(!line(&text, "/l").contains('≤'), "the grant was seen: {text}");
}

#[tokio::test]
async fn long_queues_cost_a_bounded_number_of_reads() {
    let mut world = World::new().await;
    let _held = world.hold("/l", "a pid 1").await;
    world.crowd("/l", 200).await;
    let reads = |world: &World| world.server.proxy().counts().requests(OpCode::GET_DATA);
    let before = reads(&world);
    world.look().await;
    assert_eq!(reads(&world) - before, SHOWN_MAX as u64);
    let text = drawn(&world.state, 100, 30);
    assert!(text.contains("Queue of /l: 1 holds, 200 wait"), "{text}");
    assert!(text.contains("and 151 more"), "{text}");
    // What has not changed is not read again.
    let counts = |world: &World| {
        let counts = world.server.proxy().counts();
        [OpCode::GET_DATA, OpCode::GET_CHILDREN2, OpCode::EXISTS].map(|op| counts.requests(op))
    };
    let before = counts(&world);
    world.look().await;
    let after = counts(&world);
    assert_eq!([0, 1, 2].map(|n| after[n] - before[n]), [0, 0, 1]);
}

/// What a search does not look at is said, wherever the limit is reached: here in the middle of a level.
#[tokio::test]
async fn search_says_what_it_leaves_out() {
    let mut world = World::new().await;
    let wide: Vec<_> = (0..1_000).map(|n| format!("/wide/n{n:04}-")).collect();
    world.client.create("/wide", b"").await.unwrap();
    world.create(&wide, CreateMode::Persistent).await;
    let deep: Vec<_> =
        wide[..240].iter().flat_map(|above| (0..6).map(move |n| format!("{above}/d{n}"))).collect();
    world.create(&deep, CreateMode::Persistent).await;
    world.look().await;
    let text = drawn(&world.state, 160, 40);
    assert!(text.contains("only the first 2000 nodes searched"), "{text}");

    let mut world = World::new().await;
    world.client.create("/group", b"").await.unwrap();
    let members: Vec<_> = (0..LOCKS_MAX + 5).map(|n| format!("/group/m{n:03}-")).collect();
    world.create(&members, CreateMode::Ephemeral).await;
    world.look().await;
    let text = drawn(&world.state, 160, 40);
    assert!(text.contains("5 ephemeral nodes not looked at"), "{text}");
}

#[tokio::test]
async fn nothing_is_done_without_a_yes() {
    let mut world = World::new().await;
    let held = world.hold("/l", "web-7 pid 4711").await;
    world.crowd("/l", 1).await;
    world.look().await;
    for (key, verb) in [('e', Verb::Evict), ('r', Verb::Revoke)] {
        assert_eq!(world.press(KeyCode::Char(key)), None);
        let text = drawn(&world.state, 100, 24);
        assert!(text.contains("web-7 pid 4711"), "{text}");
        assert!(text.contains(&held.token().to_string()), "{text}");
        for other in [KeyCode::Enter, KeyCode::Esc, KeyCode::Char('n'), KeyCode::Char('q')] {
            assert_eq!(world.press(other), None);
            assert_eq!(world.state.overlay, None, "{other:?} takes the question back");
            world.press(KeyCode::Char(key));
        }
        let Some(Effect::Do(deed)) = world.press(KeyCode::Char('y')) else { panic!() };
        assert_eq!((deed.verb, &*deed.lock), (verb, "/l"));
        assert_eq!(deed.entry.contender.token.get(), held.token().get());
    }
    // Of a waiter, once it has been chosen.
    world.press(KeyCode::Enter);
    world.press(KeyCode::Down);
    world.press(KeyCode::Char('e'));
    assert!(matches!(&world.state.overlay, Some(Overlay::Confirm(deed)) if !deed.entry.holds));
    // A question stays about whom it named, whatever happens meanwhile.
    held.release().await.unwrap();
    world.look().await;
    let Some(Effect::Do(deed)) = world.press(KeyCode::Char('y')) else { panic!() };
    assert_eq!(deed.entry.contender.data.as_ref(), b"x");
}

#[tokio::test]
async fn every_size_and_every_pane_can_be_drawn() {
    let mut world = World::new().await;
    let _held = world.hold("/日本/ロック", "web\x1b[2J-7 pid 4711").await;
    world.crowd("/日本/ロック", 60).await;
    world.look().await;
    let stat = Stat { num_children: 3, data_length: 9_000, ..Stat::default() };
    let names = ["a", "\u{fffd}", "日本"].map(str::to_owned);
    let data = Some(zk_client::bytes::Bytes::from_static(b"\xff\x00 binary"));
    let listing = Ok(Listing { names: names.into(), stat, data });
    world.state.hear(Update::Listed { path: "/".to_owned(), listing });
    world.state.hear(Update::Seen("2026 written /日本".to_owned()));
    for pane in [Pane::Locks, Pane::Tree, Pane::Watches] {
        world.state.act(Action::Show(pane));
        for overlay in [Action::Dismiss, Action::Help, Action::Evict] {
            world.state.act(overlay);
            for width in (0..150).step_by(7) {
                for height in (0..44).step_by(3) {
                    let text = drawn(&world.state, width, height);
                    assert!(!text.contains('\x1b'), "{text}");
                }
            }
        }
    }
}

#[tokio::test]
async fn trouble_is_on_the_screen() {
    let mut world = World::new().await;
    let _held = world.hold("/l", "a pid 1").await;
    world.look().await;
    let state = &mut world.state;
    let refusal = health::understood("srvr is not executed because it is not in the whitelist.\n");
    state.hear(Update::Said { member: 0, answer: refusal, took: Duration::ZERO });
    assert!(drawn(state, 100, 24).contains("set 4lw.commands.whitelist=srvr"));
    let down = Answer::Fails { why: "connection refused".to_owned() };
    state.hear(Update::Said { member: 0, answer: down, took: Duration::ZERO });
    state.hear(Update::Link(Link::Disconnected { session: SessionId(7) }));
    state.hear(Update::BoardFailed("no answer".to_owned()));
    state.now.instant += Duration::from_secs(12);
    let text = drawn(state, 120, 24);
    for words in ["0 of 1 SERVE", "DISCONNECTED for 12s", "DOWN 12s: connection refused"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains("as of 12s ago: no answer") && text.contains("\n/l "), "{text}");
    state.hear(Update::Link(Link::Lost { why: "session expired".to_owned() }));
    assert!(drawn(state, 120, 24).contains("session lost: session expired"), "a notice");
}

/// What would be written to its node is read by no holder, and may be what others know the holder by.
#[tokio::test]
async fn holder_of_a_single_node_is_not_asked() {
    let mut world = World::new().await;
    let mode = CreateMode::Ephemeral;
    world.client.create("/single", b"web-1 pid 12").mode(mode).await.unwrap();
    world.look().await;
    world.press(KeyCode::Char('r'));
    assert!(world.state.overlay.is_none());
    world.press(KeyCode::Char('e'));
    assert!(
        matches!(&world.state.overlay, Some(Overlay::Confirm(deed)) if deed.verb == Verb::Evict)
    );
}

/// Permits of one transaction have one token.
#[tokio::test]
async fn cursor_passes_equal_tokens() {
    let mut world = World::new().await;
    let semaphore = Semaphore::new(&world.client, "/pool", 3);
    let _two = semaphore.acquire_many(2).await.unwrap();
    let _one = semaphore.acquire().await.unwrap();
    world.look().await;
    world.press(KeyCode::Enter);
    for place in [1, 2] {
        world.press(KeyCode::Down);
        assert_eq!(world.state.board.queue_place(), place);
    }
    world.press(KeyCode::Up);
    assert_eq!(world.state.board.queue_place(), 1);
}
