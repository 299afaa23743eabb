use super::*;

#[track_caller]
fn check(environment: &[(&str, &str)], [config, data, cache, state]: [&str; 4]) {
    let environment: EnvVars = environment.iter().copied().collect();
    let expected = AppDirs {
        config: config.into(),
        data: data.into(),
        cache: cache.into(),
        state: state.into(),
    };
    assert_eq!(AppDirs::find(&environment).unwrap(), expected);
}

#[test]
fn folders_are_below_home_by_default() {
    check(
        &[("HOME", "/home/ada")],
        [
            "/home/ada/.config/moothall",
            "/home/ada/.local/share/moothall",
            "/home/ada/.cache/moothall",
            "/home/ada/.local/state/moothall",
        ],
    );
}

#[test]
fn each_xdg_variable_moves_its_folder() {
    check(
        &[
            ("HOME", "/home/ada"),
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_DATA_HOME", "/d"),
            ("XDG_CACHE_HOME", "/k"),
            ("XDG_STATE_HOME", "/s"),
        ],
        ["/c/moothall", "/d/moothall", "/k/moothall", "/s/moothall"],
    );
}

#[test]
fn relative_and_empty_xdg_variables_count_as_not_set() {
    check(
        &[
            ("HOME", "/home/ada"),
            ("XDG_CONFIG_HOME", "c"),
            ("XDG_DATA_HOME", ""),
            ("XDG_STATE_HOME", "/s"),
        ],
        [
            "/home/ada/.config/moothall",
            "/home/ada/.local/share/moothall",
            "/home/ada/.cache/moothall",
            "/s/moothall",
        ],
    );
}

#[test]
fn the_data_dir_also_moves_cache_and_state_but_not_config() {
    check(
        &[("HOME", "/home/ada"), ("XDG_CACHE_HOME", "/k"), ("MOOTHALL_DATA_DIR", "/srv/moothall")],
        [
            "/home/ada/.config/moothall",
            "/srv/moothall",
            "/srv/moothall/cache",
            "/srv/moothall/state",
        ],
    );
}
