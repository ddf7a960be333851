//! Which key asks for what.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{
    cursor::Motion,
    state::{Action, Overlay, Pane, State},
};

/// What the help lists, in its order: keys, and what they do.
pub(crate) const KEYS: [(&str, &str); 12] = [
    ("1 2 3, Tab", "locks, tree, watches"),
    ("↑ ↓, j k", "move; also PgUp, PgDn, Home, End, g, G"),
    ("Enter, →, l", "into a lock's queue; open a node"),
    ("Esc, ←, h", "back; close a node"),
    ("r", "revoke: ask the selected holder to give the lock back"),
    ("e", "evict: take the selected contender's place away"),
    ("w", "watch the selected path, or stop that"),
    ("s", "sort locks by path, or by the longest wait"),
    ("F5, Ctrl-L", "ask again, and search for locks"),
    ("?", "this help"),
    ("Ctrl-Z", "suspend"),
    ("q, Ctrl-C", "quit"),
];

/// What a key asks for, with the screen as it is.
pub(crate) fn action(state: &State, key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match (key.code, is_control) {
        (KeyCode::Char('c'), true) => return Some(Action::Quit),
        (KeyCode::Char('z'), true) => return Some(Action::Suspend),
        (KeyCode::Char('l'), true) => return Some(Action::Refresh),
        (_, true) => return None,
        _ => {}
    }
    match &state.overlay {
        // Nothing but a yes is one.
        Some(Overlay::Confirm(_)) => Some(match key.code {
            KeyCode::Char('y' | 'Y') => Action::Confirm,
            _ => Action::Dismiss,
        }),
        Some(Overlay::Help) => Some(match key.code {
            KeyCode::Char('q') => Action::Quit,
            _ => Action::Dismiss,
        }),
        None => plain(key.code),
    }
}

fn plain(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Char('q') => Action::Quit,
        KeyCode::Char('?') | KeyCode::F(1) => Action::Help,
        KeyCode::Char('1') => Action::Show(Pane::Locks),
        KeyCode::Char('2') => Action::Show(Pane::Tree),
        KeyCode::Char('3') => Action::Show(Pane::Watches),
        KeyCode::Tab => Action::Next,
        KeyCode::Up | KeyCode::Char('k') => Action::Move(Motion::Up),
        KeyCode::Down | KeyCode::Char('j') => Action::Move(Motion::Down),
        KeyCode::PageUp => Action::Move(Motion::PageUp),
        KeyCode::PageDown | KeyCode::Char(' ') => Action::Move(Motion::PageDown),
        KeyCode::Home | KeyCode::Char('g') => Action::Move(Motion::First),
        KeyCode::End | KeyCode::Char('G') => Action::Move(Motion::Last),
        KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => Action::Enter,
        KeyCode::Esc | KeyCode::Left | KeyCode::Char('h') => Action::Leave,
        KeyCode::Char('r') => Action::Revoke,
        KeyCode::Char('e') => Action::Evict,
        KeyCode::Char('w') => Action::Watch,
        KeyCode::Char('s') => Action::Sort,
        KeyCode::F(5) => Action::Refresh,
        _ => return None,
    })
}
