//! Whose fault an error is that came while rows were written: the row's, the table's, or the target's.

use hapax_model::letter::{Cause, Stage};
use hapax_sql::mysql::{FaultClass, Row, Session, SqlFault, Value};

use super::error::{During, sink_error};
use crate::table::tries::Fault;
use crate::table::words;

/// A row alone is larger than the server takes in one message.
pub const ROW_TOO_LARGE: &str = "HX2150";
/// A value that the server cannot take: its form, its range, its length, its characters.
pub const VALUE: &str = "HX2151";
/// A rule of the table that is none of the usual ones, such as a row for which there is no partition.
pub const RULE: &str = "HX2152";

/// Warnings that say that a value was stored otherwise than it was sent. In strict mode they are errors, unless the
/// table or a trigger says otherwise.
const CHANGED_VALUE: [u16; 12] = [1048, 1263, 1264, 1265, 1292, 1364, 1366, 1406, 1411, 1441, 1690, 3156];

/// What an error of a statement that writes rows means.
pub(super) fn fault(target: &str, during: During, fault: &SqlFault) -> Fault {
    match fault.class {
        FaultClass::Row => Fault::Row(cause(fault)),
        FaultClass::Schema if concerns_table(fault) => Fault::Schema(fault.to_string()),
        FaultClass::Schema => Fault::Row(cause(fault)),
        FaultClass::Again if is_deadlock(fault) => Fault::Again(sink_error(target, during, fault)),
        FaultClass::Again | FaultClass::Reconnect | FaultClass::Denied | FaultClass::ReadOnly => {
            Fault::Target(sink_error(target, during, fault))
        }
    }
}

/// A deadlock, or a table that changed between two statements: the same again, at once.
fn is_deadlock(fault: &SqlFault) -> bool {
    matches!(fault.number, Some(1213 | 1412 | 1615 | 1020)) || fault.sqlstate.as_deref() == Some("40001")
}

/// Whether the statement does not fit the table. What else is of no known class is the row's: a trigger may raise any
/// SQLSTATE that it likes.
fn concerns_table(fault: &SqlFault) -> bool {
    let state = fault.sqlstate.as_deref().unwrap_or_default();
    ["42", "0A", "3D", "HY"].iter().any(|class| state.starts_with(class))
}

fn cause(fault: &SqlFault) -> Cause {
    let state = fault.sqlstate.as_deref().unwrap_or_default();
    let code = match fault.number.unwrap_or_default() {
        1048 | 1263 | 1364 => "HX2030",
        1022 | 1062 | 1169 | 1586 | 1859 => "HX2031",
        1369 | 3819 | 4025 => "HX2032",
        1216 | 1217 | 1451 | 1452 | 1761 | 1762 => "HX2033",
        1153 => ROW_TOO_LARGE,
        1118 | 1162 => "HX2035",
        1644 => "HX2036",
        1526 | 1557 | 1569 | 1748 => RULE,
        _ if state.starts_with("44") => RULE,
        1264..=1700 | 3100..=3199 | 4038..=4042 => VALUE,
        _ if state.starts_with("22") || state.is_empty() => VALUE,
        _ if state.starts_with("23") => RULE,
        // Of no known class: only a trigger can have raised it.
        _ => "HX2036",
    };
    Cause { stage: Stage::Write, code, message: fault.to_string(), fingerprint: fingerprint(fault) }
}

/// What letters of one cause share: the rule by its name where the server gives it, else the words without values.
fn fingerprint(fault: &SqlFault) -> String {
    let number = fault.number.map(|number| number.to_string()).unwrap_or_default();
    let place = [("constraint", &fault.constraint), ("column", &fault.column)];
    words::fingerprint(&number, &place, || without_values(&fault.message))
}

/// The message with what may be a row's own value taken out: runs of digits, and text in quotes.
fn without_values(message: &str) -> String {
    words::without_values(message, &['\'', '"'])
}

