//! What a consultation is asked for. It is kept with the run, so that the run can go on in another
//! process and be verified offline.

use serde::{Deserialize, Serialize};

use super::committee::{Committee, InvalidCommittee};
use super::terms::{InvalidTerms, Terms};
use crate::debate::{Calls, InvalidDebate};
use crate::evidence::{Day, InvalidTicker, Ticker};
use crate::model::ModelName;
use crate::text::one_line;
use crate::{NotCanonical, Sha256Hex, canonical_json};

/// A company, a committee and who speaks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsultInput {
    /// What is gathered, and about whom.
    pub gather: GatherRequest,
    /// Who sits on the committee; `rounds` is what the user asked for.
    pub committee: Committee,
    /// How many moves there shall be in all; as many as the committee makes where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<u32>,
    /// Who speaks for whom.
    pub models: RoleModels,
    /// How models are asked.
    pub calls: Calls,
    /// Ranks moves with open wrong numbers or bad citations too, with their marks.
    #[serde(default)]
    pub accept_findings: bool,
    /// What the user says beside all that.
    #[serde(default, skip_serializing_if = "Terms::is_empty")]
    pub terms: Terms,
}

/// What is gathered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatherRequest {
    /// In capitals, as listed; empty for a company that is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ticker: String,
    /// What a company that is not listed is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the evidence comes from.
    pub source: EvidenceSource,
    /// Only what was filed on or before this day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Day>,
    /// Takes a company that has filed no annual report for 18 months.
    #[serde(default)]
    pub allow_stale: bool,
    /// The user's own documents, by what their folder is called. Where it is, whoever gathers knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<String>,
    /// Headlines, by what their source is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<String>,
}

impl GatherRequest {
    /// Whom it is about: the ticker, or the name of a company that has none.
    pub fn subject(&self) -> &str {
        match &self.name {
            Some(name) if self.ticker.is_empty() => name,
            _ => &self.ticker,
        }
    }

    /// The hash that the journal compares.
    pub fn hash(&self) -> Result<Sha256Hex, NotCanonical> {
        Ok(Sha256Hex::of(canonical_json(self)?.as_bytes()))
    }
}

/// Where the evidence comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum EvidenceSource {
    /// Real filings, from the service or from a recording of it.
    #[default]
    Filings,
    /// The user's own documents and nothing else.
    Files,
    /// A model makes it up. Marked wherever it is shown.
    Synthetic,
}

/// Why nothing was gathered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatherFailure {
    /// What kind of reason.
    pub kind: GatherFailureKind,
    /// In words, for a person.
    pub detail: String,
}

/// Kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GatherFailureKind {
    /// No listed company has this ticker.
    UnknownTicker,
    /// More than one has.
    AmbiguousTicker,
    /// It has filed no annual report for too long.
    Stale,
    /// It has filed nothing that can be read as facts.
    NoFacts,
    /// The service does not know who asks: there is no contact address.
    NoContact,
    /// The service cannot be reached, or does not answer as it should.
    Unavailable,
    /// The answer cannot be read.
    Unreadable,
    /// The folder of documents cannot be read, or nothing in it can.
    NoDocuments,
}

/// Which model speaks for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleModels {
    /// Whoever is not named below.
    pub default: ModelName,
    /// The two inference agents, and the one that makes data up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<ModelName>,
    /// The analysts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analyst: Option<ModelName>,
    /// The critic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critic: Option<ModelName>,
    /// The decision makers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_maker: Option<ModelName>,
}

impl RoleModels {
    /// One model for everyone.
    pub fn all(model: ModelName) -> Self {
        Self { default: model, inference: None, analyst: None, critic: None, decision_maker: None }
    }

    /// Who speaks for the inference agents.
    pub fn inference(&self) -> &ModelName {
        self.inference.as_ref().unwrap_or(&self.default)
    }

    /// Who speaks for the analysts.
    pub fn analyst(&self) -> &ModelName {
        self.analyst.as_ref().unwrap_or(&self.default)
    }

    /// Who speaks for the critic.
    pub fn critic(&self) -> &ModelName {
        self.critic.as_ref().unwrap_or(&self.default)
    }

    /// Who speaks for the decision makers.
    pub fn decision_maker(&self) -> &ModelName {
        self.decision_maker.as_ref().unwrap_or(&self.default)
    }

    /// Every model that may be asked, each once.
    pub fn distinct(&self) -> Vec<&ModelName> {
        let mut models =
            vec![self.inference(), self.analyst(), self.critic(), self.decision_maker()];
        models.sort();
        models.dedup();
        models
    }
}

/// Why no consultation can be made of an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidConsult {
    /// Not a ticker.
    #[error(transparent)]
    Ticker(#[from] InvalidTicker),
    /// Not a name.
    #[error("a company's name has 1 to {most} characters on one line", most = ConsultInput::LONGEST_NAME)]
    Name,
    /// A company that is not listed files nothing.
    #[error("a company without a ticker is consulted about from documents")]
    NothingFiled,
    /// No move, or more than the committee makes.
    #[error("the number of moves is from 1 to {most}")]
    Moves {
        /// How many the committee makes.
        most: u32,
    },
    /// What the user says beside ticker and committee.
    #[error(transparent)]
    Terms(#[from] InvalidTerms),
    /// The committee cannot sit.
    #[error(transparent)]
    Committee(#[from] InvalidCommittee),
    /// The window leaves no room for a debate.
    #[error("the model's window of {0} tokens is too small: a debate needs {least}", least = ConsultInput::LEAST_WINDOW)]
    Window(u32),
    /// An effect id that cannot be made.
    #[error(transparent)]
    Id(#[from] crate::InvalidId),
    /// The committee could not hold a debate.
    #[error(transparent)]
    Debate(#[from] InvalidDebate),
}

impl ConsultInput {
    /// The smallest window in which evidence, a move and a few messages fit.
    pub const LEAST_WINDOW: u32 = 2_048;

    /// The longest name of a company that is not listed.
    pub const LONGEST_NAME: usize = 80;

    /// Whether a run can be made of it.
    pub fn validate(&self) -> Result<(), InvalidConsult> {
        let GatherRequest { ticker, name, source, .. } = &self.gather;
        if let Some(name) = name {
            let is_name = !name.is_empty() && one_line(name, Self::LONGEST_NAME) == *name;
            if !is_name {
                return Err(InvalidConsult::Name);
            }
        }
        if ticker.is_empty() && name.is_some() {
            if *source != EvidenceSource::Files {
                return Err(InvalidConsult::NothingFiled);
            }
        } else {
            Ticker::parse_written(ticker)?;
        }
        self.committee.validate()?;
        let most: u32 = self.committee.shares(None).iter().sum();
        if self.moves.is_some_and(|moves| !(1..=most).contains(&moves)) {
            return Err(InvalidConsult::Moves { most });
        }
        if self.calls.window_tokens < Self::LEAST_WINDOW {
            return Err(InvalidConsult::Window(self.calls.window_tokens));
        }
        Ok(self.terms.validate(self.calls.window_tokens)?)
    }

    /// How many moves the analysts propose.
    pub fn proposed_moves(&self) -> u32 {
        self.committee.shares(self.moves).iter().sum()
    }

    /// How many moves there are when the debates begin, with those that the user added. A person who
    /// reviews them may change that.
    pub fn all_moves(&self) -> u32 {
        self.proposed_moves().saturating_add(self.terms.added())
    }
}
