//! Columns that fit: the least important ones go first, texts are cut short before that.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::Span,
};

use super::super::cursor::scrolled;
use crate::render::Lean;

/// Between two columns.
const GAP: usize = 2;

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) lean: Lean,
    /// Columns of the highest rank are left out first, those of rank 0 never.
    pub(crate) rank: u8,
    /// To how much it may be cut short; 0 if not at all.
    pub(crate) least: usize,
}

/// A line of a table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// A text in place of all cells behind those, as wide as there is room.
    pub(crate) tail: Option<String>,
    pub(crate) style: Style,
}

/// A table, and where the cursor is in it.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    pub(crate) columns: &'a [Column],
    pub(crate) rows: Vec<Row>,
    /// The row that is always shown, and whether it is marked.
    pub(crate) place: usize,
    pub(crate) is_marked: bool,
}

impl Table<'_> {
    /// Draws the headings and as many rows as there is room for.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        let widths = self.widths(usize::from(area.width));
        let titles = self.columns.iter().map(|column| column.title);
        let heading = self.line(&widths, titles);
        let style = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        set(buffer, area, 0, &heading, style);
        let height = usize::from(area.height) - 1;
        let first = scrolled(self.place, self.rows.len(), height.max(1));
        for (line, (index, row)) in
            self.rows.iter().enumerate().skip(first).take(height).enumerate()
        {
            let mut text = self.line(&widths, row.cells.iter().map(String::as_str));
            if let Some(tail) = &row.tail {
                text.push_str(&" ".repeat(GAP));
                text.push_str(tail);
            }
            let marked = self.is_marked && index == self.place;
            let style = if marked { row.style.add_modifier(Modifier::REVERSED) } else { row.style };
            set(buffer, area, line + 1, &text, style);
        }
    }

    fn line<'a>(&self, widths: &[Option<usize>], cells: impl Iterator<Item = &'a str>) -> String {
        let shown = cells.zip(widths).zip(self.columns);
        let cells =
            shown.filter_map(|((cell, width), column)| Some(cut(cell, (*width)?, column.lean)));
        cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
    }

    /// Of each column that is shown.
    fn widths(&self, room: usize) -> Vec<Option<usize>> {
        let natural = |index: usize, column: &Column| {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(index));
            cells.map(|cell| width(cell)).max().unwrap_or_default().max(width(column.title))
        };
        let columns = self.columns.iter().enumerate();
        let mut widths: Vec<_> =
            columns.map(|(index, column)| Some(natural(index, column))).collect();
        loop {
            let shown = widths.iter().flatten().count();
            let taken = widths.iter().flatten().sum::<usize>() + GAP * shown.saturating_sub(1);
            let excess = taken.saturating_sub(room);
            let slack = |(width, column): (&Option<usize>, &Column)| match (width, column.least) {
                (None, _) | (_, 0) => 0,
                (Some(width), least) => width.saturating_sub(least),
            };
            let slacks: Vec<_> = widths.iter().zip(self.columns).map(slack).collect();
            let least_important = self
                .columns
                .iter()
                .enumerate()
                .filter(|(index, column)| widths[*index].is_some() && column.rank > 0);
            let least_important = least_important.max_by_key(|(_, column)| column.rank);
            match least_important {
                Some((index, _)) if excess > slacks.iter().sum() => widths[index] = None,
                _ => {
                    shorten(&mut widths, slacks, excess);
                    return widths;
                }
            }
        }
    }
}

/// Takes what is too much from where there is most to take.
fn shorten(widths: &mut [Option<usize>], mut slacks: Vec<usize>, excess: usize) {
    for _ in 0..excess {
        let Some((index, slack)) = slacks.iter_mut().enumerate().max_by_key(|(_, slack)| **slack)
        else {
            return;
        };
        if *slack == 0 {
            return;
        }
        *slack -= 1;
        widths[index] = widths[index].map(|width| width - 1);
    }
}

/// Columns of the terminal that a text takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A text of exactly this width.
fn cut(text: &str, room: usize, lean: Lean) -> String {
    let mut text = clipped(text, room);
    let pad = " ".repeat(room.saturating_sub(width(&text)));
    match lean {
        Lean::Left => text.push_str(&pad),
        Lean::Right => text.insert_str(0, &pad),
    }
    text
}

/// A text of this width at most; an ellipsis says that there is more.
pub(crate) fn clipped(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let (mut clipped, mut taken) = (String::new(), 0);
    for c in text.chars() {
        let wide = width(c.encode_utf8(&mut [0; 4]));
        if taken + wide + 1 > room {
            break;
        }
        taken += wide;
        clipped.push(c);
    }
    if room > 0 {
        clipped.push('…');
    }
    clipped
}

/// Writes a line, in this style over the whole width.
pub(crate) fn set(buffer: &mut Buffer, area: Rect, line: usize, text: &str, style: Style) {
    let Ok(line) = u16::try_from(line) else { return };
    if line >= area.height || area.width == 0 {
        return;
    }
    let (x, y) = (area.x, area.y + line);
    let text = clipped(text, usize::from(area.width));
    buffer.set_string(x, y, &text, style);
    buffer.set_style(Rect::new(x, y, area.width, 1), style);
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column { title: "NAME", lean: Lean::Left, rank: 0, least: 4 },
        Column { title: "N", lean: Lean::Right, rank: 1, least: 0 },
        Column { title: "MORE", lean: Lean::Left, rank: 2, least: 0 },
    ];

    fn drawn(width: u16) -> Vec<String> {
        let cells = ["0123456789", "12", "x"].map(str::to_owned).to_vec();
        let rows = vec![Row { cells, tail: None, style: Style::new() }];
        let table = Table { columns: &COLUMNS, rows, place: 0, is_marked: false };
        let area = Rect::new(0, 0, width, 2);
        let mut buffer = Buffer::empty(area);
        table.draw(area, &mut buffer);
        super::super::lines(&buffer).lines().map(str::to_owned).collect()
    }

    #[test]
    fn texts_are_cut_before_columns_are_left_out() {
        assert_eq!(drawn(30), ["NAME         N  MORE", "0123456789  12  x"]);
        assert_eq!(drawn(16), ["NAME     N  MORE", "01234…  12  x"]);
        assert_eq!(drawn(12), ["NAME       N", "0123456…  12"]);
        assert_eq!(drawn(5), ["NAME", "0123…"]);
        assert_eq!(drawn(1), ["…", "…"]);
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(clipped("日本語", 6), "日本語");
        assert_eq!(clipped("日本語", 5), "日本…");
        assert_eq!(clipped("日本語", 4), "日…");
        assert_eq!(clipped("ab", 0), "");
    }
}
