//! The board of locks, and the queue of the selected one.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use super::{
    super::{
        board::{Board, Entry, Focus, Lock, Order},
        search::host_and_process,
        state::{State, whom},
    },
    table::{Column, Row, Table, set},
};
use crate::{
    found,
    render::{Lean, age, age_millis, printable},
};

const LOCKS: [Column; 8] = [
    Column { title: "LOCK", lean: Lean::Left, rank: 0, least: 20 },
    Column { title: "KIND", lean: Lean::Left, rank: 6, least: 0 },
    Column { title: "HOLDER", lean: Lean::Left, rank: 0, least: 12 },
    Column { title: "PID", lean: Lean::Right, rank: 4, least: 0 },
    Column { title: "HELD", lean: Lean::Right, rank: 1, least: 0 },
    Column { title: "WAITING", lean: Lean::Right, rank: 2, least: 0 },
    Column { title: "LONGEST", lean: Lean::Right, rank: 3, least: 0 },
    Column { title: "HAND/S", lean: Lean::Right, rank: 5, least: 0 },
];

const QUEUE: [Column; 8] = [
    Column { title: "", lean: Lean::Right, rank: 0, least: 0 },
    Column { title: "STATE", lean: Lean::Left, rank: 2, least: 0 },
    Column { title: "WHO", lean: Lean::Left, rank: 0, least: 8 },
    Column { title: "PID", lean: Lean::Right, rank: 1, least: 0 },
    Column { title: "SINCE", lean: Lean::Right, rank: 0, least: 0 },
    Column { title: "TOKEN", lean: Lean::Right, rank: 3, least: 0 },
    Column { title: "SESSION", lean: Lean::Left, rank: 4, least: 0 },
    Column { title: "NODE", lean: Lean::Left, rank: 5, least: 20 },
];

/// From here on a list and a queue fit on top of each other.
const BOTH: u16 = 8;

pub(crate) fn draw(state: &State, area: Rect, buffer: &mut Buffer) {
    let board = &state.board;
    let Some(selected) = board.selected() else {
        return set(buffer, area, 0, &nothing(state), Style::new().add_modifier(Modifier::DIM));
    };
    if area.height < BOTH {
        return match board.focus {
            Focus::Locks => list(state, area, buffer),
            Focus::Queue => queue(state, selected, area, buffer),
        };
    }
    let rows = u16::try_from(board.locks().len()).unwrap_or(u16::MAX).saturating_add(1);
    let share = match board.focus {
        Focus::Locks => area.height * 3 / 5,
        Focus::Queue => area.height / 3,
    };
    let above = Rect { height: rows.min(share), ..area };
    let below =
        Rect { y: area.y + above.height + 1, height: area.height - above.height - 1, ..area };
    list(state, above, buffer);
    queue(state, selected, below, buffer);
}

/// What is searched and how old it is, in a few words.
pub(crate) fn status(state: &State) -> String {
    let Board { searched, read_at, error, order, .. } = &state.board;
    let mut words = Vec::new();
    if *order == Order::Wait {
        words.push("longest wait first".to_owned());
    }
    if searched.left_out > 0 {
        words.push(format!("{} more locks are not followed", searched.left_out));
    }
    if searched.unread > 0 {
        words.push(format!("{} ephemeral nodes not looked at: name a path", searched.unread));
    }
    if searched.hidden > 0 {
        words.push(format!("{} nodes could not be listed", searched.hidden));
    }
    if !searched.is_complete && read_at.is_some() {
        words.push(format!("only the first {} nodes searched: name a path", searched.nodes));
    }
    if let Some(error) = error {
        let since = read_at.map(|at| state.now.instant.saturating_duration_since(at).as_millis());
        let since = since
            .map(|since| format!("as of {} ago: ", age(i64::try_from(since).unwrap_or(i64::MAX))));
        words.push(format!("{}{error}", since.unwrap_or_default()));
    }
    words.join("; ")
}

fn nothing(state: &State) -> String {
    let path = printable(&state.path);
    match state.board.read_at {
        None => format!("looking for locks below {path}"),
        Some(_) => {
            format!(
                "no locks and no elections below {path}: {} nodes searched",
                state.board.searched.nodes
            )
        }
    }
}

/// The list alone.
pub(crate) fn list(state: &State, area: Rect, buffer: &mut Buffer) {
    let board = &state.board;
    let rows = board.locks().into_iter().map(|lock| lock_row(state, lock)).collect();
    let is_marked = board.focus == Focus::Locks;
    Table { columns: &LOCKS, rows, place: board.place(), is_marked }.draw(area, buffer);
}

