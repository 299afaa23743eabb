use serde_json::json;

use super::{Claim, ClaimKind, ClaimSupport, ClaimVerdict};
use crate::{FindingSeverity, RuleId, RunFinding};

fn claim(verdict: ClaimVerdict) -> Claim {
    Claim {
        sentence: 2,
        kind: ClaimKind::Number,
        printed: "$5 billion".to_owned(),
        verdict,
        detail: "Revenue:FY2025 = 4".to_owned(),
    }
}

#[test]
fn blocking_verdicts_are_flagged_and_flagged_ones_never_supported() {
    for verdict in ClaimVerdict::ALL {
        assert!(!verdict.blocks_ranking() || verdict.is_flagged(), "{verdict}");
        assert!(!(verdict.is_flagged() && verdict.is_supported()), "{verdict}");
        assert_eq!(
            verdict.blocks_ranking(),
            verdict.severity() == Some(FindingSeverity::Escalate),
            "{verdict}"
        );
    }
}

#[test]
fn claim_verdicts_have_the_same_name_in_files_and_rules() {
    for verdict in ClaimVerdict::ALL {
        let written = serde_json::to_value(verdict).unwrap();
        let written = written.as_str().unwrap();
        assert_eq!(verdict.rule().to_string(), format!("claims.{written}"));
        assert_eq!(verdict.to_string().to_lowercase().replace('_', "-"), written);
        assert!(RuleId::try_from(verdict.rule().to_string()).is_ok());
    }
}

#[test]
fn a_claim_that_contradicts_its_source_is_a_finding() {
    assert_eq!(
        claim(ClaimVerdict::WrongValue).finding("m7"),
        Some(RunFinding {
            rule: RuleId::new("claims.wrong-value"),
            severity: FindingSeverity::Escalate,
            subject: "m7".to_owned(),
            message: "sentence 3: \"$5 billion\" is WRONG_VALUE: Revenue:FY2025 = 4".to_owned(),
            evidence: Vec::new(),
        })
    );
    assert_eq!(claim(ClaimVerdict::Ok).finding("m7"), None);
}

#[test]
fn only_numbers_count_as_support() {
    let claims = [
        claim(ClaimVerdict::Ok),
        claim(ClaimVerdict::Rounding),
        claim(ClaimVerdict::Assumption),
        claim(ClaimVerdict::Projection),
        Claim { kind: ClaimKind::Citation, ..claim(ClaimVerdict::BadCitation) },
    ];
    let support = ClaimSupport::of(&claims);
    assert_eq!(support, ClaimSupport { supported: 2, assumed: 1, flagged: 1, total: 4 });
    assert_eq!(support.per_thousand(), Some(500));
    assert_eq!(support.plus(support).total, 8);
    assert_eq!(ClaimSupport::default().per_thousand(), None);
}

/// Claims and counts are stored in journals and events.
#[test]
fn stored_claims_and_counts_keep_their_serialized_form() {
    let claim = claim(ClaimVerdict::WrongValue);
    let written = json!({
        "sentence": 2,
        "kind": "number",
        "printed": "$5 billion",
        "verdict": "wrong-value",
        "detail": "Revenue:FY2025 = 4",
    });
    assert_eq!(serde_json::to_value(&claim).unwrap(), written);
    assert_eq!(serde_json::from_value::<Claim>(written).unwrap(), claim);
    let support = ClaimSupport { supported: 2, assumed: 1, flagged: 1, total: 4 };
    let written = json!({ "supported": 2, "assumed": 1, "flagged": 1, "total": 4 });
    assert_eq!(serde_json::to_value(support).unwrap(), written);
    assert_eq!(serde_json::from_value::<ClaimSupport>(written).unwrap(), support);
}
