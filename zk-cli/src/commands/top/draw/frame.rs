//! What stands where: on the screen, and in a report.

use std::time::SystemTime;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use super::{
    super::{
        members::verdict,
        state::{Link, Pane, State},
    },
    locks, members, overlay,
    table::{clipped, set, width},
    tree,
};
use crate::render::{age, printable};

/// With fewer lines than this, servers are only counted.
const LINES_FOR_MEMBERS: u16 = 12;

/// Around servers and the pane: the title, the tabs, a blank line, keys.
const AROUND: u16 = 4;

/// Between the title and the time, and behind that.
const AROUND_CLOCK: usize = 4;

/// Draws the screen.
pub(crate) fn screen(state: &State, area: Rect, buffer: &mut Buffer) {
    title(state, area, buffer);
    let members_height = match area.height {
        0..LINES_FOR_MEMBERS => 0,
        height => members_height(state).min(height / 3),
    };
    let at = Rect { y: area.y + 1, height: members_height, ..area };
    members::draw(state, at, buffer);
    let gap = u16::from(members_height > 0);
    let tabs_at = 1 + members_height + gap;
    set(buffer, area, usize::from(tabs_at), &tabs(state), Style::new().fg(Color::Cyan));
    let pane = Rect {
        y: area.y + (tabs_at + 1).min(area.height),
        height: area.height.saturating_sub(tabs_at + 2),
        ..area
    };
    match state.pane {
        Pane::Locks => locks::draw(state, pane, buffer),
        Pane::Tree => tree::draw(state, pane, buffer),
        Pane::Watches => watches(state, pane, buffer),
    }
    foot(state, area, buffer);
    overlay::draw(state, area, buffer);
}

/// Draws a report: servers, locks, and the queues of those that are waited for.
pub(crate) fn report(state: &State, area: Rect, buffer: &mut Buffer) {
    // In a pipe there is no right edge for the time to stand at.
    let len = width(&heading(state)) + AROUND_CLOCK + width(&clock(state.now.wall));
    let title_width = area.width.min(u16::try_from(len).unwrap_or(u16::MAX));
    title(state, Rect { width: title_width, ..area }, buffer);
    let mut line = area.y + 1;
    let mut next = |height: usize| {
        let height = u16::try_from(height).unwrap_or(u16::MAX);
        let at = Rect { y: line, height: height.min(area.bottom().saturating_sub(line)), ..area };
        line = line.saturating_add(height).min(area.bottom());
        at
    };
    members::draw(state, next(usize::from(members_height(state))), buffer);
    next(1);
    let board = &state.board;
    if board.selected().is_none() {
        locks::draw(state, next(1), buffer);
    } else {
        locks::list(state, next(board.locks().len() + 1), buffer);
    }
    let status = locks::status(state);
    if !status.is_empty() {
        set(buffer, next(1), 0, &format!("({status})"), Style::new());
    }
    for lock in board.locks().into_iter().filter(|lock| lock.reading.waiting > 0) {
        next(1);
        locks::queue(state, lock, next(locks::queue_height(lock)), buffer);
    }
}

/// The height of a report.
pub(crate) fn height(state: &State) -> u16 {
    let locks = state.board.locks();
    let waited_for = locks.iter().filter(|lock| lock.reading.waiting > 0);
    let queues: usize = waited_for.map(|lock| 1 + locks::queue_height(lock)).sum();
    let height = usize::from(members_height(state) + AROUND) + locks.len() + queues;
    u16::try_from(height).unwrap_or(u16::MAX)
}

