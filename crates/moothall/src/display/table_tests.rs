use super::*;

fn table(width: Option<usize>) -> Table {
    let cells = |cells: [&str; 2]| Vec::from(cells.map(str::to_owned));
    let columns = vec![
        TableColumn::text("RUN", 0, cells(["019a85c2-2f6e", "019a85c0-2f6e"])),
        TableColumn::text("STATE", 0, cells(["paused", "finished"])).at_least(11),
        TableColumn::text("VERDICT", 2, cells(["", "passed"])).at_least(14),
        TableColumn::text("STARTED", 4, cells(["2026-11-18T16:46:19Z", "2026-11-18T16:40:00Z"])),
        TableColumn::number("SPENT", 3, cells(["$0.00", "$0.00375"])).at_least(9),
        TableColumn::text(
            "TITLE",
            0,
            cells(["sort the names", "print the first 20 primes and their sum"]),
        ),
    ];
    Table::new(columns, width)
}

fn check(width: Option<usize>, expected: &str) {
    let text = table(width).render();
    assert_eq!(anstream::adapter::strip_str(&text).to_string(), expected);
}

#[test]
fn a_file_gets_every_column_with_its_usual_width() {
    check(
        None,
        "\
RUN            STATE        VERDICT         STARTED                   SPENT  TITLE
019a85c2-2f6e  paused                       2026-11-18T16:46:19Z      $0.00  sort the names
019a85c0-2f6e  finished     passed          2026-11-18T16:40:00Z   $0.00375  print the first 20 primes and their sum
",
    );
}

#[test]
fn narrow_terminals_lose_the_least_important_columns_and_the_end_of_long_text() {
    check(
        Some(80),
        "\
RUN            STATE     VERDICT     SPENT  TITLE
019a85c2-2f6e  paused                $0.00  sort the names
019a85c0-2f6e  finished  passed   $0.00375  print the first 20 primes and their…
",
    );
    check(
        Some(40),
        "\
RUN            STATE     TITLE
019a85c2-2f6e  paused    sort the names
019a85c0-2f6e  finished  print the firs…
",
    );
    for width in 40..160 {
        let rows = table(Some(width)).rows();
        assert!(rows.iter().all(|row| row.chars().count() <= width), "{width}: {rows:?}");
    }
}

#[test]
fn text_without_room_is_left_to_the_terminal() {
    let rows = table(Some(30)).rows();
    assert_eq!(
        rows,
        [
            "019a85c2-2f6e  paused    sort the names",
            "019a85c0-2f6e  finished  print the first 20 primes and their sum"
        ]
    );
    assert_eq!(table(Some(40)).last_offset(), 25);
}
