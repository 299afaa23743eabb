use super::*;

fn states() -> Vec<(&'static str, MachineState)> {
    vec![
        ("API keys", not_ready("none found; `moothall key set PROVIDER` stores one")),
        ("model", not_ready("none; `moothall init` sets one up")),
        (
            "sandbox",
            ready(
                "emulated-vm on microvm, when last tested; `moothall doctor` repeats it".to_owned(),
            ),
        ),
    ]
}

fn plain(page: &str) -> String {
    anstream::adapter::strip_str(page).to_string()
}

#[test]
fn start_page_fits_a_terminal_of_80_columns_and_24_lines() {
    let page = plain(&page(&states(), 80));
    assert!(page.lines().count() < 24, "{page}");
    assert_eq!(page.lines().filter(|line| line.chars().count() > 80).count(), 0, "{page}");
    insta::assert_snapshot!(page.replace(env!("CARGO_PKG_VERSION"), "[VERSION]"));
}

#[test]
fn start_page_fits_a_terminal_of_40_columns() {
    let page = plain(&page(&states(), 40));
    let wide: Vec<&str> = page.lines().filter(|line| line.chars().count() > 40).collect();
    assert_eq!(wide, Vec::<&str>::new(), "{page}");
    for (command, _) in TRY.iter().chain(&NEXT) {
        let words = command.split(' ').collect::<Vec<_>>();
        assert!(words.iter().all(|word| page.contains(word)), "{command} in {page}");
    }
}
