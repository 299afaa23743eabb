//! Tracks the state of each objection in one thread. The state is computed by code, not by a model.
//!
//! ```text
//! open ──answered──► answered ──pressed──► pressed ──answered, and not pressed again──► answered
//!   │ withdrawn by the critic: counts as answered; if pressed after that: open again
//!   │ conceded by the decision maker: conceded, final
//!   └ answered and conceded in one turn: answered in part, final unless conceded later
//! ```

use super::citations::cites;
use super::result::{ObjectionReply, ObjectionSeverity, ObjectionState};
use super::turn::{CriticTurn, DecisionMakerTurn, RaisedObjection};
use crate::text::one_line;

/// The maximum number of recorded objections, for the opening and for the rest of each thread.
/// Further objections stay in the conversation but are not recorded.
const MAX_RECORDED: usize = 24;

const MAX_TEXT_CHARS: usize = 300;

/// The maximum number of citations per objection.
const MAX_EVIDENCE: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectionEntry {
    pub(crate) id: String,
    pub(crate) severity: ObjectionSeverity,
    pub(crate) text: String,
    pub(crate) evidence: Vec<String>,
    pub(crate) round: u32,
    /// The last answer.
    pub(crate) reply: Option<ObjectionReply>,
    fate: ObjectionPhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectionPhase {
    Open,
    Answered,
    Pressed {
        /// Whether it was answered after it was pressed.
        answered: bool,
    },
    InPart,
    Withdrawn,
    Conceded,
}

impl ObjectionEntry {
    fn new(id: String, raised: &RaisedObjection, round: u32) -> Self {
        let mut case = Self {
            id,
            severity: raised.severity,
            text: one_line(&raised.text, MAX_TEXT_CHARS),
            evidence: Vec::new(),
            round,
            reply: None,
            fate: ObjectionPhase::Open,
        };
        case.cite(raised);
        case
    }

    pub(crate) fn state(&self) -> ObjectionState {
        match self.fate {
            ObjectionPhase::Open => ObjectionState::Open,
            ObjectionPhase::Answered | ObjectionPhase::Withdrawn => ObjectionState::Answered,
            ObjectionPhase::Pressed { .. } | ObjectionPhase::InPart => ObjectionState::Partly,
            ObjectionPhase::Conceded => ObjectionState::Conceded,
        }
    }

    fn cite(&mut self, raised: &RaisedObjection) {
        for id in cites(&raised.text, &raised.evidence) {
            if self.evidence.len() < MAX_EVIDENCE && !self.evidence.contains(&id) {
                self.evidence.push(id);
            }
        }
    }

    fn press(&mut self, raised: &RaisedObjection) {
        self.severity = raised.severity;
        self.cite(raised);
        self.fate = match self.fate {
            ObjectionPhase::Open | ObjectionPhase::Withdrawn => ObjectionPhase::Open,
            ObjectionPhase::Answered | ObjectionPhase::Pressed { .. } => {
                ObjectionPhase::Pressed { answered: false }
            }
            ObjectionPhase::InPart => ObjectionPhase::InPart,
            ObjectionPhase::Conceded => ObjectionPhase::Conceded,
        };
    }

    fn answer(&mut self) {
        self.fate = match self.fate {
            ObjectionPhase::Open => ObjectionPhase::Answered,
            ObjectionPhase::Pressed { .. } => ObjectionPhase::Pressed { answered: true },
            settled => settled,
        };
    }
}

/// All objections of one thread: those of the opening, then those of the thread.
#[derive(Debug, Default)]
pub(crate) struct ObjectionLog {
    pub(crate) cases: Vec<ObjectionEntry>,
    from_opening: usize,
}

/// A critic's turn with its objections mapped to recorded ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CriticTurnRecord {
    pub(crate) objections: Vec<ObjectionRef>,
    pub(crate) withdrawn: Vec<String>,
}

/// An objection of a turn and its recorded id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ObjectionRef {
    /// The index in the turn's objections.
    pub(crate) index: usize,
    pub(crate) id: String,
    pub(crate) is_new: bool,
}

/// A decision maker's turn with recorded ids, in the order of the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DecisionMakerTurnRecord {
    pub(crate) answered: Vec<String>,
    pub(crate) conceded: Vec<String>,
}

impl ObjectionLog {
    /// Records the objections of the opening, numbered `O1`, `O2`, … in order.
    pub(crate) fn opening(turn: &CriticTurn) -> (Self, CriticTurnRecord) {
        let mut raised = CriticTurnRecord::default();
        let mut cases = Vec::new();
        for (index, objection) in turn.objections.iter().take(MAX_RECORDED).enumerate() {
            let id = format!("O{}", index + 1);
            raised.objections.push(ObjectionRef { index, id: id.clone(), is_new: true });
            cases.push(ObjectionEntry::new(id, objection, 1));
        }
        (Self { from_opening: cases.len(), cases }, raised)
    }

