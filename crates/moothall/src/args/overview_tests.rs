use super::*;

#[test]
fn every_visible_command_is_in_exactly_one_group() {
    let mut listed: Vec<&str> =
        GROUPS.iter().flat_map(|group| group.common.iter().chain(group.rare)).copied().collect();
    let command = Cli::command();
    let mut visible: Vec<&str> =
        command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name).collect();
    listed.sort_unstable();
    visible.sort_unstable();
    assert_eq!(listed, visible);
}

#[test]
fn every_line_fits_a_terminal_of_100_columns() {
    let wide: Vec<String> = all_commands()
        .lines()
        .filter(|line| line.chars().count() > 100)
        .map(str::to_owned)
        .collect();
    assert_eq!(wide, Vec::<String>::new());
}
