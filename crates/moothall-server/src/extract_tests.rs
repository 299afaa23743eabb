use serde_json::{Value, json};

use super::*;
use crate::dto::{
    ApproveMoveRequest, CheckTextRequest, CreateTokenRequest, DraftCommentRequest,
    DraftReviewRequest, EditMovesRequest, ResumeRunRequest, StartConsultRequest, StartRunRequest,
};

fn refusal<T: DeserializeOwned>(body: &Value) -> (u16, ErrorCode, String, String) {
    let Err(rejection) = Json::<T>::from_bytes(body.to_string().as_bytes()) else {
        panic!("{body} was accepted");
    };
    let ApiProblem { status, code, detail, hint, .. } = unreadable(rejection);
    (status, code, detail, hint.unwrap_or_default())
}

#[test]
fn an_unknown_field_is_named_with_the_known_ones() {
    assert_eq!(
        refusal::<ResumeRunRequest>(&json!({"budget": "1"})),
        (
            400,
            ErrorCode::UnknownField,
            "unknown field `budget`".to_owned(),
            "known fields: budget_usd".to_owned()
        )
    );
    let (.., detail, hint) = refusal::<StartRunRequest>(
        &json!({"workflow": "reflexion", "task": "x", "isolatoin": "auto"}),
    );
    assert_eq!(detail, "unknown field `isolatoin`");
    assert!(hint.starts_with("known fields: task, model, inputs, expect_regex, "), "{hint}");
    assert!(!hint.contains("line"), "{hint}");
}

#[test]
fn every_request_body_refuses_unknown_fields() {
    let odd = json!({"odd": 1});
    let codes = [
        refusal::<StartRunRequest>(&json!({"workflow": "consult", "odd": 1})),
        refusal::<StartRunRequest>(&json!({"workflow": "reflexion", "odd": 1})),
        refusal::<StartRunRequest>(
            &json!({"workflow": "consult", "documents": [{"name": "a.md", "sha256": "00"}]}),
        ),
        refusal::<StartConsultRequest>(&odd),
        refusal::<StartConsultRequest>(&json!({"documents": [{"name": "a.md", "odd": 1}]})),
        refusal::<ResumeRunRequest>(&odd),
        refusal::<ApproveMoveRequest>(&odd),
        refusal::<EditMovesRequest>(&json!({"undo": {"odd": 1}})),
        refusal::<CheckTextRequest>(&odd),
        refusal::<CreateTokenRequest>(&odd),
        refusal::<DraftReviewRequest>(&odd),
        refusal::<DraftReviewRequest>(&json!({"seal": "", "files": [{"odd": 1}]})),
        refusal::<DraftCommentRequest>(&odd),
    ];
    for (status, code, detail, _) in codes {
        assert_eq!((status, code), (400, ErrorCode::UnknownField), "{detail}");
    }
}

#[test]
fn a_field_name_cannot_forge_the_message() {
    let name = "a`, expected one of `b` at line 1\u{7}";
    let (.., detail, hint) = refusal::<ResumeRunRequest>(&json!({name: 1}));
    assert_eq!(detail, "unknown field `a`, expected one of `b` at line 1`");
    assert_eq!(hint, "known fields: budget_usd");
    // A value that looks like the message is not one.
    let (status, code, ..) =
        refusal::<ResumeRunRequest>(&json!({"budget_usd": ["unknown field `x`"]}));
    assert_eq!((status, code), (422, ErrorCode::BadBody));
}
