//! Producers without sequences: one that follows the leader, and one that never leaves its broker.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_kafka::batch::{self, BatchHeader, NewRecord};
use hapax_kafka::{Acks, ClientError, Connection, Delivery, delivery, produce_request};
use kafka_protocol::messages::ProduceRequest;

use super::{PARTITIONS, Pace, Shared, TOPIC, outcome_of, record};
use crate::broker::history::{Answer, Ask, Moment, Name, Outcome, Way};

const PAUSE: Duration = Duration::from_millis(40);
/// The stubborn ones always have something under way at a broker that leads.
const BREATH: Duration = Duration::from_millis(3);
/// How often a batch is tried: what is tried again may be there twice.
const TRIES: u32 = 3;

fn make(process: u32, first: u64, count: u32) -> Bytes {
    let named = |number| record(Name { process, number }, 60);
    let records: Vec<NewRecord> = (first..first + u64::from(count)).map(named).collect();
    batch::encode(BatchHeader::PLAIN, &records)
}

fn note(
    shared: &Shared,
    process: u32,
    invoked: Moment,
    (partition, first, count): (i32, u64, u32),
    result: &Result<Delivery, ClientError>,
) {
    let ask = Ask::Produce { partition, first, count, way: Way::Plain };
    let outcome = match result {
        Ok(delivery) => Outcome::Ok(Answer::Appended(delivery.base_offset)),
        Err(error) => outcome_of(error),
    };
    shared.recorder.note(process, invoked, ask, outcome);
}

/// Writes to the leader of one partition until the run ends.
pub(super) async fn run(shared: Arc<Shared>, process: u32, partition: i32) {
    let mut client = shared.client(process, Duration::from_secs(2));
    let mut random = fastrand::Rng::with_seed(shared.seed ^ u64::from(process));
    let mut first = 0;
    loop {
        match shared.pace() {
            Pace::Finish => return,
            Pace::Quiet | Pace::Stubborn => tokio::time::sleep(PAUSE).await,
            Pace::Run => {
                let count = random.u32(1..4);
                let bytes = make(process, first, count);
                for _ in 0..TRIES {
                    let invoked = shared.recorder.now();
                    let result = client.produce((TOPIC, partition), bytes.clone(), Acks::All).await;
                    note(&shared, process, invoked, (partition, first, count), &result);
                    if result.is_ok() || shared.pace() != Pace::Run {
                        break;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                first += u64::from(count);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// How long the stubborn one waits: a broker that is stopped keeps its request until it goes on.
const STUBBORN: Duration = Duration::from_secs(40);

/// Writes to this broker whoever leads, and waits long for its answer: what a broker that lost its place says yes to must
/// be in the log all the same.
pub(super) async fn stubborn(shared: Arc<Shared>, process: u32, address: String) {
    let mut first = 0;
    while shared.pace() != Pace::Finish {
        let Ok(mut connection) = Connection::connect(&address, &shared.options(process, STUBBORN)).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while connection.is_usable() && shared.pace() != Pace::Finish {
            if shared.pace() == Pace::Quiet {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let Ok(version) = connection.version::<ProduceRequest>(12) else { break };
            let partition = i32::try_from(first).unwrap_or(0) % PARTITIONS;
            let invoked = shared.recorder.now();
            let request = produce_request(TOPIC, partition, make(process, first, 1), Acks::All, STUBBORN);
            let answered = tokio::select! {
                answer = connection.call_at(version, &request) => Some(answer),
                () = finished(&shared) => None,
            };
            let result = answered
                .unwrap_or_else(|| Err(ClientError::Late { address: address.clone() }))
                .and_then(|answer| delivery(&answer, TOPIC, partition));
            // A broker that lost its place in the middle says the same as one that never led: what it got may be there.
            note(&shared, process, invoked, (partition, first, 1), &result);
            first += 1;
            tokio::time::sleep(if result.is_ok() { BREATH } else { PAUSE }).await;
        }
    }
}

/// A while after the run has ended.
async fn finished(shared: &Shared) {
    while shared.pace() != Pace::Finish {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
}
