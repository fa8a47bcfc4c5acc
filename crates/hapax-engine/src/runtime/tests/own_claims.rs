//! Claims after doubt whose answers are lost: a worker's own, and another's.

use super::scripted::ClaimFault;
use super::*;

/// Goal: a worker whose claims after doubt land and are not answered knows them for its own: nobody took over, nothing is
/// dropped or read again. Method: more of them in a minute than a fenced worker may claim again, each after each fault of the
/// commit, several in a row too.
#[tokio::test(start_paused = true)]
async fn a_worker_knows_its_own_claim_whose_answer_was_lost() {
    let lines: Vec<String> = (0..8).map(|id| format!(r#"{{"id":{id}}}"#)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for fault in [Fault::AnswerLost, Fault::RequestLost, Fault::RolledBack] {
        for lost in [ClaimFault::AnswerLost, ClaimFault::ThenInDoubt] {
            for after_doubt in [AfterDoubt::CommitAgain, AfterDoubt::GiveUp] {
                let what = format!("{fault:?}, {lost:?}, {after_doubt:?}");
                let world = Shared::default();
                world.lock().faults = [Some(fault), None].repeat(6).into();
                world.lock().reclaims = [Some(lost), None, Some(lost), Some(lost), None].repeat(6).into();
                let epoch = EpochBounds { max_events: 1, ..settings().epoch };
                let settings = Settings { epoch, after_doubt, ..settings() };
                let (end, reading) = run(settings, Lines::new(&lines), &world, &MemoryState::new("a")).await;
                assert_eq!(end, DeliveryEnd::Finished, "{what}");
                assert_eq!(reading.fenced, 0, "{what}");
                let given_up = after_doubt == AfterDoubt::GiveUp && fault == Fault::RequestLost;
                let letters = world.lock().letters.len();
                assert_eq!(letters > 0, given_up, "{what}: only what was in doubt and did not land is given up");
                assert_eq!(world.lock().rows.len() + letters, lines.len(), "{what}");
                assert!(reading.ledger.adds_up(), "{what}");
            }
        }
    }
}

/// Goal: whoever took over while the answer to a claim was lost is not fenced again. Method: another name, and another
/// process of the same name, known by what it has delivered.
#[tokio::test(start_paused = true)]
async fn another_workers_claim_is_not_taken_for_an_own_one() {
    for stolen in [ClaimFault::Stolen, ClaimFault::StolenByNamesake] {
        let world = Shared::default();
        world.lock().faults = vec![Some(Fault::RequestLost)].into();
        world.lock().reclaims = vec![Some(stolen)].into();
        let (_, reading) = run(settings(), Lines::new(&THREE), &world, &MemoryState::new("a")).await;
        assert_eq!(reading.fenced, 1, "{stolen:?}");
    }
}
