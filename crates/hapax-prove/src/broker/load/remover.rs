//! Tells logs to begin later, again and again, by DeleteRecords.

use std::sync::Arc;
use std::time::Duration;

use hapax_kafka::{At, Client, ClientError};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::{DeleteRecordsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::{PARTITIONS, Pace, Shared, TOPIC, outcome_of};
use crate::broker::history::{Answer, Ask, Outcome};

const PAUSE: Duration = Duration::from_millis(30);

/// Removes until the run ends.
pub(super) async fn run(shared: Arc<Shared>, process: u32) {
    let mut client = shared.client(process, Duration::from_secs(3));
    let mut random = fastrand::Rng::with_seed(shared.seed ^ u64::from(process));
    while shared.pace() != Pace::Finish {
        tokio::time::sleep(PAUSE).await;
        let partition = random.i32(0..PARTITIONS);
        let Ok(start) = client.offset(TOPIC, partition, At::Start).await else { continue };
        let Ok(end) = client.offset(TOPIC, partition, At::End).await else { continue };
        if start >= end {
            continue;
        }
        // Up to anywhere, in the middle of batches too; now and then up to the very end.
        let upto = if random.u8(0..10) == 0 { end } else { random.i64(start..end) };
        let invoked = shared.recorder.now();
        let outcome = match delete(&mut client, partition, upto).await {
            Ok(start) => Outcome::Ok(Answer::Start(start)),
            Err(error) => outcome_of(&error),
        };
        shared.recorder.note(process, invoked, Ask::Delete { partition, upto }, outcome);
    }
}

/// Where the log begins then.
async fn delete(client: &mut Client, partition: i32, upto: i64) -> Result<i64, ClientError> {
    let wanted = DeleteRecordsPartition::default().with_partition_index(partition).with_offset(upto);
    let name = TopicName(StrBytes::from_static_str(TOPIC));
    let topic = DeleteRecordsTopic::default().with_name(name).with_partitions(vec![wanted]);
    let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(3_000);
    let answer = client.at_leader((TOPIC, partition), i16::MAX, &request).await?;
    let found = answer.topics.first().and_then(|topic| topic.partitions.first());
    let (code, start) = found.map_or((-1, -1), |found| (found.error_code, found.low_watermark));
    match ResponseError::try_from_code(code) {
        None => Ok(start),
        Some(code) => {
            if Client::is_elsewhere(code) {
                client.forget(TOPIC, partition);
            }
            Err(ClientError::Refused { what: format!("records of {TOPIC}-{partition} could not be removed"), code })
        }
    }
}
