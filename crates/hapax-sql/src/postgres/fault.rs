//! What an error of PostgreSQL means for the one who sent the statement: the class decides the reaction.
//!
//! Reads: SQLSTATE, never the message, which is in the server's language. Invariant: every SQLSTATE has a class.
//! Not here: what the reaction is (the sink decides), the outcome of COMMIT (`commit`).

use std::error::Error as _;
use std::fmt;
use std::io;

use tokio_postgres::Error;
use tokio_postgres::error::DbError;

pub use crate::fault_class::FaultClass;

/// An error as facts. `Display` gives all of them to people; the detail may contain values of the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlFault {
    /// What to do about it.
    pub class: FaultClass,
    /// Its page in docs/errors, where it has one of its own; else the page is that of what was being done.
    pub code: Option<&'static str>,
    /// The five characters, if the server spoke; none if the connection failed.
    pub sqlstate: Option<String>,
    /// The server's words, or the driver's.
    pub message: String,
    /// Details, which may contain values of the row.
    pub detail: Option<String>,
    /// The server's advice.
    pub hint: Option<String>,
    /// The schema of the table.
    pub schema: Option<String>,
    /// The table that is concerned.
    pub table: Option<String>,
    /// The column that is concerned. Set for few errors: NOT NULL, and a domain's check.
    pub column: Option<String>,
    /// The constraint that was violated.
    pub constraint: Option<String>,
    /// The data type that is concerned.
    pub datatype: Option<String>,
    /// Where in the server it happened, such as the line of a trigger function.
    pub context: Option<String>,
}

impl SqlFault {
    /// Takes an error of the driver apart.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        match error.as_db_error() {
            Some(error) => Self::of_server(error),
            None => Self::of_driver(error),
        }
    }

    /// Takes an error of the server apart.
    #[must_use]
    pub fn of_server(error: &DbError) -> Self {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Self {
            class: class_of(error.code().code()),
            code: None,
            sqlstate: Some(error.code().code().to_owned()),
            message: error.message().to_owned(),
            detail: own(error.detail()),
            hint: own(error.hint()),
            schema: own(error.schema()),
            table: own(error.table()),
            column: own(error.column()),
            constraint: own(error.constraint()),
            datatype: own(error.datatype()),
            context: own(error.where_()),
        }
    }

    /// A connection that broke, in our own words.
    #[must_use]
    pub fn lost(message: impl Into<String>) -> Self {
        Self::plain(FaultClass::Reconnect, message.into())
    }

    /// Nothing was done, and the same may be sent again, in our own words.
    #[must_use]
    pub fn again(message: impl Into<String>) -> Self {
        Self::plain(FaultClass::Again, message.into())
    }

    /// Something that only a person can change, in our own words, with its own page.
    #[must_use]
    pub fn denied(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: Some(code), ..Self::plain(FaultClass::Denied, message.into()) }
    }

    fn of_driver(error: &Error) -> Self {
        let cause = error.source();
        let message = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        let class = match cause.and_then(|cause| cause.downcast_ref::<io::Error>()) {
            // The driver could not put the value into a message: longer than the protocol can carry.
            Some(cause) if cause.kind() == io::ErrorKind::InvalidInput => FaultClass::Row,
            Some(_) => FaultClass::Reconnect,
            None if error.is_closed() || cause.is_none() => FaultClass::Reconnect,
            None => FaultClass::Schema,
        };
        Self::plain(class, message)
    }

    fn plain(class: FaultClass, message: String) -> Self {
        Self {
            class,
            code: None,
            sqlstate: None,
            message,
            detail: None,
            hint: None,
            schema: None,
            table: None,
            column: None,
            constraint: None,
            datatype: None,
            context: None,
        }
    }
}

impl fmt::Display for SqlFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        if let Some(sqlstate) = &self.sqlstate {
            write!(formatter, " (SQLSTATE {sqlstate})")?;
        }
        for text in [&self.detail, &self.hint].into_iter().flatten() {
            write!(formatter, "; {}", text.trim_end_matches('.'))?;
        }
        Ok(())
    }
}

