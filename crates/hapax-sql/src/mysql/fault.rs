//! What an error of MySQL or MariaDB means for the one who sent the statement: the class decides the reaction.
//!
//! Reads: the error's number, then its SQLSTATE. Sessions ask for messages in English: column, constraint and row are
//! taken from them as hints for people; no reaction rests on them. Not here: the outcome of COMMIT (`commit`).

use std::fmt;

use mysql_async::{DriverError, Error, ServerError};

pub use crate::fault_class::FaultClass;

/// A row that is larger than the server takes in one message: ours, before it is sent, with the server's own number.
const PACKET_TOO_LARGE: u16 = 1153;

/// An error as facts. `Display` gives all of them to people; the message may contain values of the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlFault {
    /// What to do about it.
    pub class: FaultClass,
    /// Its page in docs/errors, where it has one of its own; else the page is that of what was being done.
    pub code: Option<&'static str>,
    /// The server's number, if the server spoke; none if the connection failed.
    pub number: Option<u16>,
    /// The five characters, if the server spoke.
    pub sqlstate: Option<Box<str>>,
    /// The server's words, or the driver's.
    pub message: String,
    /// The column that the message names.
    pub column: Option<String>,
    /// The constraint or index that the message names.
    pub constraint: Option<String>,
    /// Which row of the statement the message names, counted from 1.
    pub row: Option<u32>,
}

impl SqlFault {
    /// Takes an error of the driver apart.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        match error {
            Error::Server(error) => Self::of_server(error),
            Error::Driver(error @ (DriverError::PacketTooLarge | DriverError::StmtParamsNumberExceedsLimit { .. })) => {
                Self::plain(FaultClass::Row, error.to_string())
            }
            Error::Driver(
                error @ (DriverError::StmtParamsMismatch { .. } | DriverError::MixedParams | DriverError::Params(_)),
            ) => Self::plain(FaultClass::Schema, error.to_string()),
            Error::Driver(error) => Self::plain(FaultClass::Reconnect, error.to_string()),
            Error::Io(error) => Self::plain(FaultClass::Reconnect, error.to_string()),
            Error::Other(error) => Self::plain(FaultClass::Reconnect, error.to_string()),
            Error::Url(error) => Self::plain(FaultClass::Denied, error.to_string()),
        }
    }

    /// Takes an error of the server apart.
    #[must_use]
    pub fn of_server(error: &ServerError) -> Self {
        Self {
            class: class_of(error.code, &error.state),
            code: None,
            number: Some(error.code),
            sqlstate: Some(error.state.as_str().into()),
            column: column(&error.message),
            constraint: constraint(error.code, &error.message),
            row: row(&error.message),
            message: error.message.clone(),
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

    /// A statement that the server would refuse for its size, and close the connection over it.
    #[must_use]
    pub fn too_large(bytes: usize, limit: usize) -> Self {
        let message = format!(
            "the statement has {bytes} bytes of values, and the server's max_allowed_packet is {limit}; raise it \
             there, or send less at once"
        );
        Self { number: Some(PACKET_TOO_LARGE), ..Self::plain(FaultClass::Row, message) }
    }

    fn plain(class: FaultClass, message: String) -> Self {
        Self { class, code: None, number: None, sqlstate: None, message, column: None, constraint: None, row: None }
    }
}

impl fmt::Display for SqlFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.message.trim_end_matches('.'))?;
        match (self.number, &self.sqlstate) {
            (Some(number), Some(sqlstate)) => write!(formatter, " (error {number}, SQLSTATE {sqlstate})"),
            (Some(number), None) => write!(formatter, " (error {number})"),
            (None, _) => Ok(()),
        }
    }
}

impl std::error::Error for SqlFault {}

