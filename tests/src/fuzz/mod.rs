//! What must hold for any input, one function for each fuzz target. The targets only call these, so
//! that an input that a fuzzer has found can be replayed without one.

mod connect;
mod connect_string;
mod decode;
mod frames;
mod mutate;
mod parts;
mod path;
mod server_inputs;
mod server_requests;

pub use self::{decode::choice_of, mutate::Mutator};

/// One function, and what it may take.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Target {
    /// What the fuzzer's binary and the folder of saved inputs are called.
    pub name: &'static str,
    /// What must not panic.
    pub run: fn(&[u8]),
    /// Bytes of memory that it may hold at once besides a share for each byte of input.
    pub memory: u64,
    /// That share.
    pub memory_per_byte: u64,
    /// Whether an input is a whole story and not something to decode.
    pub is_stateful: bool,
}

/// A target that shows what it has decoded as JSON, which takes many small pieces of memory.
const fn codec(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, memory: 64 << 10, memory_per_byte: 512, is_stateful: false }
}

/// A target that keeps books on everything that happens.
const fn stateful(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, memory: 1 << 20, memory_per_byte: 8 << 10, is_stateful: true }
}

/// Makes a constant of each target, and a list of all. A fuzzer names the constant, so that nothing of
/// the others is linked, counted and looked through after each input.
macro_rules! targets {
    ($($constant:ident = $kind:ident($name:literal, $run:expr);)*) => {
        $(
            #[doc = concat!("The target `", $name, "`.")]
            pub const $constant: Target = $kind($name, $run);
        )*

        /// All of them.
        pub const TARGETS: &[Target] = &[$($constant),*];
    };
}

targets! {
    REPLY_DECODE = codec("reply_decode", decode::reply_decode);
    REQUEST_DECODE = codec("request_decode", decode::request_decode);
    PATH = codec("path", path::path);
    CONNECT_STRING = codec("connect_string", connect_string::connect_string);
    FRAMES = codec("frames", frames::frames);
    SESSION_INPUTS = stateful("session_inputs", crate::hostile::session_inputs);
    SERVER_INPUTS = stateful("server_inputs", server_inputs::server_inputs);
}

impl Target {
    /// The target of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Most bytes of memory that an input of `len` bytes may make it hold at once.
    #[must_use]
    pub const fn memory_max(&self, len: usize) -> u64 {
        self.memory + self.memory_per_byte * len as u64
    }
}
