//! Every target holds for its seeds, and for variations of them that are the same in every run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

use std::ops::Range;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const VARIATIONS: u32 = 300;

/// Bytes that formats treat specially.
const SPECIAL: &[&[u8]] = &[
    b"\0",
    b"\n",
    b"\r\n",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"-",
    b"0",
    b"```",
    b"../",
    b"\x1b[",
    b"\x1e",
    b"\xff",
    b"\xe2\x80\xae",
    b"null",
    b"99999999999999999999",
    b"data: ",
];

macro_rules! targets {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        mod seeds_and_their_variations_pass {
            $(#[test]
            fn $name() {
                super::check(stringify!($name), moothall_fuzz::$name);
            })*
        }
    };
}

targets! {
    claims_check
    company_facts
    debate_replies
    draft_paths
    filing_text
    gate_patches
    gate_policy
    git_patches
    guest_agent_frames
    guest_frames
    python_read
    receipt_verify
    secret_scan
    structured_read
    wire_decode
}

#[test]
fn libfuzzer_runs_every_target() {
    let folder = fuzz().join("libfuzzer");
    let manifest = fs_err::read_to_string(folder.join("Cargo.toml")).unwrap();
    let bins: Vec<_> =
        manifest.split("[[bin]]").skip(1).map(|bin| bin.lines().nth(1).unwrap()).collect();
    assert_eq!(bins, NAMES.iter().map(|name| format!("name = \"{name}\"")).collect::<Vec<_>>());
    for name in NAMES {
        let target =
            fs_err::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        let call =
            format!("libfuzzer_sys::fuzz_target!(|data: &[u8]| moothall_fuzz::{name}(data));");
        assert_eq!(target, format!("#![no_main]\n\n{call}\n"));
    }
}

#[derive(Debug, Clone)]
enum Change {
    Replace(Range<Index>, Vec<u8>),
    Repeat(Range<Index>, usize),
    FlipBit(Index, u8),
}

fn check(name: &str, target: fn(&[u8])) {
    let seeds = seeds(name);
    for seed in &seeds {
        target(seed);
    }
    // Of the other targets too: no format may trip over another one.
    let all: Vec<_> = NAMES.iter().flat_map(|name| self::seeds(name)).collect();
    let variation = (select(seeds), vec(change(all), 1..6)).prop_map(|(mut bytes, changes)| {
        for change in &changes {
            apply(&mut bytes, change);
        }
        bytes
    });
    let config = Config { cases: VARIATIONS, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng)
        .run(&variation, |bytes| {
            target(&bytes);
            Ok(())
        })
        .unwrap();
}

fn change(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Change> {
    let range = || (any::<Index>(), any::<Index>()).prop_map(|(start, end)| start..end);
    let special = select(SPECIAL).prop_map(<[u8]>::to_vec);
    let part =
        (select(seeds), range()).prop_map(|(seed, range)| seed[within(&seed, &range)].to_vec());
    let bytes = prop_oneof![4 => special, 2 => part, 2 => vec(any::<u8>(), 0..8)];
    prop_oneof![
        4 => (range(), bytes).prop_map(|(range, bytes)| Change::Replace(range, bytes)),
        1 => (range(), 2_usize..20).prop_map(|(range, times)| Change::Repeat(range, times)),
        3 => (any::<Index>(), 0_u8..8).prop_map(|(at, bit)| Change::FlipBit(at, bit)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Replace(range, new) => {
            bytes.splice(within(bytes, range), new.iter().copied());
        }
        Change::Repeat(range, times) => {
            let range = within(bytes, range);
            let repeated = bytes[range.clone()].repeat(*times);
            bytes.splice(range, repeated);
        }
        Change::FlipBit(at, bit) => {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
        }
    }
}

/// Short ranges are as frequent as long ones, because a change of half the input leaves little to read.
fn within(bytes: &[u8], range: &Range<Index>) -> Range<usize> {
    let start = range.start.index(bytes.len() + 1);
    let longest = bytes.len() - start;
    let length = range.end.index(longest + 1) >> (range.end.index(16));
    start..start + length
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let files = fs_err::read_dir(fuzz().join("seeds").join(name)).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs_err::read(path).unwrap()).collect()
}

fn fuzz() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
