use clap::{Command, CommandFactory as _};

use super::Cli;

/// Same as `max_term_width` of the program. Longer lines would be wrapped again, in the middle of a
/// paragraph.
const WIDEST: usize = 100;

#[test]
fn no_line_after_the_flags_is_wrapped_twice() {
    let mut too_wide = Vec::new();
    look(&Cli::command(), &mut too_wide);
    assert_eq!(too_wide, Vec::<String>::new());
}

fn look(command: &Command, too_wide: &mut Vec<String>) {
    let texts = [command.get_after_help(), command.get_after_long_help()];
    for text in texts.into_iter().flatten() {
        let text = text.to_string();
        let wide = text.lines().filter(|line| line.chars().count() > WIDEST);
        too_wide.extend(wide.map(|line| format!("{}: {line}", command.get_name())));
    }
    command.get_subcommands().for_each(|command| look(command, too_wide));
}
