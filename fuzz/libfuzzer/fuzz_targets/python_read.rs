#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moothall_fuzz::python_read(data));
