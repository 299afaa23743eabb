//! The beginning of calls whose run has several workers.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::EffectId;
use moothall_core::purse::{Account, Reserve, Room};

use crate::prepared::{Prepared, text};
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

/// The money of a run while its row is held: as it stands there, and what is said of it.
#[derive(Debug)]
pub(crate) struct Purse<'a> {
    stored: Option<&'a str>,
    /// Read when somebody first asks.
    account: Option<Account>,
    spent: Option<String>,
}

/// What the row of a run says of money now; absent where that is what it said before.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) spent: Option<String>,
    pub(crate) purse: Option<String>,
}

impl<'a> Purse<'a> {
    pub(crate) fn open(stored: Option<&'a str>) -> Self {
        Self { stored, account: None, spent: None }
    }

    /// Takes room. What the run has spent is said with its bills.
    pub(crate) fn reserve(&mut self, wish: &Reserve) -> Result<Room, StoreError> {
        Ok(self.account()?.reserve(wish))
    }

    /// Hears what a commit says of money.
    pub(crate) fn hear(&mut self, prepared: &Prepared) -> Result<(), StoreError> {
        match &prepared.commit.purse {
            Some(word) => {
                let account = self.account()?;
                account.hear(word);
                self.spent = Some(text("an amount", &account.at_most())?);
            }
            None => self.spent = prepared.spent.clone().or_else(|| self.spent.take()),
        }
        Ok(())
    }

    /// What is new to a row that says so much was spent. The amount alone is worth a write: it changes
    /// while a call that nobody answers yet is under way. Whoever repeats a commit says nothing new.
    pub(crate) fn close(self, spent: Option<&str>) -> Result<Changed, StoreError> {
        let account = self.account.map(|account| text("an account", &account)).transpose()?;
        Ok(Changed {
            spent: self.spent.filter(|said| Some(said.as_str()) != spent),
            purse: account.filter(|said| Some(said.as_str()) != self.stored),
        })
    }

    fn account(&mut self) -> Result<&mut Account, StoreError> {
        let account = match (self.account.take(), self.stored) {
            (Some(account), _) => account,
            (None, Some(stored)) => json("account", stored)?,
            (None, None) => Account::default(),
        };
        Ok(self.account.insert(account))
    }
}

impl Changed {
    pub(crate) fn is_news(&self) -> bool {
        self.spent.is_some() || self.purse.is_some()
    }
}
