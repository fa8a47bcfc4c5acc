use hapax_engine::sink::Reaction;
use hapax_model::epoch::Epoch;
use hapax_sql::postgres::CommitEnd;

use super::super::sample::Place;
use super::*;

fn fault(class: FaultClass, sqlstate: &str) -> SqlFault {
    SqlFault { class, sqlstate: Some(sqlstate.to_owned()), ..SqlFault::lost("said so") }
}

/// Goal: each class of errors has the reaction that the protocol names. Method: one of each, in an epoch.
#[test]
fn each_class_of_errors_has_its_reaction() {
    let during = During::Epoch(Epoch(3));
    for (class, state, code, reaction) in [
        (FaultClass::Row, "23505", "HX4007", Reaction::Retry),
        (FaultClass::Again, "40P01", "HX4007", Reaction::Retry),
        (FaultClass::Again, "55P03", "HX4003", Reaction::Retry),
        (FaultClass::Reconnect, "57P01", "HX4002", Reaction::Retry),
        (FaultClass::Reconnect, "53100", "HX4002", Reaction::Retry),
        (FaultClass::ReadOnly, "25006", "HX4002", Reaction::Retry),
        (FaultClass::Schema, "42P01", "HX4011", Reaction::Stop(1)),
        (FaultClass::Denied, "42501", "HX4016", Reaction::Stop(1)),
    ] {
        let error = sink_error("postgres://here", during, &fault(class, state));
        assert_eq!((error.code(), error.reaction()), (code, reaction), "{state}: {error}");
    }
    let full = sink_error("postgres://here", during, &fault(FaultClass::Reconnect, "53100")).to_string();
    assert!(full.contains("free space on the server"), "{full}");
}

/// Goal: what was being done decides what a failed statement and a failed COMMIT mean. Method: each, at each step.
#[test]
fn a_commit_without_an_answer_is_in_doubt_only_in_an_epoch() {
    for (during, rolled_back, in_doubt) in [
        (During::Look, "HX4002", "HX4002"),
        (During::Claim, "HX4004", "HX4004"),
        (During::Epoch(Epoch(1)), "HX4007", "HX4006"),
    ] {
        let end = CommitEnd::RolledBack { fault: Box::new(fault(FaultClass::Again, "40001")) };
        assert_eq!(after_commit("here", during, end).unwrap_err().code(), rolled_back);
        let end = CommitEnd::InDoubt { message: "no answer".to_owned() };
        assert_eq!(after_commit("here", during, end).unwrap_err().code(), in_doubt);
        after_commit("here", during, CommitEnd::Committed).unwrap();
    }
}

/// Goal: on our own tables, what is missing, foreign or not allowed has its own code and cure. Method: one of each.
#[tokio::test]
async fn errors_on_our_own_tables_have_a_cure() {
    let place = Place::new().await;
    let session = place.bare().await;
    for (class, state, code, cure) in [
        (FaultClass::Schema, "42P01", "HX4015", "hapax setup"),
        (FaultClass::Schema, "3F000", "HX4015", "hapax setup"),
        (FaultClass::Schema, "42P07", FOREIGN_TABLES, "rename or drop it"),
        (FaultClass::Schema, "0A000", "HX4015", "said so"),
        (FaultClass::Denied, "42501", "HX4016", "GRANT USAGE ON SCHEMA hapax TO \"postgres\""),
        (FaultClass::Reconnect, "08006", "HX4002", "said so"),
    ] {
        let error = own_error(&session, During::Look, &fault(class, state));
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(cure), "{error}");
    }
}

/// Goal: a message names the target once. Method: errors whose text begins with it, and one whose does not.
#[test]
fn a_failed_connection_names_its_target_once() {
    let target = "postgres://a@here:1/b";
    let error = ConnectError::Unreachable { target: target.to_owned(), message: "refused".to_owned() };
    let text = connect_error(target, &error).to_string();
    assert!(text.starts_with("postgres://a@here:1/b: cannot be reached: refused"), "{text}");
    let error = ConnectError::Password { target: target.to_owned(), message: "no".to_owned() };
    assert_eq!(connect_error(target, &error).code(), "HX4202");
}
