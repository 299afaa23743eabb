use super::*;
use crate::event::RoundStatus;

#[test]
fn envelope_names_its_kind_by_type_and_reads_back() {
    let envelope = EventEnvelope {
        seq: 7,
        run_id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(),
        at: "2026-01-05T09:00:00.250Z".to_owned(),
        body: RunEventBody::SandboxRound {
            move_id: "m3".to_owned(),
            round: 2,
            status: RoundStatus::CriticResponded,
        },
    };
    let text = serde_json::to_string(&envelope).unwrap();
    let expected = r#"{"seq":7,"run_id":"01890a5d-ac96-774b-bcce-b302099a8057",\
        "at":"2026-01-05T09:00:00.250Z","type":"sandbox_round","move":"m3","round":2,\
        "status":"critic_responded"}"#;
    assert_eq!(text, expected.replace("\\\n        ", ""));
    assert_eq!(serde_json::from_str::<EventEnvelope>(&text).unwrap(), envelope);
}

#[test]
fn event_without_fields_has_a_type_too() {
    let envelope = EventEnvelope {
        seq: 1,
        run_id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(),
        at: "2026-01-05T09:00:00.000Z".to_owned(),
        body: RunEventBody::RunCancelled,
    };
    let text = serde_json::to_string(&envelope).unwrap();
    assert!(text.ends_with(r#""type":"run_cancelled"}"#), "{text}");
    assert_eq!(serde_json::from_str::<EventEnvelope>(&text).unwrap(), envelope);
}
