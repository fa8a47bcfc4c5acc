//! The database that `init` was told of: how its table is read, how a new one would be made, how the file names it.

use std::path::{Path, PathBuf};

#[cfg(feature = "mysql")]
use hapax_connect::mysql;
#[cfg(feature = "postgres")]
use hapax_connect::postgres;
use hapax_connect::sqlite;
use hapax_connect::table::config::TableConfig;
use hapax_connect::table::ddl;
use hapax_connect::table::described::Described;

use super::UNCLEAR;
use crate::exit::{Failure, USAGE};

/// The variable that the file names in place of a URL with a password.
pub(super) const VARIABLE: &str = "DATABASE_URL";

/// Where events go.
#[derive(Debug, Clone)]
pub(super) enum To {
    Sqlite(String),
    #[cfg(feature = "postgres")]
    Postgres(String),
    #[cfg(feature = "mysql")]
    Mysql(String),
}

impl To {
    pub(super) fn parse(text: &str, _folder: &Path) -> Result<Self, Failure> {
        let unclear = |message: String| Failure::new(UNCLEAR, message).with_exit(USAGE);
        match text.split_once(':') {
            #[cfg(feature = "postgres")]
            Some(("postgres" | "postgresql", _)) => {
                text.parse::<hapax_sql::postgres::PostgresUrl>().map_err(|error| unclear(error.to_string()))?;
                Ok(Self::Postgres(text.to_owned()))
            }
            #[cfg(feature = "mysql")]
            Some(("mysql" | "mariadb", _)) => {
                text.parse::<hapax_sql::mysql::MysqlUrl>().map_err(|error| unclear(error.to_string()))?;
                Ok(Self::Mysql(text.to_owned()))
            }
            Some(("sqlite", path)) => Ok(Self::Sqlite(path.trim_start_matches("//").to_owned())),
            None if [".db", ".sqlite", ".sqlite3"].iter().any(|end| text.ends_with(end)) => Ok(Self::Sqlite(text.to_owned())),
            // What may hold a password is not repeated.
            Some(_) | None => Err(unclear(
                "the target is none that this edition knows: write sqlite:FILE, postgres://user:password@host/database, or \
                 mysql://user:password@host/database"
                    .to_owned(),
            )),
        }
    }

    /// Reads what is under the table's name.
    pub(super) async fn describe(&self, table: &str, folder: &Path) -> Result<Described, Failure> {
        match self {
            Self::Sqlite(path) => {
                let (path, table): (PathBuf, String) = (folder.join(path), table.to_owned());
                let work = tokio::task::spawn_blocking(move || sqlite::describe::describe(&path, &table));
                Ok(work.await.map_err(|error| Failure::new(UNCLEAR, error.to_string()))??)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => {
                let unclear = |error: String| Failure::new(UNCLEAR, error).with_exit(USAGE);
                let url = url.parse().map_err(|error: hapax_sql::postgres::UrlError| unclear(error.to_string()))?;
                let table =
                    table.parse::<hapax_sql::postgres::TableName>().map_err(|error| unclear(error.to_string()))?;
                Ok(postgres::describe::describe(&url, &table).await?)
            }
            #[cfg(feature = "mysql")]
            Self::Mysql(url) => {
                let unclear = |error: String| Failure::new(UNCLEAR, error).with_exit(USAGE);
                let url = url.parse().map_err(|error: hapax_sql::mysql::UrlError| unclear(error.to_string()))?;
                let table = table.parse::<hapax_sql::mysql::TableName>().map_err(|error| unclear(error.to_string()))?;
                Ok(mysql::describe::describe(&url, &table).await?)
            }
        }
    }

    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "postgres",
            #[cfg(feature = "mysql")]
            Self::Mysql(_) => "mysql",
        }
    }

    /// The URL, if it is one.
    pub(super) fn url(&self) -> Option<&str> {
        match self {
            Self::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Some(url),
            #[cfg(feature = "mysql")]
            Self::Mysql(url) => Some(url),
        }
    }

    /// The variable that stands for the URL in the file, and its value: where the URL holds a password.
    pub(super) fn variable(&self) -> Option<(&'static str, String)> {
        self.url().filter(|url| hidden(url) != **url).map(|url| (VARIABLE, url.to_owned()))
    }

    /// A table of its database for this configuration.
    pub(super) fn suggested_ddl(&self, table: &TableConfig) -> String {
        match self {
            Self::Sqlite(_) => ddl::suggested_ddl::<sqlite::schema::SqliteColumn>(table),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => ddl::suggested_ddl::<postgres::column::PostgresColumn>(table),
            #[cfg(feature = "mysql")]
            Self::Mysql(_) => mysql::ddl::suggested_for(table, hapax_sql::mysql::Flavour::MariaDb),
        }
    }
}

/// A URL without its password.
pub(super) fn hidden(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let login = rest.rsplit_once('@').and_then(|(login, place)| Some((login.split_once(':')?.0, place)));
    let rest = login.map_or_else(|| rest.to_owned(), |(user, place)| format!("{user}:PASSWORD@{place}"));
    let rest = match rest.to_ascii_lowercase().find("password=") {
        Some(at) => format!("{}password=PASSWORD", &rest[..at]),
        None => rest,
    };
    format!("{scheme}://{rest}")
}
