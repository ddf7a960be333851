//! What the screen shows, and what becomes of it when something is heard or asked for.

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant, SystemTime},
};

use zk_client::SessionId;

use super::{
    board::{Board, Entry, Reading, Searched},
    cursor::Motion,
    members::Member,
    tree::{Listing, Tree},
};
use crate::{commands::health::Answer, render::printable};

/// Lines of the log of watches.
const LINES_MAX: usize = 500;

/// How long a notice stays.
const NOTICE: Duration = Duration::from_secs(10);

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) instant: Instant,
    pub(crate) wall: SystemTime,
}

/// All that is shown.
#[derive(Debug)]
pub(crate) struct State {
    /// Where locks are looked for.
    pub(crate) path: String,
    /// How often servers are asked.
    pub(crate) interval: Duration,
    pub(crate) now: Now,
    pub(crate) members: Vec<Member>,
    pub(crate) link: Link,
    pub(crate) link_since: Instant,
    /// Sessions that have been lost.
    pub(crate) lost: usize,
    pub(crate) board: Board,
    pub(crate) tree: Tree,
    pub(crate) watched: BTreeSet<String>,
    pub(crate) lines: VecDeque<String>,
    /// How many lines the log is scrolled back.
    pub(crate) back: usize,
    pub(crate) pane: Pane,
    pub(crate) overlay: Option<Overlay>,
    notice: Option<(Instant, Notice)>,
}

/// Our own session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Connecting,
    Connected {
        session: SessionId,
        read_only: bool,
    },
    /// The session may live on.
    Disconnected {
        session: SessionId,
    },
    /// It is over, and there will be another.
    Lost {
        why: String,
    },
    /// There is none, and another try soon.
    Refused {
        why: String,
    },
}

/// What the large part of the screen shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Locks,
    Tree,
    Watches,
}

/// What lies over the screen, and takes the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Overlay {
    Help,
    Confirm(Box<Deed>),
}

/// What is done to a contender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deed {
    pub(crate) verb: Verb,
    pub(crate) lock: String,
    pub(crate) entry: Entry,
    /// Contenders that wait for the lock.
    pub(crate) waiting: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Revoke,
    Evict,
}

/// A line about what was done, or why it was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_bad: bool,
}

/// What has been heard.
#[derive(Debug)]
pub(crate) enum Update {
    Said {
        member: usize,
        answer: Answer,
        took: Duration,
    },
    Link(Link),
    Board {
        readings: Vec<Reading>,
        searched: Searched,
    },
    BoardFailed(String),
    Listed {
        path: String,
        listing: Result<Listing, String>,
    },
    /// By a watch.
    Seen(String),
    Unwatched(String),
    Notice(Notice),
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Show(Pane),
    Next,
    Move(Motion),
    Enter,
    Leave,
    Revoke,
    Evict,
    Watch,
    Sort,
    Refresh,
    Help,
    Confirm,
    Dismiss,
    Suspend,
    Quit,
}

/// What is to be done outside of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    List(String),
    Watch(String),
    Unwatch(String),
    Do(Box<Deed>),
    Refresh,
    Suspend,
    Quit,
}

impl Now {
    /// By the system's clocks.
    pub(crate) fn read() -> Self {
        Self { instant: Instant::now(), wall: SystemTime::now() }
    }
}

impl Deed {
    /// Who it is done to.
    pub(crate) fn whom(&self) -> String {
        whom(&self.entry)
    }
}

/// Who a contender says it is, or, if it says nothing, its node.
pub(crate) fn whom(entry: &Entry) -> String {
    let description = printable(entry.contender.description().trim());
    if description.is_empty() { printable(&entry.contender.name) } else { description }
}

impl State {
    pub(crate) fn new(servers: &[String], path: &str, interval: Duration) -> Self {
        let now = Now::read();
        Self {
            path: path.to_owned(),
            interval,
            now,
            members: servers.iter().cloned().map(Member::new).collect(),
            link: Link::Connecting,
            link_since: now.instant,
            lost: 0,
            board: Board::default(),
            tree: Tree::new(path),
            watched: BTreeSet::new(),
            lines: VecDeque::new(),
            back: 0,
            pane: Pane::default(),
            overlay: None,
            notice: None,
        }
    }

    /// What there is to say, for a while.
    pub(crate) fn notice(&self) -> Option<&Notice> {
        let (at, notice) = self.notice.as_ref()?;
        (self.now.instant.saturating_duration_since(*at) < NOTICE).then_some(notice)
    }

