//! The terminal: taken for the screen, and given back on every way out.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Write as _},
    os::fd::AsFd,
    panic,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        event::{self, Event},
        execute,
        terminal::{
            BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen,
            LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
        },
    },
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Signal, getpid, kill_process},
};
use tokio::sync::mpsc;

/// How long the thread that reads keys looks for one before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Whether the terminal is ours now: whoever panics gives it back first.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, as long as it is drawn on.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                restore();
                before(info);
            }));
        });
        take()?;
        // From here on it is given back, whatever fails.
        match Terminal::new(CrosstermBackend::new(io::stdout())) {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws what has changed, all at once.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        execute!(io::stdout(), BeginSynchronizedUpdate)?;
        self.terminal.draw(draw)?;
        execute!(io::stdout(), EndSynchronizedUpdate)
    }

    /// Stops the process, as the shell's Ctrl-Z does; returns when it goes on.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        restore();
        kill_process(getpid(), Signal::STOP)?;
        take()?;
        self.terminal.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn take() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    let taken = enable_raw_mode().and_then(|()| execute!(io::stdout(), EnterAlternateScreen));
    taken.inspect_err(|_| restore())
}

/// Gives the terminal back, once.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs nothing.
        let _ = execute!(io::stdout(), EndSynchronizedUpdate, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

/// Keys, read by a thread of their own until this is dropped.
pub(crate) struct Keys {
    events: mpsc::UnboundedReceiver<io::Result<Event>>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Keys {
    pub(crate) fn start() -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let reader = thread::spawn(move || {
            let failed = match read_keys(&sender, &until) {
                Ok(()) => return,
                Err(error) => error,
            };
            let _ = sender.send(Err(failed));
        });
        Self { events, is_over, reader: Some(reader) }
    }

    /// The next key, or change of the terminal's size; `None` if the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Event>> {
        self.events.recv().await
    }
}

impl Drop for Keys {
    /// What is typed from then on is for who reads the terminal next.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let Some(reader) = self.reader.take() else { return };
        // Of a terminal that is gone the library reads nothing for ever; that ends with the process.
        let begun = Instant::now();
        while !reader.is_finished() && begun.elapsed() < LOOK * 5 {
            thread::sleep(LOOK / 20);
        }
    }
}

/// Passes on keys, and changes of the terminal's size, until it is over or the terminal is gone.
fn read_keys(
    events: &mpsc::UnboundedSender<io::Result<Event>>,
    until: &AtomicBool,
) -> io::Result<()> {
    // Where the library reads, too.
    let stdin = io::stdin();
    let other = if stdin.is_terminal() { None } else { Some(File::open("/dev/tty")?) };
    let terminal = other.as_ref().map_or_else(|| stdin.as_fd(), AsFd::as_fd);
    while !until.load(Ordering::SeqCst) {
        let mut ready = [PollFd::from_borrowed_fd(terminal, PollFlags::IN)];
        match poll(&mut ready, Some(&Timespec::try_from(LOOK).map_err(io::Error::other)?)) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if ready[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::Error::other("it is gone"));
        }
        while !until.load(Ordering::SeqCst) && event::poll(Duration::ZERO)? {
            if events.send(event::read()).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
