use super::*;

const TODAY: PolicyDate = PolicyDate { year: 2026, month: 11, day: 15 };

fn workspace(text: &str) -> PolicyLayer {
    PolicyLayer::new(PolicyLayerName::Workspace, format!("version = 1\n{text}"))
}

fn organisation(text: &str) -> PolicyLayer {
    PolicyLayer::new(PolicyLayerName::Organisation, format!("version = 1\n{text}"))
}

fn task(text: &str) -> PolicyLayer {
    PolicyLayer::new(PolicyLayerName::Task, text.to_owned())
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

#[track_caller]
fn refused(layers: &[PolicyLayer], words: &str) {
    let fault = Policy::of(layers).map(|_| ()).unwrap_err();
    assert!(fault.to_string().contains(words), "{fault}");
}

#[test]
fn the_policy_of_the_documentation_is_read() {
    let text = include_str!("policy/example.toml");
    let layer = PolicyLayer::new(PolicyLayerName::Workspace, text.to_owned());
    let policy = Policy::of(&[layer]).unwrap();
    assert_eq!(policy.notes, Vec::<String>::new());
    for rule in GateRule::ALL {
        assert_eq!(policy.rule(*rule), rule.default_action(), "{rule}");
        assert!(text.contains(rule.name()), "{rule}");
    }
}

#[test]
fn a_policy_with_an_unknown_key_rule_or_action_is_refused() {
    refused(&[workspace("max_lines = 3")], "max_lines");
    refused(&[workspace("[limits]\nmax_chnaged_lines = 3")], "max_chnaged_lines");
    refused(
        &[workspace("[rules]\n\"secret.spcific\" = \"reject\"")],
        "unknown rule `secret.spcific`",
    );
    refused(&[workspace("[rules]\n\"secret.generic\" = \"ignore\"")], "ignore");
    refused(&[workspace("[limits]\ndraft_ttl = \"a week\"")], "draft_ttl");
    refused(&[workspace("[limits]\nmax_deletion_ratio = 1.5")], "between 0 and 1");
    refused(&[workspace("[paths]\ndeny = [\"a[\"]")], "pattern `a[`");
    let no_version = PolicyLayer::new(PolicyLayerName::Workspace, String::new());
    refused(&[no_version], "version = 1");
    refused(&[task("{\"gate\": {\"limit\": 1}}")], "limit");
    refused(&[task("[]")], "task contract");
}

#[test]
fn the_highest_policy_layer_may_loosen_and_lower_ones_only_tighten() {
    let above = organisation(
        "[limits]\nmax_changed_lines = 800\nmax_rejections = 3\n[rules]\n\"path.home\" = \"warn\"\n\"content.eol\" = \"reject\"",
    );
    let below = workspace(
        "[limits]\nmax_changed_lines = 900\nmax_rejections = 2\n[rules]\n\"path.home\" = \"escalate\"\n\"content.eol\" = \"allow\"",
    );
    // The order of the layers does not matter.
    let policy = Policy::of(&[below, above]).unwrap();
    let said = (
        policy.limits.max_changed_lines,
        policy.limits.max_rejections,
        policy.rule(GateRule::PathHome),
        policy.rule(GateRule::ContentEol),
    );
    assert_eq!(said, (800, 2, GateAction::Escalate, GateAction::Reject));
    assert_eq!(
        policy.notes,
        [
            "the workspace asks for content.eol = allow; reject stays in effect",
            "the workspace asks for max_changed_lines = 900; 800 stays in effect",
        ]
    );
}

#[test]
fn no_policy_layer_can_lower_a_rule_below_its_minimum() {
    let policy = Policy::of(&[workspace(
        "[rules]\n\"secret.specific\" = \"allow\"\n\"gate.error\" = \"allow\"",
    )])
    .unwrap();
    assert_eq!(policy.rule(GateRule::SecretSpecific), GateAction::Reject);
    assert_eq!(policy.rule(GateRule::GateError), GateAction::Escalate);
    assert_eq!(policy.notes.len(), 2);
}

#[test]
fn a_task_contract_narrows_the_paths_and_the_limits() {
    let contract = task(
        r#"{"title": "anything", "gate": {"paths": {"allow": ["src/**"]}, "limits": {"max_changed_lines": 10}}}"#,
    );
    let policy =
        Policy::of(&[workspace("[paths]\nallow = [\"**/*.py\"]\ndeny = [\"src/x/**\"]"), contract])
            .unwrap();
    for (name, denied) in [
        ("src/a.py", false),
        ("src/a.rs", true),
        ("a.py", true),
        ("src/x/a.py", true),
        ("SRC/a.PY", false),
        ("_handoff/transition.ndjson", true),
    ] {
        assert_eq!(policy.denies(&path(name)), denied, "{name}");
    }
    assert_eq!(policy.limits.max_changed_lines, 10);
}

#[test]
fn a_task_contract_without_other_layers_cannot_loosen_rules() {
    let contract = task(
        r#"{"gate": {"limits": {"max_changed_lines": 9000}, "rules": {"path.home": "allow"}, "paths": {"protect": []}}}"#,
    );
    let policy = Policy::of(&[contract]).unwrap();
    assert_eq!(policy.limits.max_changed_lines, 400);
    assert_eq!(policy.rule(GateRule::PathHome), GateAction::Reject);
    assert!(policy.protects(&path("Makefile")));
}

#[test]
fn the_built_in_policy_protects_sensitive_paths() {
    let policy = Policy::built_in();
    for (name, protected) in [
        (".github/workflows/ci.yml", true),
        ("Dockerfile", true),
        ("a/Dockerfile.dev", true),
        ("Cargo.lock", true),
        ("crates/x/build.rs", true),
        (".env.local", true),
        ("src/main.rs", false),
    ] {
        assert_eq!(policy.protects(&path(name)), protected, "{name}");
    }
}

const EXCEPTION: &str = "[[exception]]\nrule = \"path.home\"\npath = \"docs/**\"\nreason = \"examples\"\nowner = \"alice\"\nexpires = 2026-11-15\n";

#[test]
fn an_exception_applies_only_to_its_rule_path_and_time() {
    let policy = Policy::of(&[organisation(EXCEPTION)]).unwrap();
    let action =
        |rule, name: &str, day| policy.action(rule, &path(name), None, PolicyDate { day, ..TODAY });
    assert_eq!(action(GateRule::PathHome, "docs/a.md", 15), GateAction::Allow);
    assert_eq!(action(GateRule::PathHome, "docs/a.md", 16), GateAction::Reject);
    assert_eq!(action(GateRule::PathHome, "src/a.md", 15), GateAction::Reject);
    assert_eq!(action(GateRule::ContentBidi, "docs/a.md", 15), GateAction::Reject);
}

#[test]
fn an_exception_for_one_value_does_not_cover_others() {
    let known = Sha256Hex::of(b"known");
    let text = EXCEPTION.replace("path.home", "secret.specific")
        + &format!("value_sha256 = \"{known}\"\n");
    let policy = Policy::of(&[organisation(&text)]).unwrap();
    let action = |value| policy.action(GateRule::SecretSpecific, &path("docs/a"), value, TODAY);
    assert_eq!(action(Some(known)), GateAction::Allow);
    assert_eq!(action(Some(Sha256Hex::of(b"other"))), GateAction::Reject);
    assert_eq!(action(None), GateAction::Reject);
}

#[test]
fn an_exception_needs_an_owner_an_end_and_the_highest_layer() {
    refused(&[workspace(&EXCEPTION.replace("alice", " "))], "owner");
    refused(&[workspace(&EXCEPTION.replace("expires = 2026-11-15", ""))], "expires");
    refused(&[workspace(&EXCEPTION.replace("2026-11-15", "07:32:00"))], "must be a date");
    let contract = "{\"gate\": {\"exception\": [{\"rule\": \"path.home\", \"path\": \"**\", \"reason\": \"r\", \"owner\": \"o\", \"expires\": \"2026-11-15\"}]}}";
    assert!(Policy::of(&[task(contract)]).is_err());
    for layers in [vec![workspace(EXCEPTION)], vec![organisation(""), workspace(EXCEPTION)]] {
        let policy = Policy::of(&layers).unwrap();
        assert_eq!(policy.exceptions, []);
        let note =
            "the workspace asks for an exception from path.home for `docs/**`; this is ignored";
        assert_eq!(policy.notes, [note]);
    }
}

#[test]
fn a_workspace_policy_can_loosen_rules_only_if_trusted() {
    let loose = workspace(
        "[limits]\nmax_changed_lines = 900\n[paths]\nprotect = [\"a\"]\n[rules]\n\"path.home\" = \"allow\"",
    );
    let trusted = PolicyLayer { trusted: true, ..loose.clone() };
    let said = |layers: &[PolicyLayer]| {
        let policy = Policy::of(layers).unwrap();
        let (lines, rule) = (policy.limits.max_changed_lines, policy.rule(GateRule::PathHome));
        (lines, rule, policy.protects(&path("Makefile")))
    };
    assert_eq!(said(std::slice::from_ref(&loose)), (400, GateAction::Reject, true));
    assert_eq!(said(std::slice::from_ref(&trusted)), (900, GateAction::Allow, false));
    // Under an organisation policy, trust has no effect.
    assert_eq!(said(&[organisation(""), trusted.clone()]), (400, GateAction::Reject, true));
    let loosened = ["path.home = allow", "max_changed_lines = 900", "8 fewer protected patterns"];
    assert_eq!(Policy::loosened_by_workspace(&[trusted]).unwrap(), loosened);
}

#[test]
fn every_layer_is_in_the_hash() {
    let hash = |layers: &[PolicyLayer]| Policy::of(layers).unwrap().hash();
    let one = hash(&[workspace("")]);
    assert_eq!(one, hash(&[workspace("")]));
    assert_ne!(one, hash(&[workspace("# more")]));
    assert_ne!(one, hash(&[organisation("")]));
    assert_ne!(one, hash(&[workspace(""), task("{}")]));
}

#[test]
fn lower_policy_layers_can_only_narrow_the_approvers() {
    let above =
        organisation("[review]\napprovers = [\"ada\", \"bob\"]\nauthor_may_approve = false");
    let below = workspace("[review]\napprovers = [\"bob\", \"eve\"]\nauthor_may_approve = true");
    let policy = Policy::of(&[above.clone(), below]).unwrap();
    let expected = ApprovalRules { approvers: vec!["bob".to_owned()], author_may_approve: false };
    assert_eq!(policy.reviewers, expected);
    refused(&[above, workspace("[review]\napprovers = [\"eve\"]")], "no approvers left");
}

#[test]
fn lower_policy_layers_can_only_narrow_the_channels() {
    let channels = |layers: &[PolicyLayer]| Policy::of(layers).unwrap().channels;
    let web = "[review]\nchannels = [\"web\"]";
    let both = "[review]\nchannels = [\"cli\", \"web\"]";
    assert_eq!(channels(&[organisation(web)]), [ReviewChannel::Web]);
    assert_eq!(channels(&[organisation(both), workspace(web)]), [ReviewChannel::Web]);
    assert_eq!(channels(&[organisation(web), workspace(both)]), [ReviewChannel::Web]);
    let cli = workspace("[review]\nchannels = [\"cli\"]");
    assert_eq!(channels(&[organisation(web), cli]), []);
}

#[test]
fn durations_have_one_unit() {
    let read = |text| duration_ms(text);
    assert_eq!((read("7d"), read("90s")), (Some(7 * DAY), Some(90_000)));
    assert_eq!(
        (read(""), read("7"), read("d"), read("-1d"), read("99999999999999999d")),
        (None, None, None, None, None)
    );
}
