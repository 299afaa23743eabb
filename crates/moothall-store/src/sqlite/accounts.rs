//! Teams, tokens, sessions and login codes in SQLite.

use sqlx::SqliteConnection;

use super::SqliteStore;
use crate::accounts_sql::accounts;

accounts!(SqliteStore, SqliteConnection);