/// The class of an error: by its number, else by its SQLSTATE, which MySQL gives to many errors as plain `HY000`.
#[must_use]
pub fn class_of(number: u16, sqlstate: &str) -> FaultClass {
    if let Some(class) = single(number) {
        return class;
    }
    match sqlstate.get(..2).unwrap_or_default() {
        // 44 a view's check, 45 what a trigger says about the row.
        "22" | "23" | "44" | "45" => FaultClass::Row,
        "40" => FaultClass::Again,
        "08" => FaultClass::Reconnect,
        "28" => FaultClass::Denied,
        // 42 and the many HY000: the statement does not fit what is there. An unknown one is not repeated for ever.
        _ => FaultClass::Schema,
    }
}

fn single(number: u16) -> Option<FaultClass> {
    match number {
        // Key, NULL, unique, foreign key, partition, view's check, trigger's SIGNAL.
        1022 | 1048 | 1062 | 1169 | 1216 | 1217 | 1364 | 1369 | 1451 | 1452 | 1526 | 1557 | 1569 | 1586 | 1644
        | 1748 | 1761 | 1762 | 1859 => Some(FaultClass::Row),
        // A value that does not fit its type, its column, the row or a message.
        1118
        | 1153
        | 1162
        | 1264
        | 1265
        | 1292
        | 1300
        | 1301
        | 1365
        | 1366
        | 1367
        | 1406
        | 1411
        | 1416
        | 1441
        | 1690
        | 3140..=3158 => Some(FaultClass::Row),
        // CHECK of MySQL, of MariaDB; JSON of MariaDB.
        3819 | 4025 | 4038..=4042 => Some(FaultClass::Row),
        // Locks, deadlocks, time limits, KILL QUERY, a table that changed under the statement, too many transactions.
        1020 | 1205 | 1206 | 1213 | 1223 | 1317 | 1412 | 1613..=1615 | 1637 | 1969 | 3024 | 3058 | 3101 | 3572 => {
            Some(FaultClass::Again)
        }
        // No connection left, the server goes away or is not there yet, a session that was ended, a broken line.
        1040
        | 1043
        | 1047
        | 1053
        | 1077..=1080
        | 1152
        | 1155..=1161
        | 1184
        | 1203
        | 1226
        | 1243
        | 1461
        | 1927
        | 2000..=2062
        | 3168
        | 3169
        | 4031 => Some(FaultClass::Reconnect),
        // Disk full, memory, files, the storage engine itself.
        1..=28 | 1021 | 1026 | 1028 | 1030 | 1037 | 1038 | 1041 | 1114 | 1135 | 1180 | 1189 | 1194 | 1877 => {
            Some(FaultClass::Reconnect)
        }
        1290 | 1792 | 1836 | 1874 => Some(FaultClass::ReadOnly),
        1044 | 1045 | 1129 | 1130 | 1131 | 1132 | 1133 | 1142 | 1143 | 1227 | 1251 | 1370 | 1396 | 1410 | 1449
        | 1524 | 1698 | 1820 | 1862 | 3118 | 3159 | 3955 | 4151 => Some(FaultClass::Denied),
        _ => None,
    }
}

/// `… column 'c' …`, `… column `d`.`t`.`c` …`, `Field 'c' doesn't have a default value`: the last name of the path.
fn column(message: &str) -> Option<String> {
    let lower = message.to_ascii_lowercase();
    let start = ["column ", "field "].iter().find_map(|word| lower.rfind(word).map(|at| at + word.len()))?;
    let rest = &message[start..];
    let quote = rest.chars().next().filter(|first| matches!(first, '\'' | '`'))?;
    let mut name = None;
    let mut rest = rest;
    while let Some(quoted) = rest.strip_prefix(quote) {
        let (part, after) = quoted.split_once(quote)?;
        name = Some(part);
        rest = after.strip_prefix('.').unwrap_or("");
    }
    name.map(str::to_owned)
}

