//! Teams, tokens, sessions and login codes in PostgreSQL.

use sqlx::postgres::PgConnection;

use super::PgStore;
use crate::accounts_sql::accounts;

accounts!(PgStore, PgConnection);
