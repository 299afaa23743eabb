use super::*;

fn bundle() -> Value {
    json!({
        "manifest_version": "0.3",
        "name": "moothall",
        "version": "1.0.0",
        "description": "d",
        "author": { "name": "a" },
        "server": {
            "type": "binary",
            "entry_point": "server/moothall",
            "mcp_config": {
                "command": "${__dirname}/server/moothall",
                "args": ["--workspace", "${user_config.workspace}"],
            },
        },
        "user_config": {
            "workspace": { "type": "directory", "title": "t", "description": "d" },
        },
    })
}

fn check_manifest(manifest: &Value) -> Result<(), String> {
    let files = BTreeMap::from([
        ("manifest.json".to_owned(), manifest.to_string().into_bytes()),
        ("server/moothall".to_owned(), Vec::new()),
    ]);
    check_mcpb(&files).map_err(|error| format!("{error:#}"))
}

#[test]
fn a_bundle_manifest_is_checked_against_the_public_format() {
    check_manifest(&bundle()).unwrap();
    let cases = [
        ("/author", json!(null), "wrong type of `author`"),
        ("/name", json!("Moothall Bundle"), "lower-case"),
        ("/server/type", json!("rust"), "unknown `manifest_version` or `server.type`"),
        ("/server/entry_point", json!("server/other"), "do not name a file"),
        ("/server/mcp_config/args", json!(["${user_config.folder}"]), "not in `user_config`"),
        ("/user_config/workspace/type", json!("folder"), "needs a known type"),
    ];
    for (place, value, expected) in cases {
        let mut manifest = bundle();
        *manifest.pointer_mut(place).unwrap() = value;
        let refused = check_manifest(&manifest).unwrap_err();
        assert!(refused.contains(expected), "{place}: {refused}");
    }
    let mut manifest = bundle();
    manifest["dxt_version"] = "0.1".into();
    assert!(check_manifest(&manifest).unwrap_err().contains("unknown field `dxt_version`"));
    manifest.as_object_mut().unwrap().remove("dxt_version");
    manifest.as_object_mut().unwrap().remove("version");
    assert!(check_manifest(&manifest).unwrap_err().contains("missing `version`"));
}