    /// The objections raised in this thread, without those of the opening.
    pub(crate) fn own(&self) -> &[ObjectionEntry] {
        self.cases.get(self.from_opening..).unwrap_or_default()
    }

    /// Applies a critic's turn. An objection that was answered and is not pressed again is settled.
    pub(crate) fn apply_critic(
        &mut self,
        thread: &str,
        turn: &CriticTurn,
        round: u32,
    ) -> CriticTurnRecord {
        let mut raised = CriticTurnRecord::default();
        let known = self.cases.len();
        for case in &mut self.cases {
            let pressed = turn.objections.iter().any(|objection| names(&objection.id, &case.id));
            match case.fate {
                _ if pressed => {}
                ObjectionPhase::Open
                | ObjectionPhase::Answered
                | ObjectionPhase::Pressed { .. }
                | ObjectionPhase::InPart
                    if turn.withdrawn.iter().any(|id| names(id, &case.id)) =>
                {
                    case.fate = ObjectionPhase::Withdrawn;
                    raised.withdrawn.push(case.id.clone());
                }
                ObjectionPhase::Pressed { answered: true } => case.fate = ObjectionPhase::Answered,
                _ => {}
            }
        }
        for (index, objection) in turn.objections.iter().enumerate() {
            let mut before = self.cases.iter_mut().take(known);
            if let Some(case) = before.find(|case| names(&objection.id, &case.id)) {
                case.press(objection);
                let id = case.id.clone();
                raised.objections.push(ObjectionRef { index, id, is_new: false });
            } else if self.own().len() < MAX_RECORDED {
                let id = format!("{thread}-O{}", self.own().len() + 1);
                raised.objections.push(ObjectionRef { index, id: id.clone(), is_new: true });
                self.cases.push(ObjectionEntry::new(id, objection, round));
            }
        }
        raised
    }

    /// Applies a decision maker's turn. Unknown ids are ignored.
    pub(crate) fn apply_decision_maker(
        &mut self,
        turn: &DecisionMakerTurn,
        round: u32,
    ) -> DecisionMakerTurnRecord {
        let mut answered = DecisionMakerTurnRecord::default();
        for case in &mut self.cases {
            let answer = turn.answers.iter().find(|answer| names(&answer.objection, &case.id));
            let answers = answer.is_some();
            if let Some(answer) = answer {
                let text = about(&turn.message, &case.id);
                let mut evidence = cites(&text, &answer.evidence);
                evidence.truncate(MAX_EVIDENCE);
                case.reply = Some(ObjectionReply { round, text, evidence });
            }
            let concedes = turn.conceded.iter().any(|id| names(id, &case.id))
                && !matches!(case.fate, ObjectionPhase::Withdrawn);
            match (answers, concedes) {
                (true, true) if case.fate != ObjectionPhase::Conceded => {
                    case.fate = ObjectionPhase::InPart
                }
                (_, true) => case.fate = ObjectionPhase::Conceded,
                (true, false) => case.answer(),
                (false, false) => {}
            }
            if answers {
                answered.answered.push(case.id.clone());
            }
            if concedes {
                answered.conceded.push(case.id.clone());
            }
        }
        answered
    }
}

/// The part of a message about one objection: from the first sentence that names it to the next
/// one that names another. The beginning of the message if none names it.
fn about(message: &str, id: &str) -> String {
    let is_id = |word: &&str| {
        let (_, number) = word.rsplit_once('O').unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_');
    let mut found = String::new();
    for sentence in message.split_inclusive(". ") {
        let words = || sentence.split(|sign| !is_part(sign)).filter(is_id);
        let is_named = words().any(|word| names(word, id));
        if is_named || (!found.is_empty() && words().next().is_none()) {
            found.push_str(sentence);
        } else if !found.is_empty() {
            break;
        }
    }
    one_line(if found.is_empty() { message } else { &found }, MAX_TEXT_CHARS)
}

/// Whether an id as written by a model refers to `id`.
fn names(written: &str, id: &str) -> bool {
    let is_wrapping = |sign: char| sign.is_whitespace() || "[]()#.:`\"".contains(sign);
    written.trim_matches(is_wrapping).eq_ignore_ascii_case(id)
}

#[cfg(test)]
#[path = "objections_tests.rs"]
mod tests;
