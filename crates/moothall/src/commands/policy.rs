//! `moothall policy`: shows, tests, explains and trusts the policy of the gate.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use moothall_core::drafts::RelPath;
use moothall_core::gate::{
    AUTO_RUN, CheckResults, FileChange, FileContent, FileContext, FingerprintKey, GateRule, Policy,
    PolicyLayer, auto_run_by, judge,
};
use moothall_workspace::{policy_layers, today};
use serde_json::json;

use super::draft::store::{failed, open, options};
use super::draft::{exit_of, print_report, text_of, verdict_text};
use crate::args::{GlobalArgs, PolicyArgs, PolicyCommand};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::terminal::{self, BOLD, DIM, YELLOW};

pub(crate) fn run(global: &GlobalArgs, args: &PolicyArgs) -> anyhow::Result<CliExit> {
    let (options, _) = options(global, &args.flags)?;
    let json = args.flags.json;
    let layers = policy_layers(&options).map_err(failed)?;
    let texts: Vec<PolicyLayer> = layers.iter().map(|(_, layer)| layer.clone()).collect();
    let policy = Policy::of(&texts).map_err(|fault| {
        CliError::usage(fault.to_string()).with_hint(
            "no drafts are checked while the policy is invalid; see \"Review agent edits\" in the documentation for an example",
        )
    })?;
    match &args.command {
        PolicyCommand::Check => {
            if let Some(name) = policy.reviewers.plain_names().next() {
                let uid = rustix::process::getuid().as_raw();
                let name = display::line(name);
                let message =
                    format!("`approvers` contains the name `{name}`, which matches no user");
                return Err(CliError::usage(message)
                    .with_hint(format!(
                        "use a user id (yours is `uid:{uid}`; `id -u NAME` prints others) or a \
                         token id, `token:ID` (see `moothall token list`)"
                    ))
                    .into());
            }
            let mut text = String::new();
            if layers.is_empty() {
                text.push_str("the built-in policy is in effect\n");
            }
            for (path, layer) in &layers {
                let path = display::line(&path.display().to_string());
                let _ = writeln!(text, "{:<14} {path}", layer.name.to_string());
            }
            let _ = writeln!(text, "{DIM}hash {}{DIM:#}", policy.hash());
            for note in &policy.notes {
                let _ = writeln!(text, "{YELLOW}note{YELLOW:#}: {}", display::line(note));
            }
            if texts.iter().any(|layer| layer.trusted) {
                for what in Policy::loosened_by_workspace(&texts).unwrap_or_default() {
                    let what = display::line(&what);
                    let _ = writeln!(
                        text,
                        "{YELLOW}trusted{YELLOW:#}: the workspace policy loosens the built-in policy: {what}"
                    );
                }
            }
            let _ = writeln!(
                text,
                "\nfiles that run automatically ({}):",
                policy.rule(GateRule::PathAutorun)
            );
            for one in AUTO_RUN {
                let _ = writeln!(
                    text,
                    "  {}  {DIM}{}, since {}{DIM:#}",
                    one.pattern, one.runner, one.added
                );
            }
            let names: Vec<_> = layers
                .iter()
                .map(|(path, layer)| {
                    json!({ "layer": layer.name, "file": path, "trusted": layer.trusted })
                })
                .collect();
            let report = json!({
                "hash": policy.hash(),
                "layers": names,
                "notes": policy.notes,
                "limits": policy.limits,
                "exceptions": policy.exceptions,
                "checks": policy.checks,
                "autorun": AUTO_RUN,
            });
            print_report(json, &report, &text)
        }
        PolicyCommand::Trust { yes } => {
            let loosened = Policy::loosened_by_workspace(&texts)
                .map_err(|fault| CliError::usage(fault.to_string()))?;
            let mut text = String::new();
            for what in &loosened {
                let _ = writeln!(text, "{YELLOW}loosens{YELLOW:#}: {}", display::line(what));
            }
            if !yes {
                terminal::note(&text);
                return Err(CliError::usage("the policy is not trusted yet")
                    .with_hint("review it, then run `moothall policy trust --yes`")
                    .into());
            }
            let opened = open(global, &args.flags)?;
            let person = opened.person(None)?;
            let hash = opened.store.trust_policy(&person).map_err(failed)?;
            let _ =
                writeln!(text, "trusted {hash}; running servers keep the policy they started with");
            print_report(json, &json!({ "trusted": hash, "loosens": loosened }), &text)
        }
        PolicyCommand::Test { path, draft } => {
            let path = parse(path)?;
            let base = fs_err::read(options.workspace.join(path.as_str())).ok();
            let draft = text_of(draft)?;
            let content = |bytes| FileContent { bytes, executable: false };
            let change = FileChange {
                path: &path,
                rename_to: None,
                base: base.as_deref().map(content),
                draft: Some(content(draft.as_bytes())),
                around: FileContext::default(),
            };
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let day = today(since.as_millis() as u64);
            let key = FingerprintKey::new([0; 32]);
            let verdict = judge(&policy, &[change], &CheckResults::default(), &key, day);
            print_report(json, &json!({ "verdict": verdict }), &verdict_text(&verdict))?;
            Ok(exit_of(verdict.action))
        }
        PolicyCommand::Explain { path } => {
            let path = parse(path)?;
            let word = match (policy.denies(&path), policy.protects(&path)) {
                (true, _) => "denied: workers cannot change it",
                (_, true) => "protected: every change needs review",
                _ if auto_run_by(&path).is_some() => {
                    "runs automatically: every change needs review"
                }
                _ => "allowed",
            };
            let mut patterns = policy.patterns_for(&path);
            patterns.extend(auto_run_by(&path).map(|runner| format!("run or read by {runner}")));
            let excused: Vec<_> = policy.exceptions_for(&path).collect();
            let mut text = format!("{BOLD}{}{BOLD:#}  {word}\n", display::line(path.as_str()));
            for pattern in &patterns {
                let _ = writeln!(text, "  {}", display::line(pattern));
            }
            for one in &excused {
                let (owner, reason) = (display::line(&one.owner), display::line(&one.reason));
                let _ = writeln!(
                    text,
                    "  exception {} until {} by {owner}: {reason}",
                    one.rule, one.expires
                );
            }
            for rule in GateRule::ALL {
                let _ = writeln!(
                    text,
                    "  {:<26} {:<9} {DIM}{}{DIM:#}",
                    rule.name(),
                    policy.rule(*rule).as_str(),
                    rule.description()
                );
            }
            let rules: serde_json::Map<_, _> = GateRule::ALL
                .iter()
                .map(|rule| (rule.name().to_owned(), json!(policy.rule(*rule))))
                .collect();
            let report = json!({
                "path": path,
                "denied": policy.denies(&path),
                "protected": policy.protects(&path),
                "patterns": patterns,
                "exceptions": excused,
                "rules": rules,
            });
            print_report(json, &report, &text)
        }
    }
}

fn parse(path: &str) -> Result<RelPath, CliError> {
    RelPath::parse(path).map_err(|fault| failed(fault.into()))
}
