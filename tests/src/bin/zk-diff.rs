//! Plays made-up sequences on the in-process server and on real ones, and shows where they differ.

use std::{process::ExitCode, str::FromStr};

use clap::{Args, Parser, Subcommand};
use zk_testkit::real::{Release, Server};
use zk_tests::differential::{
    Batch, Difference, Golden, Memory, Sequence, Setup, Tally, Tcp, Wire, play, roots, shrink,
};

/// Plays made-up sequences on the in-process server and on real ones, and shows where they differ.
#[derive(Debug, Parser)]
#[command(name = "zk-diff")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plays sequences on two servers and shows where they differ.
    Run(Options),
    /// Prints a sequence.
    Show {
        #[arg(long)]
        seed: u64,
        #[arg(long)]
        first: u64,
        #[arg(long, default_value_t = Release::NEWEST)]
        release: Release,
    },
    /// Keeps what a real server does, for the tests that do without one.
    Record {
        #[arg(long, default_value_t = Release::NEWEST)]
        release: Release,
    },
}

#[derive(Clone, Debug, Args)]
struct Options {
    /// The real server.
    #[arg(long, default_value_t = Release::NEWEST)]
    release: Release,
    /// What it is compared with: the in-process server ("memory"), or another real one.
    #[arg(long, default_value = "memory")]
    against: Against,
    /// So many operations, or a few more.
    #[arg(long, default_value_t = 20_000)]
    operations: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first sequence.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Sequences for which a server is started.
    #[arg(long, default_value_t = 250)]
    batch: u64,
    /// How servers are set up [default: in turn].
    #[arg(long)]
    variant: Option<usize>,
    /// So many differences are shown.
    #[arg(long, default_value_t = 10)]
    show: usize,
}

/// The in-process server if it is no real one.
#[derive(Clone, Copy, Debug)]
struct Against(Option<Release>);

impl FromStr for Against {
    type Err = <Release as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "memory" { Ok(Self(None)) } else { text.parse().map(|it| Self(Some(it))) }
    }
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(options) => run(&options),
        Command::Record { release } => record(release),
        Command::Show { seed, first, release } => {
            let setup = Setup::timeless(release, 0);
            let batch = Batch { setup, seed, first, count: 1 };
            batch.sequences().for_each(|sequence| print!("{sequence}"));
            ExitCode::SUCCESS
        }
    }
}

/// One of the two that are compared.
struct Side {
    wire: Box<dyn Wire + Send>,
    /// If it is a real one.
    server: Option<Server>,
}

impl Drop for Side {
    fn drop(&mut self) {
        if let (Some(server), true) = (&self.server, std::thread::panicking()) {
            eprintln!("{}", server.log_tail(60));
        }
    }
}

impl Side {
    fn start(runtime: &tokio::runtime::Runtime, setup: &Setup, is_real: bool) -> Self {
        if !is_real {
            return Self { wire: Box::new(Memory::new(setup.ensemble())), server: None };
        }
        let server = runtime.block_on(setup.start()).unwrap_or_else(|error| panic!("{error}"));
        Self { wire: Box::new(Tcp::new(server.addr())), server: Some(server) }
    }
}

/// Writes down what a real server does with the batches that are kept.
fn record(release: Release) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = Golden::folder();
    std::fs::create_dir_all(&folder).expect("a folder that can be written");
    for number in 0..Golden::BATCHES {
        let batch = Golden::batch(release, number);
        let server =
            runtime.block_on(batch.setup.start()).unwrap_or_else(|error| panic!("{error}"));
        let records = batch.play(&mut Tcp::new(server.addr()));
        let golden = Golden { version: server.version().to_string(), number, batch, records };
        let file = folder.join(format!("{}-{number}.txt", release));
        let text = golden.text();
        println!("{}: {} bytes", file.display(), text.len());
        std::fs::write(&file, text).expect("a file that can be written");
    }
    ExitCode::SUCCESS
}

fn run(options: &Options) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let began = std::time::Instant::now();
    let mut total = Tally::default();
    let mut found = 0;
    let mut first = options.first;
    while total.operations < options.operations {
        let variant =
            options.variant.unwrap_or_else(|| usize::try_from(first / options.batch).unwrap_or(0));
        let setup = Setup::timeless(options.release, variant);
        let batch = Batch { setup, seed: options.seed, first, count: options.batch };
        let differences = compare(&runtime, &batch, options.against.0);
        for difference in &differences {
            found += 1;
            if found <= options.show {
                show(&runtime, &batch, options.against.0, difference);
            }
        }
        let tally = batch.tally();
        total.operations += tally.operations;
        total.sequences += tally.sequences;
        first += options.batch;
    }
    let against =
        options.against.0.map_or_else(|| "memory".to_owned(), |release| release.to_string());
    println!(
        "{} operations in {} sequences on {against} (-) and real {} (+), seed {}: {found} differences, {:.0?}",
        total.operations,
        total.sequences,
        options.release,
        options.seed,
        began.elapsed(),
    );
    ExitCode::from(u8::from(found > 0))
}

/// Both sides of a batch, just started.
fn sides(
    runtime: &tokio::runtime::Runtime,
    setup: &Setup,
    against: Option<Release>,
) -> (Side, Side) {
    let ours = Setup { release: against.unwrap_or(setup.release), ..*setup };
    (Side::start(runtime, &ours, against.is_some()), Side::start(runtime, setup, true))
}

fn compare(
    runtime: &tokio::runtime::Runtime,
    batch: &Batch,
    against: Option<Release>,
) -> Vec<Difference> {
    let (mut ours, mut theirs) = sides(runtime, &batch.setup, against);
    let (ours, theirs) = std::thread::scope(|scope| {
        let ours = scope.spawn(|| batch.play(&mut *ours.wire));
        let theirs = batch.play(&mut *theirs.wire);
        (ours.join().expect("our side plays to the end"), theirs)
    });
    batch.differences(&ours, &theirs)
}

/// Prints the shortest sequence that still makes a difference.
fn show(
    runtime: &tokio::runtime::Runtime,
    batch: &Batch,
    against: Option<Release>,
    difference: &Difference,
) {
    let (mut ours, mut theirs) = sides(runtime, &batch.setup, against);
    let mut roots = roots();
    let mut between = |sequence: &Sequence| {
        let root = roots.next().expect("there is always another one");
        let (ours, theirs) =
            (play(sequence, &root, &mut *ours.wire), play(sequence, &root, &mut *theirs.wire));
        Difference::between(difference.index, sequence.clone(), &ours, &theirs)
    };
    if between(&difference.sequence).is_none() {
        println!("only after what came before:\n{difference}");
        return;
    }
    let shrunk = shrink(&difference.sequence, |sequence| between(sequence).is_some());
    match between(&shrunk) {
        Some(shrunk) => println!("{shrunk}"),
        None => println!("comes and goes:\n{difference}"),
    }
}
