//! Plays made-up sequences on the in-process server and on real ones, and shows where they differ.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use zk_testkit::real::{Release, Server};
use zk_tests::differential::{
    Batch, Difference, Golden, Memory, Sequence, Setup, Tcp, Wire, play, roots, shrink,
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
    /// What it is compared with: another real one [default: the in-process server].
    #[arg(long)]
    against: Option<Release>,
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

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(options) => run(&options),
        Command::Record { release } => record(release),
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
    let (mut operations, mut found, mut first) = (0, 0, options.first);
    while operations < options.operations {
        let variant =
            options.variant.unwrap_or_else(|| usize::try_from(first / options.batch).unwrap_or(0));
        let setup = Setup::timeless(options.release, variant);
        let batch = Batch { setup, seed: options.seed, first, count: options.batch };
        let differences = compare(&runtime, &batch, options.against);
        for difference in &differences {
            found += 1;
            if found <= options.show {
                show(&runtime, &batch, options.against, difference);
            }
        }
        operations += batch.operations();
        first += options.batch;
    }
    let against =
        options.against.map_or_else(|| "memory".to_owned(), |release| release.to_string());
    println!(
        "{operations} operations in {} sequences on {against} (-) and real {} (+), seed {}: {found} differences, {:.0?}",
        first - options.first,
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
