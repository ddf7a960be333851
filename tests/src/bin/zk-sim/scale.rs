//! `zk-sim scale`: what more of something costs.

use std::{fs, io, path::Path, process::ExitCode};

use zk_tests::scale::filled;

pub(crate) fn run(most: usize, write: bool) -> ExitCode {
    match page(most, write) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("docs/scale.md: {error}");
            ExitCode::from(2)
        }
    }
}

fn page(most: usize, write: bool) -> io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scale.md");
    let filled = filled(&fs::read_to_string(&path)?, most);
    if write {
        return fs::write(path, filled);
    }
    print!("{filled}");
    Ok(())
}
