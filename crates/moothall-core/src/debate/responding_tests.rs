use std::collections::BTreeSet;

use super::*;
use crate::Workflow as _;
use crate::debate::Debate;
use crate::debate::support::{critic, input, said};

#[test]
fn each_half_round_has_one_event_for_all_calls_that_start_it() {
    let mut debate = Debate::new(input(2)).unwrap();
    let opening = debate.start().perform.remove(0);
    let answers = debate.resume(&opening.0, said(critic("No.", &[], &[]))).unwrap().perform;
    let keys = |calls: &[(EffectId, Effect)]| -> BTreeSet<String> {
        calls
            .iter()
            .filter_map(|(id, effect)| responding_event(id, effect))
            .map(|it| it.key)
            .collect()
    };
    assert_eq!(
        keys(&[opening]),
        BTreeSet::from(["m7/round-1:sandbox_round:critic_responding".to_owned()])
    );
    assert_eq!(answers.len(), 3);
    assert_eq!(
        keys(&answers),
        BTreeSet::from(["m7/round-1:sandbox_round:dm_responding".to_owned()])
    );
}
