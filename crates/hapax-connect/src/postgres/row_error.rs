//! Whose fault an error is that came while rows were written: the row's, the table's, or the target's.

use std::error::Error as _;

use hapax_model::letter::{Cause, Stage};
use hapax_sql::postgres::{FaultClass, Session, SqlFault};
use tokio_postgres::Error;

use super::encode::Refusal;
use super::error::{During, sink_error};
use crate::table::tries::Fault;
use crate::table::words;

/// A value that the server cannot take: its form, its range, its length, its characters.
pub const VALUE: &str = "HX2050";
/// A rule of the table that is none of the usual ones, such as an exclusion constraint.
pub const RULE: &str = "HX2051";

/// One of our statements names a row twice: its rows must be written one by one.
const TWICE: &str = "21000";

/// What an error of a statement that writes rows means.
pub(super) fn fault(session: &Session, target: &str, during: During, error: &Error) -> Fault {
    if let Some(refusal) = error.source().and_then(|source| source.downcast_ref::<Refusal>()) {
        return Fault::Row(refusal.0.clone());
    }
    of(target, during, &session.fault(error))
}

fn of(target: &str, during: During, fault: &SqlFault) -> Fault {
    match fault.class {
        FaultClass::Row => Fault::Row(cause(fault)),
        FaultClass::Schema if concerns_table(fault) => Fault::Schema(fault.to_string()),
        FaultClass::Schema => Fault::Row(cause(fault)),
        FaultClass::Again if fault.sqlstate.as_deref().is_some_and(|state| state.starts_with("40")) => {
            Fault::Again(sink_error(target, during, fault))
        }
        FaultClass::Again | FaultClass::Reconnect | FaultClass::Denied | FaultClass::ReadOnly => {
            Fault::Target(sink_error(target, during, fault))
        }
    }
}

/// Whether the statement does not fit the table. What else is of no known class is the row's: a trigger may raise any
/// SQLSTATE that it likes, and a value that the driver cannot put into a message has none.
fn concerns_table(fault: &SqlFault) -> bool {
    let state = fault.sqlstate.as_deref().unwrap_or_default();
    ["42", "0A", "3D", "3F", "55"].iter().any(|class| state.starts_with(class))
}

fn cause(fault: &SqlFault) -> Cause {
    let state = fault.sqlstate.as_deref().unwrap_or_default();
    let code = match state {
        "23502" => "HX2030",
        "23505" => "HX2031",
        "23514" => "HX2032",
        "23503" | "23001" => "HX2033",
        "54000" | "54001" | "54011" | "54023" => "HX2035",
        "P0001" => "HX2036",
        _ if state.starts_with("22") || state.is_empty() => VALUE,
        _ if state.starts_with("P0") || state.starts_with("38") || state.starts_with("39") => "HX2037",
        _ if state.starts_with("23") || state.starts_with("44") || state == TWICE => RULE,
        // Of no known class: only a trigger can have raised it.
        _ => "HX2036",
    };
    Cause { stage: Stage::Write, code, message: fault.to_string(), fingerprint: fingerprint(fault, state) }
}

/// What letters of one cause share: the rule by its name where the server gives it, else the words without values.
fn fingerprint(fault: &SqlFault, state: &str) -> String {
    let place = [("constraint", &fault.constraint), ("column", &fault.column), ("type", &fault.datatype)];
    words::fingerprint(state, &place, || without_values(&fault.message))
}

/// The message with what may be a row's own value taken out: runs of digits, and text in quotes.
fn without_values(message: &str) -> String {
    // `invalid input value for enum mood: "…"`: the value goes to the end, whatever quotes it has of its own.
    if let Some((words, _)) = message.split_once(": \"").filter(|_| message.ends_with('"')) {
        return format!("{}: \"…\"", without_values(words));
    }
    words::without_values(message, &['\'', '"'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(state: &str, message: &str) -> SqlFault {
        SqlFault {
            class: hapax_sql::postgres::class_of(state),
            sqlstate: Some(state.to_owned()),
            ..SqlFault { message: message.to_owned(), ..SqlFault::lost("") }
        }
    }

    /// Goal: a row's fault has its code, the target's is no row's. Method: one of each class.
    #[test]
    fn every_error_has_its_culprit() {
        let code = |state| match of("t", During::Look, &server(state, "x")) {
            Fault::Row(cause) => cause.code,
            Fault::Schema(_) => "schema",
            Fault::Again(_) => "again",
            Fault::Target(_) => "target",
        };
        for (state, expected) in [
            ("22001", VALUE),
            ("22003", VALUE),
            ("22P02", VALUE),
            ("23502", "HX2030"),
            ("23505", "HX2031"),
            ("23514", "HX2032"),
            ("23503", "HX2033"),
            ("23P01", "HX2051"),
            ("54000", "HX2035"),
            ("P0001", "HX2036"),
            ("21000", "HX2051"),
            ("45000", "HX2036"),
            ("ABC01", "HX2036"),
            ("0A000", "schema"),
            ("42703", "schema"),
            ("40P01", "again"),
            ("40001", "again"),
            ("55P03", "target"),
            ("57014", "target"),
            ("53100", "target"),
            ("42501", "target"),
            ("25006", "target"),
        ] {
            assert_eq!(code(state), expected, "{state}");
        }
    }

    /// Goal: one cause has one fingerprint whatever the row holds. Method: two rows, with and without a named rule.
    #[test]
    fn a_fingerprint_leaves_the_rows_values_out() {
        let print = |message: &str| fingerprint(&server("22P02", message), "22P02");
        assert_eq!(print("invalid input for type mood: \"x 1\""), print("invalid input for type mood: \"y 23\""));
        assert_eq!(
            print("invalid input for type mood: \"x\""),
            print("invalid input for type mood: \"[\"a\", \"b\"]\"")
        );
        let named = SqlFault { constraint: Some("t_pkey".into()), ..server("23505", "duplicate key 7") };
        assert_eq!(fingerprint(&named, "23505"), "23505: constraint \"t_pkey\"");
    }
}
