//! Whether letters may be written under the present terms: those that their delivery's progress was made under, as a run
//! compares them.
//!
//! Reads: stored progress, the live target's identity. Writes: nothing. Not here: what differs and its cure (`hapax-model`,
//! `hapax-engine`).

use hapax_engine::books::{Books as _, StoredDelivery};
use hapax_engine::sink::SinkError;
use hapax_model::contract::{Contract, TARGET};
use hapax_model::position::DeliveryId;

use crate::assemble::{AnyBooks, Live, Part, Purpose};
use crate::config::Config;
use crate::exit::Failure;

/// Refuses a replay where a run would refuse to go on: the rows would go into another table, or get other keys, than those
/// that were delivered, and the letters would count as delivered.
pub(super) async fn refuse_other_terms(
    part: &Part<'_>,
    books: &mut AnyBooks,
    live: &Live,
    config: &Config,
) -> Result<(), Failure> {
    let stored = books.deliveries().await?;
    let now = part.contract_by(live, config, Purpose::Look).await?;
    match changed(&part.id(), &stored, &now) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// What differs. A lane without progress has letters of its earlier names: of the terms of those only the target is its own.
fn changed(id: &DeliveryId, stored: &[StoredDelivery], now: &Contract) -> Option<SinkError> {
    let of_sink = |found: &&StoredDelivery| found.id.workflow == id.workflow && found.id.sink == id.sink;
    let differences = match stored.iter().find(|found| found.id == *id) {
        Some(found) => found.progress.contract.differences(now),
        None => {
            let others: Vec<&StoredDelivery> = stored.iter().filter(of_sink).collect();
            let same = |found: &&StoredDelivery| found.progress.contract.fact(TARGET) == now.fact(TARGET);
            let first = others.first().filter(|_| !others.iter().any(same))?;
            let differences = first.progress.contract.differences(now);
            differences.into_iter().filter(|difference| difference.name == TARGET).collect()
        }
    };
    (!differences.is_empty()).then(|| SinkError::ContractChanged { id: id.clone(), differences })
}
