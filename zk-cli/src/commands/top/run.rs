//! The loop: updates and keys in, frames out.

use std::time::Duration;

use ratatui::crossterm::event::Event;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use super::{
    draw, keys, once,
    poll::Poll,
    screen::{Keys, Screen},
    state::{Effect, Now, Pane, State, Update},
};
use crate::{
    args::TopArgs,
    ask::Asker,
    exit::{Exit, Failure},
    lock::signals::{FOR_THE_COMMAND, Signals},
    render,
};

/// Ages go on while nothing is heard.
const AGES: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: TopArgs) -> Result<Exit, Failure> {
    if args.once || !render::to_terminal() {
        return once::run(args).await;
    }
    let mut signals = Signals::default();
    signals.catch(FOR_THE_COMMAND)?;
    let servers: Vec<String> = args.connect.options()?.servers().map(str::to_owned).collect();
    let asker = Asker::new(&args.connect, args.ask)?;
    let (mut poll, mut updates) =
        Poll::start(&args.connect, &servers, &args.path, args.interval, &asker);
    let mut state = State::new(&servers, &args.path, args.interval);
    let shown = show(&mut state, &mut poll, &mut updates, &mut signals).await;
    // The terminal is given back by now, which is what people wait for.
    poll.end().await;
    shown
}

async fn show(
    state: &mut State,
    poll: &mut Poll,
    updates: &mut mpsc::Receiver<Update>,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let terminal = Failure::local("terminal");
    let mut screen = Screen::enter().map_err(&terminal)?;
    let mut keys = Keys::start();
    let mut ticks = interval(state.interval.min(AGES));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut rounds = interval(state.interval);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        state.now = Now::read();
        screen
            .draw(|frame| draw::screen(state, frame.area(), frame.buffer_mut()))
            .map_err(&terminal)?;
        let effect = tokio::select! {
            biased;
            signal = signals.next() => return Ok(Exit::Signal(signal.as_raw())),
            failed = poll.failed() => std::panic::resume_unwind(failed.into_panic()),
            event = keys.next() => match event {
                // Without a terminal there is no one to show anything to.
                None => return Ok(Exit::LocalIo),
                Some(Err(error)) => return Err(terminal(error)),
                Some(Ok(Event::Key(key))) => {
                    keys::action(state, key).and_then(|action| state.act(action))
                }
                Some(Ok(_)) => None,
            },
            Some(update) = updates.recv() => {
                state.now = Now::read();
                state.hear(update);
                // What has come meanwhile is drawn together with it.
                while let Ok(update) = updates.try_recv() {
                    state.hear(update);
                }
                None
            }
            _ = rounds.tick() => {
                if state.pane == Pane::Tree {
                    poll.list_again(known(state));
                }
                None
            }
            _ = ticks.tick() => None,
        };
        match effect {
            None => {}
            Some(Effect::Quit) => return Ok(Exit::Done),
            Some(Effect::Suspend) => {
                drop(keys);
                screen.suspend().map_err(&terminal)?;
                keys = Keys::start();
            }
            Some(Effect::Refresh) => {
                poll.refresh();
                poll.list_again(known(state));
            }
            Some(Effect::List(path)) => poll.list(path, None),
            Some(Effect::Watch(path)) => poll.watch(path),
            Some(Effect::Unwatch(path)) => poll.unwatch(&path),
            Some(Effect::Do(deed)) => poll.carry_out(*deed),
        }
    }
}

/// The nodes of the tree that are shown, and what is known of them.
fn known(state: &State) -> impl Iterator<Item = (String, Option<super::tree::Listing>)> {
    let tree = &state.tree;
    tree.shown().map(|path| {
        let listing = tree.listing(path).and_then(|listing| listing.as_ref().ok());
        (path.clone(), listing.cloned())
    })
}