/// Looks at the warnings of the last statement.
///
/// # Errors
/// [`Fault::Row`] if one says that a value was stored otherwise than it was sent.
pub(super) async fn refuse_changed_values(session: &mut Session, target: &str, during: During) -> Result<(), Fault> {
    let warnings = session.text_rows("SHOW WARNINGS").await.map_err(|error| fault(target, during, &error))?;
    match warnings.iter().find_map(changed_value) {
        None => Ok(()),
        Some(message) => Err(Fault::Row(Cause {
            stage: Stage::Write,
            code: VALUE,
            fingerprint: format!("warning: {}", without_values(&message)),
            message: format!("the server would store another value than was sent: {message}"),
        })),
    }
}

/// The text of a warning that says so: level, number, text.
fn changed_value(warning: &Row) -> Option<String> {
    let text = |at: usize| match warning.as_ref(at) {
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Value::Int(number)) => number.to_string(),
        Some(Value::UInt(number)) => number.to_string(),
        _ => String::new(),
    };
    let number: u16 = text(1).parse().ok()?;
    CHANGED_VALUE.contains(&number).then(|| format!("{} ({number})", text(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: u16, state: &str, message: &str) -> SqlFault {
        SqlFault {
            class: hapax_sql::mysql::class_of(number, state),
            number: Some(number),
            sqlstate: Some(state.into()),
            ..SqlFault::lost(message)
        }
    }

    /// Goal: a row's fault has its code, the target's is no row's. Method: one of each class.
    #[test]
    fn every_error_has_its_culprit() {
        let code = |number, state| match fault("t", During::Look, &server(number, state, "x")) {
            Fault::Row(cause) => cause.code,
            Fault::Schema(_) => "schema",
            Fault::Again(_) => "again",
            Fault::Target(_) => "target",
        };
        for (number, state, expected) in [
            (1048, "23000", "HX2030"),
            (1364, "HY000", "HX2030"),
            (1062, "23000", "HX2031"),
            (3819, "HY000", "HX2032"),
            (4025, "23000", "HX2032"),
            (1452, "23000", "HX2033"),
            (1153, "08S01", ROW_TOO_LARGE),
            (1644, "45000", "HX2036"),
            (30_001, "99999", "HX2036"),
            (1264, "22003", VALUE),
            (1265, "01000", VALUE),
            (1292, "22007", VALUE),
            (1366, "22007", VALUE),
            (1406, "22001", VALUE),
            (3140, "22032", VALUE),
            (1526, "HY000", RULE),
            (1054, "42S22", "schema"),
            (1146, "42S02", "schema"),
            (1213, "40001", "again"),
            (1205, "HY000", "target"),
            (1142, "42000", "target"),
            (1290, "HY000", "target"),
            (2013, "HY000", "target"),
        ] {
            assert_eq!(code(number, state), expected, "{number}");
        }
    }

    /// Goal: one cause has one fingerprint whatever the row holds. Method: two rows, with and without a named rule.
    #[test]
    fn a_fingerprint_leaves_the_rows_values_out() {
        let print = |message: &str| fingerprint(&server(1292, "22007", message));
        assert_eq!(print("Incorrect datetime value: '2038-1-1'"), print("Incorrect datetime value: '2039-1-1'"));
        let named = SqlFault { constraint: Some("PRIMARY".into()), ..server(1062, "23000", "Duplicate entry '7'") };
        assert_eq!(fingerprint(&named), "1062: constraint \"PRIMARY\"");
    }

    /// Goal: a value that the server stores otherwise than it was sent is refused also where it only warns; other
    /// warnings are none of ours. Method: digits that a decimal rounds away, which strict mode allows; a table that was
    /// there already.
    #[tokio::test]
    async fn a_warning_about_a_changed_value_is_a_refusal() {
        let place = super::super::sample::Place::new().await;
        let mut session = place.bare().await;
        for (sql, refused) in [
            ("CREATE TABLE t (a decimal(5,2))", false),
            ("CREATE TABLE IF NOT EXISTS t (a int)", false),
            ("INSERT INTO t VALUES (1.005)", true),
            ("INSERT INTO t VALUES (1.25)", false),
        ] {
            session.text(sql).await.unwrap();
            let found = refuse_changed_values(&mut session, "t", During::Look).await;
            assert_eq!(matches!(&found, Err(Fault::Row(cause)) if cause.code == VALUE), refused, "{sql}: {found:?}");
        }
    }
}