impl std::error::Error for SqlFault {}

/// An error of the server for people, in one line: message, SQLSTATE, detail, hint.
#[must_use]
pub fn describe(error: &DbError) -> String {
    SqlFault::of_server(error).to_string()
}

/// The class of a SQLSTATE.
#[must_use]
pub fn class_of(sqlstate: &str) -> FaultClass {
    if let Some(class) = single(sqlstate) {
        return class;
    }
    match sqlstate.get(..2).unwrap_or_default() {
        // 27, 38, 39, 44, P0: what a trigger or a view's check says about the row.
        "22" | "23" | "27" | "38" | "39" | "44" | "54" | "P0" => FaultClass::Row,
        "40" | "72" => FaultClass::Again,
        // 58, XX, F0: the server's own disk, files or logic. HV: a foreign server behind a trigger.
        "08" | "25" | "26" | "53" | "57" | "58" | "F0" | "HV" | "XX" => FaultClass::Reconnect,
        "28" | "0L" | "0P" => FaultClass::Denied,
        // 42 and 3D, 3F, 55, 0A …: the statement does not fit what is there. An unknown class is not repeated for ever.
        _ => FaultClass::Schema,
    }
}

fn single(sqlstate: &str) -> Option<FaultClass> {
    match sqlstate {
        // A lock or time limit, an object in use, an enum value of a transaction that is still open.
        "55P03" | "57014" | "55006" | "55P04" => Some(FaultClass::Again),
        // An earlier statement of this transaction failed: that one's error is the reason, this one only follows.
        "25P02" => Some(FaultClass::Again),
        "25006" => Some(FaultClass::ReadOnly),
        "42501" => Some(FaultClass::Denied),
        // Whether the statement was completed is not known.
        "40003" => Some(FaultClass::Reconnect),
        // Our own statement names one row twice: repeating it or blaming the row would be wrong.
        "21000" => Some(FaultClass::Schema),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each SQLSTATE has the reaction that the delivery protocol names. Method: the list, one by one.
    #[test]
    fn every_class_of_errors_has_its_reaction() {
        use FaultClass::{Again, Denied, ReadOnly, Reconnect, Row, Schema};
        for (class, states) in [
            (
                Row,
                ["22001", "22003", "22007", "22021", "22P02", "23502", "23505", "23514", "54000", "P0001", "44000"]
                    .as_slice(),
            ),
            (Again, ["40001", "40P01", "55P03", "57014", "25P02"].as_slice()),
            (
                Reconnect,
                [
                    "08006", "08P01", "53100", "53200", "53300", "57P01", "57P02", "57P03", "25P03", "25P04", "26000",
                    "58030", "XX000", "40003",
                ]
                .as_slice(),
            ),
            (
                Schema,
                ["42P01", "42703", "42804", "42601", "0A000", "3F000", "3D000", "21000", "", "?", "ZZZZZ"].as_slice(),
            ),
            (Denied, ["28000", "28P01", "42501", "0LP01"].as_slice()),
            (ReadOnly, ["25006"].as_slice()),
        ] {
            for state in states {
                assert_eq!(class_of(state), class, "{state}");
            }
        }
    }

    /// Goal: what is printed has the code and ends cleanly. Method: a made-up fault.
    #[test]
    fn a_fault_is_one_line_for_people() {
        let fault = SqlFault {
            sqlstate: Some("23505".into()),
            detail: Some("Key (id)=(7) already exists.".into()),
            ..SqlFault::plain(FaultClass::Row, "duplicate key".into())
        };
        assert_eq!(fault.to_string(), "duplicate key (SQLSTATE 23505); Key (id)=(7) already exists");
        assert_eq!(SqlFault::lost("gone").class, FaultClass::Reconnect);
    }
}