/// A buffer as text.
pub(crate) fn lines(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let mut text = String::new();
    for row in buffer.content.chunks(width) {
        let mut line = String::new();
        let mut covered = 0;
        for cell in row {
            // A wide character stands in one cell, and covers those behind it.
            if covered == 0 {
                line.push_str(cell.symbol());
                covered = self::width(cell.symbol()).max(1);
            }
            covered -= 1;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let len = text.trim_end_matches('\n').len();
    text.truncate(len);
    text.push('\n');
    text
}

fn members_height(state: &State) -> u16 {
    u16::try_from(state.members.len()).unwrap_or(u16::MAX).saturating_add(1)
}

fn title(state: &State, area: Rect, buffer: &mut Buffer) {
    let (_, is_well) = verdict(&state.members);
    let is_linked =
        matches!(state.link, Link::Connecting | Link::Connected { read_only: false, .. });
    let clock = clock(state.now.wall);
    let left = heading(state);
    let room = usize::from(area.width).saturating_sub(width(&clock) + 2);
    let left = clipped(&left, room);
    let gap = " ".repeat(room.saturating_sub(width(&left)) + 1);
    let style = Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD);
    let style = if is_well && is_linked { style } else { style.fg(Color::Red) };
    set(buffer, area, 0, &format!("{left}{gap}{clock}"), style);
}

fn heading(state: &State) -> String {
    let (verdict, _) = verdict(&state.members);
    format!(" zk top {}   {verdict}   {}", printable(&state.path), link(state))
}

fn link(state: &State) -> String {
    let since = state.now.instant.saturating_duration_since(state.link_since).as_millis();
    let since = age(i64::try_from(since).unwrap_or(i64::MAX));
    let link = match &state.link {
        Link::Connecting => "connecting".to_owned(),
        Link::Connected { session, read_only: false } => format!("session {session}"),
        Link::Connected { session, read_only: true } => {
            format!("session {session} ON A SERVER WITHOUT QUORUM")
        }
        Link::Disconnected { session } => format!("session {session} DISCONNECTED for {since}"),
        Link::Lost { why } => format!("SESSION LOST ({}), connecting for {since}", printable(why)),
        Link::Refused { why } => format!("NO SESSION: {}", printable(why)),
    };
    match state.lost {
        0 => link,
        lost => format!("{link}, {lost} lost before"),
    }
}

/// The time of day, in UTC as servers log it.
fn clock(wall: SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(wall).to_string();
    text.split_once('T').map_or_else(String::new, |(_, time)| time.to_owned())
}

fn tabs(state: &State) -> String {
    let tab = |pane: Pane, text: String| {
        if state.pane == pane { format!("[{text}]") } else { format!(" {text} ") }
    };
    let locks = tab(Pane::Locks, format!("1 Locks {}", state.board.locks().len()));
    let tree = tab(Pane::Tree, "2 Tree".to_owned());
    let watches = tab(Pane::Watches, format!("3 Watches {}", state.watched.len()));
    let status = match state.pane {
        Pane::Locks => locks::status(state),
        Pane::Tree | Pane::Watches => String::new(),
    };
    format!("{locks}  {tree}  {watches}   {status}")
}

fn watches(state: &State, area: Rect, buffer: &mut Buffer) {
    if state.lines.is_empty() {
        let text = match state.watched.len() {
            0 => "nothing is watched: w on a lock or a node",
            _ => "nothing has happened yet",
        };
        return set(buffer, area, 0, text, Style::new().add_modifier(Modifier::DIM));
    }
    let height = usize::from(area.height);
    let end = state.lines.len().saturating_sub(state.back).max(height.min(state.lines.len()));
    let lines = state.lines.iter().take(end).skip(end.saturating_sub(height));
    for (line, text) in lines.enumerate() {
        set(buffer, area, line, text, Style::new());
    }
}

/// What was done last, or else the most useful keys.
fn foot(state: &State, area: Rect, buffer: &mut Buffer) {
    let Some(line) = usize::from(area.height).checked_sub(1).filter(|line| *line > 0) else {
        return;
    };
    match state.notice() {
        Some(notice) => {
            let color = if notice.is_bad { Color::Red } else { Color::Green };
            let style = Style::new().fg(color).add_modifier(Modifier::BOLD);
            set(buffer, area, line, &printable(&notice.text), style);
        }
        None => {
            let keys = "? help  q quit  r revoke  e evict  w watch  Tab next  Enter open  Esc back  s sort";
            set(buffer, area, line, keys, Style::new().add_modifier(Modifier::DIM));
        }
    }
}
