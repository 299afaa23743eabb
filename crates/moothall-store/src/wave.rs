//! The beginning of calls whose run has several workers.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::EffectId;
use moothall_core::purse::{Account, Reserve, Room, Word};

use crate::prepared::text;
use crate::rows::json;
use crate::{Commit, JournalEntry, StoreError, Wish};

/// What stands before calls: what happened until now, and a wish for room in the run's budget.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// What is published first.
    pub commit: Commit,
    /// The effects that are about to be performed.
    pub effects: Vec<EffectId>,
    /// The most that they can use.
    pub reserve: Reserve,
}

/// How a run stands when calls are about to begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Begun {
    /// The wishes that were left and not taken back.
    pub wishes: BTreeSet<Wish>,
    /// What was answered to these effects already: a worker that died may have come half through.
    pub answers: BTreeMap<EffectId, JournalEntry>,
    /// Whether there is room; nothing was reserved where there is a wish or an answer.
    pub room: Option<Room>,
}

/// The account of a run as it is stored, and what the run has spent by it.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) account: String,
    pub(crate) spent: String,
}

impl Kept {
    fn new(account: &Account) -> Result<Self, StoreError> {
        let spent = text("an amount", &account.at_most())?;
        Ok(Self { account: text("an account", account)?, spent })
    }
}

/// Takes room in the account that is stored.
pub(crate) fn reserve(stored: Option<&str>, wish: &Reserve) -> Result<(Room, Kept), StoreError> {
    let mut account = account(stored)?;
    let room = account.reserve(wish);
    Ok((room, Kept::new(&account)?))
}

/// Tells the account that is stored what became of a reservation.
pub(crate) fn tell(stored: Option<&str>, word: &Word) -> Result<Kept, StoreError> {
    let mut account = account(stored)?;
    account.hear(word);
    Kept::new(&account)
}

fn account(stored: Option<&str>) -> Result<Account, StoreError> {
    stored.map_or_else(|| Ok(Account::default()), |text| json("account", text))
}
