//! The pictures of the README: what `zk top` and `zk demo` show, on real servers, as text in SVG.
//!
//! `REWRITE=1 cargo test -p zk-command --test cli pictures` makes them again. Without that they are compared with what the
//! programs show now, but for what differs each time.

use std::{fmt::Write as _, fs, path::Path};

use vt100::Color;
use zk_testkit::real::{Ensemble, Release};

use crate::{
    screen::Screen,
    support::{Running, zk},
};

/// Of a character, in pixels.
const WIDTH: u32 = 8;
const HEIGHT: u32 = 18;

/// Around the text.
const MARGIN: u32 = 12;

/// Both palettes have a contrast of 4.5 and more.
const STYLE: &str = "\
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}
.ground{fill:#f6f8fa}.c0{fill:#1f2328}.c1{fill:#a40e26}.c2{fill:#116329}.c3{fill:#7d4e00}.c6{fill:#0550ae}.back{fill:#f6f8fa}
@media (prefers-color-scheme:dark){
.ground{fill:#161b22}.c0{fill:#e6edf3}.c1{fill:#ff7b72}.c2{fill:#56d364}.c3{fill:#e3b341}.c6{fill:#79c0ff}.back{fill:#161b22}}";

/// Cells next to each other that look the same.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    column: u32,
    text: String,
    /// The number of a color in both palettes.
    color: u8,
    bold: bool,
    inverse: bool,
}

fn runs(screen: &vt100::Screen, row: u16) -> Vec<Run> {
    let (_, columns) = screen.size();
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation())
        else {
            continue;
        };
        let color = match cell.fgcolor() {
            Color::Idx(color @ (1 | 2 | 3 | 6)) => color,
            Color::Idx(color @ (9 | 10 | 11 | 14)) => color - 8,
            _ => 0,
        };
        let text = if cell.has_contents() { cell.contents() } else { " ".to_owned() };
        let (bold, inverse) = (cell.bold(), cell.inverse());
        match runs.last_mut() {
            Some(run) if (run.color, run.bold, run.inverse) == (color, bold, inverse) => {
                run.text.push_str(&text);
            }
            _ => runs.push(Run { column: column.into(), text, color, bold, inverse }),
        }
    }
    runs
}

/// A screen as a picture, below the command that made it.
fn svg(command: &str, screen: &vt100::Screen, rows: u16) -> String {
    let columns = u32::from(screen.size().1);
    let (width, height) =
        (columns * WIDTH + 2 * MARGIN, (u32::from(rows) + 2) * HEIGHT + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>{}</title>\n<style>\n{STYLE}\n</style>\n\
         <rect class=\"ground\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n",
        escaped(command)
    );
    let mut line = |row: u32, run: &Run| {
        let (x, y) = (MARGIN + run.column * WIDTH, MARGIN + row * HEIGHT);
        let len = u32::try_from(run.text.chars().count()).unwrap() * WIDTH;
        let mut class = format!("c{}", run.color);
        if run.inverse {
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{len}\" height=\"{HEIGHT}\"/>"
            );
            class = "back".to_owned();
        }
        let text = run.text.trim_end();
        if text.is_empty() {
            return;
        }
        // Whatever font there is, columns stay columns.
        let len = u32::try_from(text.chars().count()).unwrap() * WIDTH;
        let weight = if run.bold { " font-weight=\"bold\"" } else { "" };
        let _ = writeln!(
            svg,
            "<text class=\"{class}\" x=\"{x}\" y=\"{}\" textLength=\"{len}\"{weight} xml:space=\"preserve\">{}</text>",
            y + HEIGHT - 5,
            escaped(text)
        );
    };
    let prompt = format!("$ {command}");
    line(0, &Run { column: 0, text: prompt, color: 0, bold: true, inverse: false });
    for row in 0..rows {
        runs(screen, row).iter().for_each(|run| line(u32::from(row) + 2, run));
    }
    svg + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What a picture says, without what differs each time.
fn lasting(svg: &str) -> Vec<String> {
    let words = svg.lines().filter(|line| line.starts_with("<text")).flat_map(|line| {
        let text = line.split_once('>').map_or("", |(_, text)| text);
        text.trim_end_matches("</text>").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    let is_lasting =
        |word: &String| word.chars().all(|c| c.is_ascii_uppercase() || c == '/' || c == ':');
    let mut words: Vec<_> = words.filter(is_lasting).collect();
    words.sort();
    words.dedup();
    words
}

/// Compares a picture with the one that is kept, or keeps it.
fn check(name: &str, svg: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, svg).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(lasting(svg), lasting(&kept), "docs/{name} is not what there is to see: REWRITE=1");
}

#[tokio::test]
async fn pictures_of_top_are_what_it_shows() {
    let ensemble = Ensemble::start(Release::V3_9).await.unwrap();
    let servers = ensemble.connect_string();
    let hold = |args: &[&str]| {
        let mut command = zk(&servers);
        command.args(args).args(["--", "sh", "-c", "echo held; read -r x"]);
        Running::start(&mut command)
    };
    let mut held = [
        hold(&["elect", "/elections/scheduler"]),
        hold(&["lock", "/locks/report"]),
        hold(&["lock", "--semaphore", "2", "/locks/upload"]),
        hold(&["lock", "--semaphore", "2", "/locks/upload"]),
    ];
    for holder in &mut held {
        holder.line().await;
    }
    let _waiting = [
        hold(&["elect", "/elections/scheduler"]),
        hold(&["lock", "/locks/report"]),
        hold(&["lock", "--semaphore", "2", "/locks/upload"]),
    ];
    // Through a proxy of its own, and so to one server.
    let member = ensemble.members()[0].connect_string();
    let demo = ["demo", "--server", &member, "--contenders", "12", "--rounds", "10000"];
    let _demo = Running::start(zk("").args(demo).args(["--hold", "40", "--path", "/demo/lock"]));
    let mut screen = Screen::start(&servers, &["top"], 28, 110);
    screen
        .until("the demo's hand-overs", |text| {
            let line = text.lines().find(|line| line.starts_with("/demo/lock"));
            let rate = line.and_then(|line| line.split_whitespace().last()?.parse::<f64>().ok());
            let scheduler = text.lines().find(|line| line.starts_with("/elections/scheduler"));
            let waits = scheduler.is_some_and(|line| line.split_whitespace().nth(5) == Some("1"));
            rate.is_some_and(|rate| rate > 1.0) && waits && text.contains("leads")
        })
        .await;
    // The cursor stays on the busiest one.
    let picture = svg("zk top", screen.screen(), 28);
    check("top.svg", &picture);
}

#[tokio::test]
async fn pictures_of_the_demo_are_what_it_shows() {
    let args = ["demo", "--contenders", "20"];
    let mut screen = Screen::start("", &args, 60, 80);
    screen.see("PASSED").await;
    assert_eq!(screen.ended().await, Some(0));
    let rows = screen.text().trim_end().lines().count();
    let picture =
        svg(&format!("zk {}", args.join(" ")), screen.screen(), u16::try_from(rows).unwrap());
    check("demo.svg", &picture);
}