/// The name behind `for key` (1062), `CONSTRAINT` (1452, 4025) or `constraint` (3819).
fn constraint(number: u16, message: &str) -> Option<String> {
    let word = match number {
        1062 | 1586 => "for key ",
        1216 | 1217 | 1451 | 1452 | 1761 | 1762 | 4025 => "CONSTRAINT ",
        3819 => "onstraint ",
        _ => return None,
    };
    let rest = message.rsplit_once(word)?.1;
    let quote = rest.chars().next().filter(|first| matches!(first, '\'' | '`'))?;
    Some(rest.get(1..)?.split_once(quote)?.0.to_owned())
}

/// `… at row 3`.
fn row(message: &str) -> Option<u32> {
    message.rsplit_once(" at row ")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each number has the reaction that the delivery protocol names. Method: the list, one by one.
    #[test]
    fn every_error_has_its_reaction() {
        use FaultClass::{Again, Denied, ReadOnly, Reconnect, Row, Schema};
        for (class, numbers) in [
            (
                Row,
                [1048, 1062, 1153, 1264, 1292, 1364, 1366, 1406, 1452, 1644, 1690, 3140, 3819, 4025, 1265, 1118]
                    .as_slice(),
            ),
            (Again, [1205, 1213, 1317, 1969, 3024, 1412, 1615, 1206].as_slice()),
            (Reconnect, [2006, 2013, 1040, 1203, 1053, 1927, 1021, 1114, 3, 28, 1041, 1047, 1243, 4031].as_slice()),
            (Schema, [1054, 1146, 1064, 1049, 1136, 1060, 1305].as_slice()),
            (Denied, [1044, 1045, 1142, 1143, 1227, 1698, 3159].as_slice()),
            (ReadOnly, [1290, 1836, 1792].as_slice()),
        ] {
            for number in numbers {
                assert_eq!(class_of(*number, "HY000"), class, "{number}");
            }
        }
        for (state, class) in [("22007", Row), ("23000", Row), ("45000", Row), ("40001", Again), ("08S01", Reconnect)] {
            assert_eq!(class_of(65000, state), class, "{state}");
        }
        assert_eq!((class_of(65000, "28000"), class_of(65000, ""), class_of(65000, "é")), (Denied, Schema, Schema));
    }

    /// Goal: column, constraint and row are found in the servers' messages. Method: messages of both servers.
    #[test]
    fn the_hints_of_a_message_are_found() {
        for (number, message, column, constraint, row) in [
            (1048, "Column 'name' cannot be null", Some("name"), None, None),
            (1406, "Data too long for column 'name' at row 17", Some("name"), None, Some(17)),
            (1366, "Incorrect integer value: 'x' for column `d`.`t`.`n` at row 2", Some("n"), None, Some(2)),
            (1364, "Field 'name' doesn't have a default value", Some("name"), None, None),
            (1062, "Duplicate entry 'a for key 'b'' for key 'PRIMARY'", None, Some("PRIMARY"), None),
            (3819, "Check constraint 'positive' is violated.", None, Some("positive"), None),
            (4025, "CONSTRAINT `positive` failed for `d`.`t`", None, Some("positive"), None),
            (1452, "Cannot add … (`d`.`t`, CONSTRAINT `fk` FOREIGN KEY (`a`) …)", None, Some("fk"), None),
            (1205, "Lock wait timeout exceeded", None, None, None),
        ] {
            let error = ServerError { code: number, message: message.to_owned(), state: "HY000".to_owned() };
            let fault = SqlFault::of_server(&error);
            let found = (fault.column.as_deref(), fault.constraint.as_deref(), fault.row);
            assert_eq!(found, (column, constraint, row), "{message}");
        }
    }

    /// Goal: what is printed has the number and ends cleanly. Method: made-up faults.
    #[test]
    fn a_fault_is_one_line_for_people() {
        let error = ServerError { code: 3819, message: "Check 'c' is violated.".into(), state: "HY000".into() };
        assert_eq!(SqlFault::of(&error.into()).to_string(), "Check 'c' is violated (error 3819, SQLSTATE HY000)");
        assert_eq!(SqlFault::lost("gone").to_string(), "gone");
        assert!(SqlFault::too_large(20, 10).to_string().ends_with("(error 1153)"));
    }
}
