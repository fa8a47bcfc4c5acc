//! Readers: one that follows a partition and keeps its place in a group without members, one that asks a single broker where
//! logs end and begin, whoever leads.

use std::sync::Arc;
use std::time::Duration;

use hapax_kafka::records::FetchedBatch;
use hapax_kafka::{At, Client, ClientError, Connection, Membership};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{BrokerId, ListOffsetsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::{PARTITIONS, Pace, Shared, TOPIC, outcome_of};
use crate::broker::history::{Answer, Ask, Name, Outcome};

const PAUSE: Duration = Duration::from_millis(15);
/// Groups without members have numbers from here on.
const ALONE: u32 = 100;

/// Reads from an offset on, writes it down, and tells where it goes on.
pub(super) async fn read(shared: &Shared, process: u32, client: &mut Client, partition: i32, from: i64) -> i64 {
    let invoked = shared.recorder.now();
    let ask = Ask::Read { partition, from };
    match client.fetch((TOPIC, partition), from, Duration::from_millis(200), 1 << 20).await {
        Ok(fetched) => {
            // A batch may stand for offsets that compaction has emptied.
            let next = fetched.batches.iter().map(|batch| batch.last_offset + 1).fold(from, i64::max);
            let answer = Answer::Records { records: named(fetched.batches, from), end: fetched.high_watermark };
            shared.recorder.note(process, invoked, ask, Outcome::Ok(answer));
            next
        }
        Err(error) => {
            let (outcome, next) = match error.code() {
                Some(ResponseError::OffsetOutOfRange) => out_of_range(client, partition, from).await,
                _ => (outcome_of(&error), from),
            };
            shared.recorder.note(process, invoked, ask, outcome);
            tokio::time::sleep(PAUSE).await;
            next
        }
    }
}

/// Whether an offset is before the start or beyond the end, and where it goes on: at the start, as most consumers do.
async fn out_of_range(client: &mut Client, partition: i32, from: i64) -> (Outcome, i64) {
    match client.offset(TOPIC, partition, At::Start).await {
        Ok(start) if start > from => (Outcome::Ok(Answer::Gone), start),
        Ok(start) => (Outcome::Ok(Answer::Beyond), start),
        Err(error) => (Outcome::Unknown(format!("out of range, and then: {error}")), from),
    }
}

fn named(batches: Vec<FetchedBatch>, from: i64) -> Vec<(i64, Option<Name>)> {
    let records = batches.into_iter().flat_map(|batch| batch.records).filter(|record| record.offset >= from);
    records.map(|record| (record.offset, record.value.as_deref().and_then(Name::read))).collect()
}

/// Commits where a group goes on, and writes it down. Whether it is committed.
pub(super) async fn commit(
    shared: &Shared,
    process: u32,
    client: &mut Client,
    (group, membership): (u32, &Membership),
    (partition, offset): (i32, i64),
) -> Result<(), ClientError> {
    let invoked = shared.recorder.now();
    let done = client.commit_offset(&group_name(group), membership, (TOPIC, partition), offset).await;
    let outcome = match &done {
        Ok(()) => Outcome::Ok(Answer::Done),
        Err(error) => outcome_of(error),
    };
    shared.recorder.note(process, invoked, Ask::Commit { group, partition, offset }, outcome);
    done
}

/// Asks for a group's offset, and writes the answer down.
pub(super) async fn committed(
    shared: &Shared,
    process: u32,
    client: &mut Client,
    group: u32,
    partition: i32,
) -> Result<Option<i64>, ClientError> {
    let invoked = shared.recorder.now();
    let offset = client.committed_offset(&group_name(group), (TOPIC, partition)).await?;
    let ask = Ask::Committed { group, partition };
    shared.recorder.note(process, invoked, ask, Outcome::Ok(Answer::Offset(offset)));
    Ok(offset)
}

pub(super) fn group_name(group: u32) -> String {
    format!("group-{group}")
}

/// Follows a partition until the run ends.
pub(super) async fn follow(shared: Arc<Shared>, process: u32, partition: i32) {
    let mut client = shared.client(process, Duration::from_secs(3));
    let group = ALONE + partition.unsigned_abs();
    let nobody = Membership::default();
    let (mut next, mut kept) = (0, 0);
    while shared.pace() != Pace::Finish {
        next = read(&shared, process, &mut client, partition, next).await;
        if next > kept {
            // A commit whose outcome is unknown may still be done: the next is larger in any case.
            let done = commit(&shared, process, &mut client, (group, &nobody), (partition, next)).await;
            kept = next;
            let asked = committed(&shared, process, &mut client, group, partition).await;
            if done.is_err() || asked.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    // Once more at the end, when all is quiet.
    drop(committed(&shared, process, &mut client, group, partition).await);
}

/// Asks one broker where logs end and begin until the run ends, whoever leads.
pub(super) async fn ask(shared: Arc<Shared>, process: u32, address: String) {
    while shared.pace() != Pace::Finish {
        let options = shared.options(process, Duration::from_secs(20));
        let Ok(mut connection) = Connection::connect(&address, &options).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while connection.is_usable() && shared.pace() != Pace::Finish {
            for partition in 0..PARTITIONS {
                for at in [At::End, At::Start] {
                    ask_one(&shared, process, &mut connection, (partition, at)).await;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn ask_one(shared: &Shared, process: u32, connection: &mut Connection, (partition, at): (i32, At)) {
    let timestamp = if at == At::Start { -2 } else { -1 };
    let wanted = ListOffsetsPartition::default()
        .with_partition_index(partition)
        .with_current_leader_epoch(-1)
        .with_timestamp(timestamp);
    let name = TopicName(StrBytes::from_static_str(TOPIC));
    let topic = ListOffsetsTopic::default().with_name(name).with_partitions(vec![wanted]);
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    let invoked = shared.recorder.now();
    let Ok(version) = connection.version::<ListOffsetsRequest>(i16::MAX) else { return };
    let answer = tokio::select! {
        answer = connection.call_at(version, &request) => answer,
        () = ended(shared) => return,
    };
    let Ok(answer) = answer else { return };
    let found = answer.topics.first().and_then(|topic| topic.partitions.first());
    if let Some(found) = found.filter(|found| found.error_code == 0) {
        let (ask, answer) = match at {
            At::Start => (Ask::Start { partition }, Answer::Start(found.offset)),
            At::End | At::Time(_) => (Ask::End { partition }, Answer::End(found.offset)),
        };
        shared.recorder.note(process, invoked, ask, Outcome::Ok(answer));
    }
}

async fn ended(shared: &Shared) {
    while shared.pace() != Pace::Finish {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
