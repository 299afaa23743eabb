use super::*;

#[track_caller]
fn check(size: WorkSize, elapsed: u64, expected: &str) {
    assert_eq!(line("copying", Duration::from_secs(elapsed), &size), expected);
}

#[test]
fn a_line_says_what_happens_how_far_it_is_and_how_long_it_still_takes() {
    check(WorkSize::Unknown, 3, "… copying, 3 s");
    check(WorkSize::Usually(Duration::from_secs(10)), 3, "… copying, 3 s, about 7 s left");
    check(WorkSize::Usually(Duration::from_secs(10)), 30, "… copying, 30 s");
    check(WorkSize::Steps { done: 2, total: 5 }, 4, "… copying, 2 of 5, 4 s, about 6 s left");
    check(WorkSize::Steps { done: 0, total: 5 }, 4, "… copying, 0 of 5, 4 s");
    check(WorkSize::Steps { done: 5, total: 5 }, 4, "… copying, 5 of 5, 4 s");
    let bytes = |done, total| WorkSize::Bytes { done, total };
    check(bytes(30_000_000, 120_000_000), 60, "… copying, 30 MB of 120 MB, 60 s, about 3 min left");
    check(bytes(1_000_000, 120_000_000), 3, "… copying, 1000 kB of 120 MB, 3 s");
    check(bytes(30_000_000, 0), 3, "… copying, 30 MB, 3 s");
}

#[test]
fn the_size_of_a_file_shows_how_far_its_writer_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy");
    let size = WorkSize::File { path: path.clone(), total: 40_000_000 };
    check(size.clone(), 4, "… copying, 0 bytes of 40 MB, 4 s");
    fs_err::File::create(&path).unwrap().set_len(20_000_000).unwrap();
    check(size.clone(), 4, "… copying, 20 MB of 40 MB, 4 s, about 4 s left");
    fs_err::File::create(&path).unwrap().set_len(80_000_000).unwrap();
    check(size, 4, "… copying, 40 MB of 40 MB, 4 s");
}

#[test]
fn text_of_a_step_cannot_control_the_terminal() {
    let shown = line("a\u{1b}[31m\nb", Duration::from_secs(3), &WorkSize::Unknown);
    assert!(!shown.contains(['\u{1b}', '\n']), "{shown:?}");
}

#[test]
fn bytes_that_are_read_or_written_are_counted() {
    let progress = WorkProgress::start("copying", true);
    progress.step_bytes("copying", 10);
    io::copy(&mut progress.counted(&b"12345"[..]), &mut io::sink()).unwrap();
    progress.counted(io::sink()).write_all(b"123").unwrap();
    assert!(matches!(lock(&progress.state).size, WorkSize::Bytes { done: 8, total: 10 }));
}