fn lock_row(state: &State, lock: &Lock) -> Row {
    let reading = &lock.reading;
    let since = |entry: &Entry| age(age_millis(entry.contender.since, state.now.wall));
    let dash = || "-".to_owned();
    let (mut host, pid) = lock.holder().map_or_else(|| ("free".to_owned(), dash()), host);
    if reading.held > 1 {
        host = format!("{host} +{}", reading.held - 1);
    }
    let cells = vec![
        printable(&reading.path),
        lock.kind().to_owned(),
        host,
        pid,
        lock.holder().map_or_else(dash, |entry| held(state, lock, entry)),
        reading.waiting.to_string(),
        lock.first_waiter().map_or_else(dash, since),
        lock.handovers().map_or_else(dash, |rate| format!("{rate:.1}")),
    ];
    let style = match (reading.held, reading.waiting) {
        (0, 0) => Style::new().add_modifier(Modifier::DIM),
        (_, 0) => Style::new(),
        _ => Style::new().fg(Color::Yellow),
    };
    Row { cells, tail: None, style }
}

/// For how long the lock has been held: since it was seen to change hands, or at most since its holder joined.
fn held(state: &State, lock: &Lock, holder: &Entry) -> String {
    let joined = age_millis(holder.contender.since, state.now.wall);
    let seen =
        lock.granted_at.map(|at| state.now.instant.saturating_duration_since(at).as_millis());
    match seen.map(|seen| i64::try_from(seen).unwrap_or(i64::MAX)) {
        // It joined a lock that was free.
        Some(seen) => age(seen.min(joined)),
        None => format!("≤{}", age(joined)),
    }
}

/// Host and process of a contender, as far as it says.
fn host(entry: &Entry) -> (String, String) {
    let description = entry.contender.description();
    match host_and_process(&description) {
        Some((host, pid)) => (printable(host), pid.to_string()),
        None => (whom(entry), "-".to_owned()),
    }
}

/// How many lines all of a queue takes, its title included.
pub(crate) fn queue_height(lock: &Lock) -> usize {
    let reading = &lock.reading;
    let left_out = reading.held + reading.waiting > reading.entries.len();
    2 + reading.entries.len() + usize::from(left_out)
}

/// Holders and waiters of one lock, below a title.
pub(crate) fn queue(state: &State, lock: &Lock, area: Rect, buffer: &mut Buffer) {
    let reading = &lock.reading;
    let (path, held, waiting) = (printable(&reading.path), reading.held, reading.waiting);
    let title = format!(
        "Queue of {path}: {held} {}, {waiting} {}",
        verb(held, "hold"),
        verb(waiting, "wait")
    );
    set(buffer, area, 0, &title, Style::new().fg(Color::Cyan));
    let left_out = (held + waiting).saturating_sub(reading.entries.len());
    let foot = usize::from(left_out > 0 && area.height > 3);
    let table = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1 + u16::from(foot == 1)),
        ..area
    };
    let is_marked = state.board.focus == Focus::Queue;
    let rows = reading.entries.iter().enumerate();
    let rows = rows.map(|(index, entry)| entry_row(state, index, entry)).collect();
    Table { columns: &QUEUE, rows, place: state.board.queue_place(), is_marked }
        .draw(table, buffer);
    if foot == 1 {
        let line = usize::from(area.height) - 1;
        let text = format!("and {left_out} more");
        set(buffer, area, line, &text, Style::new().add_modifier(Modifier::DIM));
    }
}

/// The verb for so many.
fn verb(count: usize, verb: &str) -> String {
    if count == 1 { format!("{verb}s") } else { verb.to_owned() }
}

fn entry_row(state: &State, index: usize, entry: &Entry) -> Row {
    let Entry { contender, holds, .. } = entry;
    let (host, pid) = host(entry);
    let kind = match holds {
        true => "holds",
        false => "waits",
    };
    let kind = match found::name(contender.kind) {
        it @ ("read" | "write") => format!("{kind} ({it})"),
        _ => kind.to_owned(),
    };
    let cells = vec![
        (index + 1).to_string(),
        kind,
        host,
        pid,
        age(age_millis(contender.since, state.now.wall)),
        contender.token.to_string(),
        contender.session.to_string(),
        printable(&contender.name),
    ];
    let style = if *holds { Style::new().fg(Color::Green) } else { Style::new() };
    Row { cells, tail: None, style }
}
