//! The loop: a line, what it asks for, how that has ended.

use std::{
    io::{self, IsTerminal as _},
    pin::pin,
    sync::Arc,
};

use rustix::process::Signal;
use tokio::runtime::Handle;
use zk_client::path::ZkPath;

use super::{
    complete::Helper,
    line::{self, Inherited, Line},
    place::Place,
    reader::{Read, Reader},
};
use crate::{
    args::{HelpArgs, ShellArgs, advised, is_help, mistake},
    commands::{self, Command},
    exit::{Exit, Failure},
    lock::signals::{self, Signals},
    render::{self, complain, printable},
    shared::Shared,
};

/// Those that end a shell, and one that ends what it does.
const SIGNALS: &[Signal] = &[Signal::INT, Signal::TERM, Signal::HUP];

/// What a shell has besides the words of the command line.
const OWN_WORDS: &str =
    "\nIn this shell: cd [PATH], pwd, exit or Ctrl-D; Tab completes, Up recalls lines.\n";

/// A shell.
#[derive(Debug)]
struct Shell {
    place: Place,
    shared: Arc<Shared>,
    inherited: Inherited,
    signals: Signals,
    /// From a script; otherwise a person types.
    is_script: bool,
    keep_going: bool,
    /// Of a script: how the first command that failed has ended.
    failed: Option<Exit>,
    /// The line of a script.
    number: usize,
}

/// What a line has come to.
#[derive(Debug)]
enum Outcome {
    Next,
    End(Exit),
}

pub(crate) async fn run(args: ShellArgs) -> Result<Exit, Failure> {
    // Before there is a session: what is wrong with the options is wrong with all lines.
    let _ = args.connect.options()?;
    let is_script = !io::stdin().is_terminal();
    let (place, shared) = (Place::new(ZkPath::root()), Shared::new(args.connect));
    // Without a session as long as nothing is asked of one; and before signals are caught, so that they end the wait.
    if args.path != place.path() {
        if let Err(failure) = enter(&place, &shared, args.path).await {
            shared.close().await;
            return Err(failure);
        }
    }
    let mut reader = if is_script {
        Reader::script()
    } else {
        let helper =
            Helper { place: place.clone(), shared: shared.clone(), runtime: Handle::current() };
        Reader::typed(helper)?
    };
    let mut signals = Signals::default();
    signals.catch(SIGNALS)?;
    let mut shell = Shell {
        place,
        shared,
        inherited: Inherited::of_process(),
        signals,
        is_script,
        keep_going: args.keep_going,
        failed: None,
        number: 0,
    };
    let ended = shell.serve(&mut reader).await;
    reader.restore();
    shell.shared.close().await;
    ended
}

impl Shell {
    async fn serve(&mut self, reader: &mut Reader) -> Result<Exit, Failure> {
        loop {
            let prompt = format!("zk:{}> ", printable(&self.place.path()));
            let read = {
                let mut read = pin!(reader.next(&prompt));
                loop {
                    tokio::select! {
                        biased;
                        signal = self.signals.next() => match signal {
                            // At a prompt it is a key.
                            Signal::INT if !self.is_script => {}
                            signal => return Ok(Exit::Signal(signal.as_raw())),
                        },
                        read = &mut read => break read,
                    }
                }
            };
            match read {
                Read::Interrupted => {}
                Read::End => return Ok(self.end()),
                Read::Failed(why) => return Err(Failure::new(Exit::LocalIo, why)),
                Read::Line(text) => {
                    // What was pasted may be several.
                    for line in text.lines() {
                        self.number += 1;
                        if let Outcome::End(exit) = self.carry_out(line).await {
                            return Ok(exit);
                        }
                    }
                    if !self.is_script {
                        // A command that was killed may have left it otherwise.
                        reader.restore();
                    }
                }
            }
        }
    }

    fn end(&self) -> Exit {
        self.failed.unwrap_or(Exit::Done)
    }

    async fn carry_out(&mut self, text: &str) -> Outcome {
        let advise = |failure| advised(failure, &line::words(text).unwrap_or_default());
        let ended = match line::read(text, &self.place, &self.inherited) {
            Line::Nothing => return Outcome::Next,
            Line::End => return Outcome::End(self.end()),
            Line::Where => render::bytes(format!("{}\n", printable(&self.place.path())).as_bytes())
                .map(|()| Exit::Done),
            Line::Enter(path) => enter(&self.place, &self.shared, path).await.map(|()| Exit::Done),
            Line::Overview => commands::help::run(&HelpArgs { topic: None })
                .and_then(|_| render::bytes(OWN_WORDS.as_bytes()))
                .map(|()| Exit::Done),
            Line::Wrong(why) => Err(Failure::new(Exit::Usage, why)),
            // Help goes to standard output, as for the command line.
            Line::Told(error) if is_help(&error) => {
                let _ = error.print();
                Ok(Exit::Done)
            }
            Line::Told(error) => Err(advise(mistake(error))),
            Line::Refused(failure) => Err(failure),
            Line::Command { command, is_apart } => match self.attend(*command, is_apart).await {
                Ok(ended) => ended.map_err(advise),
                Err(signal) => return Outcome::End(Exit::Signal(signal.as_raw())),
            },
        };
        let exit = ended.unwrap_or_else(|failure| {
            match self.is_script {
                true => complain(&format_args!("line {}: {failure}", self.number)),
                false => complain(&failure),
            }
            failure.exit
        });
        if self.is_script && exit.code() != 0 {
            self.failed.get_or_insert(exit);
            if !self.keep_going {
                return Outcome::End(exit);
            }
        }
        Outcome::Next
    }

    /// Runs a command to its end, or to where an interrupt ends it. The error is a signal that ends the shell.
    async fn attend(
        &mut self,
        command: Command,
        is_apart: bool,
    ) -> Result<Result<Exit, Failure>, Signal> {
        // These pass signals on to what they run, and end when that has.
        let passes_on = matches!(command, Command::Lock(_) | Command::Elect(_));
        let run = commands::run(command);
        let mut run = pin!(async {
            let ended = match is_apart {
                true => run.await,
                false => self.shared.scope(run).await,
            };
            if passes_on {
                // What has ended it is not for the next line.
                signals::settled().await;
            }
            ended
        });
        let mut ending = None;
        let ended = loop {
            tokio::select! {
                biased;
                signal = self.signals.next() => match signal {
                    Signal::INT if passes_on => {}
                    // With the future goes what it did.
                    Signal::INT => break Ok(Exit::Signal(signal.as_raw())),
                    signal if passes_on => ending = Some(signal),
                    signal => return Err(signal),
                },
                ended = &mut run => break ended,
            }
        };
        match (ending, &ended) {
            (Some(signal), _) => Err(signal),
            (None, Ok(Exit::Signal(signal)))
                if self.is_script && *signal == Signal::INT.as_raw() =>
            {
                Err(Signal::INT)
            }
            (None, Ok(Exit::Signal(_))) => {
                // The prompt begins on a line of its own.
                let _ = render::bytes(b"\n");
                Ok(ended)
            }
            _ => Ok(ended),
        }
    }
}

/// Goes to a node that is there, so that a mistake is noticed here and not with the next command.
async fn enter(place: &Place, shared: &Shared, path: ZkPath) -> Result<(), Failure> {
    let client = shared.client().await;
    if let Some(loss) = shared.loss() {
        complain(&loss);
    }
    let stat = client?.exists(&path).await.map_err(Failure::read(&path))?;
    if stat.is_none() {
        return Err(Failure::rejected(&path, zk_client::Rejection::NoNode));
    }
    place.enter(path);
    Ok(())
}
