//! What became of each objection in one thread. Code decides; nobody is asked.
//!
//! ```text
//! open ──answered──► answered ──pressed──► pressed ──answered, and not pressed again──► answered
//!   │ withdrawn by the critic: as if answered; pressed after that: open again
//!   │ conceded by the decision maker: conceded, for good
//!   └ answered and conceded in one breath: answered in part, for good unless it is conceded
//! ```

use super::cites::cites;
use super::debated::{ObjectionSeverity, ObjectionState};
use super::turn::{CriticTurn, DecisionMakerTurn, RaisedObjection};
use crate::text::one_line;

/// The most objections of the opening, and of the rest of one thread. What goes beyond is said, and
/// not recorded.
const MAX_RECORDED: usize = 24;

/// How much of an objection is recorded.
const MAX_TEXT_CHARS: usize = 300;

/// The most evidence of one objection.
const MAX_EVIDENCE: usize = 8;

/// One objection in one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) id: String,
    pub(super) severity: ObjectionSeverity,
    pub(super) text: String,
    pub(super) evidence: Vec<String>,
    pub(super) round: u32,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Answered,
    Pressed {
        /// Since it was pressed.
        answered: bool,
    },
    InPart,
    Withdrawn,
    Conceded,
}

impl Case {
    fn new(id: String, raised: &RaisedObjection, round: u32) -> Self {
        let mut case = Self {
            id,
            severity: raised.severity,
            text: one_line(&raised.text, MAX_TEXT_CHARS),
            evidence: Vec::new(),
            round,
            fate: Fate::Open,
        };
        case.cite(raised);
        case
    }

    pub(super) fn state(&self) -> ObjectionState {
        match self.fate {
            Fate::Open => ObjectionState::Open,
            Fate::Answered | Fate::Withdrawn => ObjectionState::Answered,
            Fate::Pressed { .. } | Fate::InPart => ObjectionState::Partly,
            Fate::Conceded => ObjectionState::Conceded,
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
            Fate::Open | Fate::Withdrawn => Fate::Open,
            Fate::Answered | Fate::Pressed { .. } => Fate::Pressed { answered: false },
            Fate::InPart => Fate::InPart,
            Fate::Conceded => Fate::Conceded,
        };
    }

    fn answer(&mut self) {
        self.fate = match self.fate {
            Fate::Open => Fate::Answered,
            Fate::Pressed { .. } => Fate::Pressed { answered: true },
            settled => settled,
        };
    }
}

/// All objections of one thread: those of the opening, then its own.
#[derive(Debug, Default)]
pub(super) struct Docket {
    pub(super) cases: Vec<Case>,
    from_opening: usize,
}

/// A critic's turn with the ids that count.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Raised {
    pub(super) objections: Vec<Recorded>,
    pub(super) withdrawn: Vec<String>,
}

/// An objection of a turn, as it was recorded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    /// Where it stands in the turn.
    pub(super) index: usize,
    pub(super) id: String,
    pub(super) is_new: bool,
}

/// A decision maker's turn with the ids that count, in the order of the record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) answered: Vec<String>,
    pub(super) conceded: Vec<String>,
}

impl Docket {
    /// The objections of the opening, numbered `O1` and on in the order in which they stand.
    pub(super) fn opening(turn: &CriticTurn) -> (Self, Raised) {
        let mut raised = Raised::default();
        let mut cases = Vec::new();
        for (index, objection) in turn.objections.iter().take(MAX_RECORDED).enumerate() {
            let id = format!("O{}", index + 1);
            raised.objections.push(Recorded { index, id: id.clone(), is_new: true });
            cases.push(Case::new(id, objection, 1));
        }
        (Self { from_opening: cases.len(), cases }, raised)
    }

    /// The objections that only this thread has.
    pub(super) fn own(&self) -> &[Case] {
        self.cases.get(self.from_opening..).unwrap_or_default()
    }

    /// The critic speaks: what is not pressed again after an answer is settled.
    pub(super) fn critic_speaks(&mut self, thread: &str, turn: &CriticTurn, round: u32) -> Raised {
        let mut raised = Raised::default();
        let known = self.cases.len();
        for case in &mut self.cases {
            let pressed = turn.objections.iter().any(|objection| names(&objection.id, &case.id));
            match case.fate {
                _ if pressed => {}
                Fate::Open | Fate::Answered | Fate::Pressed { .. } | Fate::InPart
                    if turn.withdrawn.iter().any(|id| names(id, &case.id)) =>
                {
                    case.fate = Fate::Withdrawn;
                    raised.withdrawn.push(case.id.clone());
                }
                Fate::Pressed { answered: true } => case.fate = Fate::Answered,
                _ => {}
            }
        }
        for (index, objection) in turn.objections.iter().enumerate() {
            let mut before = self.cases.iter_mut().take(known);
            if let Some(case) = before.find(|case| names(&objection.id, &case.id)) {
                case.press(objection);
                let id = case.id.clone();
                raised.objections.push(Recorded { index, id, is_new: false });
            } else if self.own().len() < MAX_RECORDED {
                let id = format!("{thread}-O{}", self.own().len() + 1);
                raised.objections.push(Recorded { index, id: id.clone(), is_new: true });
                self.cases.push(Case::new(id, objection, round));
            }
        }
        raised
    }

    /// The decision maker speaks. Ids that nobody raised are passed over.
    pub(super) fn decision_maker_speaks(&mut self, turn: &DecisionMakerTurn) -> Answered {
        let mut answered = Answered::default();
        for case in &mut self.cases {
            let answers = turn.answers.iter().any(|answer| names(&answer.objection, &case.id));
            let concedes = turn.conceded.iter().any(|id| names(id, &case.id))
                && !matches!(case.fate, Fate::Withdrawn);
            match (answers, concedes) {
                (true, true) if case.fate != Fate::Conceded => case.fate = Fate::InPart,
                (_, true) => case.fate = Fate::Conceded,
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

/// Whether what a model wrote means this id.
fn names(written: &str, id: &str) -> bool {
    let is_wrapping = |sign: char| sign.is_whitespace() || "[]()#.:`\"".contains(sign);
    written.trim_matches(is_wrapping).eq_ignore_ascii_case(id)
}

#[cfg(test)]
#[path = "objections_tests.rs"]
mod tests;
