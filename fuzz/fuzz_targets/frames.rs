#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| zk_fuzz::run(zk_tests::fuzz::FRAMES, input));
