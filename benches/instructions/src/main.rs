//! Does every piece of work once in [`counted`], which `.ci/instructions` has callgrind count, and prints what was
//! done how many times, in order.

use dlmalloc::GlobalDlmalloc;
use zk_instructions::pieces;

/// That of musl, which the program is linked with, now and then takes ten times as long, as it happens.
#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;

/// What is counted; callgrind knows it by its name.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
}

fn main() {
    for piece in pieces() {
        // What is only ever done the first time.
        piece.prepare()();
        let mut work = piece.prepare();
        counted(&mut *work);
        println!("{} {}", piece.times, piece.name);
    }
}