    /// Something has been heard.
    pub(crate) fn hear(&mut self, update: Update) {
        let now = self.now.instant;
        match update {
            Update::Said { member, answer, took } => {
                if let Some(member) = self.members.get_mut(member) {
                    member.said(answer, took, now);
                }
            }
            Update::Link(link) => {
                if let Link::Lost { why } = &link {
                    self.lost += 1;
                    self.say(format!("session lost: {why}; getting another one"), true);
                }
                if link != self.link {
                    (self.link, self.link_since) = (link, now);
                }
            }
            Update::Board { readings, searched } => self.board.read(readings, searched, now),
            Update::BoardFailed(why) => self.board.error = Some(why),
            Update::Listed { path, listing } => self.tree.listed(&path, listing),
            Update::Seen(line) => {
                self.lines.push_back(line);
                if self.lines.len() > LINES_MAX {
                    self.lines.pop_front();
                } else if self.back > 0 {
                    // What is being read stays where it is.
                    self.back += 1;
                }
            }
            Update::Unwatched(path) => {
                self.watched.remove(&path);
            }
            Update::Notice(notice) => self.notice = Some((now, notice)),
        }
    }

    /// Carries out what a key asks for, as far as that is on the screen; returns the rest.
    pub(crate) fn act(&mut self, action: Action) -> Option<Effect> {
        match action {
            Action::Quit => return Some(Effect::Quit),
            Action::Suspend => return Some(Effect::Suspend),
            Action::Refresh => return Some(Effect::Refresh),
            Action::Help => self.overlay = Some(Overlay::Help),
            Action::Dismiss => self.overlay = None,
            Action::Confirm => {
                if let Some(Overlay::Confirm(deed)) = self.overlay.take() {
                    return Some(Effect::Do(deed));
                }
            }
            Action::Show(pane) => return self.show(pane),
            Action::Next => {
                return self.show(match self.pane {
                    Pane::Locks => Pane::Tree,
                    Pane::Tree => Pane::Watches,
                    Pane::Watches => Pane::Locks,
                });
            }
            Action::Move(motion) => return self.step(motion),
            Action::Enter => match self.pane {
                Pane::Locks => self.board.enter(),
                Pane::Tree => return Some(Effect::List(self.tree.enter())),
                Pane::Watches => {}
            },
            Action::Leave => match self.pane {
                Pane::Locks => self.board.leave(),
                Pane::Tree => return self.tree.leave().map(Effect::List),
                Pane::Watches => self.back = 0,
            },
            Action::Revoke => self.ask(Verb::Revoke),
            Action::Evict => self.ask(Verb::Evict),
            Action::Watch => return self.toggle_watch(),
            Action::Sort => self.board.reorder(),
        }
        None
    }

    fn show(&mut self, pane: Pane) -> Option<Effect> {
        self.pane = pane;
        (pane == Pane::Tree).then(|| Effect::List(self.tree.selected().to_owned()))
    }

    fn step(&mut self, motion: Motion) -> Option<Effect> {
        match self.pane {
            Pane::Locks => self.board.step(motion),
            Pane::Tree => return Some(Effect::List(self.tree.step(motion))),
            Pane::Watches => {
                let len = self.lines.len();
                let place = motion.of(len.saturating_sub(1 + self.back), len);
                self.back = len.saturating_sub(1 + place);
            }
        }
        None
    }

    /// Nothing is done to a contender before a yes.
    fn ask(&mut self, verb: Verb) {
        let target = match self.pane {
            Pane::Locks => self.board.target(),
            Pane::Tree | Pane::Watches => None,
        };
        let Some((lock, entry)) = target else {
            return self
                .say("choose a lock that is held, or a contender in its queue".to_owned(), true);
        };
        // Those without a number have a node that their holders do not listen to.
        if verb == Verb::Revoke && entry.contender.sequence.is_none() {
            return self.say("its holder cannot be asked; e takes the lock away".to_owned(), true);
        }
        let deed = Deed {
            verb,
            lock: lock.reading.path.clone(),
            entry: entry.clone(),
            waiting: lock.reading.waiting,
        };
        self.overlay = Some(Overlay::Confirm(Box::new(deed)));
    }

    fn toggle_watch(&mut self) -> Option<Effect> {
        let path = match self.pane {
            Pane::Locks => self.board.selected().map(|lock| lock.reading.path.clone())?,
            Pane::Tree => self.tree.selected().to_owned(),
            Pane::Watches => return None,
        };
        if self.watched.remove(&path) {
            self.say(format!("{} is not watched any more", printable(&path)), false);
            return Some(Effect::Unwatch(path));
        }
        self.say(format!("watching {}: see 3", printable(&path)), false);
        self.watched.insert(path.clone());
        Some(Effect::Watch(path))
    }

    fn say(&mut self, text: String, is_bad: bool) {
        self.notice = Some((self.now.instant, Notice { text, is_bad }));
    }
}
