//! Settings of a delivery for benches: defaults, one key field.

use std::sync::Arc;

use hapax_engine::decode::UnknownFields;
use hapax_engine::memory::MemoryBudget;
use hapax_engine::runtime::{AfterDoubt, Control, Meter, Settings};
use hapax_engine::source::{Follow, StartAt};
use hapax_engine::state::TakeOver;
use hapax_model::contract::Contract;
use hapax_model::delivery::{EpochBounds, Retries};
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::position::DeliveryId;
use hapax_model::rejects::{OnReject, RejectRule};
use tokio::sync::watch;

pub(crate) fn keyed_by(field: &str) -> Settings {
    let strategy = DedupStrategy::content_fields(vec![FieldPath::of_name(field)]);
    Settings {
        id: DeliveryId { workflow: "bench".into(), sink: "bench".into(), lane: "0".into() },
        after_doubt: AfterDoubt::CommitAgain,
        start: StartAt::Earliest,
        follow: Follow::No,
        epoch: EpochBounds::default(),
        retries: Retries::default(),
        rejects: RejectRule::new(OnReject::DeadLetter, 100),
        lease: std::time::Duration::from_secs(5),
        take_over: TakeOver::Never,
        contract: Contract::default(),
        configured: [].into(),
        session: "bench".into(),
        keyer: Keyer::new(strategy, Uniqueness::WithVersion, KeyNeed::Entity),
        delete_when: None,
        unknown_fields: UnknownFields::Counted,
        transform: None,
    }
}

pub(crate) fn control() -> Control {
    let (stop, receiver) = watch::channel(false);
    std::mem::forget(stop); // a bench is never asked to stop
    Control { stop: receiver, memory: MemoryBudget::new(256 * 1024 * 1024), meter: Arc::new(Meter::default()) }
}
